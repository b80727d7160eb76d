import type { Message } from '../../packets/message.ts';
import { textOf, type Value } from '../../sql/values.ts';

/** The parts of the broker that the columns of events use. */
export interface EventContext {
  /** Name of the node. */
  readonly node: string;
  /** The wall-clock time, in milliseconds since 1970. */
  now(): number;
}

/** What an event keeps for its columns. */
export interface EventFacts {
  readonly node: string;
  /** Time of the event, in milliseconds since 1970. */
  readonly timestamp: number;
  /** The payload of the message of the event, as it is decoded once. */
  payloadOf(message: Message): Value;
}

/** The value of a column. @param value what the listeners of the event of the catalogue receive */
export type Column<V> = (value: V, event: EventFacts) => Value;

/** The columns of an event by name, in the documented order. */
export type Columns<V> = Readonly<Record<string, Column<V>>>;

/** Bytes as a value: a string if they are UTF-8, otherwise a copy, because rules may keep it. */
export function bytesValue(bytes: Uint8Array): string | Uint8Array {
  const text = textOf(bytes);
  return typeof text === 'string' ? text : new Uint8Array(text);
}
