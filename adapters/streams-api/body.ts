import type { TSchema } from 'typebox';
import * as Type from 'typebox';
import { parseStreamJson } from '../../lib/adapter.ts';
import { type Body, Fault, parseJson } from '../rest/index.ts';
import { check, type Operation } from '../rest/kit/index.ts';

/** Maximum length of the part of a body that a message repeats. */
const SHOWN = 1_024;

/** The parameters of the path, and the limits of a body. */
interface BodyLimits {
  readonly params: Readonly<Record<string, string>>;
  readonly maxDepth: number;
}

/**
 * Read the JSON object in a body, independent of the content type. An optional schema allows a request without a body.
 * @throws Fault with the message of the operation
 */
export function readBody(row: Operation, sent: Body, { params, maxDepth }: BodyLimits): object | undefined {
  const refuse = (text: string, reason: string, general: string): Fault => {
    const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}...` : text;
    const message = row.notJson?.(shown, reason, params);
    return new Fault('notJson', message ?? general, undefined, { isWhole: message !== undefined });
  };
  const notObject = (text: string, reason: string) => refuse(text, reason, `the body is not a JSON object: ${reason}`);
  const value = parsed(row, sent, notObject);
  if (value === undefined) {
    if (Type.IsOptional(row.body as TSchema)) return undefined;
    const reason = 'the request has no body';
    throw refuse('', reason, `${reason}: send JSON`);
  }
  const text = () => ('text' in sent ? sent.text : JSON.stringify(value));
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw notObject(text(), 'it is not an object');
  if (isDeeper(value, maxDepth))
    throw notObject(text(), `it has more than ${maxDepth} levels of objects and arrays (option maxDepth)`);
  return value;
}

/** Check a body. @throws Fault */
export function checkBody(row: Operation, body: unknown): unknown {
  if (body === undefined) return undefined;
  row.first?.(body as Readonly<Record<string, unknown>>);
  return check(row.body as object, body, 'body');
}

/** @returns undefined if the body is absent */
function parsed(row: Operation, sent: Body, refuse: (text: string, reason: string) => Fault): unknown {
  if ('value' in sent) return sent.value;
  if (sent.text.trim() === '') return undefined;
  try {
    const value = parseJson(sent.text);
    return row.hasExactNumbers === true ? parseStreamJson(sent.text) : value;
  } catch (error) {
    throw refuse(sent.text, (error as Error).message);
  }
}

/** Check whether a value has more levels than allowed. Recursion could overflow the stack. */
function isDeeper(value: object, maxDepth: number): boolean {
  let level: object[] = [value];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > maxDepth) return true;
    level = level.flatMap((one) => Object.values(one).filter((inner) => typeof inner === 'object' && inner !== null));
  }
  return false;
}
