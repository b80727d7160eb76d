import { ProtocolError } from '../../base/errors.ts';
import type { PacketHandler } from '../../connection/ports.ts';
import { Metric } from '../../events/metrics.ts';
import { decodeSubscribe, decodeUnsubscribe } from '../../packets/decode.ts';
import { PINGRESP } from '../../packets/encode.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import { filterFault } from '../../topics/topic.ts';
import type { Session } from '../session.ts';
import { checkControls } from '../topic-checks.ts';

/** Shared by all connections, so that an answer to PINGREQ allocates nothing. */
const PINGRESP_FRAME = { buf: PINGRESP, start: 0, end: PINGRESP.length, packetIdAt: 0 };

export const onSubscribe: PacketHandler<Session> = (session, _flags, buf, _start, body, end) => {
  const packet = decodeSubscribe(buf, body, end, session.protocolVersion);
  for (const { topic } of packet.subscriptions) mustBeWellFormed(session, topic);
  session.ports.subscribing.subscribe(session, packet);
};

export const onUnsubscribe: PacketHandler<Session> = (session, _flags, buf, _start, body, end) => {
  const packet = decodeUnsubscribe(buf, body, end, session.protocolVersion);
  for (const filter of packet.unsubscriptions) mustBeWellFormed(session, filter);
  session.ports.subscribing.unsubscribe(session, packet);
};

/**
 * Check the syntax of a topic filter. An invalid filter ends the connection [MQTT-4.7.1-1] to [MQTT-4.8.2-2]; the reason code 0x8F of
 * SUBACK is for valid filters that are not accepted.
 * @throws ProtocolError
 */
function mustBeWellFormed(session: Session, filter: string): void {
  checkControls(session.client.agreement.zone, filter, 'topic filter');
  const fault = filterFault(filter, session.protocolVersion === 5);
  if (fault !== undefined) throw new ProtocolError(ReasonCode.protocolError, fault);
}

/** Answer a PINGREQ [MQTT-3.12.4-1]. */
export const onPingreq: PacketHandler<Session> = (session, _flags, _buf, _start, body, end) => {
  if (end !== body) throw new ProtocolError(ReasonCode.malformedPacket, 'PINGREQ: the remaining length must be 0');
  session.connection?.writer.sendFrame(PINGRESP_FRAME, Metric.packetsPingrespSent);
  const { events } = session.ports;
  if (events.heard['client.ping']) events.emit('client.ping', { client: session.client });
};
