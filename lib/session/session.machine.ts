import { setup } from 'xstate';

/** The deeds that the session's chart names. `Session` does them. */
export interface SessionDeeds {
  /** Only CONNECT is read; the CONNECT timeout runs. */
  awaitConnect(): void;
  /** The CONNECT is being decided on. */
  authenticate(): void;
  /** CONNACK has gone out: the connection is the session's. */
  admit(): void;
  /** All packets of a connected client are read. */
  goLive(): void;
  /** AUTH packets are read as well. */
  reauthenticate(): void;
  /** The connection is the session's no longer. */
  release(): void;
  /** Kept without a connection: the wheel will say when it has expired. */
  awaitExpiry(): void;
  /** It is used again. */
  cancelExpiry(): void;
  /** Subscriptions, backlog and index entry go. */
  forget(): void;
}

export type SessionEvent =
  /** a CONNECT came */
  | { type: 'connect' }
  /** CONNACK success: this is the client's session now */
  | { type: 'accepted' }
  /** CONNACK success: the client's stored session has taken the connection, this one was only its beginning */
  | { type: 'handedOver' }
  | { type: 'reauthenticate' }
  | { type: 'reauthenticated' }
  /** the connection went and the session outlives it */
  | { type: 'detached' }
  /** the connection went and the session ends with it, or it was kicked */
  | { type: 'closed' }
  /** another connection with the same client id */
  | { type: 'takenOver' }
  | { type: 'resumed' }
  | { type: 'expired' }
  /** a clean start, or the app, ended the stored session */
  | { type: 'discarded' };

/**
 * The life of a session. Guards depend on nothing but state and event, so what the machine does can be learnt once and replayed.
 */
export const sessionMachine = setup({
  types: {} as { context: { session: SessionDeeds }; input: { session: SessionDeeds }; events: SessionEvent },
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
