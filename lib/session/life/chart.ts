/** The outermost states of the session's state chart. */
export type SessionState = 'idle' | 'connected' | 'disconnected' | 'gone';

/** The actions and guards of the session's state chart. `ChartActions` implements them. */
export interface SessionActions {
  /** Guard: the session remains when its connection closes. */
  outlivesConnection(): boolean;
  /** Accept only CONNECT, and start the CONNECT timeout. */
  awaitConnect(): void;
  /** Accept only the packets of an authentication exchange, while the hooks decide on the CONNECT. */
  authenticate(): void;
  /** Attach the connection. The CONNECT has been accepted; CONNACK follows. */
  admit(): void;
  /** Accept all packets of a connected client. */
  goLive(): void;
  /** Detach the connection. The state is `disconnected` meanwhile, also if the session ends or another connection takes it over. */
  release(): void;
  /** Set a timer for the session expiry and for a delayed will. */
  awaitExpiry(): void;
  /** Cancel that timer. */
  cancelExpiry(): void;
  /** Remove the subscriptions, the queue and the index entry. @param left the outermost state that was left */
  forget(left: string): void;
}

/** The events of the session's state chart. */
export type SessionEvent =
  | {
      /** A CONNECT has been received. */
      type: 'connect';
    }
  | {
      /** The CONNECT is accepted, and this is now the session of the client. */
      type: 'accepted';
    }
  | {
      /** The CONNECT is accepted, and the existing session of the client takes the connection over from this provisional one. */
      type: 'handedOver';
    }
  | {
      /** The connection has closed. */
      type: 'closed';
    }
  | {
      /** Another connection with the same client id takes the session over. */
      type: 'takenOver';
    }
  | {
      /** The client of the offline session has connected again. */
      type: 'resumed';
    }
  | {
      /** The session expiry has passed. */
      type: 'expired';
    }
  | {
      /** A clean start or the app has ended the offline session. */
      type: 'discarded';
    };
