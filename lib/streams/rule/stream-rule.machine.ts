import { setup } from 'xstate';
import { once } from '../../base/builtins.ts';
import type { StreamRuleActions, StreamRuleEvent } from '../chart.ts';

/**
 * The lifecycle of a stream rule: idle (defined, or starting for the first time), connected (running, rows flow), disconnected (stopped, with a
 * reason; it may start again by its schedule or its restart strategy).
 */
export const streamRuleMachine = once(() =>
  setup({
    types: {} as { context: { rule: StreamRuleActions }; input: { rule: StreamRuleActions }; events: StreamRuleEvent },
    actions: {
      begin: ({ context }) => context.rule.begin(),
      refuse: ({ context }) => context.rule.refuse(),
      run: ({ context }) => context.rule.run(),
      halt: ({ context }) => context.rule.halt(),
      awaitStart: ({ context }) => context.rule.awaitStart(),
      cancelStart: ({ context }) => context.rule.cancelStart(),
      forget: ({ context }) => context.rule.forget()
    },
    guards: { isValid: ({ context }) => context.rule.isValid() }
  }).createMachine({
    id: 'streamRule',
    context: ({ input }) => ({ rule: input.rule }),
    initial: 'idle',
    states: {
      idle: {
        initial: 'defined',
        states: { defined: {}, starting: { entry: 'begin' } },
        on: {
          start: [{ guard: 'isValid', target: '.starting' }, { actions: 'refuse' }],
          started: 'connected',
          failed: 'disconnected',
          stopped: 'disconnected',
          dropped: 'gone'
        }
      },
      connected: {
        entry: 'run',
        exit: 'halt',
        on: {
          started: { target: 'connected', reenter: true },
          stopped: 'disconnected',
          failed: 'disconnected',
          dropped: 'gone'
        }
      },
      disconnected: {
        initial: 'waiting',
        entry: 'awaitStart',
        exit: 'cancelStart',
        states: { waiting: {}, starting: { entry: 'begin' } },
        on: {
          start: [{ guard: 'isValid', target: '.starting' }, { actions: 'refuse' }],
          started: 'connected',
          failed: { target: 'disconnected', reenter: true },
          stopped: { target: 'disconnected', reenter: true },
          dropped: 'gone'
        }
      },
      gone: { type: 'final', entry: 'forget' }
    }
  })
);
