import { InvalidInput, show } from '../base/errors.ts';
import { nearest, parseDuration } from '../base/fields.ts';
import type { Properties, PropertyField, PropertyTable } from './types.ts';

/**
 * Check the properties of a source or a sink, and fill in defaults.
 *
 * Names are matched without regard to case, as in the original. Properties that the table does not list are kept and
 * reported. null counts as not given.
 * @param what the owner of the properties, for messages: `mqtt sink`
 * @param warn called with a sentence for each property that the table does not list
 * @returns an object without a prototype; do not change it
 * @throws InvalidInput PROPERTY_INVALID; `field` is the property
 */
export function readProperties(
  table: PropertyTable,
  given: unknown,
  what: string,
  warn?: (text: string) => void
): Properties {
  if (given !== undefined && !isObject(given)) {
    const text = `${what}: expect map[string]interface{} type for the properties, but found ${show(given)}`;
    throw new InvalidInput('PROPERTY_INVALID', 'properties', 'an object', given, text);
  }
  const names = new Map(Object.keys(table).map((name) => [name.toLowerCase(), name]));
  const values: Record<string, unknown> = Object.create(null);
  for (const [key, value] of Object.entries(given ?? {})) {
    const name = Object.hasOwn(table, key) ? key : (names.get(key.toLowerCase()) ?? key);
    // a name with the exact spelling of the table takes precedence
    if (value === undefined || value === null || (name !== key && Object.hasOwn(given as object, name))) continue;
    if (!Object.hasOwn(table, name)) {
      warn?.(unknownText(what, key, Object.keys(table)));
      values[name] = value;
    } else values[name] = readProperty(table[name], value, what, name);
  }
  for (const [name, row] of Object.entries(table)) {
    if (values[name] !== undefined) continue;
    if (row.required === true) {
      const text = `${what} is missing property ${name}`;
      throw new InvalidInput('PROPERTY_INVALID', name, expectedOf(row), undefined, text);
    }
    if (row.default !== undefined) values[name] = row.default;
  }
  return values;
}

/** Convert the value of a property as its row prescribes. @throws InvalidInput PROPERTY_INVALID */
function readProperty(row: PropertyField, given: unknown, what: string, name: string): unknown {
  const value = row.unit === 'ms' && typeof given === 'string' ? (parseDuration(given) ?? given) : given;
  const isFilledIn = row.isTemplate === true && typeof value === 'string' && value.includes('{{');
  if (isFilledIn || isGood(row, value)) return value;
  const expected = expectedOf(row);
  const shown = row.isSecret === true ? '' : `, got ${show(given)}`;
  const text = `${what}: property ${name} must be ${expected}${shown}`;
  throw new InvalidInput('PROPERTY_INVALID', name, expected, row.isSecret === true ? undefined : given, text);
}

function isGood({ type, choices, range: [least, greatest] = [-Infinity, Infinity] }: PropertyField, value: unknown) {
  if (choices !== undefined && !choices.includes(value)) return false;
  switch (type) {
    case 'any':
      return true;
    case 'number':
      return typeof value === 'number' && value >= least && value <= greatest;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    default:
      return typeof value === type;
  }
}

const EXPECTED = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  any: 'a value'
} as const;

function expectedOf({ type, choices, range, unit }: PropertyField): string {
  if (choices !== undefined) return `one of ${choices.map((choice) => show(choice)).join(', ')}`;
  if (type !== 'number') return EXPECTED[type];
  const number = unit === 'ms' ? 'a number of milliseconds, or a duration such as "10s"' : EXPECTED.number;
  if (range === undefined) return number;
  return range[1] === Infinity ? `${number}, of at least ${range[0]}` : `${number}, from ${range[0]} to ${range[1]}`;
}

function unknownText(what: string, key: string, known: readonly string[]): string {
  const near = nearest(key, known);
  const hint = near === undefined ? '' : `; did you mean "${near}"?`;
  return `${what}: the unknown property ${show(key)} has no effect${hint}`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}
