import { ProtocolError } from '../base/errors.ts';
import { type Frame, Message, type Publisher } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import { varintLength } from '../packets/varint.ts';

/** Results of `remainingLength` that are not lengths. */
export const INCOMPLETE = -1;
const NOT_MINIMAL = -2;
const TOO_LONG = -3;

/**
 * The remaining length of the packet whose fixed header continues at `at`; negative if it is incomplete or malformed. This function does
 * not throw.
 */
export function remainingLength(chunk: Buffer, at: number): number {
  const first = chunk[at];
  return first < 128 ? first : longLength(chunk, at);
}

function longLength(chunk: Buffer, at: number): number {
  let size = chunk[at] & 127;
  for (let shift = 7; shift <= 21; shift += 7) {
    if (++at >= chunk.length) return INCOMPLETE;
    const byte = chunk[at];
    size += (byte & 127) << shift;
    if (byte < 128) return byte === 0 ? NOT_MINIMAL : size; // [MQTT-1.5.5-1]
  }
  return TOO_LONG;
}

/** The error for a malformed remaining length. */
export function malformedLength(result: number): ProtocolError {
  const what = result === NOT_MINIMAL ? 'more bytes than needed' : 'more than four bytes';
  return new ProtocolError(ReasonCode.malformedPacket, `the remaining length uses ${what}`);
}

/**
 * The end of the topic name of a QoS 0 PUBLISH without properties; 0 if there are properties, or if the topic is empty or exceeds the frame.
 * @param layout 5: properties follow the topic name
 */
export function topicEndOf(chunk: Buffer, body: number, end: number, layout: 0 | 4 | 5): number {
  const topicEnd = body + 2 + ((chunk[body] << 8) | chunk[body + 1]);
  if (topicEnd === body + 2) return 0;
  if (layout === 5) return topicEnd < end && chunk[topicEnd] === 0 ? topicEnd : 0;
  return topicEnd <= end ? topicEnd : 0;
}

/** Properties that the messages of a run have in common. */
interface RunFacts {
  readonly topic: string;
  readonly publisher: Publisher;
  /** Monotonic and wall-clock milliseconds of their arrival. */
  readonly nowMs: number;
  readonly wallMs: number;
  /** Seconds; -1: the messages do not expire. */
  readonly expiryInterval: number;
}

/** Create the messages of a run: adjacent QoS 0 frames of one topic without properties. @param layout 5: an empty property block follows the topic */
export function messagesOf({ buf, start, end }: Frame, layout: 4 | 5, facts: RunFacts): Message[] {
  const { topic, publisher, nowMs, wallMs, expiryInterval } = facts;
  const messages: Message[] = [];
  for (let at = start; at < end; ) {
    const size = remainingLength(buf, at + 1);
    const body = at + 1 + varintLength(size);
    // The length is read from the frame, because a route that is not cached does not contain it.
    const payloadAt = body + 2 + ((buf[body] << 8) | buf[body + 1]) + (layout === 5 ? 1 : 0) - at;
    const frame = { buf, start: at, end: body + size, packetIdAt: 0 };
    messages.push(
      new Message(frame, payloadAt, payloadAt, layout, topic, 0, false, publisher, nowMs, wallMs, expiryInterval)
    );
    at = body + size;
  }
  return messages;
}
