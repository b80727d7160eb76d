import { ProtocolError } from '../../errors.ts';
import { Metric } from '../../metrics.ts';
import { decodeSubscribe, decodeUnsubscribe } from '../../packets/decode.ts';
import { PINGRESP } from '../../packets/encode.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { Session } from '../session.ts';

export function onSubscribe(
  session: Session,
  _flags: number,
  buf: Buffer,
  _start: number,
  body: number,
  end: number
): void {
  session.host.onSubscribe(session, decodeSubscribe(buf, body, end, session.protocolVersion));
}

export function onUnsubscribe(
  session: Session,
  _flags: number,
  buf: Buffer,
  _start: number,
  body: number,
  end: number
): void {
  session.host.onUnsubscribe(session, decodeUnsubscribe(buf, body, end, session.protocolVersion));
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
  session.link?.send(PINGRESP, Metric.packetsPingrespSent);
}
