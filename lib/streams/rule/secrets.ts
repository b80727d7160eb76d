import { isDeepStrictEqual } from 'node:util';
import { InvalidInput } from '../../base/errors.ts';
import { type FieldTable, fieldsOf, type GivenTable } from '../../base/fields.ts';
import { HIDDEN } from '../../base/hidden-text.ts';
import { counterparts, SEVERAL } from '../../base/secret-lists.ts';
import {
  hasHidden,
  hideSecrets as hide,
  isPlain,
  keepSecrets as keep,
  mapped,
  memberOf,
  type Secrecy
} from '../../base/secrets.ts';
import type { ActionInput, Properties } from '../types.ts';

/** The property table of a sink type; undefined if the type is not registered. */
export type PropertiesOf = (type: string) => FieldTable | undefined;

type Actions = readonly Readonly<Record<string, Properties>>[];

/** Actions with secrets shown as `******`. For a type that is not registered, all properties are hidden. */
export function hideSecrets(actions: Actions, propertiesOf: PropertiesOf): Actions {
  return actions.map((action) => mapped(action, (properties, type) => hideProperties(properties, propertiesOf(type))));
}

/** Check whether properties have secrets; without a table, by their names. */
export function hasSecrets(properties: Properties, table: GivenTable | undefined): boolean {
  return !isDeepStrictEqual(hide(table, properties), { ...properties });
}

/** Check whether `******` stands for secrets in properties; without a table, in any of them. */
export function hasHiddenSecrets(properties: Properties, table: GivenTable | undefined): boolean {
  return hasHidden(properties, secrecyOf(table));
}

/** Properties with secrets shown as `******`; without a table, all of them. */
export function hideProperties(properties: Properties, table: GivenTable | undefined): Properties {
  return table === undefined ? mapped(properties, () => HIDDEN) : hide(table, properties);
}

/**
 * Replace `******` in actions by the values of the current rule. An action is matched with the one that has the same type
 * and values, or, if they have changed, the same server; functions are not shown.
 * @throws InvalidInput PROPERTY_INVALID if a secret has no current value, if several are possible, or if a property has too many levels
 */
export function keepSecrets<T>(given: T, present: Actions, propertiesOf: PropertiesOf): T {
  if (!Array.isArray(given)) return given; // refused later
  const shown = given.filter((action: ActionInput) => typeof action !== 'function');
  const known = counterparts(shown, present, (one) =>
    isPlain(one)
      ? mapped(one, (inner, type) => (isPlain(inner) ? hideProperties(inner, propertiesOf(type)) : inner))
      : one
  );
  let at = 0;
  const kept = given.map((action: ActionInput) => {
    if (typeof action === 'function') return action;
    const { present: before, isAmbiguous } = known[at++];
    if (!isPlain(action)) return action;
    return mapped(action, (properties, type) => {
      if (!isPlain(properties)) return properties;
      const owner = { what: `${type} sink`, table: propertiesOf(type) };
      if (isAmbiguous === true && hasHidden(properties, secrecyOf(owner.table)))
        throw refusal(owner.what, [], SEVERAL, 'the value itself');
      return keepProperties(properties, memberOf(before, type), owner);
    });
  });
  return kept as T;
}

/**
 * Replace `******` in properties by the current values. It is refused where another server would get a secret.
 * @param owner the owner of the properties, for messages, and their table; without one, all of them are hidden
 * @throws InvalidInput PROPERTY_INVALID
 */
export function keepProperties(
  properties: Properties,
  present: unknown,
  { what, table }: { readonly what: string; readonly table: GivenTable | undefined }
): Properties {
  const fault = (path: readonly string[], reason: string, expected: string) => refusal(what, path, reason, expected);
  return keep(properties, present, { field: secrecyOf(table), fault }) as Properties;
}

function secrecyOf(table: GivenTable | undefined): Secrecy {
  return table === undefined ? { isSecret: true } : { fields: fieldsOf(table) };
}

function refusal(what: string, path: readonly string[], reason: string, expected: string): InvalidInput {
  const place = path.map((name, at) => (at === 0 ? `${what}: property ${name}` : `field ${name}`)).join(', ') || what;
  return new InvalidInput('PROPERTY_INVALID', place, expected, undefined, place + reason);
}
