import type { Long } from 'protobufjs';
import { StreamFailure, type StreamValue, type StreamValueObject } from '../../../lib/index.ts';
import type { MessageField, MessageType, Protobuf } from './schemas.ts';

/** Maximum number of values of a payload: absent fields have values, so that a small payload can have many. */
const MAX_VALUES = 1_000_000;

type Fields = Readonly<Record<string, unknown>>;
type Read = (value: unknown) => StreamValue;
type ReadStruct = (message: Fields) => StreamValueObject;

interface FieldReader {
  readonly name: string;
  /** True if it is null when absent from the payload. */
  readonly isOptional: boolean;
  readonly read: Read;
}

const fromInteger: Read = (value) => BigInt(value as number);
const same: Read = (value) => value as StreamValue;

/** Readers of the types of the schema. The library reads 64-bit integers as two halves. */
const SCALARS: Readonly<Record<string, Read>> = {
  double: same,
  float: same,
  bool: same,
  string: same,
  int32: fromInteger,
  sint32: fromInteger,
  sfixed32: fromInteger,
  uint32: fromInteger,
  fixed32: fromInteger,
  int64: fromLong,
  sint64: fromLong,
  sfixed64: fromLong,
  uint64: fromLong,
  fixed64: fromLong,
  // the library returns a view of the payload
  bytes: (value) => new Uint8Array(value as Uint8Array)
};

function fromLong(value: unknown): bigint {
  if (typeof value === 'number') return BigInt(value);
  const { low, high, unsigned } = value as Long;
  if (unsigned) return high === 0 ? BigInt(low >>> 0) : (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
  return high === low >> 31 ? BigInt(low) : (BigInt(high) << 32n) | BigInt(low >>> 0);
}

/** Converts payloads of a message type to rows. */
export class MessageReader {
  readonly #library: Protobuf;
  readonly #type: MessageType;
  readonly #maxBytes: number;
  readonly #structs = new Map<MessageType, ReadStruct>();
  readonly #readRow: ReadStruct;
  #values = 0;

  /** @param needed the columns that are read; undefined: all */
  constructor(
    library: Protobuf,
    type: MessageType,
    { needed, maxBytes }: { readonly needed: readonly string[] | undefined; readonly maxBytes: number }
  ) {
    this.#library = library;
    this.#type = type;
    this.#maxBytes = maxBytes;
    const names = needed && new Set(needed.map((name) => name.toLowerCase()));
    const isNeeded = ({ name }: MessageField) => names === undefined || names.has(name.toLowerCase());
    this.#readRow = this.#structOf(() => type.fieldsArray.filter(isNeeded));
  }

  /** @throws StreamFailure */
  read(payload: Uint8Array): StreamValueObject {
    if (payload.length > this.#maxBytes)
      throw new StreamFailure(`the payload has ${payload.length} bytes, more than ${this.#maxBytes} (maxBytes)`);
    this.#values = 0;
    let message: Fields;
    try {
      const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
      message = this.#type.decode(bytes) as unknown as Fields;
    } catch (error) {
      throw new StreamFailure(`the payload is not a message ${this.#type.name}: ${(error as Error).message}`, error);
    }
    return this.#readRow(message);
  }

  /** Types may be recursive, so the fields are resolved when the first message is read. */
  #structOf(fields: () => readonly MessageField[]): ReadStruct {
    let readers: readonly FieldReader[] | undefined;
    return (message) => {
      readers ??= fields().map((field) => this.#fieldOf(field));
      this.#take(readers.length);
      const row: Record<string, StreamValue> = {};
      for (const { name, isOptional, read } of readers)
        define(row, name, isOptional && !Object.hasOwn(message, name) ? null : read(message[name]));
      return row;
    };
  }

  #fieldOf(field: MessageField): FieldReader {
    const { name } = field.resolve();
    const value = this.#valueOf(field);
    // optional fields of proto3 are also members of a oneof
    const isOptional = field.partOf !== null;
    if (field.map) return { name, isOptional, read: this.#mapOf(field as MessageField & { keyType: string }, value) };
    if (!field.repeated) return { name, isOptional, read: value };
    const read: Read = (list) => {
      const values = list as readonly unknown[];
      this.#take(values.length);
      return values.map(value);
    };
    return { name, isOptional, read };
  }

  #valueOf({ type, resolvedType }: MessageField): Read {
    if (resolvedType === null) return SCALARS[type];
    if (!('fieldsArray' in resolvedType)) return fromInteger;
    let struct = this.#structs.get(resolvedType);
    if (struct === undefined) {
      struct = this.#structOf(() => resolvedType.fieldsArray);
      this.#structs.set(resolvedType, struct);
    }
    const read = struct;
    return (message) => (message === null ? null : read(message as Fields));
  }

  #mapOf({ keyType }: { readonly keyType: string }, value: Read): Read {
    const isLong = keyType.endsWith('64');
    const isUnsigned = keyType === 'uint64' || keyType === 'fixed64';
    const { longFromHash } = this.#library.util;
    return (map) => {
      const entries = Object.entries(map as Fields);
      this.#take(entries.length);
      const struct: Record<string, StreamValue> = {};
      for (const [key, each] of entries) {
        // 64-bit keys have eight characters, except for an absent key, which is "0"
        const name = isLong && key.length === 8 ? fromLong(longFromHash(key, isUnsigned)).toString() : key;
        define(struct, name, value(each));
      }
      return struct;
    };
  }

  #take(count: number): void {
    this.#values += count;
    if (this.#values > MAX_VALUES) throw new StreamFailure(`the message has more than ${MAX_VALUES} values`);
  }
}

/** Set a key, which may be `__proto__`. */
function define(row: Record<string, StreamValue>, key: string, value: StreamValue): void {
  if (key === '__proto__') Object.defineProperty(row, key, { value, enumerable: true, configurable: true });
  else row[key] = value;
}
