/** Encodes a string or binary data with its two length bytes; a string is encoded as UTF-8, bytes are unchanged. */
export function field(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([u16(bytes.length), bytes]);
}

export function u16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 255]);
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Prefixes bytes with their length as a variable byte integer. */
export function sized(...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const length: number[] = [];
  let rest = body.length;
  do {
    length.push((rest & 127) | (rest > 127 ? 128 : 0));
    rest >>= 7;
  } while (rest > 0);
  return Buffer.concat([Buffer.from(length), body]);
}

/** Builds a packet with this first byte. */
export function frame(first: number, ...body: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([first]), sized(...body)]);
}

/** The parts of a CONNECT, each of which may be invalid. */
export interface ConnectParts {
  /** First byte of the fixed header. Default 0x10. */
  readonly first?: number;
  readonly name?: string | Buffer;
  /** Default 5. */
  readonly level?: number;
  /** Connect flags. Default 0x02: Clean Start only. */
  readonly flags?: number;
  readonly keepalive?: number;
  /** The property block without its length. Omitted below level 5. */
  readonly properties?: Buffer;
  /** The fields after the client id, including their lengths. */
  readonly payload?: readonly Buffer[];
  readonly clientId?: string | Buffer;
}

/** Encodes a CONNECT, valid or invalid. */
export function connectBytes(parts: ConnectParts = {}): Buffer {
  const { first = 0x10, name = 'MQTT', level = 5, flags = 2, keepalive = 0 } = parts;
  const { properties = Buffer.alloc(0), clientId = 'raw', payload = [] } = parts;
  const block = level === 5 ? [sized(properties)] : [];
  return frame(first, field(name), Buffer.from([level, flags]), u16(keepalive), ...block, field(clientId), ...payload);
}
