// Secrets in values that interfaces show and take back: `hideSecrets` puts `******` in their place, `keepSecrets` puts
// the current values in the place of `******`, also of values that are not secrets: all values of a type that was not
// registered when they were shown were hidden. For strings see `hidden-text.ts`.

import { type Field, type FieldTable, fieldsOf, type GivenTable } from './fields.ts';
import { HIDDEN, hasHiddenInText, hideInText, isSecretByName, keepInText } from './hidden-text.ts';
import { counterparts, isForOtherServer, OTHER_SERVER, SEVERAL } from './secret-lists.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Maximum nesting of objects and arrays in a value with secrets. */
const MAX_LEVELS = 64;

/** The columns of a field that tell which values are secrets. `{ isSecret: true }` for an object: all its values. */
export interface Secrecy {
  readonly type?: Field['type'] | undefined;
  readonly isSecret?: boolean | undefined;
  readonly fields?: FieldTable | undefined;
  readonly items?: Secrecy | undefined;
}

const SECRET: Secrecy = { isSecret: true };

/**
 * Values with secrets shown as `******`: values that the table marks, values that no table describes and whose name
 * denotes a secret, except booleans and null, and parts of URLs. Of a secret object, all values are hidden.
 */
export function hideSecrets(given: GivenTable | undefined, values: Fields): Fields {
  return hideFields({ fields: fieldsOf(given) }, values, 0);
}

function hideFields(owner: Secrecy, values: Fields, level: number): Fields {
  return mapped(values, (value, name) => hide(value, memberField(owner, name, value), level + 1));
}

/** A value with secrets shown as `******`. @param fields those of an object, or of the objects in a list */
export function hideIn(value: unknown, fields?: FieldTable): unknown {
  return hide(value, { fields });
}

function hide(value: unknown, field: Secrecy, level = 0): unknown {
  if (level > MAX_LEVELS) return HIDDEN;
  if (field.isSecret === true) return field.type === 'object' && isPlain(value) ? mapped(value, () => HIDDEN) : HIDDEN;
  if (typeof value === 'string') return hideInText(value);
  if (Array.isArray(value)) return value.map((one) => hide(one, elementField(field), level + 1));
  return isPlain(value) ? hideFields({ fields: fieldsOf(fieldsIn(field)) }, value, level) : value;
}

/** The fields of an object, or of the objects in a list. */
function fieldsIn({ fields, items }: Secrecy): FieldTable | undefined {
  return fields ?? items?.fields;
}

function elementField(field: Secrecy): Secrecy {
  return { isSecret: field.isSecret ?? field.items?.isSecret, fields: fieldsIn(field) };
}

/** The field of a value in an object; if no table describes it, by its name, which is matched without regard to case. */
function memberField(field: Secrecy, name: string, value: unknown): Secrecy {
  if (field.isSecret === true) return SECRET;
  const described = namedMember(fieldsOf(fieldsIn(field)), name) as Field | undefined;
  return described ?? (isSecretByName(name, value) ? SECRET : {});
}

/**
 * Find the values for which `******` stands where `hideSecrets` hides a secret, and those with too many levels.
 * @returns the names that lead to each of them
 */
export function* hiddenIn(
  value: unknown,
  field: Secrecy,
  path: readonly string[] = []
): Generator<readonly string[], void, undefined> {
  if (isHidden(field, value) || path.length > MAX_LEVELS) yield path;
  if (path.length > MAX_LEVELS || (!Array.isArray(value) && !isPlain(value))) return;
  for (const [name, one] of Object.entries(value)) {
    const inner = Array.isArray(value) ? elementField(field) : memberField(field, name, one);
    yield* hiddenIn(one, inner, [...path, name]);
  }
}

/** Check whether `******` stands for a secret in a value, at any depth. True for one that has too many levels. */
export function hasHidden(value: unknown, field: Secrecy): boolean {
  return hiddenIn(value, field).next().done !== true;
}

/** The way in which secrets of a value are kept. */
interface Keeping {
  readonly field: Secrecy;
  /** The names that lead to the value, for `fault`. */
  readonly path?: readonly string[];
  /** The error for a secret that has no current value, or is for another server, and for too many levels. */
  readonly fault: (path: readonly string[], reason: string, expected: string) => Error;
}

/**
 * Replace `******` in a value by the current values: URLs within a string are matched by position, elements of arrays by
 * their other values (`counterparts`), fields by name. If there is no current value, `******` is a value like others,
 * unless it stands for a secret. An object that names another server than before keeps no secret: that server would get it.
 * @throws the error of `fault`
 */
export function keepSecrets(value: unknown, present: unknown, keeping: Keeping): unknown {
  const { field, path = [], fault } = keeping;
  if (value === HIDDEN && present !== undefined) return present;
  if (typeof value === 'string') {
    const kept = keepInText(value, present);
    if (isHidden(field, kept))
      throw fault(path, `: ${HIDDEN} stands for the current value, but there is none`, 'a value');
    return kept;
  }
  const isList = Array.isArray(value);
  if (!isList && !isPlain(value)) return value;
  if (path.length > MAX_LEVELS)
    throw fault(path.slice(0, 1), ` has more than ${MAX_LEVELS} levels of objects and arrays`, 'fewer levels');
  const keep = (inner: unknown, before: unknown, name: string, its: Secrecy) =>
    keepSecrets(inner, before, { ...keeping, field: its, path: [...path, name] });
  if (!isList) {
    const kept = mapped(value, (inner, name) =>
      keep(inner, namedMember(present, name), name, memberField(field, name, inner))
    );
    if (isPlain(present) && isForOtherServer(kept, present))
      for (const hidden of hiddenIn(value, field, path)) throw fault(hidden, OTHER_SERVER, 'the value itself');
    return kept;
  }
  const element = elementField(field);
  if (!hasHidden(value, SECRET)) return value;
  const all = counterparts(value, present, (one) => hide(one, element));
  return value.map((inner, at) => {
    const found = all[at];
    if (found.isAmbiguous && hasHidden(inner, element)) throw fault([...path, `${at}`], SEVERAL, 'the value itself');
    return keep(inner, found.present, `${at}`, element);
  });
}

/** A field of a plain object; its name is matched without regard to case unless there is the exact one, as where secrets are hidden. */
export function namedMember(value: unknown, name: string): unknown {
  if (!isPlain(value)) return undefined;
  if (Object.hasOwn(value, name)) return value[name];
  const lower = name.toLowerCase();
  return Object.entries(value).find(([known]) => known.toLowerCase() === lower)?.[1];
}

/** A field of a plain object, or an element of an array. */
export function memberOf(value: unknown, name: string | number): unknown {
  const isOwn = (isPlain(value) || Array.isArray(value)) && Object.hasOwn(value, name);
  return isOwn ? (value as Readonly<Record<string | number, unknown>>)[name] : undefined;
}

/** A copy of an object with other values. No name has a special meaning. */
export function mapped<V, R>(
  fields: Readonly<Record<string, V>>,
  of: (value: V, name: string) => R
): Readonly<Record<string, R>> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, of(value, name)]));
}

/** Check whether a value is a plain object. Instances of classes belong to the app and stay as they are. */
export function isPlain(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** True if `******` stands for the value of a field, for a value of a secret object, or for a part of a URL. */
export function isHidden({ isSecret }: Secrecy, value: unknown): boolean {
  if (typeof value === 'string') return (isSecret === true && value === HIDDEN) || hasHiddenInText(value);
  return isSecret === true && isPlain(value) && Object.values(value).includes(HIDDEN);
}
