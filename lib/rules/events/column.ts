import type { Message } from '../../packets/message.ts';
import { textOf, type Value } from '../../sql/values.ts';

/** Dependencies of event columns on the broker. */
export interface EventContext {
  /** Name of the node. */
  readonly node: string;
  /** The wall-clock time in milliseconds since 1970. */
  now(): number;
}

/** The facts from which the columns of an event are computed. */
export interface EventFacts {
  readonly node: string;
  /** Time of the event, in milliseconds since 1970. */
  readonly timestamp: number;
  /** The payload of the event's message, which is decoded once. */
  payloadOf(message: Message): Value;
}

/** Computes the value of a column. @param value the value that the listeners of the broker's event receive */
export type Column<V> = (value: V, event: EventFacts) => Value;

/** The columns of an event by name, in the documented order. */
export type Columns<V> = Readonly<Record<string, Column<V>>>;

/** Convert bytes to a value: a string if they are valid UTF-8, otherwise a copy, because rules may keep it. */
export function bytesValue(bytes: Uint8Array): string | Uint8Array {
  const text = textOf(bytes);
  return typeof text === 'string' ? text : new Uint8Array(text);
}
