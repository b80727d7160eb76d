import { type StateValue, setup } from 'xstate';
import { once } from '../../base/builtins.ts';
import type { SessionActions, SessionEvent } from './chart.ts';

/** The outermost state of the actor, which is the one that is left while actions are performed. */
function outermost(value: StateValue): string {
  return typeof value === 'string' ? value : Object.keys(value)[0];
}

/** The lifecycle of a session. */
export const sessionMachine = once(() =>
  setup({
    types: {} as { context: { session: SessionActions }; input: { session: SessionActions }; events: SessionEvent },
    actions: {
      awaitConnect: ({ context }) => context.session.awaitConnect(),
      authenticate: ({ context }) => context.session.authenticate(),
      admit: ({ context }) => context.session.admit(),
      goLive: ({ context }) => context.session.goLive(),
      release: ({ context }) => context.session.release(),
      awaitExpiry: ({ context }) => context.session.awaitExpiry(),
      cancelExpiry: ({ context }) => context.session.cancelExpiry(),
      forget: ({ context, self }) => context.session.forget(outermost(self.getSnapshot().value))
    },
    guards: { outlivesConnection: ({ context }) => context.session.outlivesConnection() }
  }).createMachine({
    id: 'session',
    context: ({ input }) => ({ session: input.session }),
    initial: 'idle',
    states: {
      idle: {
        initial: 'awaitingConnect',
        states: {
          awaitingConnect: { entry: 'awaitConnect', on: { connect: 'authenticating' } },
          authenticating: { entry: 'authenticate', on: { accepted: '#session.connected' } }
        },
        on: { handedOver: 'gone', closed: 'gone' }
      },
      connected: {
        entry: ['admit', 'goLive'],
        on: { closed: 'disconnected.closing', takenOver: 'disconnected.takenOver' }
      },
      disconnected: {
        initial: 'waiting',
        states: {
          closing: { entry: 'release', always: [{ guard: 'outlivesConnection', target: 'waiting' }, '#session.gone'] },
          takenOver: { entry: 'release', always: '#session.connected' },
          waiting: {
            entry: 'awaitExpiry',
            exit: 'cancelExpiry',
            on: { resumed: '#session.connected', expired: '#session.gone', discarded: '#session.gone' }
          }
        }
      },
      gone: { type: 'final', entry: 'forget' }
    }
  })
);
