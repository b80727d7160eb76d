// Payloads of Sparkplug B as JSON. The fields are those of sparkplug_b.proto (Sparkplug 3.0, section 6.4); reading them takes fewer lines than a
// package that reads any protocol buffer, and what precedes a fault is shown.
import { Bytes, type Decoded, Fault, hexOf, MAX_DEPTH, MAX_VALUES } from './decoded.ts';
import { utf8Of } from './payload.ts';

type Scalar = 'uint32' | 'uint64' | 'time' | 'type' | 'bool' | 'float' | 'double' | 'string' | 'bytes';
/** A field by its number: its name, its type, and `[]` for one that may be repeated. */
type Fields = Readonly<Record<number, readonly [name: string, kind: string, isList?: '[]']>>;

const VALUE = 'value';

/** The fields of the messages. Several fields have the value of something, of which one is present. */
const MESSAGES = {
  payload: {
    1: ['timestamp', 'time'],
    2: ['metrics', 'metric', '[]'],
    3: ['seq', 'uint64'],
    4: ['uuid', 'string'],
    5: ['body', 'bytes']
  },
  metric: {
    1: ['name', 'string'],
    2: ['alias', 'uint64'],
    3: ['timestamp', 'time'],
    4: ['datatype', 'type'],
    5: ['is_historical', 'bool'],
    6: ['is_transient', 'bool'],
    7: ['is_null', 'bool'],
    8: ['metadata', 'metadata'],
    9: ['properties', 'properties'],
    10: [VALUE, 'uint32'],
    11: [VALUE, 'uint64'],
    12: [VALUE, 'float'],
    13: [VALUE, 'double'],
    14: [VALUE, 'bool'],
    15: [VALUE, 'string'],
    16: [VALUE, 'bytes'],
    17: [VALUE, 'dataset'],
    18: [VALUE, 'template']
  },
  metadata: {
    1: ['is_multi_part', 'bool'],
    2: ['content_type', 'string'],
    3: ['size', 'uint64'],
    4: ['seq', 'uint64'],
    5: ['file_name', 'string'],
    6: ['file_type', 'string'],
    7: ['md5', 'string'],
    8: ['description', 'string']
  },
  properties: { 1: ['keys', 'string', '[]'], 2: ['values', 'property', '[]'] },
  property: {
    1: ['type', 'type'],
    2: ['is_null', 'bool'],
    3: [VALUE, 'uint32'],
    4: [VALUE, 'uint64'],
    5: [VALUE, 'float'],
    6: [VALUE, 'double'],
    7: [VALUE, 'bool'],
    8: [VALUE, 'string'],
    9: [VALUE, 'properties'],
    10: [VALUE, 'propertyList']
  },
  propertyList: { 1: ['propertyset', 'properties', '[]'] },
  dataset: {
    1: ['num_of_columns', 'uint64'],
    2: ['columns', 'string', '[]'],
    3: ['types', 'type', '[]'],
    4: ['rows', 'row', '[]']
  },
  row: { 1: ['elements', 'element', '[]'] },
  element: {
    1: [VALUE, 'uint32'],
    2: [VALUE, 'uint64'],
    3: [VALUE, 'float'],
    4: [VALUE, 'double'],
    5: [VALUE, 'bool'],
    6: [VALUE, 'string']
  },
  template: {
    1: ['version', 'string'],
    2: ['metrics', 'metric', '[]'],
    3: ['parameters', 'parameter', '[]'],
    4: ['template_ref', 'string'],
    5: ['is_definition', 'bool']
  },
  parameter: {
    1: ['name', 'string'],
    2: ['type', 'type'],
    3: [VALUE, 'uint32'],
    4: [VALUE, 'uint64'],
    5: [VALUE, 'float'],
    6: [VALUE, 'double'],
    7: [VALUE, 'bool'],
    8: [VALUE, 'string']
  }
} as const satisfies Readonly<Record<string, Fields>>;

/** The types of values, by their number. */
const TYPES = (
  'Unknown Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float Double Boolean String DateTime Text UUID DataSet Bytes File Template PropertySet ' +
  'PropertySetList Int8Array Int16Array Int32Array Int64Array UInt8Array UInt16Array UInt32Array UInt64Array FloatArray DoubleArray BooleanArray ' +
  'StringArray DateTimeArray'
).split(' ');

/** The elements of arrays, which are little-endian in the bytes of a value: their size and how they are read. */
const ARRAYS: Readonly<Record<string, readonly [size: number, read: (view: DataView, at: number) => unknown]>> = {
  Int8Array: [1, (view, at) => view.getInt8(at)],
  Int16Array: [2, (view, at) => view.getInt16(at, true)],
  Int32Array: [4, (view, at) => view.getInt32(at, true)],
  Int64Array: [8, (view, at) => view.getBigInt64(at, true)],
  UInt8Array: [1, (view, at) => view.getUint8(at)],
  UInt16Array: [2, (view, at) => view.getUint16(at, true)],
  UInt32Array: [4, (view, at) => view.getUint32(at, true)],
  UInt64Array: [8, (view, at) => view.getBigUint64(at, true)],
  FloatArray: [4, (view, at) => view.getFloat32(at, true)],
  DoubleArray: [8, (view, at) => view.getFloat64(at, true)],
  DateTimeArray: [8, (view, at) => timeOf(view.getBigUint64(at, true))]
};

/** The wire types of protocol buffers. */
const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 };
const WIRE_OF: Readonly<Record<string, number>> = {
  ...Object.fromEntries(['uint32', 'uint64', 'time', 'type', 'bool'].map((kind) => [kind, WIRE.varint])),
  float: WIRE.fixed32,
  double: WIRE.fixed64
};

/** The greatest number of a field. */
const MAX_FIELD = 536_870_911;

type Message = Map<string, unknown>;

/** A payload of Sparkplug B as JSON, with the names of types, and times in ISO 8601. Bytes are strings such as `h'00ff'`. */
export function sparkplugText(payload: Uint8Array): Decoded {
  const bytes = new Bytes(payload);
  const message: Message = new Map();
  let fault: Fault | undefined;
  try {
    read(bytes, 'payload', payload.length, message, 0);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    fault = error;
  }
  return { text: textOf(message, ''), fault };
}

function read(bytes: Bytes, name: keyof typeof MESSAGES, end: number, message: Message, depth: number): void {
  if (depth > MAX_DEPTH) throw new Fault('deep', bytes.at);
  const fields: Fields = MESSAGES[name];
  try {
    while (bytes.at < end) {
      const { at } = bytes;
      bytes.count();
      const tag = Number(varint(bytes, end));
      const [number, wire] = [Math.floor(tag / 8), tag % 8];
      const [key, kind, isList] = fields[number] ?? [`field ${number}`, wire === WIRE.varint ? 'uint64' : 'bytes'];
      if (number === 0 || number > MAX_FIELD || !Object.values(WIRE).includes(wire)) throw new Fault('wrong', at);
      const list = (isList && (message.get(key) as unknown[] | undefined)) ?? [];
      if (isList) message.set(key, list);
      const add = (value: unknown) => (isList ? list.push(value) : message.set(key, value));
      const expected = WIRE_OF[kind] ?? WIRE.bytes;
      if (fields[number] === undefined && wire !== WIRE.varint) add(hexOf(raw(bytes, wire, end)));
      else if (isList && expected === WIRE.varint && wire === WIRE.bytes) {
        const inner = innerEnd(bytes, end); // a list in one field
        while (bytes.at < inner) add(scalar(bytes, kind as Scalar, inner));
      } else if (wire !== expected) throw new Fault('wrong', at);
      else if (kind in MESSAGES) {
        const inner: Message = new Map();
        add(inner);
        read(bytes, kind as keyof typeof MESSAGES, innerEnd(bytes, end), inner, depth + 1);
      } else add(scalar(bytes, kind as Scalar, end));
    }
  } finally {
    finish(message);
  }
}

/** The end of the bytes that follow their length. */
function innerEnd(bytes: Bytes, end: number): number {
  const length = varint(bytes, end);
  if (length > end - bytes.at) throw new Fault('ends', bytes.at);
  return bytes.at + Number(length);
}

function raw(bytes: Bytes, wire: number, end: number): Uint8Array {
  const length = { [WIRE.fixed32]: 4n, [WIRE.fixed64]: 8n }[wire] ?? varint(bytes, end);
  return bytes.take(length, end);
}

function varint(bytes: Bytes, end: number): bigint {
  const { at } = bytes;
  let value = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = bytes.byte(end);
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return BigInt.asUintN(64, value);
  }
  throw new Fault('wrong', at);
}

function scalar(bytes: Bytes, kind: Scalar, end: number): unknown {
  bytes.count();
  const { at } = bytes;
  if (kind === 'float') return bytes.view(4, (view, from) => view.getFloat32(from, true), end);
  if (kind === 'double') return bytes.view(8, (view, from) => view.getFloat64(from, true), end);
  if (kind === 'string' || kind === 'bytes') {
    const content = raw(bytes, WIRE.bytes, end);
    const value = kind === 'bytes' ? content : utf8Of(content);
    if (value === undefined) throw new Fault('wrong', at);
    return value;
  }
  const value = varint(bytes, end);
  if (kind === 'bool') return value !== 0n;
  if (kind === 'time') return timeOf(value);
  if (kind === 'type') return TYPES[Number(value)] ?? value;
  return kind === 'uint32' ? BigInt.asUintN(32, value) : value;
}

/** Milliseconds since 1970 in ISO 8601, as far as that is a time. */
function timeOf(ms: bigint): unknown {
  return ms < 253_402_300_800_000n ? new Date(Number(ms)).toISOString() : ms;
}

/** Give the value of a message the meaning of its type. Properties become an object, and the rows of a data set lists. */
function finish(message: Message): void {
  const type = message.get('datatype') ?? message.get('type');
  if (message.has(VALUE)) message.set(VALUE, typed(message.get(VALUE), type));
  if (message.has('body')) message.set('body', typed(message.get('body'), undefined));
  const [types, rows] = [message.get('types'), message.get('rows')] as [unknown[]?, Message[]?];
  const elementsOf = (row: Message) => (row.get('elements') ?? []) as readonly Message[];
  if (rows !== undefined)
    message.set(
      'rows',
      rows.map((row) => elementsOf(row).map((element, index) => typed(element.get(VALUE), types?.[index])))
    );
  const [keys, values] = [message.get('keys'), message.get('values')] as [string[]?, unknown[]?];
  if (keys === undefined || values?.length !== keys.length || new Set(keys).size < keys.length) return;
  message.clear();
  for (const [index, key] of keys.entries()) message.set(key, values[index]);
}

/** A value as its type has it: integers with their sign, times, and the elements of arrays. */
function typed(value: unknown, type: unknown): unknown {
  if (value instanceof Uint8Array) return elementsOf(value, `${type}`) ?? hexOf(value);
  if (typeof value !== 'bigint') return value;
  const { bits } = /^Int(?<bits>\d+)$/.exec(`${type}`)?.groups ?? {};
  if (bits !== undefined) return BigInt.asIntN(Number(bits), value);
  return type === 'DateTime' ? timeOf(value) : value;
}

function elementsOf(bytes: Uint8Array, type: string): readonly unknown[] | undefined {
  const [size, element] = ARRAYS[type] ?? [];
  if (size === undefined || element === undefined) return undefined;
  const count = bytes.length / size;
  if (!Number.isInteger(count) || count > MAX_VALUES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: count }, (_, index) => element(view, index * size));
}

/** JSON with one value a line. Integers keep all digits. */
function textOf(value: unknown, line: string): string {
  const inner = `${line}  `;
  const rows =
    value instanceof Map
      ? [...value].map(([key, one]) => `${JSON.stringify(key)}: ${textOf(one, inner)}`)
      : Array.isArray(value)
        ? value.map((one) => textOf(one, inner))
        : undefined;
  if (rows === undefined)
    return typeof value === 'string' ? JSON.stringify(value) : value === undefined ? 'null' : `${value}`;
  const [begin, end] = value instanceof Map ? '{}' : '[]';
  return rows.length === 0 ? begin + end : `${begin}\n${inner}${rows.join(`,\n${inner}`)}\n${line}${end}`;
}
