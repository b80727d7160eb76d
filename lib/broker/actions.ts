/** The deeds that the broker's chart names. `Broker` does them. */
export interface BrokerActions {
  /** Listeners are bound and accept; timers run. */
  accept(): void;
  /** Nothing is accepted any more; connections are told to go. */
  drain(): void;
  /** Everything is released. */
  release(): void;
}

/** What the broker's chart is sent. */
export type BrokerEvent =
  | { type: 'start' }
  | { type: 'started' }
  /** a listener could not bind */
  | { type: 'failed' }
  | { type: 'stop' }
  | { type: 'stopped' };
