import { NotFound } from '../../base/errors.ts';
import { nearest } from '../../base/options-table.ts';
import type { Services } from '../services.ts';
import type { Feature, FeatureState } from './feature.ts';
import { Presence } from './presence.ts';

/** The parts of the broker that `Features` uses. */
interface FeaturesHost {
  readonly delayed: Feature;
  readonly retainer: Feature;
  readonly rewrites: Feature;
}

/**
 * The features of the broker that can be started and stopped while clients are connected: `broker.features`. The options decide which of them
 * are started at first; a change lasts as long as the broker object.
 */
export class Features {
  readonly #features: readonly Feature[];

  /** @internal */
  constructor(services: Services, { delayed, retainer, rewrites }: FeaturesHost) {
    const { settings } = services;
    const presence = new Presence(services);
    this.#features = [delayed, presence, retainer, rewrites];
    presence.start();
    retainer.start();
    if (settings.delayedPublish) delayed.start();
    if (settings.rewrite.length > 0) rewrites.start();
  }

  /** All features, sorted by name. */
  list(): FeatureState[] {
    return this.#features.map(({ name, about, isStarted }) => ({ name, about, isStarted }));
  }

  /**
   * Start a feature. It serves connected clients, too.
   * @returns false if it is started already
   * @throws NotFound FEATURE_NOT_FOUND with a suggestion
   */
  async start(name: string): Promise<boolean> {
    const feature = this.#get(name);
    if (feature.isStarted) return false;
    feature.start();
    return true;
  }

  /**
   * Stop a feature. What it has stored stays.
   * @returns false if it is stopped already
   * @throws NotFound FEATURE_NOT_FOUND with a suggestion
   */
  async stop(name: string): Promise<boolean> {
    const feature = this.#get(name);
    if (!feature.isStarted) return false;
    feature.stop();
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
