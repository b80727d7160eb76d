import type { RuleRun } from '../base/actor.ts';
import type { Clock } from '../base/clock.ts';
import type { EventName } from '../events/catalogue.ts';
import type { BrokerEvents } from '../events/event-types.ts';
import type { Outboxes } from '../outbox/outboxes.ts';
import type { Message, MessageInput } from '../packets/message.ts';
import type { ClientInfo } from '../records/client.ts';
import type { Watcher } from '../routing/watchers.ts';
import type { StreamRecord } from '../store/stream-record.ts';
import type { StreamRuleActions, StreamRuleEvent } from './chart.ts';
import type { Properties, StreamsOptions } from './types.ts';
import type { Cause } from './values/cause.ts';

/** The methods of the broker's `Table` that the service uses. */
export interface StreamTable<V> extends Iterable<readonly [key: string, value: V]> {
  get(key: string): V | undefined;
  set(key: string, value: V): Promise<void>;
  delete(key: string): Promise<boolean>;
}

/** A stored record of a rule. */
export interface KeptStreamRecord extends StreamRecord {
  /** Called when the record is committed. */
  committed?(): void;
  /** Called if the commit has failed: dependent operations are refused, and the record is not written again. */
  refused?(): void;
}

/**
 * The stored records of rules. Changes made in one turn of the event loop are committed together with the messages of
 * that turn.
 */
export interface StreamRecordStore {
  /** True while the store cannot be written. */
  readonly isFailed: boolean;
  /** Number of records added. */
  readonly added: number;
  /**
   * The records of a rule that the store had at the start, in the order in which they were added. Only the first call
   * returns them.
   */
  take(rule: string): readonly KeptStreamRecord[];
  /** The rules whose records have not been taken yet. */
  rules(): readonly string[];
  /** Add a record. The publisher of the message being processed in this turn is acknowledged after the commit. */
  add(record: KeptStreamRecord): void;
  remove(record: KeptStreamRecord): void;
  /** Resolves when the changes of this turn are committed. @throws BrokerError STORE_FAILED */
  committed(): Promise<void>;
}

/** A message of a rule that is published later. */
export interface PreparedMessage {
  /**
   * Publish the message. It reaches subscribers when the changes of this turn are committed.
   * @returns a promise that rejects if the commit fails; the message has then reached no subscriber
   * @throws NotAuthorized; BrokerError QUOTA_EXCEEDED
   */
  publish(): Promise<void>;
}

/** Dependencies of the in-process source and sink on the broker. */
export interface StreamMessages {
  readonly clock: Clock;
  /**
   * Pass the messages of topics to a watcher, each once even if several filters match it.
   * @returns a function that removes the watcher
   */
  watch(filters: readonly string[], watcher: Watcher): () => void;
  /**
   * The retained messages of topics at present, each once, in the order in which they were published. Messages that are
   * replaced or deleted before the iteration reaches them are skipped.
   * @returns an iterator over the messages; undefined means that the search for further messages is not complete
   */
  retained(filters: readonly string[]): Iterator<Message | undefined, void>;
  /** Wait for the next turn of the event loop. */
  pause(): Promise<void>;
  /** Wait for the next time slice for long work whose caller waits. */
  nextSlice(): Promise<void>;
  /** The client that published a message; undefined if it was not published by a client. */
  publisherOf(message: Message): ClientInfo | undefined;
  /**
   * Publish a message of a rule immediately.
   * @param cause the rules that caused it
   * @throws InvalidInput, NotAuthorized, BrokerError; RULE_LOOP if the rule itself caused it
   */
  publish(input: MessageInput, ruleId: string, cause?: Cause): number | Promise<number>;
  /** Check whether the URL of an MQTT server denotes a listener of this broker. */
  isOwn(server: string): boolean;
  /** Let the hooks decide about a message of a rule that is published later. @throws as `publish` */
  prepare(input: MessageInput, ruleId: string, cause?: Cause): PreparedMessage | Promise<PreparedMessage>;
}

/** Dependencies of the stream service on the broker. */
export interface StreamsHost extends StreamMessages {
  readonly options: StreamsOptions;
  /** Name of the broker node. */
  readonly node: string;
  readonly outboxes: Outboxes;
  /** Persisted definitions: SQL of streams and tables by name, JSON of rules by id. */
  readonly definitions: StreamTable<string>;
  readonly rules: StreamTable<string>;
  /** Sections of sources, connections and schemas as JSON. */
  readonly configuration: StreamTable<string>;
  /** Notes of sources, by the name of their type and a key. */
  readonly notes: StreamTable<string>;
  /** Undefined if the broker has no store. */
  readonly records: StreamRecordStore | undefined;
  /** The actions of broker rules, which may name sinks. */
  ruleActions(): Iterable<{ readonly rule: string; readonly type: string; readonly properties: Properties }>;
  /** Open the targets of broker rules again, because the connections or schemas that they name have changed. */
  reopenRules(ids: readonly string[]): Promise<void>;
  /** Start the chart of a rule. */
  startChart(actions: StreamRuleActions, id: string): RuleRun<StreamRuleEvent>;
  emit<E extends EventName>(event: E, value: BrokerEvents[E]): void;
  /** Record an error of a rule, its stop, or its next start in the log of reasons. */
  recorded(
    code: 'rule_stopped' | 'rule_started' | 'payload_invalid' | 'function_failed' | 'target_refused',
    error: { readonly rule: string; readonly topic?: string | undefined; readonly detail?: string }
  ): void;
  /** Note that work of another process is in progress. */
  during(work: Promise<unknown>): void;
  /** Report a line of the sink `log`. */
  log(line: string): void;
  /** Report a setting that is accepted but has no effect. */
  warn(text: string): void;
  /** Report an error that cannot be returned to a caller. */
  failed(error: unknown, during: string): void;
}
