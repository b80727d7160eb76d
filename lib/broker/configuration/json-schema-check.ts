// The interpreter of JSON Schema ignores a keyword whose value has the wrong type, and a type that it does not know: such
// a schema would accept every payload, so it is refused here. Keywords that are not known are allowed, as the
// specification demands. References are looked up by their last part, which finds misspelled names; the interpreter
// refuses all payloads if it finds nothing.

import { InvalidInput } from '../../base/errors.ts';

/** The types of JSON, and those of values of JavaScript that TypeBox adds. */
const TYPES: readonly unknown[] = [
  ...['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'],
  ...['bigint', 'constructor', 'function', 'symbol', 'undefined', 'void']
];

/** The kind of the value of a keyword. */
interface Kind {
  /** Description for people. */
  readonly expected: string;
  isGood(value: unknown): boolean;
  /** The schemas in the value, by their place. */
  inner?(value: unknown): readonly (readonly [place: string, schema: unknown])[];
}

const isText = (value: unknown) => typeof value === 'string';
const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText);
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isSchema = (value: unknown) => typeof value === 'boolean' || isObject(value);
const isPattern = (value: unknown): boolean => {
  try {
    return value instanceof RegExp || (typeof value === 'string' && new RegExp(value, 'u') !== undefined);
  } catch {
    return false;
  }
};
const membersOf = (value: unknown) =>
  Object.entries(value as object).map(([name, each]) => [`.${name}`, each] as const);
const itemsOf = (value: unknown) =>
  Array.isArray(value) ? value.map((each, at) => [`[${at}]`, each] as const) : [['', value] as const];

const SCHEMA: Kind = { expected: 'a schema', isGood: isSchema, inner: itemsOf };
const SCHEMA_LIST: Kind = { expected: 'an array of schemas', isGood: Array.isArray, inner: itemsOf };
const SCHEMA_OR_LIST: Kind = {
  expected: 'a schema, or an array of schemas',
  isGood: (value) => isSchema(value) || Array.isArray(value),
  inner: itemsOf
};
const SCHEMAS_BY_NAME: Kind = { expected: 'an object with schemas', isGood: isObject, inner: membersOf };
const NAMES: Kind = { expected: 'an array of strings', isGood: isTexts };
const NUMBER: Kind = {
  expected: 'a number',
  isGood: (value) => (typeof value === 'number' && !Number.isNaN(value)) || typeof value === 'bigint'
};

const KINDS: readonly (readonly [kind: Kind, ...keywords: string[]])[] = [
  [
    {
      expected: 'one of array, boolean, integer, null, number, object, string, or an array of these',
      isGood: (value) => (Array.isArray(value) ? value.every((each) => TYPES.includes(each)) : TYPES.includes(value))
    },
    'type'
  ],
  [SCHEMAS_BY_NAME, 'properties', 'dependentSchemas', '$defs', 'definitions'],
  [
    {
      expected: 'an object with schemas by regular expression',
      isGood: (value) => isObject(value) && Object.keys(value).every(isPattern),
      inner: membersOf
    },
    'patternProperties'
  ],
  [
    {
      expected: 'an object with schemas or arrays of strings',
      isGood: isObject,
      inner: (value) => membersOf(value).filter(([, each]) => !isTexts(each))
    },
    'dependencies'
  ],
  [
    {
      expected: 'an object with arrays of strings',
      isGood: (value) => isObject(value) && Object.values(value).every(isTexts)
    },
    'dependentRequired'
  ],
  [SCHEMA_OR_LIST, 'items'],
  [SCHEMA_LIST, 'prefixItems', 'allOf', 'anyOf', 'oneOf'],
  [SCHEMA, 'additionalItems', 'additionalProperties', 'contains', 'else', 'if', 'not', 'propertyNames', 'then'],
  [SCHEMA, 'unevaluatedItems', 'unevaluatedProperties'],
  [NAMES, 'required'],
  [{ expected: 'an array', isGood: Array.isArray }, 'enum'],
  [{ expected: 'true or false', isGood: (value) => typeof value === 'boolean' }, 'uniqueItems'],
  [{ expected: 'a string', isGood: isText }, 'format', '$id', '$ref', '$anchor', '$dynamicRef', '$dynamicAnchor'],
  [{ expected: 'a regular expression', isGood: isPattern }, 'pattern'],
  [NUMBER, 'exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum', 'multipleOf'],
  [NUMBER, 'maxContains', 'maxItems', 'maxLength', 'maxProperties'],
  [NUMBER, 'minContains', 'minItems', 'minLength', 'minProperties']
];

const KEYWORDS: ReadonlyMap<string, Kind> = new Map(
  KINDS.flatMap(([kind, ...keywords]) => keywords.map((keyword) => [keyword, kind] as const))
);

/** Check that the keywords of a JSON Schema have values of their kinds, and that references exist. @throws InvalidInput OPTION_INVALID */
export function checkJsonSchema(schema: object, field: string): void {
  const found = new Map<object, string>();
  collect(schema, field, found);
  for (const [{ $ref }, place] of found as ReadonlyMap<Named, string>) {
    if ($ref === undefined) continue;
    const target = targetOf($ref, schema);
    const reference = `${place}.$ref`;
    if (!isSchema(target))
      throw new InvalidInput('OPTION_INVALID', reference, 'a reference to a part of this schema', $ref);
    if (isObject(target)) collect(target, reference, found); // the loop comes to what this adds
  }
}

/** Check a schema and the schemas in it, and add them to `found`. */
function collect(schema: object, field: string, found: Map<object, string>): void {
  if (found.has(schema)) return;
  found.set(schema, field);
  for (const [keyword, value] of Object.entries(schema)) {
    const kind = value === undefined ? undefined : KEYWORDS.get(keyword);
    if (kind === undefined) continue;
    const place = `${field}.${keyword}`;
    if (!kind.isGood(value)) throw new InvalidInput('OPTION_INVALID', place, kind.expected, value);
    for (const [name, inner] of kind.inner?.(value) ?? []) {
      if (!isSchema(inner)) throw new InvalidInput('OPTION_INVALID', place + name, 'a schema', inner);
      if (isObject(inner)) collect(inner, place + name, found);
    }
  }
}

/** The keywords by which schemas are found. */
interface Named {
  readonly $ref?: string;
  readonly $id?: string;
  readonly $anchor?: string;
  readonly $dynamicAnchor?: string;
}

/** The part of a schema that a reference may mean, also one in a place that no keyword defines. */
function targetOf(ref: string, root: object): unknown {
  const parts = new Set<object>([root]);
  for (const part of parts) {
    const target = isObject(part) ? partNamed(part, ref, part === root) : undefined;
    if (target !== undefined) return target;
    for (const inner of Object.values(part)) if (typeof inner === 'object' && inner !== null) parts.add(inner);
  }
  return undefined;
}

function partNamed(schema: Named, ref: string, isRoot: boolean): unknown {
  const { $id, $anchor, $dynamicAnchor } = schema;
  if ($id !== undefined && $id === ref) return schema;
  const [document, fragment = ''] = ref.split('#', 2);
  const isHere =
    document === '' ? isRoot || $id !== undefined : typeof $id === 'string' && lastPart($id) === lastPart(document);
  if (fragment === '' || fragment.startsWith('/')) return isHere ? partOf(schema, fragment) : undefined;
  return fragment === $anchor || fragment === $dynamicAnchor ? schema : undefined;
}

function lastPart(url: string): string | undefined {
  return url.replace(/#.*/s, '').split('/').pop();
}

/** The part of a schema that a JSON pointer names. */
function partOf(schema: object, pointer: string): unknown {
  let part: unknown = schema;
  for (const name of pointer.split('/').slice(1)) {
    const key = decoded(name).replaceAll('~1', '/').replaceAll('~0', '~');
    part = typeof part === 'object' && part !== null && Object.hasOwn(part, key) ? part[key as never] : undefined;
  }
  return part;
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
