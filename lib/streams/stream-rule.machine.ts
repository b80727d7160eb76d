import { setup } from 'xstate';
import { type StreamRuleActions, type StreamRuleEvent, streamRuleChart } from './chart.ts';

/** `streamRuleChart` as a machine of xstate. */
export const streamRuleMachine = setup({
  types: {} as { context: { rule: StreamRuleActions }; input: { rule: StreamRuleActions }; events: StreamRuleEvent },
  actions: {
    run: ({ context }) => context.rule.run(),
    halt: ({ context }) => context.rule.halt(),
    awaitStart: ({ context }) => context.rule.awaitStart(),
    cancelStart: ({ context }) => context.rule.cancelStart(),
    forget: ({ context }) => context.rule.forget()
  }
}).createMachine({ ...streamRuleChart, context: ({ input }) => ({ rule: input.rule }) });
