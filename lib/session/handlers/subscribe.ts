import { ProtocolError } from '../../base/errors.ts';
import { Metric } from '../../events/metrics.ts';
import { decodeSubscribe, decodeUnsubscribe } from '../../packets/decode.ts';
import { PINGRESP } from '../../packets/encode.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import { filterFault } from '../../topics/topic.ts';
import type { Session } from '../session.ts';

/** The same for all connections: an answer to PINGREQ allocates nothing. */
const PINGRESP_FRAME = { buf: PINGRESP, start: 0, end: PINGRESP.length, packetIdAt: 0 };

export function onSubscribe(
  session: Session,
  _flags: number,
  buf: Buffer,
  _start: number,
  body: number,
  end: number
): void {
  const packet = decodeSubscribe(buf, body, end, session.protocolVersion);
  for (const { topic } of packet.subscriptions) mustBeWellFormed(session, topic);
  session.ports.subscribing.subscribe(session, packet);
}

export function onUnsubscribe(
  session: Session,
  _flags: number,
  buf: Buffer,
  _start: number,
  body: number,
  end: number
): void {
  const packet = decodeUnsubscribe(buf, body, end, session.protocolVersion);
  for (const filter of packet.unsubscriptions) mustBeWellFormed(session, filter);
  session.ports.subscribing.unsubscribe(session, packet);
}

/** A reason code of SUBACK (0x8F) is for filters that are well-formed; others end the connection [MQTT-4.7.1-1] to [MQTT-4.8.2-2]. */
function mustBeWellFormed(session: Session, filter: string): void {
  session.checkControls(filter, 'topic filter');
  const fault = filterFault(filter, session.protocolVersion === 5);
  if (fault !== undefined) throw new ProtocolError(ReasonCode.protocolError, fault);
}

/** [MQTT-3.12.4-1] */
export function onPingreq(
  session: Session,
  _flags: number,
  _buf: Buffer,
  _start: number,
  body: number,
  end: number
): void {
  if (end !== body)
    throw new ProtocolError(ReasonCode.malformedPacket, 'PINGREQ has a body; its remaining length is 0');
  session.connection?.sendFrame(PINGRESP_FRAME, Metric.packetsPingrespSent);
}
