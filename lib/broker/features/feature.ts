/** A feature of the broker with whether it is started, as `broker.features.list` returns it. */
export interface FeatureState {
  /** Identifies the feature, for example `retainer`. */
  readonly name: string;
  /** Description of the feature, for people. */
  readonly about: string;
  /** True if it is started. */
  readonly isStarted: boolean;
}

/**
 * A part of the broker that can be started and stopped while the broker runs; the management interface calls it a plugin. Code that depends
 * on the feature reads its field `isStarted`.
 */
export interface Feature extends FeatureState {
  /** Start the feature. Not called while it is started. */
  start(): void;
  /** Stop the feature. Not called while it is stopped. */
  stop(): void;
}
