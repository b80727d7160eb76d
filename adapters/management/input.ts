import type { TObject, TSchema } from 'typebox';
import * as Type from 'typebox';
import { nearest } from '../../lib/adapter.ts';
import { type Body, Fault, parseJson } from '../rest/index.ts';
import { any, anyOf, check, listOf, type Operation, type PageRequest } from '../rest/kit/index.ts';

/** The query parameters of lists. */
const PAGING = ['_page', '_limit', 'cursor'];

/**
 * Refuse query parameters that are repeated or unknown, except `_`, which clients add to bypass caches. Operations of
 * the documented interface accept `_page` and `_limit` where they have no effect, because clients send them with each
 * GET.
 * @throws Fault wrongParameter
 */
export function checkNames({ method, path, query, body, paged, hasCursor }: Operation, text: string): void {
  if (text === '') return;
  const isOurs = path.startsWith('/x/');
  const isPaged = paged !== undefined || (!isOurs && method === 'GET');
  const paging = PAGING.filter((name) => (name === 'cursor' ? hasCursor : isPaged));
  const known = [...Object.keys(query?.properties ?? {}), ...paging];
  const seen = new Set<string>();
  for (const name of new URLSearchParams(text).keys()) {
    const isKnown = known.includes(name);
    if (isKnown && seen.has(name))
      throw new Fault('wrongParameter', `the parameter "${name}" is given more than once`, name);
    seen.add(name);
    if (isKnown || name === '_') continue;
    const isOfBody = body !== undefined && Type.IsObject(body) && Object.hasOwn(body.properties, name);
    const remedy = isOfBody ? 'give it in the body' : remedyOf(name, known);
    throw new Fault('wrongParameter', `the query has no parameter "${name}"; ${remedy}`, name);
  }
}

function remedyOf(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near === undefined ? 'leave it out' : `did you mean "${near}"?`;
}

/** Read `_page`, `_limit` and `cursor`. @param isOriginal a `_limit` below 1 counts as 1 @throws Fault wrongParameter */
export function pageRequest(
  { paged, hasCursor }: Operation,
  { _page, _limit, cursor: given }: Readonly<Record<string, string | undefined>>,
  { maxRowLimit, isOriginal }: { readonly maxRowLimit: number; readonly isOriginal: boolean }
): PageRequest {
  if (paged === undefined) return { number: 1, limit: maxRowLimit, skip: 0 };
  const fallback = paged === 'max' ? maxRowLimit : Math.min(paged, maxRowLimit);
  const number = Math.max(1, integer('_page', _page) ?? 1);
  const wanted = integer('_limit', _limit) ?? fallback;
  if (wanted < 1 && !isOriginal)
    throw new Fault('wrongParameter', `the parameter "_limit" must be at least 1, not ${wanted}`, '_limit');
  const limit = Math.min(maxRowLimit, Math.max(1, wanted));
  const skip = (number - 1) * limit;
  if (!Number.isSafeInteger(skip)) throw new Fault('wrongParameter', `the parameter "_page" is too large`, '_page');
  const cursor = hasCursor === true && given !== '' ? given : undefined;
  if (cursor !== undefined && _page !== undefined)
    throw new Fault('wrongParameter', 'give "_page" or "cursor", not both', 'cursor');
  return { number, limit, skip, cursor, isGiven: _page !== undefined || _limit !== undefined };
}

function integer(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^-?\d{1,15}$/.test(text)) return Number(text);
  throw new Fault('wrongParameter', `the parameter "${name}" must be an integer, not "${text}"`, name);
}

/** The strictness of the check of a body. */
interface BodyChecks {
  /** With `errors: 'original'`: unknown parameters are ignored. */
  readonly isOriginal: boolean;
  /** The parameters of the path. */
  readonly params: Readonly<Record<string, string>>;
}

/** Additional members that a body may have, because clients send records back as they received them. */
interface Repeated {
  /** Fields with their values in the path: they may be repeated but not changed. */
  readonly fixed: Readonly<Record<string, string>>;
  /** The schema of the record, whose other fields are ignored. */
  readonly record: TSchema | undefined;
}

const NOTHING_FIXED: Repeated['fixed'] = Object.freeze({});

/** Read a body. An optional schema allows a request without a body. @throws Fault notJson, missingParameter, wrongParameter */
export function readBody({ body }: Operation, sent: Body): unknown {
  if ('value' in sent) return sent.value;
  return sent.text.trim() === '' && Type.IsOptional(body as TSchema) ? undefined : parse(sent.text);
}

/** Check a body. @throws Fault missingParameter, wrongParameter */
export function checkBody(row: Operation, body: unknown, { isOriginal, params }: BodyChecks): unknown {
  const schema = row.body as TSchema;
  if (body === undefined && Type.IsOptional(schema)) return undefined;
  const fixed = fixedFields(row, params);
  return checkValue(formOf(schema, body), body, 'body', isOriginal, { fixed, record: row.shown ?? row.data });
}

/** The fields of a record that are given by the path. */
function fixedFields({ named = {} }: Operation, params: Readonly<Record<string, string>>): Repeated['fixed'] {
  const others = Object.entries(named).map(([field, param]) => [field, params[param]]);
  return { ...params, ...Object.fromEntries(others) };
}

/** Check an entry of a batch. @throws Fault missingParameter, wrongParameter */
export function checkEntry<T>(schema: TSchema, entry: unknown, isOriginal: boolean): T {
  return checkValue(schema, entry, 'entry', isOriginal, { fixed: NOTHING_FIXED, record: undefined }) as T;
}

function checkValue(schema: TSchema, value: unknown, where: string, isOriginal: boolean, repeated: Repeated): unknown {
  check(schema, value, where);
  if (!isOriginal) checkKeys(schema, value, '', repeated);
  return value;
}

/**
 * Refuse keys of objects that are not in their schema.
 * @throws Fault wrongParameter
 */
function checkKeys(schema: TSchema, value: unknown, place: string, { fixed, record }: Repeated): void {
  if (Type.IsArray(schema) && Array.isArray(value)) {
    const items = record !== undefined && Type.IsArray(record) ? record.items : undefined;
    for (const [at, item] of value.entries())
      checkKeys(schema.items, item, `${place}${at}.`, { fixed: NOTHING_FIXED, record: items });
  }
  if (!Type.IsObject(schema) || typeof value !== 'object' || value === null) return;
  const { properties } = schema;
  const shown = record !== undefined && Type.IsObject(record) ? record.properties : {};
  for (const [key, one] of Object.entries(value)) {
    if (Object.hasOwn(properties, key))
      checkKeys(properties[key], one, `${place}${key}.`, { fixed: NOTHING_FIXED, record: shown[key] });
    else if (Object.hasOwn(fixed, key)) checkFixed(key, one, fixed[key]);
    else if (!Object.hasOwn(shown, key)) {
      const remedy = remedyOf(key, Object.keys(properties));
      throw new Fault('wrongParameter', `the parameter "${place}${key}" is not known; ${remedy}`, key);
    }
  }
}

/** @throws Fault wrongParameter if the body and the path have different values */
function checkFixed(key: string, value: unknown, inPath: string): void {
  if (value === inPath) return;
  const text = `the parameter "${key}" cannot be changed: the path has "${inPath}"; leave it out`;
  throw new Fault('wrongParameter', text, key);
}

/** Maximum number of entries of a list. */
const MAX_ENTRIES = 10_000;

/** The schema of a body that is one entry, or a list whose entries are checked one by one. */
export function oneOrMany<E extends TObject>(entry: E) {
  return anyOf([entry, batchOf(entry)]);
}

/** The schema of a list whose entries are checked one by one. */
export function batchOf(entry: TObject) {
  return listOf(any('', { documented: { as: entry } }), '', { maxItems: MAX_ENTRIES });
}

/** The schema of `oneOrMany` that fits the value, so that errors refer to what was sent. */
function formOf(schema: TSchema, value: unknown): TSchema {
  if (!Type.IsUnion(schema)) return schema;
  const wanted = Array.isArray(value) ? 'array' : 'object';
  return schema.anyOf.find((one) => (one as { type?: string }).type === wanted) ?? schema;
}

function parse(text: string): unknown {
  if (text.trim() === '') throw new Fault('missingParameter', 'the request has no body: send JSON');
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof RangeError) throw new Fault('wrongParameter', error.message);
    throw new Fault('notJson', `the body is not JSON: ${(error as Error).message}`);
  }
}
