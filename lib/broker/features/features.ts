import { BrokerError, NotFound } from '../../base/errors.ts';
import { nearest } from '../../base/fields.ts';
import type { Table, Tables } from '../configuration/tables.ts';
import type { Services } from '../services.ts';
import type { Feature, FeatureState } from './feature.ts';
import { Presence } from './presence.ts';

/** The parts of the broker that `Features` uses. */
interface FeaturesHost {
  readonly delayed: Feature;
  readonly retainer: Feature;
  readonly rewrites: Feature;
  readonly ruleFeature: Feature;
  /** One of the tables keeps the features whose state was changed at run time. */
  readonly tables: Tables;
}

/**
 * The features of the broker that can be started and stopped while clients are connected: `broker.features`. The options determine which of
 * them are started at first. A change is persisted with the state of the broker, and takes precedence over the options at the next start.
 */
export class Features {
  readonly #features: readonly Feature[];
  readonly #table: () => Table<unknown>;
  /** The names of the features that the options start. */
  readonly #byOptions: ReadonlySet<string>;

  /** @internal */
  constructor(services: Services, { delayed, retainer, rewrites, ruleFeature, tables }: FeaturesHost) {
    const { settings } = services;
    const presence = new Presence(services);
    this.#features = [delayed, presence, retainer, rewrites, ruleFeature];
    for (const feature of [presence, retainer, ruleFeature]) feature.start();
    if (settings.delayedPublish) delayed.start();
    if (settings.rewrite.length > 0) rewrites.start();
    this.#table = () => tables.own('$features');
    this.#byOptions = new Set(this.#features.filter(({ isStarted }) => isStarted).map(({ name }) => name));
  }

  /** All features, sorted by name. */
  list(): FeatureState[] {
    return this.#features.map(({ name, about, isStarted }) => ({ name, about, isStarted }));
  }

  /**
   * Start a feature. It serves connected clients, too. With a store that is not open yet, the change is not persisted.
   * @returns false if it is started already; otherwise true, when the change is persisted
   * @throws NotFound FEATURE_NOT_FOUND with a suggestion; BrokerError STORE_FAILED: nothing has changed
   */
  start(name: string): Promise<boolean> {
    return this.#change(name, true);
  }

  /**
   * Stop a feature. Its stored data stays. With a store that is not open yet, the change is not persisted.
   * @returns false if it is stopped already; otherwise true, when the change is persisted
   * @throws NotFound FEATURE_NOT_FOUND with a suggestion; BrokerError STORE_FAILED: nothing has changed
   */
  stop(name: string): Promise<boolean> {
    return this.#change(name, false);
  }

  /** Stop and start a feature; start it if it is stopped. @throws as `start` */
  async restart(name: string): Promise<void> {
    const feature = this.#get(name);
    if (!feature.isStarted) {
      await this.start(name);
      return;
    }
    feature.stop();
    feature.start();
  }

  /** Apply the states of the store after it has been read. @internal */
  restored(): void {
    for (const feature of this.#features) {
      const isStarted = this.#table().get(feature.name);
      if (typeof isStarted === 'boolean') turn(feature, isStarted);
    }
  }

  async #change(name: string, isStarted: boolean): Promise<boolean> {
    const feature = this.#get(name);
    if (feature.isStarted === isStarted) return false;
    turn(feature, isStarted);
    const table = this.#table();
    try {
      if (isStarted === this.#byOptions.has(name)) await table.delete(name);
      else await table.set(name, isStarted);
    } catch (error) {
      if (error instanceof BrokerError && error.code === 'BROKER_NOT_STARTED') return true;
      turn(feature, (table.get(name) as boolean | undefined) ?? this.#byOptions.has(name));
      throw error;
    }
    return true;
  }

  #get(name: string): Feature {
    const feature = this.#features.find((each) => each.name === name);
    if (feature !== undefined) return feature;
    const names = this.#features.map((each) => each.name);
    const near = nearest(String(name), names);
    const hint = near === undefined ? `the features are ${names.join(', ')}` : `did you mean "${near}"?`;
    throw new NotFound('FEATURE_NOT_FOUND', `there is no feature "${String(name)}"; ${hint}`);
  }
}

function turn(feature: Feature, isStarted: boolean): void {
  if (feature.isStarted === isStarted) return;
  if (isStarted) feature.start();
  else feature.stop();
}
