import type { AuditLog } from './audit.ts';
import type { BlockedClients } from './blocked-clients.ts';
import type { Drops } from './drops.ts';
import type { Figures } from './figures.ts';
import { KeptTraces } from './kept-traces.ts';
import type { SlowSubscriptions } from './slow-subscriptions.ts';
import type { TopicFigures } from './topic-figures.ts';
import type { Traces } from './traces.ts';

/** What `Monitor` offers. */
interface MonitorParts {
  readonly drops: Drops;
  readonly audit: AuditLog;
  readonly traces: Traces;
  readonly figures: Figures;
  readonly topicFigures: TopicFigures;
  readonly slowSubscriptions: SlowSubscriptions;
  readonly blockedClients: BlockedClients;
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
  /** A ranking of the clients and topics whose messages take longest. */
  readonly slowSubscriptions: SlowSubscriptions;
  /** The clients that do not read as fast as is sent to them. */
  readonly blockedClients: BlockedClients;

  /** @internal */
  constructor({ drops, audit, traces, figures, topicFigures, slowSubscriptions, blockedClients }: MonitorParts) {
    this.drops = drops;
    this.audit = audit;
    this.traces = new KeptTraces(traces);
    this.figures = figures;
    this.topicFigures = topicFigures;
    this.slowSubscriptions = slowSubscriptions;
    this.blockedClients = blockedClients;
  }
}
