// An event is shared by all rules of its topic. What costs something is computed when it is read: most rules read one or two columns.

import type { EventName } from '../../events/catalogue.ts';
import type { BrokerEvents } from '../../events/event-types.ts';
import type { Message } from '../../packets/message.ts';
import { type Cascade, RulePublisher } from '../../packets/named-publisher.ts';
import type { ClientInfo } from '../../records/client.ts';
import { decodeJson } from '../../sql/json.ts';
import { type Members, readMembers } from '../../sql/json-members.ts';
import { type EventColumns, TEXT_WEIGHT } from '../../sql/row.ts';
import { setKey, type Value, type ValueObject } from '../../sql/values.ts';
import { MAX_WEIGHT, weightOf } from '../../sql/weight.ts';
import type { RuleEvent } from '../types.ts';
import { bytesValue, type EventContext, type EventFacts } from './column.ts';
import type { RuleEventName } from './event-name.ts';
import type { RuleEventEntry } from './row.ts';

/**
 * An upper bound of the weight of the columns per byte before the payload, which contains the properties: each pair of
 * 5 bytes occurs 4 times, with names.
 */
const HEAD_WEIGHT = 32;
/** An upper bound of the weight of the other columns: their names, numbers and short texts. */
const OTHERS_WEIGHT = 4096;

/** The columns of a row of the catalogue, in order. */
export type EventRow = Pick<RuleEventEntry, 'name' | 'names' | 'columns'>;

/** An event for which rules are evaluated. */
abstract class EvaluatedEvent implements EventColumns, RuleEvent {
  abstract readonly name: RuleEventName;
  abstract readonly names: readonly string[];
  /** The column whose JSON was decoded first, and its value: usually the payload, and the only one. */
  #decodedName: string | undefined = undefined;
  #decoded: Value = undefined;
  /** The decoded values of other columns. */
  #others: Map<string, Value> | undefined = undefined;
  undecoded: string | undefined = undefined;

  abstract column(name: string): Value;

  decoded(name: string, _members?: Members): Value {
    if (this.#decodedName === name) return this.#decoded;
    const value = this.column(name);
    if (typeof value !== 'string') return value;
    if (this.#decodedName !== undefined) return this.#other(name, value);
    this.#decodedName = name;
    this.#decoded = decodeJson(value);
    if (this.#decoded === undefined) this.undecoded = name;
    return this.#decoded;
  }

  /** Check whether the JSON of a column was decoded first, and as a whole. */
  protected isDecoded(name: string): boolean {
    return this.#decodedName === name;
  }

  #other(name: string, text: string): Value {
    this.#others ??= new Map();
    if (!this.#others.has(name)) this.#others.set(name, decodeJson(text));
    const value = this.#others.get(name);
    if (value === undefined) this.undecoded = name;
    return value;
  }

  columns(): ValueObject {
    const columns: Record<string, Value> = {};
    for (const name of this.names) {
      const value = this.column(name);
      if (value !== undefined) setKey(columns, name, value);
    }
    return columns;
  }
}

/**
 * An event of the broker. A column is computed whenever it is read, from the current state of the message and the
 * client. To keep the event, copy its columns: `new PlainEvent(event.name, event.columns())`.
 */
export class CatalogueEvent extends EvaluatedEvent implements EventFacts {
  readonly #row: EventRow;
  readonly #value: BrokerEvents[EventName];
  readonly #context: EventContext;
  #timestamp: number | undefined = undefined;
  #payload: Value = undefined;
  /** The members of the payload that were tried first, and the result. */
  #members: Members | undefined = undefined;
  #read: ValueObject | undefined = undefined;
  #cascade: Cascade | undefined = undefined;

  /** @param value a value that the listeners of `row.source` receive and `row.accepts` accepts */
  constructor(row: EventRow, value: BrokerEvents[EventName], context: EventContext) {
    super();
    this.#row = row;
    this.#value = value;
    this.#context = context;
  }

  get name(): RuleEventName {
    return this.#row.name;
  }

  get names(): readonly string[] {
    return this.#row.names;
  }

  column(name: string): Value {
    return this.#row.columns.get(name)?.(this.#value, this);
  }

  override decoded(name: string, members?: Members): Value {
    if (members === undefined || name !== 'payload' || this.isDecoded(name)) return super.decoded(name);
    if (this.#members === undefined) {
      this.#members = members;
      this.#read = this.#readPayload(members);
    }
    return this.#members === members && this.#read !== undefined ? this.#read : super.decoded(name);
  }

  #readPayload(members: Members): ValueObject | undefined {
    const { message } = this;
    if (message === undefined) return undefined;
    const { buf, start, end } = message.frame();
    return readMembers(buf, start + message.payloadAt, end, members);
  }

  get mostWeight(): number {
    const { message } = this;
    if (message === undefined) return Infinity;
    const { client } = this.#value as { readonly client?: ClientInfo };
    const { payloadAt, bytes, topic, clientId, username } = message;
    const names = topic.length + clientId.length + (username ?? '').length + this.node.length;
    const receiver = client === undefined ? 0 : client.clientId.length + (client.username ?? '').length;
    return TEXT_WEIGHT * (bytes - payloadAt + names + receiver) + HEAD_WEIGHT * payloadAt + OTHERS_WEIGHT;
  }

  /**
   * Columns for a sample; of a long payload only the beginning. The functions of columns are not called by `column`, because its call would
   * then see all of them, and an event that reads one or two would take 60 ns longer.
   * @param most number of bytes of the payload from which it is cut
   */
  sampled(names: readonly string[], most: number): ValueObject {
    const { message } = this;
    const isLong = message !== undefined && message.bytes - message.payloadAt > most;
    const columns: Record<string, Value> = {};
    for (const name of names) {
      const read = this.#row.columns.get(name);
      const isCut = isLong && name === 'payload';
      const value = isCut ? Buffer.from(message.payload.subarray(0, most)).toString() : read?.(this.#value, this);
      if (value !== undefined) columns[name] = value;
    }
    return columns;
  }

  /** Counts the messages that rules publish because of the event, and of what has caused it. */
  get cascade(): Cascade {
    const origin = this.message?.origin;
    return origin instanceof RulePublisher ? origin.cascade : (this.#cascade ??= { count: 0 });
  }

  /** The message that the event is about. */
  get message(): Message | undefined {
    return (this.#value as { readonly message?: Message }).message;
  }

  /** See `EventFacts`. */
  get node(): string {
    return this.#context.node;
  }

  /** See `EventFacts`. */
  get timestamp(): number {
    return (this.#timestamp ??= this.#context.now());
  }

  /** See `EventFacts`. */
  payloadOf(message: Message): Value {
    return (this.#payload ??= payloadText(message));
  }
}

/**
 * Convert the payload of a message to a value. It is decoded in place, without a view of its bytes, unless it may not
 * be valid UTF-8.
 */
function payloadText(message: Message): Value {
  const { buf, start, end } = message.frame();
  const text = buf.toString('utf8', start + message.payloadAt, end);
  return text.includes('\ufffd') ? bytesValue(message.payload) : text;
}

/** An event with given columns, from a test or from the store. */
export class PlainEvent extends EvaluatedEvent {
  readonly name: RuleEventName;
  readonly names: readonly string[];
  readonly #columns: ValueObject;

  /** @param columns in order @param names the columns that `*` selects; default: all */
  constructor(name: RuleEventName, columns: ValueObject, names: readonly string[] = Object.keys(columns)) {
    super();
    this.name = name;
    this.names = names;
    this.#columns = columns;
  }

  get mostWeight(): number {
    const weight = weightOf(this.#columns, MAX_WEIGHT);
    return weight > MAX_WEIGHT ? Infinity : TEXT_WEIGHT * weight;
  }

  column(name: string): Value {
    return Object.hasOwn(this.#columns, name) ? this.#columns[name] : undefined;
  }
}
