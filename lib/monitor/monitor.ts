import type { AuditLog } from './audit.ts';
import type { BlockedClients } from './blocked-clients.ts';
import type { Drops } from './drops.ts';
import type { MetricHistory } from './metric-history.ts';
import type { SlowSubscriptions } from './slow-subscriptions.ts';
import type { StoreMetrics } from './store-metrics.ts';
import type { TopicCounters } from './topic-counters.ts';
import { KeptTraces } from './traces/kept-traces.ts';
import type { Traces } from './traces/traces.ts';

/** The parts that `Monitor` offers. */
interface MonitorParts {
  readonly drops: Drops;
  readonly audit: AuditLog;
  readonly traces: Traces;
  readonly metricHistory: MetricHistory;
  readonly topicCounters: TopicCounters;
  readonly slowSubscriptions: SlowSubscriptions;
  readonly blockedClients: BlockedClients;
  readonly store: StoreMetrics;
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
  readonly metricHistory: MetricHistory;
  /** Counters of the messages of single topics. */
  readonly topicCounters: TopicCounters;
  /** A ranking of the clients and topics whose messages take longest. */
  readonly slowSubscriptions: SlowSubscriptions;
  /** The clients that do not read as fast as the broker sends to them. */
  readonly blockedClients: BlockedClients;

  /** The store of the broker. */
  readonly store: StoreMetrics;

  /** @internal */
  constructor(parts: MonitorParts) {
    this.drops = parts.drops;
    this.audit = parts.audit;
    this.traces = new KeptTraces(parts.traces);
    this.metricHistory = parts.metricHistory;
    this.topicCounters = parts.topicCounters;
    this.slowSubscriptions = parts.slowSubscriptions;
    this.blockedClients = parts.blockedClients;
    this.store = parts.store;
  }

  /** @deprecated Use `topicCounters`. */
  get topicFigures(): TopicCounters {
    return this.topicCounters;
  }

  /** @deprecated Use `metricHistory`. */
  get figures(): MetricHistory {
    return this.metricHistory;
  }
}
