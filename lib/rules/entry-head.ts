import { decodeJson, encodeJson } from '../sql/json.ts';
import { isList, isObject, type Value, type ValueObject } from '../sql/values.ts';
import { PlainEvent } from './events/event.ts';
import type { RuleEventName } from './events/event-name.ts';
import type { RuleEvent } from './types.ts';

/** The origin of an outbox entry, stored in front of its content so that it is still known after a restart. */
export interface EntryHead {
  readonly actionId: string;
  /** The output and the event for which the action ran; undefined if nothing follows from its outcome. */
  readonly origin: { readonly output: Value; readonly event: RuleEvent } | undefined;
}

const NEWLINE = 10;
/**
 * Marks bytes in JSON, which has no type for them. An object that itself has this key is stored as the value of another
 * one.
 */
const BYTES = '\u0000bytes';

/** Prepend a head to a content. */
export function withHead({ actionId, origin }: EntryHead, content: string | Buffer): string | Buffer {
  const parts: Value[] = [actionId];
  if (origin !== undefined) parts.push(origin.event.name, packed(origin.event.columns()), packed(origin.output));
  const head = `${encodeJson(parts)}\n`;
  return typeof content === 'string' ? head + content : Buffer.concat([Buffer.from(head), content]);
}

/** The content after the head. */
export function contentOf(whole: string | Buffer): string | Buffer {
  if (typeof whole === 'string') return whole.slice(whole.indexOf('\n') + 1);
  return whole.subarray(whole.indexOf(NEWLINE) + 1);
}

/** The id of the action in a head. */
export function actionIdOf(whole: string | Buffer): string {
  return (readParts(whole)[0] as string | undefined) ?? '';
}

/** The head in front of a content. */
export function headOf(whole: string | Buffer): EntryHead {
  const [actionId, name, columns, output] = readParts(whole);
  if (name === undefined) return { actionId: actionId as string, origin: undefined };
  const event = new PlainEvent(name as RuleEventName, unpacked(columns) as ValueObject);
  return { actionId: actionId as string, origin: { output: unpacked(output), event } };
}

function readParts(whole: string | Buffer): readonly Value[] {
  const end = typeof whole === 'string' ? whole.indexOf('\n') : whole.indexOf(NEWLINE);
  const parts = decodeJson(typeof whole === 'string' ? whole.slice(0, end) : whole.toString('utf8', 0, end));
  return isList(parts) ? parts : [];
}

/** Convert a value to a form that JSON preserves. */
function packed(value: Value): Value {
  if (value instanceof Uint8Array) return { [BYTES]: Buffer.from(value).toString('base64') };
  if (isList(value)) return value.map(packed);
  if (!isObject(value)) return value;
  const object = mapped(value, packed);
  return Object.hasOwn(value, BYTES) ? { [BYTES]: object } : object;
}

function unpacked(value: Value): Value {
  if (isList(value)) return value.map(unpacked);
  if (!isObject(value)) return value;
  const marked = Object.hasOwn(value, BYTES) ? value[BYTES] : value;
  return isObject(marked) ? mapped(marked, unpacked) : Buffer.from(marked as string, 'base64');
}

function mapped(object: ValueObject, change: (value: Value) => Value): ValueObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}
