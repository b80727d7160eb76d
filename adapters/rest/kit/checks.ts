/**
 * Schema checks. Separate from `adapters/rest`, which `serve` loads, because their package takes 9 MB of memory. The compiler of schemas,
 * 250 kB, is loaded for the first request, as it took a tenth of the time of an import of `embermq/management`.
 */

import type { Validator } from 'typebox/compile';
import { Fault } from '../fault.ts';
import type { compile } from './compile.ts';

let compiler: typeof compile | undefined;

/** Load what the checks need. Call it before any of them. @returns undefined if it is loaded already */
export function loadChecks(): Promise<void> | undefined {
  if (compiler !== undefined) return undefined;
  return import('./compile.ts').then((module) => {
    compiler = module.compile;
  });
}

/** The validators of schemas, compiled on first use. */
const validators = new WeakMap<object, Validator>();

/**
 * Check a value.
 * @param where the name of the value, for errors: `body`, `query`
 * @throws Fault missingParameter, wrongParameter
 */
export function check<T>(schema: object, value: unknown, where: string): T {
  let validator = validators.get(schema);
  if (validator === undefined) {
    if (compiler === undefined) throw new Error('the checks are used before loadChecks()');
    validator = compiler(schema);
    validators.set(schema, validator);
  }
  if (validator.Check(value)) return value as T;
  throw faultIn(validator.Errors(value), where);
}

type ValidationError = ReturnType<Validator['Errors']>[number];

/** The error to report: one about a part of the value is more specific than one about the whole. */
function faultIn(errors: readonly ValidationError[], where: string): Fault {
  const [error] = [...errors].sort((a, b) => b.instancePath.length - a.instancePath.length);
  const path = error.instancePath.slice(1).replaceAll('/', '.');
  if (error.keyword === 'required') {
    const [name] = error.params.requiredProperties;
    const place = path === '' ? name : `${path}.${name}`;
    return new Fault('missingParameter', `the parameter "${place}" is missing`, name);
  }
  // the schema of a forbidden parameter
  if (error.keyword === 'boolean')
    return new Fault('wrongParameter', `the parameter "${path}" is not known; leave it out`, path);
  const name = path === '' ? `the ${where}` : `the parameter "${path}"`;
  return new Fault('wrongParameter', `${name} ${conditionOf(error)}`, path === '' ? undefined : path);
}

/** The condition that a value must meet. */
function conditionOf(error: ValidationError): string {
  if (error.keyword === 'const') return `must be ${JSON.stringify(error.params.allowedValue)}`;
  if (error.keyword === 'minLength' && error.params.limit === 1) return 'must not be empty';
  if (error.keyword !== 'enum') return error.message;
  return `${error.message} (${error.params.allowedValues.map((one) => JSON.stringify(one)).join(', ')})`;
}

/** Parse a query string. The first value of a name counts; a name without a value is `true`. */
export function parseQuery(text: string): Record<string, string> {
  const query: Record<string, string> = Object.create(null);
  if (text === '') return query;
  for (const [name, value] of new URLSearchParams(text)) if (!(name in query)) query[name] = value;
  for (const part of text.split('&')) if (part in query && !part.includes('=')) query[part] = 'true';
  return query;
}

/**
 * Convert and check the query parameters of an operation. Others are ignored.
 * @throws Fault missingParameter, wrongParameter
 */
export function checkQuery(
  schema: { readonly properties: object } | undefined,
  given: Readonly<Record<string, string>>
): Record<string, unknown> {
  if (schema === undefined) return {};
  const values: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(schema.properties)) {
    const text = given[name];
    if (text !== undefined) values[name] = readValue(text, (property as { type?: string }).type);
  }
  return check(schema, values, 'query');
}

/**
 * Convert a string to a type. A string without a value of the type is returned unchanged, and the check of the schema
 * refuses it.
 */
function readValue(text: string, type: string | undefined): unknown {
  if (type === 'integer' || type === 'number') return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  return text;
}
