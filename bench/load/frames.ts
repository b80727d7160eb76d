/** The length of the header of every payload: send time (us), publisher and sequence number, with 32 bits each. */
const STAMP_BYTES = 12;

/** The number of packet ids that a publisher uses: a power of two, much larger than any window. */
const IDS = 4096;

export interface SupplyOptions {
  readonly publisher: number;
  readonly v5: boolean;
  readonly qos: number;
  readonly retain: boolean;
  readonly payloadBytes: number;
  /** The topic of each slot, in the order of sending. */
  readonly topics: readonly string[];
  /** The flow of each slot, among the flows of the publisher. Sequence numbers are counted per flow. */
  readonly flows: readonly number[];
}

/**
 * The PUBLISH frames of one publisher, encoded once into a ring. To send a batch, the send times, sequence numbers and packet ids are
 * patched in place, and one slice is returned.
 *
 * A slot is reused after `slots` further messages. Callers set `slots` to at least four windows, so that a slice is never patched while
 * the kernel may still read it.
 */
export class Supply {
  readonly slots: number;
  /** The sequence number of the next message, by flow. */
  readonly sequences: Uint32Array;
  slot = 0;
  readonly #bytes: Buffer;
  readonly #view: DataView;
  readonly #starts: Int32Array;
  readonly #stamps: Int32Array;
  readonly #flows: Uint16Array;
  readonly #idsInUse: Uint8Array;
  readonly #idBack: number;
  #lastId = 0;

  constructor({ publisher, v5, qos, retain, payloadBytes, topics, flows }: SupplyOptions) {
    const frames = topics.map((topic) => publishFrame(topic, { v5, qos, retain, payloadBytes }));
    this.slots = frames.length;
    this.#bytes = Buffer.concat(frames);
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.length);
    this.#starts = new Int32Array(frames.length + 1);
    this.#stamps = new Int32Array(frames.length);
    this.#flows = Uint16Array.from(flows);
    this.sequences = new Uint32Array(flows.reduce((most, flow) => Math.max(most, flow), 0) + 1);
    this.#idsInUse = new Uint8Array(IDS);
    this.#idBack = qos === 0 ? 0 : v5 ? 3 : 2;
    for (let slot = 0; slot < frames.length; slot++) {
      this.#starts[slot + 1] = this.#starts[slot] + frames[slot].length;
      this.#stamps[slot] = this.#starts[slot + 1] - payloadBytes;
      this.#view.setUint32(this.#stamps[slot] + 4, publisher, true);
    }
  }

  /** The next `count` frames with timestamps. `count` must not exceed the end of the ring (`slots - slot`). */
  take(count: number, nowUs: number): Buffer {
    const from = this.slot;
    const to = from + count;
    const view = this.#view;
    for (let slot = from; slot < to; slot++) {
      const at = this.#stamps[slot];
      view.setUint32(at, nowUs, true);
      view.setUint32(at + 8, this.sequences[this.#flows[slot]]++, true);
      if (this.#idBack !== 0) view.setUint16(at - this.#idBack, this.#freeId());
    }
    this.slot = to === this.slots ? 0 : to;
    return this.#bytes.subarray(this.#starts[from], this.#starts[to]);
  }

  /** Release a packet id. @returns false if it was not in use */
  release(id: number): boolean {
    if (id >= IDS || this.#idsInUse[id] === 0) return false;
    this.#idsInUse[id] = 0;
    return true;
  }

  #freeId(): number {
    do this.#lastId = (this.#lastId + 1) & (IDS - 1);
    while (this.#lastId === 0 || this.#idsInUse[this.#lastId] !== 0);
    this.#idsInUse[this.#lastId] = 1;
    return this.#lastId;
  }
}

interface PublishShape {
  readonly v5: boolean;
  readonly qos: number;
  readonly retain: boolean;
  readonly payloadBytes: number;
}

function publishFrame(topic: string, { v5, qos, retain, payloadBytes }: PublishShape): Buffer {
  const payload = Buffer.alloc(payloadBytes);
  for (let at = STAMP_BYTES; at < payloadBytes; at++) payload[at] = 97 + (at % 26);
  const id = qos === 0 ? [] : [0, 0];
  const properties = v5 ? [0] : [];
  return packet(0x30 | (qos << 1) | (retain ? 1 : 0), [text(topic), Buffer.from([...id, ...properties]), payload]);
}

/** A user name and its password. */
export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** The base-2 logarithm of the cost of the password hashes of the measured broker. */
export const HASH_COST = 12;

export interface ConnectShape {
  readonly v5: boolean;
  readonly clean: boolean;
  readonly credentials?: Credentials;
}

/** A CONNECT without keep alive. In v5, a session that is not clean expires after an hour. */
export function connectFrame(clientId: string, { v5, clean, credentials }: ConnectShape): Buffer {
  const flags = (clean ? 2 : 0) | (credentials === undefined ? 0 : 0xc0);
  const head = Buffer.from([v5 ? 5 : 4, flags, 0, 0]);
  const names = credentials === undefined ? [] : [text(credentials.username), text(credentials.password)];
  const properties = !v5 ? [] : clean ? [0] : [5, 0x11, 0, 0, 0x0e, 0x10];
  return packet(0x10, [text('MQTT'), head, Buffer.from(properties), text(clientId), ...names]);
}

export interface SubscribeShape {
  readonly v5: boolean;
  readonly qos: number;
  readonly id: number;
}

export function subscribeFrame(filters: readonly string[], { v5, qos, id }: SubscribeShape): Buffer {
  const parts: Buffer[] = [Buffer.from(v5 ? [id >> 8, id & 255, 0] : [id >> 8, id & 255])];
  for (const filter of filters) parts.push(text(filter), Buffer.from([qos]));
  return packet(0x82, parts);
}

export const DISCONNECT_FRAME: Buffer = Buffer.from([0xe0, 0]);

export function packet(head: number, parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const length: number[] = [];
  let left = body.length;
  do {
    length.push((left & 127) | (left > 127 ? 128 : 0));
    left >>>= 7;
  } while (left > 0);
  return Buffer.concat([Buffer.from([head, ...length]), body]);
}

export function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
}

/** The type of packet that a flood consists of. */
export type Flood = 'connect' | 'pingreq' | 'publish' | 'publish-q1' | 'puback' | 'subscribe' | 'unsubscribe';

/** The packet that one flooding connection sends over 3.1.1. */
export function floodFrame(flood: Flood, connection: number): Buffer {
  const shape = { v5: false, retain: false, payloadBytes: 16 };
  switch (flood) {
    case 'publish':
      return publishFrame(`flood/${connection}`, { ...shape, qos: 0 });
    case 'publish-q1': {
      const frame = publishFrame(`flood/${connection}`, { ...shape, qos: 1 });
      frame[frame.length - shape.payloadBytes - 1] = 1;
      return frame;
    }
    case 'puback':
      return Buffer.from([0x40, 2, 0, 9]);
    case 'subscribe':
      return subscribeFrame([`flood/${connection}`], { v5: false, qos: 0, id: 1 });
    case 'unsubscribe':
      return packet(0xa2, [Buffer.from([0, 1]), text(`flood/${connection}`)]);
    default:
      return Buffer.from([0xc0, 0]);
  }
}
