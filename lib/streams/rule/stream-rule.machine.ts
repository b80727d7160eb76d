import { setup } from 'xstate';
import type { StreamRuleActions, StreamRuleEvent } from '../chart.ts';

/**
 * The lifecycle of a stream rule: idle (defined, never started), connected (running, rows flow), disconnected (stopped, with a reason; it may
 * start again by its schedule or its restart strategy).
 */
export const streamRuleMachine = setup({
  types: {} as { context: { rule: StreamRuleActions }; input: { rule: StreamRuleActions }; events: StreamRuleEvent },
  actions: {
    run: ({ context }) => context.rule.run(),
    halt: ({ context }) => context.rule.halt(),
    awaitStart: ({ context }) => context.rule.awaitStart(),
    cancelStart: ({ context }) => context.rule.cancelStart(),
    forget: ({ context }) => context.rule.forget()
  }
}).createMachine({
  id: 'streamRule',
  context: ({ input }) => ({ rule: input.rule }),
  initial: 'idle',
  states: {
    idle: { on: { started: 'connected', failed: 'disconnected', stopped: 'disconnected', dropped: 'gone' } },
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
      entry: 'awaitStart',
      exit: 'cancelStart',
      on: {
        started: 'connected',
        failed: { target: 'disconnected', reenter: true },
        stopped: { target: 'disconnected', reenter: true },
        dropped: 'gone'
      }
    },
    gone: { type: 'final', entry: 'forget' }
  }
});
