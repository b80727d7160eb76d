import { InvalidInput } from '../../base/errors.ts';
import { bufferOf, type Format, type FormatSetup, type FormatType, type StreamFormat } from '../format.ts';
import { isStruct, StreamFailure, type StreamValueObject } from '../values/values.ts';
import { BINARY_FORMAT } from './binary.ts';
import { DELIMITED_FORMAT } from './delimited.ts';
import { JSON_FORMAT } from './json.ts';
import { URLENCODED_FORMAT } from './urlencoded.ts';

/** The built-in formats. */
export const FORMATS: readonly FormatType[] = [JSON_FORMAT, BINARY_FORMAT, DELIMITED_FORMAT, URLENCODED_FORMAT];

/**
 * Make the format of a stream or a sink.
 * @param name in any case; undefined: json
 * @param own formats of the app and of plugins
 * @throws InvalidInput STREAM_INVALID
 */
export function makeFormat(name: string | undefined, setup: FormatSetup, own: readonly FormatType[] = []): Format {
  const wanted = (name ?? 'json').toLowerCase();
  const types = [...own, ...FORMATS];
  const type = types.find((each) => each.name === wanted);
  if (type !== undefined) return type.make(setup);
  const known = [...new Set(types.map((each) => each.name))].sort().join(', ');
  const text = `${setup.what}: option 'format=${name}' is invalid: use one of ${known}`;
  throw new InvalidInput('STREAM_INVALID', 'FORMAT', `one of ${known}`, name, text);
}

/** The type of a format of the app. The return values of its functions are checked. */
export function formatTypeOf(format: StreamFormat | FormatType): FormatType {
  const name = format.name.toLowerCase();
  const { about = '' } = format;
  if ('make' in format) {
    const make = (setup: FormatSetup) => format.make(setup);
    if (format.checkSchema === undefined) return { name, about, make };
    return { name, about, make, checkSchema: (schema, text) => format.checkSchema?.(schema, text) };
  }
  const made: Format = {
    name,
    decode: (payload) => checkRows(format.decode(payload), name),
    encode(value) {
      const bytes: unknown = format.encode(value);
      if (typeof bytes === 'string') return Buffer.from(bytes);
      if (bytes instanceof Uint8Array) return bufferOf(bytes);
      throw new StreamFailure(`format "${name}" must encode to bytes or to a string`);
    }
  };
  return { name, about, make: () => made };
}

/** @throws StreamFailure */
function checkRows(
  rows: StreamValueObject | readonly StreamValueObject[],
  name: string
): StreamValueObject | readonly StreamValueObject[] {
  if (Array.isArray(rows) ? rows.every(isStruct) : isStruct(rows as StreamValueObject)) return rows;
  throw new StreamFailure(`format "${name}" must decode to an object or to a list of objects`);
}
