import type { Message } from '../packets/message.ts';
import type { MessageFollower, SendingConnector, SendingFollower } from '../routing/followers.ts';
import type { AuditLog } from './audit.ts';
import type { BlockedClients } from './blocked-clients.ts';
import type { BusiestClients } from './busiest-clients.ts';
import type { Drops } from './drops.ts';
import type { MetricHistory } from './metric-history.ts';
import type { ArrivalAnswer, ArrivalQuestion } from './reasons/arrival-question.ts';
import type { Reasons } from './reasons/reasons.ts';
import type { SlowSubscriptions } from './slow-subscriptions.ts';
import type { StoreMetrics } from './store-metrics.ts';
import type { Tail } from './tail/tail.ts';
import type { TailOptions } from './tail/tails.ts';
import type { TopicCounters } from './topic-counters.ts';
import type { KeptTraces } from './traces/kept-traces.ts';

/** Observations of the broker about itself, for operators: `broker.monitor`. */
export interface Monitor {
  /** The last messages that were dropped. */
  readonly drops: Drops;
  /** The last events of clients, subscriptions and rules, and the last reasons for which messages did not arrive. */
  readonly reasons: Reasons;
  /**
   * Explain why a message did not arrive, afterwards: from what was recorded, from the last examples of rules and share groups, and from the
   * state of the broker. Nothing has to be switched on before.
   * @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, TOPIC_NAME_INVALID
   */
  why(question: ArrivalQuestion): Promise<ArrivalAnswer>;
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
  /** The clients with the most messages per second, measured when asked for. */
  readonly busiestClients: BusiestClients;
  /**
   * Observe messages and events as they happen, for people who watch: at most 500 rows in any second, the rest is counted. A tail never
   * slows the broker: rows that are not read are bounded, and messages of topics that `filter` does not match cost nothing.
   *
   * ```ts
   * const tail = await broker.monitor.tail({ filter: 'meters/#', where: 'payload.watt > 2000' });
   * for await (const { rows, skipped } of tail) for (const { columns } of rows) console.log(columns.topic, skipped);
   * ```
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, EVENT_UNKNOWN (with a suggestion), TOPIC_FILTER_INVALID; SqlError SQL_INVALID for
   * `where`, with the position; BrokerError PACKAGE_MISSING; StateError TOO_MANY_TAILS (100)
   */
  tail(options?: TailOptions): Promise<Tail>;
  /**
   * Follow the messages of the topics that a filter matches from their acceptance to their delivery. For adapters, such as tracing. Messages
   * of these topics leave the fast path; those of others cost nothing.
   * @returns a function that stops following further messages
   * @throws InvalidInput TOPIC_FILTER_INVALID
   */
  follow(filter: string, follower: MessageFollower): () => void;
  /**
   * Ask the followers of a message whether they follow the sending of an event about it. For connectors.
   * @returns undefined: none of them does
   */
  sending(message: Message, connector: SendingConnector): SendingFollower | undefined;
  /** The store of the broker. */
  readonly store: StoreMetrics;
  /** @deprecated Use `topicCounters`. */
  readonly topicFigures: TopicCounters;
  /** @deprecated Use `metricHistory`. */
  readonly figures: MetricHistory;
}
