import { type Answer, type Fault, faultParts, shortened } from '../rest/index.ts';
import type { OriginalAnswer, PageRequest } from '../rest/kit/index.ts';
import { codesOf } from './codes.ts';
import { Listing, type Whole } from './listing.ts';
import { ServerSentEvents, STREAM_HEADERS } from './streams/server-sent-events.ts';

const JSON_HEADERS = { 'content-type': 'application/json' };
const TEXT_HEADERS = { 'content-type': 'text/plain' };
const DONE: Answer = { status: 200, headers: JSON_HEADERS, body: '{"code":0}' };

/** An answer in its final form: its text, or a function that makes its parts, each in its own slice. */
export class Reply {
  readonly body: string | ((nextSlice: () => Promise<void>) => AsyncIterable<string>);

  constructor(body: Reply['body']) {
    this.body = body;
  }
}

/**
 * An answer with data that is already JSON, because `JSON.stringify` would not preserve its numbers: integers of any
 * size, and 1.0.
 * @param hints possible mistakes, in addition to the data
 */
export function replyWithJson(json: string, hints: readonly string[]): Reply {
  const more = hints.length === 0 ? '' : `,"hints":${JSON.stringify(hints)}`;
  return new Reply(`{"code":0,"data":${json}${more}}`);
}

/** An answer whose data is an object with some fields that are a `Listing`. */
export function replyWithListings(fields: Readonly<Record<string, unknown>>): Reply {
  return new Reply((nextSlice) => partsOf(fields, nextSlice));
}

async function* partsOf(
  fields: Readonly<Record<string, unknown>>,
  nextSlice: () => Promise<void>
): AsyncGenerator<string> {
  let part = '{"code":0,"data":{';
  let before = '';
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    part += `${before}${JSON.stringify(name)}:`;
    before = ',';
    if (!(value instanceof Listing)) {
      part += JSON.stringify(value);
      continue;
    }
    part += '[';
    for await (const { text } of value.parts(nextSlice)) {
      yield part + text;
      part = '';
    }
    part += ']';
  }
  yield `${part}}}`;
}

/**
 * The answer of a successful operation.
 * @param nextSlice waits for the next time slice of long answers
 * @param contentType that of the row, for a `Reply`
 * @throws errors of the first part of a list
 */
export async function answerWith(
  result: unknown,
  page: PageRequest,
  nextSlice: () => Promise<void>,
  contentType = 'application/json'
): Promise<Answer> {
  if (result === undefined) return DONE;
  if (result instanceof ServerSentEvents)
    return { status: 200, headers: STREAM_HEADERS, body: result, isEndless: true };
  if (result instanceof Reply) {
    const { body } = result;
    return {
      status: 200,
      headers: { 'content-type': contentType },
      body: typeof body === 'string' ? body : body(nextSlice)
    };
  }
  if (!(result instanceof Listing)) return json(200, { code: 0, data: result });
  const parts = result.parts(nextSlice);
  const { text = '', end } = (await parts.next()).value ?? {};
  const first = `{"code":0,"data":[${text}`;
  const body = end === undefined ? longList(first, parts, page) : first + listEnd(end.whole, page);
  return { status: 200, headers: JSON_HEADERS, body };
}

async function* longList(first: string, rest: ReturnType<Listing['parts']>, page: PageRequest): AsyncGenerator<string> {
  yield first;
  for await (const { text, end } of rest) yield end === undefined ? text : text + listEnd(end.whole, page);
}

function listEnd(whole: Whole | undefined, { number, limit }: PageRequest): string {
  if (whole === undefined) return ']}';
  const { count, hasNext, cursor } = whole;
  // undefined fields are not written
  return `],"meta":${JSON.stringify({ page: number, limit, count, hasnext: hasNext, cursor })}}`;
}

/**
 * The answer of a failed operation.
 * @param isOriginal answer like the original products
 * @param said their answer, if it differs from the table
 */
export function answerTo(fault: Fault, isOriginal: boolean, said?: OriginalAnswer): Answer {
  const { status, code, original } = codesOf(fault);
  const { headers, closes } = faultParts(fault);
  if (!isOriginal) return { ...json(status, { code, message: shortened(fault.message) }, headers), closes };
  if (said !== undefined) return json(200, said);
  if ('text' in original)
    return { status: original.status, headers: { ...TEXT_HEADERS, ...headers }, body: original.text, closes };
  return json(200, { code: original.code, message: fault.original ?? shortened(fault.message) });
}

function json(status: number, body: object, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { ...JSON_HEADERS, ...headers }, body: JSON.stringify(body) };
}
