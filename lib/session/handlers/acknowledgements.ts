import { ProtocolError } from '../../base/errors.ts';
import { AckQueue, type AckSender } from '../../connection/ack-queue.ts';
import type { Connection } from '../../connection/connection.ts';
import { Metric } from '../../events/metrics.ts';
import { decodeAck } from '../../packets/decode.ts';
import type { Message } from '../../packets/message.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { QoS } from '../../packets/types.ts';
import type { Ledger } from '../../store/ledger.ts';
import { Awaiting } from '../inflight.ts';
import type { Session } from '../session.ts';

const PUBREL = 0x62;
const PUBCOMP = 0x70;

/** First two bytes and packet id of an acknowledgement without a code of its own. */
function encodeAck(first: number, id: number): number {
  return (first << 24) | (2 << 16) | id;
}

/**
 * Read an acknowledgement: its reason code above its packet id, in one number. The short form makes no object, and no variable outside
 * holds what a listener's own packets could overwrite.
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
  return (reasonCode << 16) | messageId;
}

export function onPuback(
  session: Session,
  _flags: number,
  buf: Buffer,
  _start: number,
  body: number,
  end: number
): void {
  const id = readAck(session, 'puback', buf, body, end) & 0xffff;
  const { inflight, ports } = session;
  const state = inflight === undefined ? Awaiting.nothing : inflight.acknowledgeable(id);
  if (inflight === undefined || state !== Awaiting.puback) {
    ports.metrics.counts[state === Awaiting.nothing ? Metric.packetsPubackMissed : Metric.packetsPubackInuse]++;
    if (state !== Awaiting.nothing) throw wrongKind('PUBACK', id);
    return;
  }
  session.resending?.delete(id);
  const persisted = inflight.persistedOf(id);
  countAcked(session, inflight.free(id), 1);
  if (persisted !== undefined) session.log?.finish(persisted);
  if (session.backlog !== undefined || session.feeds !== undefined || session.resending !== undefined) session.pump();
}

export function onPubrec(
  session: Session,
  _flags: number,
  buf: Buffer,
  _start: number,
  body: number,
  end: number
): void {
  const ack = readAck(session, 'pubrec', buf, body, end);
  const id = ack & 0xffff;
  const code = ack >>> 16;
  const { inflight, ports } = session;
  const connection = session.connection as Connection<Session>;
  const state = inflight === undefined ? Awaiting.nothing : inflight.acknowledgeable(id);
  if (inflight === undefined || (state !== Awaiting.pubrec && state !== Awaiting.pubcomp)) {
    ports.metrics.counts[state === Awaiting.nothing ? Metric.packetsPubrecMissed : Metric.packetsPubrecInuse]++;
    if (state !== Awaiting.nothing) throw wrongKind('PUBREC', id);
    if (code < 0x80) answer(session, connection, PUBREL, id, ReasonCode.packetIdentifierNotFound);
    return;
  }
  session.resending?.delete(id);
  const { log } = session;
  const persisted = inflight.persistedOf(id);
  if (code >= 0x80) {
    countAcked(session, inflight.free(id), 2); // [MQTT-4.3.3-4]: the flow ends, the id is free
    if (persisted !== undefined) log?.finish(persisted);
    session.pump();
    return;
  }
  if (state === Awaiting.pubrec) {
    countAcked(session, inflight.release(id), 2);
    if (persisted !== undefined) log?.finish(persisted);
    log?.flowChanged(); // sent again after PUBREL it would be delivered a second time
  } else ports.metrics.counts[Metric.packetsPubrecInuse]++; // a second one: PUBREL has gone out
  answer(session, connection, PUBREL, id, 0, ticketOf(session));
  if (session.zoneSettings.maxInflightBytes > 0) session.pump(); // the message counts no longer
}

export function onPubrel(
  session: Session,
  _flags: number,
  buf: Buffer,
  _start: number,
  body: number,
  end: number
): void {
  const id = readAck(session, 'pubrel', buf, body, end) & 0xffff;
  const isKnown = session.forgetIncoming(id);
  if (!isKnown) session.ports.metrics.counts[Metric.packetsPubrelMissed]++;
  else session.log?.flowChanged();
  const code = isKnown ? 0 : ReasonCode.packetIdentifierNotFound;
  answer(session, session.connection as Connection<Session>, PUBCOMP, id, code, ticketOf(session)); // [MQTT-4.3.3-11]
}

export function onPubcomp(
  session: Session,
  _flags: number,
  buf: Buffer,
  _start: number,
  body: number,
  end: number
): void {
  const id = readAck(session, 'pubcomp', buf, body, end) & 0xffff;
  const { inflight, ports } = session;
  const state = inflight === undefined ? Awaiting.nothing : inflight.acknowledgeable(id);
  if (inflight === undefined || state !== Awaiting.pubcomp) {
    ports.metrics.counts[state === Awaiting.nothing ? Metric.packetsPubcompMissed : Metric.packetsPubcompInuse]++;
    if (state !== Awaiting.nothing) throw wrongKind('PUBCOMP', id);
    return;
  }
  inflight.free(id);
  session.log?.flowTouched();
  if (session.backlog !== undefined || session.feeds !== undefined || session.resending !== undefined) session.pump();
}

/** The packet id is in flight, and waits for another kind of acknowledgement [MQTT-3.3.4-1], [MQTT3-4.8.0-1]. */
function wrongKind(name: string, id: number): ProtocolError {
  const why = 'the message with that packet id waits for another kind of acknowledgement';
  return new ProtocolError(ReasonCode.protocolError, `${name} ${id}: ${why}`);
}

const SENT: Readonly<Record<number, number>> = {
  64: Metric.packetsPubackSent,
  80: Metric.packetsPubrecSent,
  [PUBREL]: Metric.packetsPubrelSent,
  [PUBCOMP]: Metric.packetsPubcompSent
};

/** The commit that an answer about the session's own state has to wait for; 0: none. */
export function ticketOf({ log, ports }: Session): number {
  return log === undefined ? 0 : (ports.ledger as Ledger).ticketOf(log);
}

/**
 * Send an acknowledgement; the code is for v5 alone and left out when it is 0.
 * @param ticket the commit that keeps what it promises; 0: it promises nothing
 * @param isRepeated for what has come again: whether it is kept shows with what came first
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
    (connection.pendingAcks ??= new AckQueue(connection, session.ports.ledger as Ledger, SENDER)).add(
      ticket,
      first,
      id,
      code,
      isRepeated
    );
    return;
  }
  answerNow(session, connection, first, id, code);
}

/** The message cannot be kept now: 5.0 has a code for that, 3.x does not and sends again on the next connection. */
export function refuseTemporarily(
  session: Session,
  connection: Connection<Session>,
  first: number,
  id: number,
  reason: 'store_failed' | 'quota'
): void {
  if (session.protocolVersion === 5) answer(session, connection, first, id, ReasonCode.quotaExceeded);
  else session.close(reason, reason === 'quota' ? ReasonCode.quotaExceeded : ReasonCode.serverUnavailable);
}

/** Send an acknowledgement that has waited, or need not. */
export function answerNow(
  session: Session,
  connection: Connection<Session>,
  first: number,
  id: number,
  code: number
): void {
  const { counts } = session.ports.metrics;
  if (code === 0 || session.protocolVersion !== 5) {
    connection.acknowledge(encodeAck(first, id));
    counts[SENT[first]]++;
    return;
  }
  connection.send(Buffer.from([first, 3, id >> 8, id & 255, code]), SENT[first]);
}

/** Sends what has waited for a commit. */
const SENDER: AckSender<Connection<Session>> = {
  send: (connection, first, id, code) => answerNow(connection.session, connection, first, id, code),
  refuse: (connection, first, id) => refuseTemporarily(connection.session, connection, first, id, 'store_failed'),
  withdraw: ({ session }, id, isRepeated) => {
    if (isRepeated) return session.awaitingRel?.has(id) !== true;
    session.forgetIncoming(id); // when the message comes again it is new
    session.log?.flowTouched();
    return true;
  }
};

function countAcked(session: Session, message: Message | undefined, qos: QoS): void {
  const { ports } = session;
  ports.metrics.counts[Metric.messagesAcked]++;
  if (message !== undefined && !message.isSystem && ports.events.heard['message.acked'])
    ports.events.emit('message.acked', { message, client: session, qos });
}
