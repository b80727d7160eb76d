import { setup } from 'xstate';
import { once } from '../base/builtins.ts';
import type { RuleActions, RuleChartEvent } from './chart.ts';

/**
 * The lifecycle of a rule: idle (defined, and disabled or starting), connected (attached, events reach it), disconnected (its actions could not
 * be created; they are tried again later).
 */
export const ruleMachine = once(() =>
  setup({
    types: {} as { context: { rule: RuleActions }; input: { rule: RuleActions }; events: RuleChartEvent },
    actions: {
      begin: ({ context }) => context.rule.begin(),
      attach: ({ context }) => context.rule.attach(),
      detach: ({ context }) => context.rule.detach(),
      awaitRetry: ({ context }) => context.rule.awaitRetry(),
      cancelRetry: ({ context }) => context.rule.cancelRetry(),
      forget: ({ context }) => context.rule.forget()
    },
    guards: { isEnabled: ({ context }) => context.rule.isEnabled() }
  }).createMachine({
    id: 'rule',
    context: ({ input }) => ({ rule: input.rule }),
    initial: 'idle',
    states: {
      idle: {
        initial: 'defined',
        states: { defined: {}, starting: { entry: 'begin' } },
        on: {
          start: { guard: 'isEnabled', target: '.starting' },
          started: 'connected',
          failed: 'disconnected',
          disabled: '.defined',
          dropped: 'gone'
        }
      },
      connected: {
        entry: 'attach',
        exit: 'detach',
        on: {
          start: { guard: 'isEnabled', actions: 'begin' },
          failed: 'disconnected',
          disabled: 'idle',
          dropped: 'gone'
        }
      },
      disconnected: {
        initial: 'waiting',
        entry: 'awaitRetry',
        exit: 'cancelRetry',
        states: { waiting: {}, starting: { entry: 'begin' } },
        on: {
          start: { guard: 'isEnabled', target: '.starting' },
          started: 'connected',
          failed: { target: 'disconnected', reenter: true },
          disabled: 'idle',
          dropped: 'gone'
        }
      },
      gone: { type: 'final', entry: 'forget' }
    }
  })
);
