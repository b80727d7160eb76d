import type { RuleRun } from '../base/actor.ts';
import type { Clock } from '../base/clock.ts';
import type { TimingWheel } from '../base/timing-wheel.ts';
import type { EventName } from '../events/catalogue.ts';
import type { BrokerEvents } from '../events/event-types.ts';
import type { Outboxes } from '../outbox/outboxes.ts';
import type { Message, MessageInput } from '../packets/message.ts';
import type { NamedPublisher } from '../packets/named-publisher.ts';
import type { QoS } from '../packets/types.ts';
import type { ClientInfo } from '../records/client.ts';
import type { Watcher } from '../routing/watchers.ts';
import type { RuleActions, RuleChartEvent } from './chart.ts';
import type { ResourceDefinition, RuleDefinition } from './definition.ts';
import type { ActionType, RulesOptions } from './types.ts';

/** The methods of the broker's `Table` that the engine uses. */
interface RuleTable<V> extends Iterable<readonly [key: string, value: V]> {
  set(key: string, value: V): Promise<void>;
  delete(key: string): Promise<boolean>;
}

/** Dependencies of the rule engine on the broker. */
export interface RulesHost {
  readonly options: RulesOptions;
  readonly node: string;
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly outboxes: Outboxes;
  /** The action types for the sinks of streams. */
  sinkActions(): Promise<readonly ActionType[]>;
  readonly rules: RuleTable<RuleDefinition>;
  readonly resources: RuleTable<ResourceDefinition>;
  /** True if the broker is started. */
  readonly isStarted: boolean;
  /** True if events reach the rules: the feature `rules` is started. */
  readonly isSwitchedOn: boolean;
  /** Start the chart of a rule. */
  startChart(actions: RuleActions, id: string): RuleRun<RuleChartEvent>;
  /** Pass the messages of topics to a watcher. @returns a function that removes the watcher */
  watch(filter: string, watcher: Watcher): () => void;
  /** Listen to an event of the broker. @returns a function that removes the listener */
  listen<E extends EventName>(event: E, listener: (value: BrokerEvents[E]) => void): () => void;
  emit<E extends EventName>(event: E, value: BrokerEvents[E]): void;
  /** Check whether an event has listeners. */
  isHeard(event: EventName): boolean;
  /** The client that published a message; undefined if it was not published by a client. */
  publisherOf(message: Message): ClientInfo | undefined;
  /** Publish a message of a rule immediately. @throws InvalidInput, NotAuthorized, BrokerError */
  republish(input: MessageInput, publisher: NamedPublisher): number | Promise<number>;
  /** Publish a message of the broker itself. */
  publishSystem(topic: string, payload: string, qos: QoS): void;
  /** Record an error of a rule, its stop, its next start or its change in the log of reasons. */
  recorded(
    code:
      | 'rule_stopped'
      | 'rule_started'
      | 'rule_changed'
      | 'payload_invalid'
      | 'function_failed'
      | 'field_missing'
      | 'target_refused',
    subject: {
      readonly rule: string;
      readonly topic?: string | undefined;
      readonly publisher?: string | undefined;
      readonly detail?: string;
    }
  ): void;
  /** Increment a metric of the broker. */
  counted(what: 'rules.matched' | 'actions.success' | 'actions.failure'): void;
  /** Record the number of rules or resources, whose maximum is kept. */
  noted(gauge: 'rules' | 'resources', count: number): void;
  raise(id: string, title: string, summary: string): void;
  clear(id: string): void;
  /** Wait for the next slice of long work. */
  nextSlice(): Promise<void>;
  /** Note that work of another process is in progress. */
  during(work: Promise<unknown>): void;
  /** Report an error that cannot be returned to a caller. */
  failed(error: unknown, during: string): void;
}
