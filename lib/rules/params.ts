// The order is fixed: `keepSecrets` puts current secrets in the place of `******`, then `checkParams` refuses what is
// still hidden, and parameters are hidden only in what is shown. Parameters that the table does not list and defaults
// that are absent stay as they are, so the stored parameters are those that were given. Names of parameters come from
// outside: only own fields are read.

import { InvalidInput, show } from '../base/errors.ts';
import { parseDuration } from '../base/fields.ts';
import { HIDDEN, hasHiddenInUrls, hideInUrls, keepInUrls } from '../base/secrets.ts';
import type { ParamField, Params, ParamTable } from './types.ts';

/** Approximate maximum bytes of all parameters together, and maximum nesting of objects and lists. */
const MAX_BYTES = 1024 * 1024;
const MAX_LEVELS = 32;

/** The parameter of actions that names their resource. */
export const RESOURCE_PARAM: ParamField = {
  order: 0,
  type: 'string',
  required: true,
  title: { en: 'Resource ID', zh: '资源 ID' },
  description: { en: 'Id of the resource that the action uses.', zh: '动作使用的资源的 ID。' }
};

type Fields = Readonly<Record<string, unknown>>;

/**
 * Check the parameters of an action or a resource. Parameters that are not in the table are kept, and defaults are not
 * filled in.
 * @param what the owner of the parameters, for messages: `the action "republish"`
 * @returns a copy
 * @throws InvalidInput PARAM_REQUIRED, PARAM_INVALID; `field` is the parameter
 */
export function checkParams(table: ParamTable, given: unknown, what: string): Params {
  if (given !== undefined && !isFields(given))
    throw new InvalidInput('PARAM_INVALID', 'params', 'an object', given, `${what}: its parameters must be an object`);
  const copy = new Copier(what).fields(given ?? {}, '', 0);
  checkFields(table, copy, what, '');
  return copy;
}

/** Parameters with secrets shown as `******`, including those in URLs. All values of a secret object are hidden. */
export function hideSecrets(table: ParamTable, params: Params): Params {
  const hide = (value: unknown, row: ParamField): unknown => {
    if (row.isSecret === true) return isFields(value) ? mapFields(value, () => HIDDEN) : HIDDEN;
    if (typeof value === 'string') return hideInUrls(value);
    return row.schema !== undefined && isFields(value) ? hideSecrets(row.schema, value) : value;
  };
  return mapFields(params, (value, name) => (Object.hasOwn(table, name) ? hide(value, table[name]) : value));
}

/**
 * Parameters of a kind that is not registered. It is unknown which of them are secret, so all but `$resource` are
 * hidden.
 */
export function hideAll(params: Params): Params {
  return mapFields(params, (value, name) => (name === '$resource' ? value : HIDDEN));
}

/**
 * Replace `******` by the current value of a secret. Without a current value it stays, and `checkParams` refuses it.
 * @param given the parameters, to be checked afterwards
 */
export function keepSecrets(table: ParamTable, given: unknown, before: Params): unknown {
  const keep = (value: unknown, row: ParamField, present: unknown): unknown => {
    if (row.isSecret !== true && typeof value === 'string') return keepInUrls(value, present);
    if (row.isSecret !== true)
      return row.schema !== undefined && isFields(value) ? keepSecrets(row.schema, value, fieldsOf(present)) : value;
    if (!isFields(value)) return value === HIDDEN ? (present ?? value) : value;
    return mapFields(value, (inner, name) => (inner === HIDDEN ? (ownField(fieldsOf(present), name) ?? inner) : inner));
  };
  if (!isFields(given)) return given;
  return mapFields(given, (value, name) =>
    Object.hasOwn(table, name) ? keep(value, table[name], ownField(before, name)) : value
  );
}

function checkFields(table: ParamTable, fields: Fields, what: string, path: string): void {
  for (const [name, row] of Object.entries(table)) {
    const value = ownField(fields, name);
    const field = path + name;
    if (value !== undefined) checkValue(row, value, what, field);
    else if (row.required === true) {
      const text = `${what}: the parameter "${field}" is missing`;
      throw new InvalidInput('PARAM_REQUIRED', field, expectedOf(row), undefined, text);
    }
  }
}

function checkValue(row: ParamField, value: unknown, what: string, field: string): void {
  if (row.isSecret === true ? isHidden(value) : typeof value === 'string' && hasHiddenInUrls(value)) {
    const expected = `the value itself; ${HIDDEN} stands for the current one in a change`;
    throw invalid(what, field, expected, HIDDEN);
  }
  if (!isGood(row, value)) throw invalid(what, field, expectedOf(row), row.isSecret === true ? undefined : value);
  if (row.schema !== undefined) checkFields(row.schema, value as Fields, what, `${field}.`);
  const { items } = row;
  if (row.type === 'array' && items !== undefined && 'type' in items)
    for (const [at, item] of (value as unknown[]).entries())
      checkValue(items as ParamField, item, what, `${field}[${at}]`);
}

function isHidden(value: unknown): boolean {
  return value === HIDDEN || (isFields(value) && Object.values(value).includes(HIDDEN));
}

function isGood(row: ParamField, value: unknown): boolean {
  if (row.enum !== undefined && !row.enum.includes(value)) return false;
  switch (row.type) {
    case 'string':
      return typeof value === 'string' && hasFormat(row.format, value);
    case 'number':
    case 'float': {
      const [min, max] = row.range ?? [-Infinity, Infinity];
      return typeof value === 'number' && value >= min && value <= max;
    }
    case 'boolean':
      return typeof value === 'boolean';
    case 'object':
      return isFields(value);
    case 'array':
      return Array.isArray(value);
  }
}

function hasFormat(format: string | undefined, text: string): boolean {
  switch (format) {
    case 'url':
      return /^https?:\/\/[^/]/i.test(text) && URL.canParse(text);
    case 'duration':
      return Number.isFinite(parseDuration(text));
    default:
      return true;
  }
}

const NAMES = { string: 'a string', number: 'a number', float: 'a number', boolean: 'true or false' } as const;

function expectedOf({ type, format, range, enum: values }: ParamField): string {
  if (values !== undefined) return `one of ${values.join(', ')}`;
  if (type === 'object') return 'an object';
  if (type === 'array') return 'a list';
  if (type === 'string' && format === 'url') return 'a URL that begins with http:// or https://';
  if (type === 'string' && format === 'duration') return 'a duration such as "60s" or "1h30m"';
  const isLimited = range !== undefined && (type === 'number' || type === 'float');
  return isLimited ? `a number from ${range[0]} to ${range[1]}` : NAMES[type];
}

function invalid(what: string, field: string, expected: string, got: unknown): InvalidInput {
  const shown = got === undefined ? '' : `, got ${show(got)}`;
  const text = `${what}: the parameter "${field}" must be ${expected}${shown}`;
  return new InvalidInput('PARAM_INVALID', field, expected, got, text);
}

/** Copies values that JSON can express, up to the limits. */
class Copier {
  readonly #what: string;
  #bytes = 0;

  constructor(what: string) {
    this.#what = what;
  }

  /**
   * @param path the parameter that contains them, followed by a dot; empty for all
   * @throws InvalidInput PARAM_INVALID
   */
  fields(given: Fields, path: string, level: number): Fields {
    return mapFields(given, (value, name) => {
      this.#count(name.length, path + name);
      return this.#value(value, path + name, level);
    });
  }

  #value(value: unknown, field: string, level: number): unknown {
    this.#count(typeof value === 'string' ? value.length : 8, field);
    if (level > MAX_LEVELS) throw invalid(this.#what, field, `a value of at most ${MAX_LEVELS} levels`, undefined);
    if (Array.isArray(value))
      return value.map((item: unknown, at) => this.#value(item ?? null, `${field}[${at}]`, level + 1));
    if (isFields(value)) return this.fields(value, `${field}.`, level + 1);
    const isJson = value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
    if (!isJson) throw invalid(this.#what, field, 'a value that JSON can express', undefined);
    return value;
  }

  #count(bytes: number, field: string): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_BYTES)
      throw invalid(
        this.#what,
        field,
        `shorter: all parameters together may have at most ${MAX_BYTES} bytes`,
        undefined
      );
  }
}

/** Check whether a value is a plain object. */
function isFields(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

function ownField(fields: Fields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

/** A copy with other values, without undefined ones. No name has a special meaning. */
function mapFields(fields: Fields, change: (value: unknown, name: string) => unknown): Fields {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries.map(([name, value]) => [name, change(value, name)]));
}
