import { setup } from 'xstate';
import { type RuleActions, type RuleChartEvent, ruleChart } from './chart.ts';

/** `ruleChart` as a machine of xstate. */
export const ruleMachine = setup({
  types: {} as { context: { rule: RuleActions }; input: { rule: RuleActions }; events: RuleChartEvent },
  actions: {
    attach: ({ context }) => context.rule.attach(),
    detach: ({ context }) => context.rule.detach(),
    awaitRetry: ({ context }) => context.rule.awaitRetry(),
    cancelRetry: ({ context }) => context.rule.cancelRetry(),
    forget: ({ context }) => context.rule.forget()
  }
}).createMachine({ ...ruleChart, context: ({ input }) => ({ rule: input.rule }) });
