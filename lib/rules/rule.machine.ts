import { setup } from 'xstate';
import type { RuleActions, RuleChartEvent } from './chart.ts';

/**
 * The lifecycle of a rule: idle (defined, disabled), connected (attached, events reach it), disconnected (its actions could not be made; tried
 * again later).
 */
export const ruleMachine = setup({
  types: {} as { context: { rule: RuleActions }; input: { rule: RuleActions }; events: RuleChartEvent },
  actions: {
    attach: ({ context }) => context.rule.attach(),
    detach: ({ context }) => context.rule.detach(),
    awaitRetry: ({ context }) => context.rule.awaitRetry(),
    cancelRetry: ({ context }) => context.rule.cancelRetry(),
    forget: ({ context }) => context.rule.forget()
  }
}).createMachine({
  id: 'rule',
  context: ({ input }) => ({ rule: input.rule }),
  initial: 'idle',
  states: {
    idle: { on: { attached: 'connected', failed: 'disconnected', dropped: 'gone' } },
    connected: {
      entry: 'attach',
      exit: 'detach',
      on: { disabled: 'idle', failed: 'disconnected', dropped: 'gone' }
    },
    disconnected: {
      entry: 'awaitRetry',
      exit: 'cancelRetry',
      on: {
        attached: 'connected',
        failed: { target: 'disconnected', reenter: true },
        disabled: 'idle',
        dropped: 'gone'
      }
    },
    gone: { type: 'final', entry: 'forget' }
  }
});
