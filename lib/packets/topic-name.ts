import { ProtocolError } from '../base/errors.ts';
import { checkTopicBytes, isPrintable } from '../topics/topic.ts';
import { ReasonCode } from './reason-codes.ts';
import { checkUtf8 } from './utf8.ts';

/**
 * The topic name of a client's PUBLISH, which lies in `buf[start, end)`.
 * @param isPlain the bytes are printable ASCII
 * @throws ProtocolError 0x81 for bytes that are not UTF-8 or have U+0000, 0x82 for an empty name or one with a wildcard
 */
export function readTopicName(buf: Buffer, start: number, end: number, isPlain = isPrintable(buf, start, end)): string {
  if (!isPlain && !checkUtf8(buf, start, end)) {
    throw new ProtocolError(ReasonCode.malformedPacket, 'the topic name is not well-formed UTF-8'); // [MQTT-1.5.4-1]
  }
  if (end === start) throw new ProtocolError(ReasonCode.protocolError, 'PUBLISH: the topic is empty'); // [MQTT-4.7.3-1]
  if (!checkTopicBytes(buf, start, end)) {
    throw new ProtocolError(ReasonCode.protocolError, 'PUBLISH: a topic name has no wildcards'); // [MQTT-3.3.2-2]
  }
  return isPlain ? buf.toString('latin1', start, end) : buf.toString('utf8', start, end); // the former is cheaper
}
