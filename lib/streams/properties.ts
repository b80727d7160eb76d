import { InvalidInput, show } from '../base/errors.ts';
import { fieldsOf, type GivenTable, nearest, type Policy, readFields } from '../base/fields.ts';
import { hideIn } from '../base/secrets.ts';
import type { Properties } from './types.ts';

const PROPERTIES: Policy = {
  invalid: 'PROPERTY_INVALID',
  missing: 'PROPERTY_INVALID',
  named: (what, field) => `${what}: property ${field}`,
  missingText: (what, field) => `${what} is missing property ${field}`,
  spelling: 'any case',
  unknown: (key, table, { what, warn }) => {
    const near = nearest(key, Object.keys(table));
    const hint = near === undefined ? '' : `; did you mean "${near}"?`;
    warn?.(`${what}: the unknown property ${show(key)} has no effect${hint}`);
  },
  ignoresNull: true,
  fillsIn: true,
  hideIn,
  shownChoice: show
};

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
  table: GivenTable,
  given: unknown,
  what: string,
  warn?: (text: string) => void
): Properties {
  if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given))) {
    const text = `${what}: expect map[string]interface{} type for the properties, but found ${show(given)}`;
    throw new InvalidInput('PROPERTY_INVALID', 'properties', 'an object', given, text);
  }
  const values = readFields(table, given ?? {}, PROPERTIES, { what, warn });
  for (const [name, { required }] of Object.entries(fieldsOf(table)))
    if (required === true && values[name] === '') {
      const expected = 'a string that is not empty';
      throw new InvalidInput('PROPERTY_INVALID', name, expected, '', `${what}: property ${name} must be ${expected}`);
    }
  return Object.assign(Object.create(null), values);
}

/** Properties over others. Names are matched without regard to case. */
export function overlaid(base: Properties, own: Properties): Properties {
  const names = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  const others = Object.entries(base).filter(([name]) => !names.has(name.toLowerCase()));
  return { ...Object.fromEntries(others), ...own };
}
