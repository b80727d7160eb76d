import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { Broker } from 'embermq';
import { type Credentials, connectFrame, Supply, subscribeFrame } from '../load/frames.ts';

const PAYLOAD_BYTES = 64;
const PUBLISH = 3;

/** A connection without a socket. Incoming bytes are passed to `push`; outgoing bytes are checked and discarded. */
export class Wire extends Duplex {
  readonly #look: (bytes: Buffer) => void;

  constructor(look: (bytes: Buffer) => void) {
    super();
    this.#look = look;
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.#look(bytes);
    done();
  }
}

/**
 * Connect a client without a socket.
 * @param look receives the bytes of PUBLISH frames
 */
export async function connect(
  broker: Broker,
  clientId: string,
  look: (bytes: Buffer) => void,
  credentials?: Credentials
): Promise<Wire> {
  const wire = new Wire((bytes) => {
    if (bytes[0] >> 4 === PUBLISH) look(bytes);
  });
  broker.handle(wire);
  wire.push(connectFrame(clientId, { v5: false, clean: true, credentials }));
  await turn();
  return wire;
}

/** Subscribe with QoS 0. */
export async function subscribe(wire: Wire, filters: readonly string[]): Promise<void> {
  wire.push(subscribeFrame(filters, { v5: false, qos: 0, id: 1 }));
  await turn();
}

/** Frames with QoS 0 for `count` topics. */
export function supplyOf(count: number, topicOf: (i: number) => string): Supply {
  return new Supply({
    publisher: 0,
    v5: false,
    qos: 0,
    retain: false,
    payloadBytes: PAYLOAD_BYTES,
    topics: Array.from({ length: count }, (_, i) => topicOf(i)),
    flows: new Array(count).fill(0)
  });
}

/**
 * Check the sequence numbers of complete frames, which are all shorter than 128 + 2 bytes.
 * @returns the next sequence number
 */
export function checkSequence(bytes: Buffer, expected: number): number {
  let next = expected;
  for (let at = 0; at < bytes.length; ) {
    at += 2 + bytes[at + 1];
    const sequence = bytes.readUInt32LE(at - PAYLOAD_BYTES + 8);
    if (sequence !== next) throw new Error(`expected message ${next}, received message ${sequence}`);
    next++;
  }
  return next;
}
