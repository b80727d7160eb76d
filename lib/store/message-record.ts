import { Message, type Publisher } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { Draft, RecordReader } from './record.ts';

const RETAIN = 4;
const LAYOUT_5 = 8;
const SYSTEM = 16;
const PUBLISHER = 32;
const USERNAME = 64;
/** The publisher is that of the previous message in the same record. */
const SAME_PUBLISHER = 128;

/** The current time by both clocks, in milliseconds. It determines the age of stored messages. */
export interface Now {
  readonly nowMs: number;
  readonly wallMs: number;
}

/** Append a message to the record. @param previous the publisher of the previous message in the record */
export function writeMessage(draft: Draft, message: Message, previous: Publisher | undefined): void {
  const { origin, expiryInterval, bytes, payloadAt } = message;
  const isSame = origin !== undefined && previous !== undefined && isSamePublisher(origin, previous);
  const username = origin?.username;
  draft.u8(
    message.qos |
      (message.retain ? RETAIN : 0) |
      (message.layout === 5 ? LAYOUT_5 : 0) |
      (message.isSystem ? SYSTEM : 0) |
      (isSame ? SAME_PUBLISHER : origin === undefined ? 0 : PUBLISHER | (username === undefined ? 0 : USERNAME))
  );
  draft.u48(Math.max(0, Math.round(message.timestamp)));
  draft.varint(expiryInterval + 1).varint(bytes - payloadAt);
  if (origin !== undefined && !isSame) {
    draft.text(origin.clientId);
    if (username !== undefined) draft.text(username);
  }
  const text = Message.latin1Of(message);
  if (text !== undefined) draft.latin1(text);
  else {
    const { buf, start, end } = message.frame();
    draft.bytes(buf, start, end);
  }
}

function isSamePublisher(one: Publisher, other: Publisher): boolean {
  return one === other || (one.clientId === other.clientId && one.username === other.username);
}

/** Read a message that `writeMessage` has written. The message references the bytes of the record. */
export function readMessage(reader: RecordReader, previous: Publisher | undefined, { nowMs, wallMs }: Now): Message {
  const flags = reader.u8();
  const timestamp = reader.u48();
  const expiryInterval = reader.varint() - 1;
  const payloadBytes = reader.varint();
  let origin: Publisher | undefined;
  if ((flags & SAME_PUBLISHER) !== 0) origin = previous;
  else if ((flags & PUBLISHER) !== 0) {
    const clientId = reader.text();
    origin = new StoredPublisher(clientId, (flags & USERNAME) === 0 ? undefined : reader.text());
  }
  const frame = reader.bytes();
  // The time without a process counts for the age. If the wall clock was set back, the age is 0.
  const takenAtMs = nowMs - Math.max(0, wallMs - timestamp);
  const layout = (flags & LAYOUT_5) === 0 ? 4 : 5;
  const qos = (flags & 3) as QoS;
  const isRetained = (flags & RETAIN) !== 0;
  return Message.stored(
    frame,
    layout,
    qos,
    isRetained,
    payloadBytes,
    origin,
    takenAtMs,
    timestamp,
    expiryInterval,
    (flags & SYSTEM) !== 0
  );
}

/** The publisher of a stored message, whose session may have ended. */
class StoredPublisher implements Publisher {
  readonly clientId: string;
  readonly username: string | undefined;

  constructor(clientId: string, username: string | undefined) {
    this.clientId = clientId;
    this.username = username;
  }

  get identity(): Publisher {
    return this;
  }
}
