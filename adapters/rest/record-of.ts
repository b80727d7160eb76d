import type { TRecord, TSchema } from 'typebox';

/** A name of a record. */
type AnyName = '^.*$';

/**
 * The schema of an object with any names, which TypeBox writes as `Type.Record(Type.String(), value)`. The function of TypeBox reads types of
 * names from patterns, and with it an import of `embermq/management` loads 100 kB more.
 */
export function recordOf<Value extends TSchema>(value: Value, more: object = {}): TRecord<AnyName, Value> {
  const schema: Omit<TRecord<AnyName, Value>, '~kind'> = {
    type: 'object',
    patternProperties: { '^.*$': value } as { readonly [N in AnyName]: Value },
    ...more
  };
  return schema as TRecord<AnyName, Value>;
}
