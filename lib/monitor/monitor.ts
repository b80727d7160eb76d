import type { AuditLog } from './audit.ts';
import type { BlockedClients } from './blocked-clients.ts';
import type { Drops } from './drops.ts';
import type { Figures } from './figures.ts';
import type { SlowSubscriptions } from './slow-subscriptions.ts';
import type { StoreFigures } from './store-figures.ts';
import type { TopicFigures } from './topic-figures.ts';
import { KeptTraces } from './traces/kept-traces.ts';
import type { Traces } from './traces/traces.ts';

/** The parts that `Monitor` offers. */
interface MonitorParts {
  readonly drops: Drops;
  readonly audit: AuditLog;
  readonly traces: Traces;
  readonly figures: Figures;
  readonly topicFigures: TopicFigures;
  readonly slowSubscriptions: SlowSubscriptions;
  readonly blockedClients: BlockedClients;
  readonly store: StoreFigures;
}

/** Observations of the broker about itself, for operators: `broker.monitor`. */
export class Monitor {
  /** The last messages that were dropped. */
  readonly drops: Drops;

  /** The last changes made through management interfaces. */
  readonly audit: AuditLog;
  /** Traces whose last lines are kept. */
  readonly traces: KeptTraces;
  /** Counters and gauges of the last hour. */
  readonly figures: Figures;
  /** Counters of the messages of single topics. */
  readonly topicFigures: TopicFigures;
  /** A ranking of the clients and topics whose messages take longest. */
  readonly slowSubscriptions: SlowSubscriptions;
  /** The clients that do not read as fast as the broker sends to them. */
  readonly blockedClients: BlockedClients;

  /** The store of the broker. */
  readonly store: StoreFigures;

  /** @internal */
  constructor(parts: MonitorParts) {
    this.drops = parts.drops;
    this.audit = parts.audit;
    this.traces = new KeptTraces(parts.traces);
    this.figures = parts.figures;
    this.topicFigures = parts.topicFigures;
    this.slowSubscriptions = parts.slowSubscriptions;
    this.blockedClients = parts.blockedClients;
    this.store = parts.store;
  }
}
