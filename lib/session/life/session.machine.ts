import { setup } from 'xstate';
import type { SessionActions, SessionEvent } from './chart.ts';

/**
 * The lifecycle of a session.
 *
 * Transitions depend only on the state and the event, so that they can be computed once and replayed for every session.
 */
export const sessionMachine = setup({
  types: {} as { context: { session: SessionActions }; input: { session: SessionActions }; events: SessionEvent },
  actions: {
    awaitConnect: ({ context }) => context.session.awaitConnect(),
    authenticate: ({ context }) => context.session.authenticate(),
    admit: ({ context }) => context.session.admit(),
    goLive: ({ context }) => context.session.goLive(),
    release: ({ context }) => context.session.release(),
    awaitExpiry: ({ context }) => context.session.awaitExpiry(),
    cancelExpiry: ({ context }) => context.session.cancelExpiry(),
    forget: ({ context }) => context.session.forget()
  }
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
      exit: 'release',
      on: { detached: 'disconnected', closed: 'gone', takenOver: { target: 'connected', reenter: true } }
    },
    disconnected: {
      entry: 'awaitExpiry',
      exit: 'cancelExpiry',
      on: { resumed: 'connected', expired: 'gone', discarded: 'gone' }
    },
    gone: { type: 'final', entry: 'forget' }
  }
});
