import type { AuditLog } from './audit.ts';
import type { Drops } from './drops.ts';
import type { Figures } from './figures.ts';
import { KeptTraces } from './kept-traces.ts';
import type { TopicFigures } from './topic-figures.ts';
import type { Traces } from './traces.ts';

/** What `Monitor` offers. */
interface MonitorParts {
  readonly drops: Drops;
  readonly audit: AuditLog;
  readonly traces: Traces;
  readonly figures: Figures;
  readonly topicFigures: TopicFigures;
}

/** What the broker has observed of itself, for operators: `broker.monitor`. */
export class Monitor {
  /** The last messages that were dropped. */
  readonly drops: Drops;

  /** The last changes made through management interfaces. */
  readonly audit: AuditLog;
  /** Traces whose last lines are kept. */
  readonly traces: KeptTraces;
  /** Counters and gauges of the last hour. */
  readonly figures: Figures;
  /** Figures of the messages of single topics. */
  readonly topicFigures: TopicFigures;

  /** @internal */
  constructor({ drops, audit, traces, figures, topicFigures }: MonitorParts) {
    this.drops = drops;
    this.audit = audit;
    this.traces = new KeptTraces(traces);
    this.figures = figures;
    this.topicFigures = topicFigures;
  }
}
