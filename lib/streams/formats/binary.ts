import { InvalidInput } from '../../base/errors.ts';
import { bufferOf, type FormatType } from '../format.ts';
import { StreamFailure } from '../values/values.ts';

/** The only column of a stream without a schema. */
const SELF = 'self';

/** Payloads without decoding: one row with the bytes. */
export const BINARY_FORMAT: FormatType = {
  name: 'binary',
  about: 'The payload as bytes, in the only column, or in the column "self" of a stream without a schema.',
  make({ what, columns }) {
    if (columns !== undefined && (columns.length !== 1 || columns[0].type.type !== 'bytea')) {
      const text = `${what}: a stream with FORMAT="binary" has no columns, or a single one of type BYTEA`;
      throw new InvalidInput('STREAM_INVALID', 'FORMAT', 'no columns, or one of type BYTEA', undefined, text);
    }
    const name = columns?.[0].name ?? SELF;
    return {
      name: 'binary',
      // a copy, because the payload may be part of a larger read
      decode: (payload) => ({ [name]: Buffer.from(payload) }),
      encode
    };
  }
};

function encode(value: unknown): Buffer {
  if (value instanceof Uint8Array) return bufferOf(value);
  if (typeof value === 'string') return Buffer.from(value);
  const rows = Array.isArray(value) ? value : [value];
  const parts = rows.map((row: unknown) => {
    const values = typeof row === 'object' && row !== null ? Object.values(row) : [];
    if (values.length === 1 && values[0] instanceof Uint8Array) return values[0];
    throw new StreamFailure('format "binary" needs rows with a single column, whose value is bytes');
  });
  return Buffer.concat(parts);
}
