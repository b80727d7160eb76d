import { InvalidInput } from '../base/errors.ts';
import type { ActionInput, Properties, PropertyTable } from './types.ts';

/** Stands for a secret that is shown. In a change it means the present one. */
const HIDDEN = '******';
/** What the name of a secret contains, where no table tells which properties are. */
const SECRET_NAME = /passw|secret|token|credential|authorization|api-?_?key/i;

/** The properties of a type of sinks. undefined: the type is not registered. */
export type PropertiesOf = (type: string) => PropertyTable | undefined;

type Actions = readonly Readonly<Record<string, Properties>>[];

/** Actions as they are shown, with `******` for secrets. Of a type that is not registered, all properties are hidden. */
export function hideSecrets(actions: Actions, propertiesOf: PropertiesOf): Actions {
  return actions.map((action) =>
    mapped(action, (properties, type) => {
      const table = propertiesOf(type);
      const hide = (value: unknown, name: string): unknown => {
        if (table === undefined || isSecret(table, name)) return HIDDEN;
        return isObject(value) ? mapped(value, (inner, key) => (SECRET_NAME.test(key) ? HIDDEN : inner)) : value;
      };
      return mapped(properties, hide);
    })
  );
}

/**
 * Replace `******` in actions by the values of the present rule. Actions belong together by their position and type.
 * @throws InvalidInput PROPERTY_INVALID: there is no present value
 */
export function keepSecrets<T>(given: T, present: Actions): T {
  if (!Array.isArray(given)) return given; // it is refused later
  const kept = given.map((action: ActionInput, at) =>
    isObject(action)
      ? mapped(action, (properties, type) => keepIn(properties, present[at]?.[type], `${type} sink: property`))
      : action
  );
  return kept as T;
}

function keepIn(given: unknown, present: unknown, what: string): unknown {
  if (!isObject(given)) return given;
  return mapped(given, (value, name) => {
    const known = isObject(present) && Object.hasOwn(present, name) ? present[name] : undefined;
    if (value !== HIDDEN) return isObject(value) ? keepIn(value, known, `${what} ${name}, field`) : value;
    if (known !== undefined) return known;
    const text = `${what} ${name}: ${HIDDEN} stands for the present value, and there is none`;
    throw new InvalidInput('PROPERTY_INVALID', name, 'a value', HIDDEN, text);
  });
}

/** @param name may differ from the table in upper and lower case */
function isSecret(table: PropertyTable, name: string): boolean {
  const lower = name.toLowerCase();
  const found = Object.entries(table).find(([known]) => known.toLowerCase() === lower);
  return found === undefined ? SECRET_NAME.test(name) : found[1].isSecret === true;
}

function mapped<V, R>(fields: Readonly<Record<string, V>>, of: (value: V, name: string) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, of(value, name)]));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}
