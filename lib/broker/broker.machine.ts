import { setup } from 'xstate';
import { once } from '../base/builtins.ts';
import type { BrokerActions, BrokerEvent } from './chart.ts';

/** The lifecycle of a broker: idle (created or starting), connected (accepting), disconnected (disconnecting its clients, then stopped). */
export const brokerMachine = once(() =>
  setup({
    types: {} as { context: { broker: BrokerActions }; input: { broker: BrokerActions }; events: BrokerEvent },
    actions: {
      open: ({ context }) => context.broker.open(),
      accept: ({ context }) => context.broker.accept(),
      drain: ({ context }) => context.broker.drain(),
      release: ({ context }) => context.broker.release()
    }
  }).createMachine({
    id: 'broker',
    context: ({ input }) => ({ broker: input.broker }),
    initial: 'idle',
    states: {
      idle: {
        initial: 'built',
        states: {
          built: { on: { start: 'starting', stop: '#broker.disconnected.stopped' } },
          starting: { entry: 'open', on: { started: '#broker.connected', failed: 'built' } }
        }
      },
      connected: { entry: 'accept', on: { stop: 'disconnected.draining' } },
      disconnected: {
        initial: 'stopped',
        states: {
          draining: { entry: 'drain', on: { stopped: 'stopped' } },
          stopped: { entry: 'release', on: { start: '#broker.idle.starting' } }
        }
      }
    }
  })
);
