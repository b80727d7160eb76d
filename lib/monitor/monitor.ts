import type { AuditLog } from './audit.ts';
import type { Drops } from './drops.ts';

/** What `Monitor` offers. */
interface MonitorParts {
  readonly drops: Drops;
  readonly audit: AuditLog;
}

/** What the broker has observed of itself, for operators: `broker.monitor`. */
export class Monitor {
  /** The last messages that were dropped. */
  readonly drops: Drops;

  /** The last changes made through management interfaces. */
  readonly audit: AuditLog;

  /** @internal */
  constructor({ drops, audit }: MonitorParts) {
    this.drops = drops;
    this.audit = audit;
  }
}
