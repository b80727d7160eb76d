// The vocabulary of the schemas of requests and answers. Flat objects are tables of fields, with the columns of options and
// properties (`Field`). `schemaOf` makes from a field the schema of TypeBox, which checks requests, has a type, and is shown
// in documents.

import * as Type from 'typebox';
import { type Field, jsonTypeOf } from '../../../lib/adapter.ts';
import type { Documented } from './document-schemas.ts';

/** The columns of a field behind its type and its description. */
type Columns = Partial<Pick<Field, 'default' | 'min' | 'max'>> & { readonly documented?: Documented };

const MAKERS = { string: Type.String, number: Type.Number, boolean: Type.Boolean, any: Type.Unknown };

/** The schema of a field. The minimum of a string is its number of characters. */
function schemaOf(field: Omit<Field, 'items' | 'fields'> & Columns): Type.TSchema {
  const { type, about, choices, min, max, default: fallback, documented } = field;
  const more = {
    ...(min !== undefined && { [type === 'string' ? 'minLength' : 'minimum']: min }),
    ...(max !== undefined && { maximum: max }),
    ...(fallback !== undefined && { default: fallback }),
    ...(about !== '' && { description: about }),
    ...(documented !== undefined && { documented })
  };
  if (choices !== undefined) return Type.Enum(choices as string[], more);
  return type === 'integer' ? Type.Integer(more) : MAKERS[jsonTypeOf(field) as keyof typeof MAKERS](more);
}

const made =
  <S extends Type.TSchema>(type: Field['type']) =>
  (about = '', columns: Columns = {}) =>
    schemaOf({ type, about, ...columns }) as S;

/** A string. */
export const text = made<Type.TString>('string');
/** A whole number. */
export const integer = made<Type.TInteger>('integer');
/** A number. */
export const number = made<Type.TNumber>('number');
/** True or false. */
export const flag = made<Type.TBoolean>('boolean');
/** Any value. */
export const any = made<Type.TUnknown>('any');

/** One of some strings. */
export function oneOf<const C extends string>(
  choices: readonly C[],
  about = '',
  columns: Columns = {}
): Type.TEnum<C[]> {
  return schemaOf({ type: 'choice', choices, about, ...columns }) as Type.TEnum<C[]>;
}

/** A list. */
export function listOf<S extends Type.TSchema>(items: S, about = '', more: Type.TArrayOptions = {}): Type.TArray<S> {
  return Type.Array(items, about === '' ? more : { ...more, description: about });
}

/** A value of one of some schemas. */
export function anyOf<S extends Type.TSchema[]>(schemas: [...S], about = ''): Type.TUnion<S> {
  return Type.Union(schemas, about === '' ? {} : { description: about });
}

/** An object with named properties. */
export function objectOf<P extends Type.TProperties>(properties: P, more: Type.TObjectOptions = {}): Type.TObject<P> {
  return Type.Object(properties, more);
}

/** An object that the document shows as a component with a title. @param about its description, which clients show for its type */
export function componentOf<P extends Type.TProperties>(title: string, about: string, properties: P): Type.TObject<P> {
  return Type.Object(properties, { title, description: about });
}

/** A name of a record. */
type AnyName = '^.*$';

/**
 * An object with any names, which TypeBox writes as `Type.Record(Type.String(), value)`. The function of TypeBox reads types of
 * names from patterns, and with it an import of `embermq/management` loads 100 kB more.
 */
export function recordOf<Value extends Type.TSchema>(
  value: Value,
  about = '',
  more: object = {}
): Type.TRecord<AnyName, Value> {
  const schema: Omit<Type.TRecord<AnyName, Value>, '~kind'> = {
    type: 'object',
    patternProperties: { '^.*$': value } as { readonly [N in AnyName]: Value },
    ...(about !== '' && { description: about }),
    ...more
  };
  return schema as Type.TRecord<AnyName, Value>;
}

/** An object with any properties. */
export function anyObject(about = ''): Type.TRecord<AnyName, Type.TUnknown> {
  return recordOf(any(), about);
}

/** A property that may be absent. */
export const optional = Type.Optional;
