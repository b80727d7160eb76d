import type { Drops } from './drops.ts';

/** What `Monitor` offers. */
interface MonitorParts {
  readonly drops: Drops;
}

/** What the broker has observed of itself, for operators: `broker.monitor`. */
export class Monitor {
  /** The last messages that were dropped. */
  readonly drops: Drops;

  /** @internal */
  constructor({ drops }: MonitorParts) {
    this.drops = drops;
  }
}
