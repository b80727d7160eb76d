import { InvalidInput } from '../base/errors.ts';
import { BINARY_FORMAT } from './formats/binary.ts';
import { DELIMITED_FORMAT } from './formats/delimited.ts';
import type { Format, FormatSetup, FormatType } from './formats/format.ts';
import { JSON_FORMAT } from './formats/json.ts';
import { URLENCODED_FORMAT } from './formats/urlencoded.ts';

/** The formats that are always there. */
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
  const text = `${setup.what}: option 'format=${name}' is invalid: there is no such format, only ${known}`;
  throw new InvalidInput('STREAM_INVALID', 'FORMAT', `one of ${known}`, name, text);
}
