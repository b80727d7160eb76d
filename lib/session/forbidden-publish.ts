// A PUBLISH that the zone forbids ends the connection, often before its topic was looked at. The topic is read here once
// more, for the log of reasons, from bytes that may be incomplete or malformed.

import type { ProtocolError } from '../base/errors.ts';
import { remainingLength } from '../connection/frames.ts';
import type { PublishedTopics } from '../connection/published-topics.ts';
import { newPublishScan, scanPublishProperties } from '../packets/properties.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { ProtocolVersion, QoS } from '../packets/types.ts';
import { readVarint, varintEnd, varintLength } from '../packets/varint.ts';
import { checkTopicName, controlIn, mountedName } from '../topics/topic.ts';
import type { ForbiddenCode, SessionPorts } from './ports.ts';
import type { SessionClient } from './session-client.ts';

/** The session that has received the PUBLISH. */
interface Receiving {
  readonly client: SessionClient;
  readonly ports: Pick<SessionPorts<never>, 'rewrites' | 'reasons'>;
  readonly protocolVersion: ProtocolVersion;
  readonly connection:
    | { readonly reader: { readonly knownTopics: Pick<PublishedTopics, 'topicOf'> | undefined } }
    | undefined;
}

/** The code in the log of reasons of the errors that are about a limit. */
const CODES: ReadonlyMap<number, ForbiddenCode> = new Map<number, ForbiddenCode>([
  [ReasonCode.packetTooLarge, 'packet_too_large'],
  [ReasonCode.qosNotSupported, 'qos_not_allowed'],
  [ReasonCode.retainNotSupported, 'qos_not_allowed'],
  [ReasonCode.topicNameInvalid, 'topic_not_allowed']
]);

/** Record a PUBLISH that is not allowed. @param start the packet begins at `buf[start]` */
export function recordForbidden(session: Receiving, error: ProtocolError, buf: Buffer, start: number): void {
  const { client, ports } = session;
  const given = topicOf(buf, start);
  const fault = given === undefined || given === '' ? undefined : (checkTopicName(given) ?? controlOf(session, given));
  const code = CODES.get(error.reasonCode) ?? (fault === undefined ? undefined : 'topic_not_allowed');
  if (code === undefined) return;
  const topic = given === '' ? topicOfAlias(session, buf, start) : given && routedName(session, given);
  const qos = Math.min((buf[start] >> 1) & 3, 2) as QoS;
  ports.reasons.add(code, { publisher: client.clientId, topic, qos, detail: error.message });
}

/** The topic name as it would be routed. */
function routedName({ ports, client }: Receiving, given: string): string {
  const rewritten = ports.rewrites.apply(given, 'publish');
  return mountedName(rewritten, client.mountpoint) ?? rewritten;
}

function controlOf({ client }: Receiving, topic: string): string | undefined {
  return client.agreement.zone.controlCharacters === 'allow' ? undefined : controlIn(topic);
}

/** The topic name that a client has sent; undefined if it has not arrived. */
function topicOf(buf: Buffer, start: number): string | undefined {
  const topicAt = topicPlace(buf, start);
  if (topicAt > buf.length) return undefined;
  const topicEnd = topicAt + ((buf[topicAt - 2] << 8) | buf[topicAt - 1]);
  return topicEnd > buf.length ? undefined : buf.toString('utf8', topicAt, topicEnd);
}

/** The offset of the topic name. */
function topicPlace(buf: Buffer, start: number): number {
  const size = remainingLength(buf, start + 1);
  return size < 2 ? Infinity : start + 1 + varintLength(size) + 2;
}

/** The topic name that the topic alias of an MQTT 5.0 client stands for, as it is routed; undefined if it is not known. */
function topicOfAlias({ connection, protocolVersion }: Receiving, buf: Buffer, start: number): string | undefined {
  if (protocolVersion !== 5) return undefined;
  const hasId = (buf[start] & 6) !== 0;
  const scan = newPublishScan();
  try {
    const block = readVarint(buf, topicPlace(buf, start) + (hasId ? 2 : 0), buf.length);
    const propertiesAt = varintEnd();
    if (propertiesAt + block > buf.length) return undefined;
    scanPublishProperties(buf, propertiesAt, propertiesAt + block, scan);
  } catch {
    return undefined; // the properties are malformed
  }
  return connection?.reader.knownTopics?.topicOf(scan.topicAlias);
}
