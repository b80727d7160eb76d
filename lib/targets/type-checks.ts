// Checks of the types of sources, sinks, actions and resources that apps define. TypeScript finds the same faults; these are for apps in
// JavaScript, where a misspelled name would have no effect.
import { InvalidInput } from '../base/errors.ts';
import { type Field, type FieldType, type GivenTable, isPlainObject, nearest } from '../base/fields.ts';

const TYPES: Readonly<Record<FieldType, true>> = {
  string: true,
  boolean: true,
  integer: true,
  number: true,
  percent: true,
  duration: true,
  size: true,
  choice: true,
  rate: true,
  object: true,
  array: true,
  function: true,
  any: true
};
/** The types of earlier forms, too. */
const KNOWN_TYPES = [...Object.keys(TYPES), 'float', 'text'];

const KEYS: Readonly<Record<keyof Field, true>> = {
  type: true,
  about: true,
  default: true,
  required: true,
  choices: true,
  unit: true,
  min: true,
  max: true,
  format: true,
  fields: true,
  items: true,
  aliases: true,
  check: true,
  isSecret: true,
  isTemplate: true,
  leastChange: true,
  change: true,
  whyFixed: true,
  title: true,
  zh: true,
  order: true,
  input: true
};
const KNOWN_KEYS = [...Object.keys(KEYS), 'kind', 'description', 'enum', 'range', 'schema'];

/**
 * Check a table of properties or parameters. Keys that are not known are refused if they are similar to a known one: others may be those of the app.
 * @param where the place of the table, such as `ticks.properties`
 * @throws InvalidInput of this code
 */
export function checkTable(table: GivenTable | undefined, where: string, code: string): void {
  if (table === undefined) return;
  if (!isPlainObject(table)) throw new InvalidInput(code, where, 'an object with a description for each name', table);
  for (const [name, row] of Object.entries(table)) {
    const at = `${where}.${name}`;
    if (!isPlainObject(row)) throw new InvalidInput(code, at, 'an object with type and about', row);
    const { type = row.kind, fields = row.schema } = row;
    if (!KNOWN_TYPES.includes(type as string))
      throw new InvalidInput(code, `${at}.type`, `one of ${Object.keys(TYPES).join(', ')}`, type);
    for (const key of Object.keys(row)) {
      const similar = KNOWN_KEYS.includes(key) ? undefined : nearest(key, KNOWN_KEYS);
      if (similar === undefined) continue;
      const text = `${at}: unknown key "${key}"; did you mean "${similar}"?`;
      throw new InvalidInput(code, at, 'a known key', key, text);
    }
    checkTable(fields as GivenTable | undefined, `${at}.fields`, code);
  }
}

/**
 * Check what `open` of a type of the app has returned.
 * @param where the type and the method, such as `lines.open()`
 * @throws InvalidInput of this code
 */
export function checkOpened<T>(opened: T, methods: readonly (keyof T & string)[], where: string, code: string): T {
  if (methods.every((method) => typeof opened?.[method] === 'function')) return opened;
  const names = methods.map((method) => `${method}()`).join(' and ');
  throw new InvalidInput(code, where, `an object with ${names}`, opened);
}
