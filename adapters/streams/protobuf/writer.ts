import { StreamFailure } from '../../../lib/index.ts';
import type { MessageField, MessageType } from './schemas.ts';

/** Maximum nesting of messages, which is also the limit of the library. */
const MAX_LEVELS = 100;

type Fields = Readonly<Record<string, unknown>>;

/** Converts a value for the library; undefined: the value does not fit the type. */
type Write = (value: unknown) => unknown;

/** The types of integers: their sizes in bits, and whether they are unsigned. */
const INTEGERS: Readonly<Record<string, readonly [bits: number, isUnsigned: boolean]>> = {
  int32: [32, false],
  sint32: [32, false],
  sfixed32: [32, false],
  uint32: [32, true],
  fixed32: [32, true],
  int64: [64, false],
  sint64: [64, false],
  sfixed64: [64, false],
  uint64: [64, true],
  fixed64: [64, true]
};

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const float: Write = (value) =>
  typeof value === 'number' ? value : typeof value === 'bigint' ? Number(value) : undefined;

/** The other types, with the expected values. */
const OTHERS: Readonly<Record<string, readonly [expected: string, write: Write]>> = {
  double: ['a number', float],
  float: ['a number', float],
  bool: ['a boolean', (value) => (typeof value === 'boolean' ? value : undefined)],
  string: ['a string', (value) => (typeof value === 'string' ? value : undefined)],
  bytes: [
    'bytes, or a string in base64',
    (value) => {
      if (value instanceof Uint8Array) return value;
      return typeof value === 'string' && BASE64.test(value) ? Buffer.from(value, 'base64') : undefined;
    }
  ]
};

/** Converts rows to payloads of a message type. */
export class MessageWriter {
  readonly #type: MessageType;

  constructor(type: MessageType) {
    this.#type = type;
  }

  /** @throws StreamFailure */
  write(value: unknown): Buffer {
    if (Array.isArray(value)) throw new StreamFailure('format "protobuf" needs single rows: set "sendSingle" to true');
    const type = this.#type;
    if (!isObject(value)) throw new StreamFailure(`format "protobuf" needs a row for the message ${type.name}`);
    const names = Object.keys(value);
    if (names.length > 0 && !names.some((name) => Object.hasOwn(type.fields, name)))
      throw new StreamFailure(
        `no column of the row is a field of the message ${type.name}: ${brief(names.join(', '))}`
      );
    const message = messageOf(type, value, 0);
    try {
      return Buffer.from(type.encode(message).finish());
    } catch (error) {
      throw new StreamFailure(`the row cannot be a message ${type.name}: ${(error as Error).message}`, error);
    }
  }
}

function messageOf(type: MessageType, row: Fields, level: number): Fields {
  if (level > MAX_LEVELS) throw new StreamFailure(`the message has more than ${MAX_LEVELS} levels`);
  // no prototype, so that any name can be a key
  const message: Record<string, unknown> = Object.create(null);
  for (const field of type.fieldsArray) {
    const { name, partOf } = field.resolve();
    const value = Object.hasOwn(row, name) ? row[name] : undefined;
    if (value === undefined || value === null) {
      if (field.required) throw new StreamFailure(`the field ${placeOf(field)} is required, but the row has none`);
      continue;
    }
    const other = partOf?.oneof.find((each) => each in message);
    if (other !== undefined)
      throw new StreamFailure(
        `only one of the fields ${other} and ${name} of ${type.name} can be set (${partOf?.name})`
      );
    message[name] = fieldOf(field, value, level);
  }
  return message;
}

function fieldOf(field: MessageField, value: unknown, level: number): unknown {
  if (field.map) {
    if (!isObject(value)) throw wrong(field, 'a struct', value);
    const { keyType } = field as MessageField & { readonly keyType: string };
    const map: Record<string, unknown> = Object.create(null);
    for (const [key, each] of Object.entries(value)) {
      if (!isKey(key, keyType)) throw wrong(field, `a struct whose keys are of the type ${keyType}`, key);
      map[key] = elementOf(field, each, level);
    }
    return map;
  }
  if (!field.repeated) return elementOf(field, value, level);
  if (!Array.isArray(value)) throw wrong(field, 'an array', value);
  return value.map((each) => elementOf(field, each, level));
}

function elementOf(field: MessageField, value: unknown, level: number): unknown {
  const { type, resolvedType } = field;
  if (resolvedType === null) return scalarOf(field, type, value);
  if ('fieldsArray' in resolvedType) {
    if (!isObject(value)) throw wrong(field, 'a struct', value);
    return messageOf(resolvedType, value, level + 1);
  }
  if (typeof value !== 'string') return scalarOf(field, 'int32', value);
  if (Object.hasOwn(resolvedType.values, value)) return resolvedType.values[value];
  throw wrong(field, `a name or a number of ${resolvedType.name}`, value);
}

function scalarOf(field: MessageField, type: string, value: unknown): unknown {
  if (type in OTHERS) {
    const [expected, write] = OTHERS[type];
    const written = write(value);
    if (written === undefined) throw wrong(field, expected, value);
    return written;
  }
  const [bits, isUnsigned] = INTEGERS[type];
  const integer = integerOf(value);
  if (integer === undefined || !isWithin(integer, bits, isUnsigned))
    throw wrong(field, `an integer of the type ${type}`, value);
  if (bits === 32) return Number(integer);
  return {
    low: Number(BigInt.asIntN(32, integer)),
    high: Number(BigInt.asIntN(32, integer >> 32n)),
    unsigned: isUnsigned
  };
}

function integerOf(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value;
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

function isWithin(integer: bigint, bits: number, isUnsigned: boolean): boolean {
  return (isUnsigned ? BigInt.asUintN(bits, integer) : BigInt.asIntN(bits, integer)) === integer;
}

function isKey(key: string, type: string): boolean {
  if (type === 'string') return true;
  if (type === 'bool') return key === 'true' || key === 'false';
  const [bits, isUnsigned] = INTEGERS[type];
  return /^(?:0|-?[1-9]\d{0,19})$/.test(key) && isWithin(BigInt(key), bits, isUnsigned);
}

function isObject(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return !(value instanceof Date || value instanceof Uint8Array);
}

/** Return a name such as `Book.title`. */
function placeOf({ name, parent }: MessageField): string {
  return parent === null ? name : `${parent.name}.${name}`;
}

function wrong(field: MessageField, expected: string, value: unknown): StreamFailure {
  const got =
    typeof value === 'object' ? (value === null ? 'null' : 'another type') : brief(JSON.stringify(String(value)));
  return new StreamFailure(`the field ${placeOf(field)} must be ${expected}; got ${got}`);
}

function brief(text: string): string {
  return text.length > 100 ? `${text.slice(0, 97)}...` : text;
}
