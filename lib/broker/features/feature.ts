/** A part of the broker that can be started and stopped while the broker runs. The management interface calls it a plugin. */
export interface Feature {
  /** Identifies the feature, for example `retainer`. */
  readonly name: string;
  /** What the feature does, for people. */
  readonly about: string;
  /** The feature is started. What uses the feature reads this field. */
  readonly isStarted: boolean;
  /** Start the feature. Not called while it is started. */
  start(): void;
  /** Stop the feature. Not called while it is stopped. */
  stop(): void;
}
