import { setup } from 'xstate';
import type { SessionActions, SessionEvent } from './actions.ts';

/**
 * The life of a session. Guards depend on nothing but state and event, so what the machine does can be learnt once and replayed.
 */
export const sessionMachine = setup({
  types: {} as { context: { session: SessionActions }; input: { session: SessionActions }; events: SessionEvent },
  actions: {
    awaitConnect: ({ context }) => context.session.awaitConnect(),
    authenticate: ({ context }) => context.session.authenticate(),
    admit: ({ context }) => context.session.admit(),
    goLive: ({ context }) => context.session.goLive(),
    reauthenticate: ({ context }) => context.session.reauthenticate(),
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
      entry: 'admit',
      exit: 'release',
      initial: 'live',
      states: {
        live: { entry: 'goLive', on: { reauthenticate: 'reauthenticating' } },
        reauthenticating: { entry: 'reauthenticate', on: { reauthenticated: 'live' } }
      },
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
