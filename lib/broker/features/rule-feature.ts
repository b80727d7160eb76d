import type { Feature } from './feature.ts';

/** Lets events reach the rules. */
export class RuleFeature implements Feature {
  readonly name = 'rules';
  readonly about = 'Evaluates rules over the events of the broker.';
  isStarted = false;

  start(): void {
    this.isStarted = true;
  }

  stop(): void {
    this.isStarted = false;
  }
}
