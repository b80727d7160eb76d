import type { Feature } from './feature.ts';
import { Stops } from './stops.ts';

/** Lets events reach the rules. */
export class RuleFeature implements Feature {
  readonly name = 'rules';
  readonly about = 'Evaluates rules over the events of the broker.';
  readonly stops: Stops;
  isStarted = false;

  /** @param now the wall-clock time in milliseconds */
  constructor(now: () => number) {
    this.stops = new Stops(now);
  }

  start(): void {
    this.isStarted = true;
    this.stops.end();
  }

  stop(): void {
    this.isStarted = false;
    this.stops.begin();
  }
}
