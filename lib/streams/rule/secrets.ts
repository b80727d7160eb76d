import { InvalidInput } from '../../base/errors.ts';
import { HIDDEN, hasHiddenInUrls, hideInUrls, keepInUrls } from '../../base/secrets.ts';
import type { ActionInput, Properties, PropertyTable } from '../types.ts';

/** Names that denote secrets, for properties that no table describes. */
const SECRET_NAME = /passw|passphrase|secret|token|credential|authorization|cookie|api[-_]*key/i;
/** Maximum nesting of objects and arrays in a property. */
const MAX_LEVELS = 64;
const NO_PRESENT = `: ${HIDDEN} stands for the current value, but there is none`;

/** The property table of a sink type; undefined if the type is not registered. */
export type PropertiesOf = (type: string) => PropertyTable | undefined;

type Actions = readonly Readonly<Record<string, Properties>>[];

/** Actions with secrets shown as `******`. For a type that is not registered, all properties are hidden. */
export function hideSecrets(actions: Actions, propertiesOf: PropertiesOf): Actions {
  return actions.map((action) => mapped(action, (properties, type) => hideProperties(properties, propertiesOf(type))));
}

/** Properties with secrets shown as `******`; without a table, all of them. */
export function hideProperties(properties: Properties, table: PropertyTable | undefined): Properties {
  return mapped(properties, (value, name) => {
    if (table === undefined) return HIDDEN;
    return isSecret(table, name) ? HIDDEN : hideIn(value);
  });
}

/** A value whose name does not denote a secret. */
function hideIn(value: unknown): unknown {
  if (typeof value === 'string') return hideInUrls(value);
  if (Array.isArray(value)) return value.map(hideIn);
  if (!isObject(value)) return value;
  return mapped(value, (inner, name) => (SECRET_NAME.test(name) ? HIDDEN : hideIn(inner)));
}

/**
 * Replace `******` in actions by the values of the current rule. Actions are matched by their type and their position
 * among those that are not functions; array elements and URLs within a string by position, query values by name.
 * @throws InvalidInput PROPERTY_INVALID if there is no current value, or if a property has too many levels
 */
export function keepSecrets<T>(given: T, present: Actions): T {
  if (!Array.isArray(given)) return given; // refused later
  let at = 0;
  const kept = given.map((action: ActionInput) => {
    if (typeof action === 'function') return action;
    const before = present[at++];
    if (!isObject(action)) return action;
    return mapped(action, (properties, type) => {
      if (!isObject(properties)) return properties;
      return keepProperties(properties, fieldOf(before, type), `${type} sink`);
    });
  });
  return kept as T;
}

/**
 * Replace `******` in properties by the current values.
 * @param what the owner of the properties, for messages
 * @throws InvalidInput PROPERTY_INVALID
 */
export function keepProperties(properties: Properties, present: unknown, what: string): Properties {
  return mapped(properties, (value, name) => keepIn(value, fieldOf(present, name), [`${what}: property ${name}`]));
}

/** @param path the property, followed by fields and elements */
function keepIn(value: unknown, present: unknown, path: readonly string[]): unknown {
  if (value === HIDDEN) return present ?? refuse(path, NO_PRESENT);
  if (typeof value === 'string') return keepUrls(value, present, path);
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) return value;
  if (path.length > MAX_LEVELS)
    refuse(path.slice(0, 1), ` has more than ${MAX_LEVELS} levels of objects and arrays`, 'fewer levels');
  const keep = (inner: unknown, name: string | number) =>
    keepIn(inner, fieldOf(present, name), [...path, `field ${name}`]);
  return isList ? value.map(keep) : mapped(value, keep);
}

/** A string with the current secrets in its URLs. */
function keepUrls(text: string, present: unknown, path: readonly string[]): string {
  const kept = keepInUrls(text, present);
  return hasHiddenInUrls(kept) ? refuse(path, NO_PRESENT) : kept;
}

function refuse(path: readonly string[], reason: string, expected = 'a value'): never {
  const place = path.join(', ');
  throw new InvalidInput('PROPERTY_INVALID', place, expected, undefined, place + reason);
}

/** @param name matched without regard to case */
function isSecret(table: PropertyTable, name: string): boolean {
  const lower = name.toLowerCase();
  const found = Object.entries(table).find(([known]) => known.toLowerCase() === lower);
  return found === undefined ? SECRET_NAME.test(name) : found[1].isSecret === true;
}

function mapped<V, R>(fields: Readonly<Record<string, V>>, of: (value: V, name: string) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, of(value, name)]));
}

/** A field of an object, or an element of an array. */
function fieldOf(value: unknown, name: string | number): unknown {
  return (isObject(value) || Array.isArray(value)) && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string | number, unknown>>)[name]
    : undefined;
}

/** Check whether a value is a plain object. Instances of classes belong to the app and stay as they are. */
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
