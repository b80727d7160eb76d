import { StreamFailure } from '../values/values.ts';

/**
 * The values of templates. Floats are numbers and integers bigint, because templates compare and print them
 * differently. Missing values are undefined, and null is null.
 */
export type TemplateValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | Date
  | readonly TemplateValue[]
  | { readonly [key: string]: TemplateValue };

export type TemplateObject = { readonly [key: string]: TemplateValue };

/** The objects that a template has created: only these can be changed. */
const made = new WeakSet<object>();

/** Create an object of a template, which `set` can change. */
export function makeObject(entries: Iterable<readonly [string, TemplateValue]> = []): Record<string, TemplateValue> {
  const object: Record<string, TemplateValue> = Object.create(null);
  for (const [key, value] of entries) object[key] = value;
  made.add(object);
  return object;
}

export function isMade(object: object): boolean {
  return made.has(object);
}

export function isObject(value: TemplateValue): value is TemplateObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

export function isList(value: TemplateValue): value is readonly TemplateValue[] {
  return Array.isArray(value);
}

/**
 * Convert data for templates: numbers are floats, except for integers from 2^53 on; values that JSON cannot express
 * become strings [stream rules 9].
 * @returns the same value if no conversion is necessary
 */
export function asTemplateData(value: unknown): TemplateValue {
  switch (typeof value) {
    case 'bigint': {
      const number = Number(value);
      return Number.isSafeInteger(number) ? number : value;
    }
    case 'string':
    case 'number':
    case 'boolean':
    case 'undefined':
      return value;
    case 'object':
      break;
    default:
      return undefined;
  }
  if (value === null) return null;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array)
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  return Array.isArray(value) ? listAsData(value) : objectAsData(value as Readonly<Record<string, unknown>>);
}

function listAsData(list: readonly unknown[]): TemplateValue {
  let copy: TemplateValue[] | undefined;
  for (let i = 0; i < list.length; i++) {
    const each = asTemplateData(list[i]);
    if (copy === undefined && each !== list[i]) copy = list.slice(0, i) as TemplateValue[];
    copy?.push(each);
  }
  return copy ?? (list as readonly TemplateValue[]);
}

function objectAsData(object: Readonly<Record<string, unknown>>): TemplateValue {
  let changed: Record<string, TemplateValue> | undefined;
  for (const key of Object.keys(object)) {
    const each = asTemplateData(object[key]);
    if (each === object[key]) continue;
    changed ??= makeObject(Object.entries(object as TemplateObject));
    changed[key] = each;
  }
  return changed ?? (object as TemplateObject);
}

/** The value of a key, ignoring prototypes. */
export function memberOf(object: TemplateObject, key: string): TemplateValue {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Check whether a value counts as true: it is neither missing, null, false, 0 nor empty. */
export function isTruthy(value: TemplateValue): boolean {
  if (typeof value === 'bigint') return value !== 0n;
  if (typeof value !== 'object' || value === null) return Boolean(value) || Number.isNaN(value);
  if (isList(value)) return value.length > 0;
  return value instanceof Date || Object.keys(value).length > 0;
}

/** The type of a value in messages, as in the original. */
export function typeOf(value: TemplateValue): string {
  switch (typeof value) {
    case 'bigint':
      return 'int';
    case 'number':
      return 'float64';
    case 'boolean':
      return 'bool';
    case 'string':
      return 'string';
  }
  if (value === null || value === undefined) return 'interface {}';
  if (isList(value)) return '[]interface {}';
  return value instanceof Date ? 'time.Time' : 'map[string]interface {}';
}

/** The keys of an object in the order in which templates iterate over them. */
export function sortedKeys(object: TemplateObject): string[] {
  return Object.keys(object).sort((a, b) => (a < b ? -1 : 1));
}

/** The error for output that exceeds the limit. */
export function tooLong(most: number): StreamFailure {
  return new StreamFailure(`the output of the template is longer than ${most} characters (bounds.templateCharacters)`);
}
