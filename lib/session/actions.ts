/** The deeds that the session's chart names. `Session` does them. */
export interface SessionActions {
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

/** What the session's chart is sent. */
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
