import { setup } from 'xstate';
import { type BrokerActions, type BrokerEvent, brokerChart } from './chart.ts';

/** `brokerChart` as a machine of xstate. */
export const brokerMachine = setup({
  types: {} as { context: { broker: BrokerActions }; input: { broker: BrokerActions }; events: BrokerEvent },
  actions: {
    accept: ({ context }) => context.broker.accept(),
    drain: ({ context }) => context.broker.drain(),
    release: ({ context }) => context.broker.release()
  }
}).createMachine({ ...brokerChart, context: ({ input }) => ({ broker: input.broker }) });
