import { bodyAt, type Layout, type Message, type Variation } from './message.ts';
import { copyPublishProperties, strippedPublishLength } from './properties.ts';
import { varintLength, writeVarint } from './varint.ts';

/** Encode a separate packet for one receiver, in the format of that receiver. */
export function encodeMessage(message: Message, layout: Layout, variation: Variation): Buffer {
  const { qos, subscriptionIds, expirySec, alias, messageId, topic } = variation;
  const source = message.frame();
  const from = source.buf;
  const topicFrom = bodyAt(from, source.start) + 2;
  const topicBytes = topic === undefined ? from.readUInt16BE(topicFrom - 2) : Buffer.byteLength(topic);
  const propertiesFrom = source.start + message.propertiesAt;
  const payloadFrom = source.start + message.payloadAt;
  let block = 0;
  if (layout === 5) {
    if (message.layout === 5) block = strippedPublishLength(from, propertiesFrom, payloadFrom);
    if (expirySec >= 0) block += 5;
    if (alias > 0) block += 3;
    if (subscriptionIds !== undefined) for (const id of subscriptionIds) block += 1 + varintLength(id);
  }
  const head = 2 + topicBytes + (qos > 0 ? 2 : 0) + (layout === 5 ? varintLength(block) + block : 0);
  const length = head + source.end - payloadFrom;
  const buf = Buffer.allocUnsafe(1 + varintLength(length) + length);
  buf[0] = 0x30 | (variation.dup ? 8 : 0) | (qos << 1) | (variation.retain ? 1 : 0);
  let at = buf.writeUInt16BE(topicBytes, writeVarint(buf, 1, length));
  if (topic === undefined) from.copy(buf, at, topicFrom, topicFrom + topicBytes);
  else buf.write(topic, at);
  at += topicBytes;
  if (qos > 0) at = buf.writeUInt16BE(messageId, at);
  if (layout === 5) {
    at = writeVarint(buf, at, block);
    if (message.layout === 5) at = copyPublishProperties(from, propertiesFrom, payloadFrom, buf, at);
    if (expirySec >= 0) {
      buf[at++] = 0x02;
      at = buf.writeUInt32BE(expirySec, at);
    }
    if (alias > 0) {
      buf[at++] = 0x23;
      at = buf.writeUInt16BE(alias, at);
    }
    if (subscriptionIds !== undefined) {
      for (const id of subscriptionIds) {
        buf[at++] = 0x0b;
        at = writeVarint(buf, at, id);
      }
    }
  }
  from.copy(buf, at, payloadFrom, source.end);
  return buf;
}
