import { parseStreamJson } from '../../lib/adapter.ts';
import { type Body, parseJson } from '../rest/index.ts';
import { StreamFault } from './faults.ts';
import type { Operation } from './operation.ts';

/** Maximum length of the part of a body that a message repeats. */
const SHOWN = 1_024;

/**
 * The JSON object in a body, independent of the content type.
 * @returns undefined if the body is absent
 * @throws StreamFault with the message of the operation
 */
export function bodyOf(
  sent: Body,
  row: Operation,
  { params, maxDepth }: { readonly params: Readonly<Record<string, string>>; readonly maxDepth: number }
): Readonly<Record<string, unknown>> | undefined {
  const refuse = (text: string, reason: string): StreamFault => {
    const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}...` : text;
    const message = row.notJson?.(shown, reason, params);
    return new StreamFault(
      400,
      'encoding',
      message ?? `the body is not a JSON object: ${reason}`,
      message !== undefined
    );
  };
  let value: unknown;
  if ('value' in sent) value = sent.value;
  else if (sent.text.trim() === '') return undefined;
  else {
    try {
      value = parseJson(sent.text);
      if (row.hasExactNumbers === true) value = parseStreamJson(sent.text);
    } catch (error) {
      throw refuse(sent.text, (error as Error).message);
    }
  }
  if (value === undefined) return undefined;
  const text = () => ('text' in sent ? sent.text : JSON.stringify(value));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refuse(text(), 'it is not an object');
  if (isDeeper(value, maxDepth))
    throw refuse(text(), `it has more than ${maxDepth} levels of objects and arrays (option maxDepth)`);
  return value as Readonly<Record<string, unknown>>;
}

/** The refusal of a request without a body. */
export function noBody(row: Operation, params: Readonly<Record<string, string>>): StreamFault {
  const reason = 'the request has no body';
  const message = row.notJson?.('', reason, params);
  return new StreamFault(400, 'encoding', message ?? `${reason}: send JSON`, message !== undefined);
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
