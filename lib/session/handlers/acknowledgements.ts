// Every acknowledgement of the broker is sent with `answer`, never with the writer: one that promises something
// persisted waits for its commit, and one of the same kind must not overtake it. `SENDER` is called by the queue of
// the connection when a commit has succeeded or failed, possibly after the connection has closed.
//
// A packet id that is not in flight is counted and otherwise ignored, because the client may repeat an
// acknowledgement; one that waits for another kind of acknowledgement is a protocol error. An id is acknowledged only
// if its PUBLISH has been sent (`Inflight.acknowledgeable`).

import { ProtocolError } from '../../base/errors.ts';
import type { AckSender } from '../../connection/ack-queue.ts';
import type { Connection } from '../../connection/connection.ts';
import type { PacketHandler } from '../../connection/ports.ts';
import { Metric } from '../../events/metrics.ts';
import { DROP_REASONS } from '../../events/reasons.ts';
import { PUBACK, PUBCOMP, PUBREC, PUBREL, shortAck } from '../../packets/acks.ts';
import { decodeAck } from '../../packets/decode.ts';
import { encode } from '../../packets/encode.ts';
import { ReasonCode, reasonName } from '../../packets/reason-codes.ts';
import type { Ledger } from '../../store/ledger.ts';
import { Awaiting } from '../messages/inflight.ts';
import type { Session } from '../session.ts';

/**
 * Read an acknowledgement.
 *
 * The result is one number, so that the short form allocates nothing and no shared variable could be overwritten by the packets of a
 * listener.
 * @returns the packet id in bits 0-15, the reason code above them
 */
function readAck(
  session: Session,
  cmd: 'puback' | 'pubrec' | 'pubrel' | 'pubcomp',
  buf: Buffer,
  body: number,
  end: number
): number {
  if (end - body === 2) {
    const id = (buf[body] << 8) | buf[body + 1];
    if (id === 0) throw new ProtocolError(ReasonCode.protocolError, `${cmd.toUpperCase()}: packet id 0 is not allowed`);
    return id;
  }
  const { messageId, reasonCode } = decodeAck(cmd, buf, body, end, session.protocolVersion);
  if (reasonCode >= 0x80 && (cmd === 'puback' || cmd === 'pubrec')) recordRefusal(session, cmd, messageId, reasonCode);
  return (reasonCode << 16) | messageId;
}

/** Record that the client refuses a message, as far as the message in flight is kept. */
function recordRefusal(session: Session, cmd: 'puback' | 'pubrec', id: number, code: number): void {
  const { outlet, ports, client } = session;
  const { inflight } = outlet;
  const message = inflight?.acknowledgeable(id) === Awaiting[cmd] ? inflight.messageOf(id) : undefined;
  if (message === undefined) return;
  const { topic, qos, clientId: publisher } = message;
  const receiver = client.clientId;
  const detail = `reason code 0x${code.toString(16)} (${reasonName(code)})`;
  ports.reasons.drop(topic, qos, publisher, 'receiver_refused', receiver, 1, detail);
}

export const onPuback: PacketHandler<Session> = (session, _flags, buf, _start, body, end) => {
  const id = readAck(session, 'puback', buf, body, end) & 0xffff;
  const { outlet } = session;
  const state = outlet.inflight === undefined ? Awaiting.nothing : outlet.inflight.acknowledged(id, Awaiting.puback);
  if (state !== Awaiting.puback) {
    countUnexpected(session, state, Metric.packetsPubackMissed, Metric.packetsPubackInuse);
    if (state !== Awaiting.nothing) throw wrongKind('PUBACK', id);
    return;
  }
  outlet.pumpWaiting();
};

export const onPubrec: PacketHandler<Session> = (session, _flags, buf, _start, body, end) => {
  const ack = readAck(session, 'pubrec', buf, body, end);
  const id = ack & 0xffff;
  const code = ack >>> 16;
  const { outlet, client } = session;
  const { inflight } = outlet;
  const connection = session.connection as Connection<Session>;
  const state = inflight?.acknowledgeable(id) ?? Awaiting.nothing;
  if (state !== Awaiting.pubrec && state !== Awaiting.pubcomp) {
    countUnexpected(session, state, Metric.packetsPubrecMissed, Metric.packetsPubrecInuse);
    if (state !== Awaiting.nothing) throw wrongKind('PUBREC', id);
    if (code < 0x80) answer(session, connection, PUBREL, id, ReasonCode.packetIdentifierNotFound);
    return;
  }
  if (code >= 0x80) {
    inflight?.acknowledged(id, state); // the flow ends and the packet id is free [MQTT-4.3.3-4]
    outlet.pump();
    return;
  }
  if (state === Awaiting.pubrec) inflight?.received(id);
  else session.ports.metrics.counts[Metric.packetsPubrecInuse]++; // a repeated PUBREC: PUBREL has been sent
  answer(session, connection, PUBREL, id, 0, session.log?.ticket ?? 0);
  if (client.agreement.zone.maxInflightBytes > 0) outlet.pump(); // the bytes of the message no longer count
};

export const onPubrel: PacketHandler<Session> = (session, _flags, buf, _start, body, end) => {
  const id = readAck(session, 'pubrel', buf, body, end) & 0xffff;
  const isKnown = session.outlet.inflight?.forgetRel(id) === true;
  const { log } = session;
  if (!isKnown) session.ports.metrics.counts[Metric.packetsPubrelMissed]++;
  else log?.flowChanged();
  const code = isKnown ? 0 : ReasonCode.packetIdentifierNotFound;
  answer(session, session.connection as Connection<Session>, PUBCOMP, id, code, log?.ticket ?? 0); // [MQTT-4.3.3-11]
};

export const onPubcomp: PacketHandler<Session> = (session, _flags, buf, _start, body, end) => {
  const id = readAck(session, 'pubcomp', buf, body, end) & 0xffff;
  const { outlet } = session;
  const { inflight } = outlet;
  const state = inflight?.acknowledgeable(id) ?? Awaiting.nothing;
  if (state !== Awaiting.pubcomp) {
    countUnexpected(session, state, Metric.packetsPubcompMissed, Metric.packetsPubcompInuse);
    if (state !== Awaiting.nothing) throw wrongKind('PUBCOMP', id);
    return;
  }
  inflight?.completed(id);
  outlet.pumpWaiting();
};

/** Count an acknowledgement for a packet id that is not in flight, or that waits for another kind of acknowledgement. */
function countUnexpected(session: Session, state: number, missed: number, inUse: number): void {
  session.ports.metrics.counts[state === Awaiting.nothing ? missed : inUse]++;
}

/** The error for a packet id in flight that waits for another kind of acknowledgement [MQTT-3.3.4-1], [MQTT3-4.8.0-1]. */
function wrongKind(name: string, id: number): ProtocolError {
  const why = 'waits for another kind of acknowledgement';
  return new ProtocolError(ReasonCode.protocolError, `${name}: the message with packet id ${id} ${why}`);
}

const SENT: Readonly<Record<number, number>> = {
  [PUBACK]: Metric.packetsPubackSent,
  [PUBREC]: Metric.packetsPubrecSent,
  [PUBREL]: Metric.packetsPubrelSent,
  [PUBCOMP]: Metric.packetsPubcompSent
};

/**
 * Send an acknowledgement, after the commit that it has to wait for.
 * @param first its first byte
 * @param code reason code; sent to MQTT 5.0 clients only, and not if it is 0
 * @param ticket the commit of the state that it promises; 0 if it promises nothing
 * @param isRepeated it answers a repeated packet, whose state is persisted with the first one
 */
export function answer(
  session: Session,
  connection: Connection<Session>,
  first: number,
  id: number,
  code: number,
  ticket = 0,
  isRepeated = false
): void {
  if (ticket > 0 || connection.pendingAcks?.mustQueue(first)) {
    connection.queueAcks(session.ports.ledger as Ledger, SENDER).add(ticket, first, id, code, isRepeated);
    return;
  }
  answerNow(session, connection, first, id, code);
}

/**
 * Refuse a message that cannot be persisted now. MQTT 5.0 has a reason code for this. A 3.x client is disconnected, so that it sends the
 * message again on its next connection.
 * @param first first byte of the acknowledgement
 */
export function refuseTemporarily(
  session: Session,
  connection: Connection<Session>,
  first: number,
  id: number,
  reason: 'store_failed' | 'quota'
): void {
  if (session.protocolVersion === 5) answer(session, connection, first, id, DROP_REASONS[reason].reasonCode);
  else session.lifecycle.close(reason);
}

/** Send an acknowledgement without waiting. */
function answerNow(session: Session, connection: Connection<Session>, first: number, id: number, code: number): void {
  const { counts } = session.ports.metrics;
  if (code === 0 || session.protocolVersion !== 5) {
    connection.writer.acknowledge(shortAck(first, id));
    counts[SENT[first]]++;
    return;
  }
  const packet =
    code === ReasonCode.payloadFormatInvalid ? withReason(session, connection, first, id, code) : undefined;
  connection.writer.send(packet ?? Buffer.from([first, 3, id >> 8, id & 255, code]), SENT[first]);
}

/** The reason strings of acknowledgements that are not sent yet, by packet id. Few messages are refused, so it is not a field of a connection. */
const REASONS = new WeakMap<object, Map<number, string>>();

/** Note why the message with a packet id is refused, for its acknowledgement. */
export function noteReason(connection: object, id: number, reasonString: string | undefined): void {
  if (reasonString === undefined) return;
  const reasons = REASONS.get(connection) ?? new Map<number, string>();
  REASONS.set(connection, reasons.set(id, reasonString));
}

/**
 * Encode an acknowledgement with its reason string.
 * @returns undefined: there is none, the client does not want it [MQTT-3.1.2-29], or cannot receive it [MQTT-3.4.2-2], [MQTT-3.5.2-2]
 */
function withReason(
  { client }: Session,
  connection: object,
  first: number,
  messageId: number,
  reasonCode: number
): Buffer | undefined {
  const reasons = REASONS.get(connection);
  const reasonString = reasons?.get(messageId);
  reasons?.delete(messageId);
  const { wantsReasons, maxFrame } = client.agreement;
  if (reasonString === undefined || !wantsReasons) return undefined;
  const cmd = first === PUBACK ? 'puback' : 'pubrec';
  const packet = encode({ cmd, messageId, reasonCode, properties: { reasonString } }, 5);
  return packet.length <= maxFrame ? packet : undefined;
}

/** Sends the acknowledgements that have waited for a commit. */
const SENDER: AckSender<Connection<Session>> = {
  send: (connection, first, id, code) => answerNow(connection.session, connection, first, id, code),
  refuse: (connection, first, id) => refuseTemporarily(connection.session, connection, first, id, 'store_failed'),
  withdraw: ({ session }, id, isRepeated) => {
    if (isRepeated) return session.outlet.inflight?.awaitsRel(id) !== true;
    session.outlet.inflight?.forgetRel(id); // if the client sends the message again, it is a new message
    session.log?.flowTouched();
    return true;
  }
};
