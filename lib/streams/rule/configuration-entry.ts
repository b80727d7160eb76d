import { InvalidInput } from '../../base/errors.ts';
import { isPlain } from '../../base/secrets.ts';
import type { StreamConfigEntry, StreamConfigKey, StreamConfigKind } from '../api.ts';

/** Names of the kinds in messages. */
export const WORDS: Readonly<Record<StreamConfigKind, string>> = {
  confKey: 'section',
  connection: 'connection',
  schema: 'schema'
};
/** The property that names a connection. */
export const SELECTOR = 'connectionSelector';
/** Maximum nesting of objects and arrays in properties. */
const MAX_LEVELS = 64;
/** Names that a path can contain. */
const NAME = /^(?!\.{1,2}$)[^\s/\p{Cc}\p{Cs}]([^/\p{Cc}\p{Cs}]{0,254}[^\s/\p{Cc}\p{Cs}])?$/u;

/** Names of connections are unique; those of sections and schemas belong to their type. @throws InvalidInput STREAM_CONFIG_INVALID */
export function keyOf({ kind, type = '', name }: StreamConfigKey): string {
  checkKind(kind);
  return kind === 'connection' ? `connection/${name}` : `${kind}/${`${type}`.toLowerCase()}/${name}`;
}

/** Check a key that an app has given, and return it as `keyOf` does. @throws InvalidInput STREAM_CONFIG_INVALID */
export function checkedKey(given: StreamConfigKey): string {
  if (!isPlain(given)) throw invalid('key', 'an object with kind, type and name', given);
  const { kind, type, name } = given;
  checkKind(kind);
  if (kind !== 'connection' && typeof type !== 'string') throw invalid('type', 'a string', type);
  if (typeof name !== 'string') throw invalid('name', 'a string', name);
  return keyOf(given);
}

/** @throws InvalidInput STREAM_CONFIG_INVALID */
export function checkKind(kind: unknown): void {
  if (typeof kind !== 'string' || !Object.hasOwn(WORDS, kind))
    throw invalid('kind', `one of ${Object.keys(WORDS).join(', ')}`, kind);
}

/** Check an entry that an app or a request has given. @throws InvalidInput STREAM_CONFIG_INVALID */
export function checkEntry(given: StreamConfigEntry): void {
  if (!isPlain(given)) throw invalid('entry', 'an object with kind, type, name and properties', given);
  const { kind, type, name, properties } = given;
  checkKind(kind);
  if (typeof type !== 'string' || type === '')
    throw invalid('type', 'the type of a source or a sink, or a format', type);
  if (typeof name !== 'string' || !NAME.test(name))
    throw invalid(
      'name',
      'a name without "/" and control characters, of at most 256 characters, and not "." or ".."',
      name
    );
  if (kind === 'schema' && name.includes('.'))
    throw invalid('name', 'a name without ".", which ends the name of the schema in SCHEMAID', name);
  if (!isPlain(properties)) throw invalid('properties', 'an object', properties);
}

/**
 * Check that a value is the same when it is read from the store: JSON has no dates, functions and infinite numbers.
 * @throws InvalidInput STREAM_CONFIG_INVALID
 */
export function checkJson(value: unknown, field: string, level = 0): void {
  if (typeof value === 'object' && value !== null) {
    if (!Array.isArray(value) && !isPlain(value)) throw invalid(field, 'a value of JSON', value);
    if (level > MAX_LEVELS) throw invalid(field, `a value with at most ${MAX_LEVELS} levels`, undefined);
    for (const [name, one] of Object.entries(value))
      checkJson(one, Array.isArray(value) ? `${field}[${name}]` : `${field}.${name}`, level + 1);
    return;
  }
  const isJson = ['string', 'boolean', 'undefined'].includes(typeof value) || value === null || Number.isFinite(value);
  if (!isJson) throw invalid(field, 'a value of JSON', value);
}

export function invalid(field: string, expected: string, given: unknown): InvalidInput {
  return new InvalidInput('STREAM_CONFIG_INVALID', field, expected, given);
}
