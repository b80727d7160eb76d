// The order is fixed: `keepParams` puts current secrets in the place of `******`, then `checkParams` refuses what is
// still hidden, and parameters are hidden only in what is shown. Parameters that the table does not list and defaults
// that are absent stay as they are, so the stored parameters are those that were given. Names of parameters come from
// outside: only own fields are read.

import { InvalidInput } from '../base/errors.ts';
import {
  type DocumentedParam,
  type Field,
  type FieldTable,
  fieldsOf,
  type GivenTable,
  jsonTypeOf,
  type ParamTable,
  type Policy,
  readFields
} from '../base/fields.ts';
import { HIDDEN } from '../base/hidden-text.ts';
import { hiddenIn, hideIn, isHidden, isPlain, keepSecrets, mapped } from '../base/secrets.ts';
import type { Params } from './types.ts';

/** Approximate maximum bytes of all parameters together, and maximum nesting of objects and lists. */
const MAX_BYTES = 1024 * 1024;
const MAX_LEVELS = 32;

/** The parameter of actions that names their resource. */
export const RESOURCE_PARAMS: FieldTable = {
  $resource: {
    order: 0,
    type: 'string',
    required: true,
    title: 'Resource ID',
    about: 'Id of the resource that the action uses.',
    zh: { title: '资源 ID', about: '动作使用的资源的 ID。' }
  }
};

type Fields = Readonly<Record<string, unknown>>;

const PARAMETERS: Policy = {
  invalid: 'PARAM_INVALID',
  missing: 'PARAM_REQUIRED',
  named: (what, field) => `${what}: the parameter "${field}"`,
  missingText: (what, field) => `${what}: the parameter "${field}" is missing`,
  spelling: 'exact',
  unknown: (key, table, { what, path = '' }) => {
    const name = Object.keys(table).find((one) => one.toLowerCase() === key.toLowerCase());
    if (name === undefined) return;
    const text = `${what}: there is no parameter "${path}${key}"; did you mean "${path}${name}"?`;
    throw new InvalidInput('PARAM_INVALID', `${path}${key}`, `the parameter ${path}${name}`, undefined, text);
  },
  isHidden,
  hideIn,
  shownChoice: String
};

/**
 * Check the parameters of an action or a resource. Parameters that are not in the table are kept, unless their
 * names differ from one only in case, and defaults are not filled in.
 * @param what the owner of the parameters, for messages: `the action "republish"`
 * @returns a copy
 * @throws InvalidInput PARAM_REQUIRED, PARAM_INVALID; `field` is the parameter
 */
export function checkParams(table: GivenTable | undefined, given: unknown, what: string): Params {
  if (given !== undefined && !isPlain(given))
    throw new InvalidInput('PARAM_INVALID', 'params', 'an object', given, `${what}: its parameters must be an object`);
  const read = readFields(table, new Copier(what).fields(given ?? {}, '', 0), PARAMETERS, { what });
  for (const path of hiddenIn(read, { fields: fieldsOf(table) }))
    throw invalid(what, path.join('.'), `the value itself; ${HIDDEN} stands for the current one in a change`);
  return read;
}

/**
 * Put the current secrets of an action or a resource in the place of `******`.
 * @param what as for `checkParams`
 * @throws InvalidInput PARAM_INVALID if a secret has no current value, if several are possible, or if it is for another server
 */
export function keepParams(
  table: GivenTable | undefined,
  given: unknown,
  { present, what }: { readonly present: Params; readonly what: string }
): unknown {
  const fault = (path: readonly string[], reason: string, expected: string) => {
    const field = path.join('.');
    return new InvalidInput('PARAM_INVALID', field, expected, undefined, `${what}: the parameter "${field}"${reason}`);
  };
  return keepSecrets(given, present, { field: { fields: fieldsOf(table) }, fault });
}

/**
 * Parameters of a kind that is not registered. It is unknown which of them are secret, so all but `$resource` are
 * hidden.
 */
export function hideAll(params: Params): Params {
  return mapFields(params, (value, name) => (name === '$resource' ? value : HIDDEN));
}

/** Parameters in the form of the documented interface, in the order of their table. */
export function documentedParams(given: GivenTable = {}): ParamTable {
  return Object.fromEntries(
    Object.entries(given).map(([name, one], index) => [
      name,
      isDocumented(one) ? one : documentedParam(name, { order: index + 1, ...(one as Field) })
    ])
  );
}

function isDocumented(given: GivenTable[string]): given is DocumentedParam {
  return given.description !== undefined;
}

function documentedParam(name: string, field: Field): DocumentedParam {
  const { type: _, title = name, about, zh = { title, about }, choices, min, max, fields, ...others } = field;
  return {
    ...others,
    type: jsonTypeOf(field),
    title: { en: title, zh: zh.title },
    description: { en: about, zh: zh.about },
    ...(choices && { enum: choices }),
    ...(min !== undefined && max !== undefined && { range: [min, max] as const }),
    ...(fields && { schema: documentedParams(fields) })
  };
}

/** The error for a value, which it does not show. */
function invalid(what: string, field: string, expected: string): InvalidInput {
  const text = `${what}: the parameter "${field}" must be ${expected}`;
  return new InvalidInput('PARAM_INVALID', field, expected, undefined, text);
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
    if (level > MAX_LEVELS) throw invalid(this.#what, field, `a value of at most ${MAX_LEVELS} levels`);
    if (Array.isArray(value))
      return value.map((item: unknown, at) => this.#value(item ?? null, `${field}[${at}]`, level + 1));
    if (isPlain(value)) return this.fields(value, `${field}.`, level + 1);
    const isJson = value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
    if (!isJson) throw invalid(this.#what, field, 'a value that JSON can express');
    return value;
  }

  #count(bytes: number, field: string): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_BYTES)
      throw invalid(this.#what, field, `shorter: all parameters together may have at most ${MAX_BYTES} bytes`);
  }
}

/** A copy with other values, without undefined ones. */
function mapFields(fields: Fields, change: (value: unknown, name: string) => unknown): Fields {
  return mapped(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)), change);
}
