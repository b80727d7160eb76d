/** The actions that the state chart of the broker names. `BrokerLifecycle` implements them. */
export interface BrokerActions {
  /** Start opening the store and the listeners. Sends `started` or `failed`. */
  open(): void;
  /** Start the timers and serve connections: the listeners are open. */
  accept(): void;
  /** Accept no more connections and disconnect all clients. */
  drain(): void;
  /** Release all resources. */
  release(): void;
}

/** The events of the state chart of the broker. */
export type BrokerEvent =
  | {
      /** `broker.start` was called. */
      type: 'start';
    }
  | {
      /** The store and the listeners are open. */
      type: 'started';
    }
  | {
      /** The start failed: the store or a listener could not be opened. */
      type: 'failed';
    }
  | {
      /** `broker.stop` was called. */
      type: 'stop';
    }
  | {
      /** The stop is complete. */
      type: 'stopped';
    };
