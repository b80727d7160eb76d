import type { Clock } from '../base/clock.ts';
import type { BrokerEvents, EventName } from '../events/catalogue.ts';
import type { Outboxes } from '../outbox/outboxes.ts';
import type { Message, MessageInput } from '../packets/message.ts';
import type { ClientInfo } from '../records/client.ts';
import type { Watcher } from '../routing/watchers.ts';
import type { StreamRecord } from '../store/stream-record.ts';
import type { StreamRuleActions, StreamRuleRun } from './chart.ts';
import type { StreamsOptions } from './types.ts';
import type { Cause } from './values/cause.ts';

/** What `Table` of the broker has that the service uses. */
export interface StreamTable<V> extends Iterable<readonly [key: string, value: V]> {
  get(key: string): V | undefined;
  set(key: string, value: V): Promise<void>;
  delete(key: string): Promise<boolean>;
}

/** A record of a rule in the store. */
export interface KeptStreamRecord extends StreamRecord {
  /** Called when it is in the store. */
  committed?(): void;
  /** Called if its commit has failed: what depends on it is refused, and it is not written any more. */
  refused?(): void;
}

/** The records of rules in the store. What is changed in one turn of the event loop is committed together, with the messages of this turn. */
export interface StreamRecordStore {
  /** The store cannot be written at present. */
  readonly isFailed: boolean;
  /** How many records have been added. */
  readonly added: number;
  /** The records of a rule that the store had at the start, in the order in which they were added. Only the first call has them. */
  take(rule: string): readonly KeptStreamRecord[];
  /** The rules whose records have not been taken. */
  rules(): readonly string[];
  /** Add a record. The publisher of what is processed in this turn is answered when it is committed. */
  add(record: KeptStreamRecord): void;
  remove(record: KeptStreamRecord): void;
  /** Resolves when the changes of this turn are in the store. @throws BrokerError STORE_FAILED */
  committed(): Promise<void>;
}

/** A message of a rule that leaves later. */
export interface PreparedMessage {
  /**
   * Publish it. It reaches subscribers when the changes of this turn are in the store.
   * @returns a promise that rejects if the commit fails: it has reached nobody then
   * @throws NotAuthorized; BrokerError QUOTA_EXCEEDED
   */
  publish(): Promise<void>;
}

/** What the in-process source and sink use of the broker. */
export interface StreamMessages {
  readonly clock: Clock;
  /** Let a watcher see the messages of topics, each once, also if several filters match it. @returns a function that ends it */
  watch(filters: readonly string[], watcher: Watcher): () => void;
  /**
   * The retained messages of topics at present, each once, in the order in which they were published. Those that are replaced or deleted before they
   * are given are left out.
   * @returns gives one after the other, or undefined: there may be more, which are still searched for
   */
  retained(filters: readonly string[]): Iterator<Message | undefined, void>;
  /** Wait for the next turn of the event loop. */
  pause(): Promise<void>;
  /** Wait for the next slice of the time for long work that a caller waits for. */
  nextSlice(): Promise<void>;
  /** The client that published a message; undefined: it was no client. */
  publisherOf(message: Message): ClientInfo | undefined;
  /**
   * Publish a message of a rule at once.
   * @param cause what has led to it
   * @throws InvalidInput, NotAuthorized, BrokerError; RULE_LOOP if the rule itself has led to it
   */
  publish(input: MessageInput, ruleId: string, cause?: Cause): number | Promise<number>;
  /** Whether the URL of an MQTT server names a listener of this broker. */
  isOwn(server: string): boolean;
  /** Let the hooks decide about a message of a rule that leaves later. @throws as `publish` */
  prepare(input: MessageInput, ruleId: string, cause?: Cause): PreparedMessage | Promise<PreparedMessage>;
}

/** What the stream service uses of the broker. */
export interface StreamsHost extends StreamMessages {
  readonly options: StreamsOptions;
  /** Name of the broker node. */
  readonly node: string;
  readonly outboxes: Outboxes;
  /** Persisted streams and tables by name, and rules by id: the texts and JSON that define them. */
  readonly definitions: StreamTable<string>;
  readonly rules: StreamTable<string>;
  /** Notes of sources, by the name of their type and a key. */
  readonly notes: StreamTable<string>;
  /** undefined: there is no store. */
  readonly records: StreamRecordStore | undefined;
  /** Start the chart of a rule. */
  startChart(actions: StreamRuleActions, id: string): StreamRuleRun;
  emit<E extends EventName>(event: E, value: BrokerEvents[E]): void;
  /** Work of another process is in progress. */
  during(work: Promise<unknown>): void;
  /** Report a line of the sink `log`. */
  log(line: string): void;
  /** Report something that is accepted and has no effect. */
  warn(text: string): void;
  /** Report an error that has no caller. */
  failed(error: unknown, during: string): void;
}
