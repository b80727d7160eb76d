// The order is the same for every PUBLISH: the form of the packet, capabilities of the zone, topic and alias,
// counters, Receive Maximum and packet id, hooks, and only then `finish`, which routes the message and acknowledges
// it. A message that is refused after its packet id was noted must free the id (`releaseIncoming`), or a repetition
// would be answered as known.
//
// While a hook decides, the connection is not read, but it may close or lose its session: code behind a promise
// compares `session.connection` and freshens its route, since subscriptions may have changed. `scan` is one object
// for all packets, so its values are copied before anything else can run. In `finish` the acknowledgement waits for a
// commit only if routing has caused a promise of the ledger; otherwise the ticket is removed from the message again.

import { isUtf8 } from '../../base/builtins.ts';
import { ProtocolError } from '../../base/errors.ts';
import type { Connection } from '../../connection/connection.ts';
import { Pause } from '../../connection/pause.ts';
import type { PacketHandler } from '../../connection/ports.ts';
import { DECIDERS, type Decider } from '../../events/deciders.ts';
import { isThenable } from '../../events/hooks.ts';
import { Metric } from '../../events/metrics.ts';
import { PUBACK, PUBREC } from '../../packets/acks.ts';
import { encodeMessage } from '../../packets/encode-message.ts';
import { awaitCommit, Message } from '../../packets/message.ts';
import { newPublishScan, scanPublishProperties } from '../../packets/properties.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import { readTopicName } from '../../packets/topic-name.ts';
import type { QoS } from '../../packets/types.ts';
import { readVarint, varintEnd } from '../../packets/varint.ts';
import type { Zone } from '../../records/zone.ts';
import { type Route, TopicKind } from '../../routing/route.ts';
import { ticketOfAnswer } from '../../store/ledger.ts';
import { isSameTopic, levelCount, mountedName } from '../../topics/topic.ts';
import type { PublishDecision, SessionPorts } from '../ports.ts';
import { resumeAfterHook, type Session } from '../session.ts';
import { checkControls, checkLevels } from '../topic-checks.ts';
import { answer, noteReason, refuseTemporarily } from './acknowledgements.ts';

const scan = newPublishScan();

/** Handle a PUBLISH that cannot use the fast path: QoS 1 or 2, retained, with properties, or needed by a hook or listener. */
export const onPublish: PacketHandler<Session> = (session, flags, buf, start, body, end) => {
  const { ports, client } = session;
  const { zone } = client.agreement;
  const connection = session.connection as Connection<Session>;
  const qos = ((flags >> 1) & 3) as QoS;
  const retain = (flags & 1) !== 0;
  const topicAt = body + 2;
  const topicEnd = topicAt + ((buf[body] << 8) | buf[body + 1]);
  let at = topicEnd;
  if (topicAt > end || topicEnd + (qos > 0 ? 2 : 0) > end) throw malformed('it ends inside the topic or the packet id');
  let id = 0;
  if (qos > 0) {
    id = (buf[at] << 8) | buf[at + 1];
    if (id === 0) throw new ProtocolError(ReasonCode.protocolError, 'PUBLISH: packet id 0 is not allowed'); // [MQTT-2.2.1-3]
    at += 2;
  }
  let propertiesAt = at;
  let expiry = -1;
  let alias = 0;
  let isBadPayload = false;
  if (session.protocolVersion === 5) {
    const block = readVarint(buf, at, end);
    propertiesAt = varintEnd();
    at = propertiesAt + block;
    if (at > end) throw malformed('it ends inside its properties');
    scanPublishProperties(buf, propertiesAt, at, scan);
    expiry = scan.messageExpiryInterval;
    alias = scan.topicAlias;
    if (scan.responseTopicEnd > 0) checkResponseTopic(zone, buf);
    isBadPayload = zone.payloadFormatCheck && scan.payloadFormatIndicator === 1 && !isUtf8(buf.subarray(at, end));
  }
  checkCapabilities(session, qos, retain);
  const route =
    alias === 0 && topicEnd > topicAt
      ? routeOf(session, connection, buf, topicAt, topicEnd)
      : routeOfAlias(session, connection, buf, topicAt, topicEnd, alias);

  const { counts } = ports.metrics;
  connection.reader.messageReceived();
  counts[Metric.messagesReceived]++;
  counts[QOS_RECEIVED[qos]]++;
  if (qos > 0 && !admitFlow(session, connection, qos, id)) return;
  if (isBadPayload) {
    counts[Metric.packetsPublishError]++;
    acknowledge(session, connection, qos, id, ReasonCode.payloadFormatInvalid, 0);
    return;
  }

  const givenExpiry = expiry;
  expiry = limitedExpiry(expiry, route, zone.maxMessageExpiryInterval);
  const layout = session.protocolVersion === 5 ? 5 : 4;
  let message = new Message(
    { buf, start, end, packetIdAt: qos === 0 ? 0 : topicEnd },
    propertiesAt - start,
    at - start,
    layout,
    route.topic,
    qos,
    retain,
    client,
    ports.time.nowMs,
    ports.time.wallMs,
    expiry
  );
  const isMapped =
    client.mountpoint !== '' || (ports.rewrites.hasRules && connection.reader.topics.mapped?.isRewritten === true);
  if (alias !== 0 || isMapped || (expiry !== givenExpiry && layout === 5)) {
    message = withTopic(message, route.topic);
  }
  if (!route.mustDecide && !ports.publishing.hooks.hasHooks) finish(session, connection, message, route, id, qos, 0);
  else decide(session, connection, message, route, id, qos);
};

function checkResponseTopic(zone: Zone, buf: Buffer): void {
  checkControls(zone, buf.toString('utf8', scan.responseTopicAt, scan.responseTopicEnd), 'response topic');
}

/** The message expiry interval within the limit of the zone, in seconds. -1: the message does not expire. */
function limitedExpiry(expiry: number, route: Route, limit: number): number {
  if (expiry < 0) return route.topic !== '' && limit !== Infinity ? limit : expiry;
  return expiry > limit ? limit : expiry;
}

/** Decide whether the client may publish a message to `$SYS`, or ask the hooks and schemas, and finish it. */
function decide(
  session: Session,
  connection: Connection<Session>,
  message: Message,
  route: Route,
  id: number,
  qos: QoS
): void {
  const { client, ports } = session;
  const { publishing, routing } = ports;
  if (route.kind === TopicKind.system && !client.isSuperuser && !ports.rights.mayPublishSystem(client, route.topic)) {
    publishing.hooks.announce(message, route, client, false);
    refuseForbidden(session, connection, message, route, id, qos, ReasonCode.notAuthorized, DECIDERS.systemTopic);
    return;
  }
  if (!publishing.hooks.hasHooks && route.schemas.length === 0) {
    finish(session, connection, message, route, id, qos, 0);
    return;
  }
  const decided = publishing.hooks.decide(message, route, client, connection.reader.topics);
  if (isThenable(decided)) finishLater(session, connection, decided, id, qos);
  else {
    const { message: outcome, route: routed, reasonCode, decider } = decided;
    finish(session, connection, outcome, routing.freshened(routed), id, qos, reasonCode, decider);
  }
}

/** Finish a message when the hooks have decided. Until then, the connection is not read. */
function finishLater(
  session: Session,
  connection: Connection<Session>,
  decided: Promise<PublishDecision>,
  id: number,
  qos: QoS
): void {
  const { ports } = session;
  const inflight = session.outlet.ensureInflight();
  const isUndecided = qos === 2 && session.log !== undefined;
  if (isUndecided) inflight.hold(id);
  connection.reader.pause(Pause.hook);
  const done = decided
    .then((outcome) => {
      if (isUndecided) inflight.decided(id);
      const { message, route, reasonCode, decider } = outcome;
      if (session.connection === connection)
        finish(session, connection, message, ports.routing.freshened(route), id, qos, reasonCode, decider);
      else finishWithoutConnection(session, connection, outcome, id, qos, isUndecided);
      resumeAfterHook(connection);
    })
    .catch((error: unknown) => {
      if (isUndecided) inflight.decided(id);
      session.failInternally(error, 'continuing after a publish hook', connection);
    });
  inflight.wait(done);
}

/**
 * Route a message that the hooks have accepted, or store it until it is due, and acknowledge it. If anything persists it, the
 * acknowledgement waits for the commit.
 * @param qos QoS of the PUBLISH packet; a hook may have changed the QoS of the message
 * @param reasonCode decision of the hooks
 * @param decider of a refusal
 */
function finish(
  session: Session,
  connection: Connection<Session>,
  message: Message,
  route: Route,
  id: number,
  qos: QoS,
  reasonCode: number,
  decider?: Decider
): void {
  if (reasonCode >= 0x80) {
    refuseForbidden(session, connection, message, route, id, qos, reasonCode, decider);
    return;
  }
  const { ports, log } = session;
  const { ledger, publishing } = ports;
  const lack = qos > 0 && ports.pressure.isRefusing ? publishing.refusal(message, route) : undefined;
  if (lack !== undefined) {
    dropRefused(session, connection, message, id, qos, 'quota', lack);
    return;
  }
  const mayPersist = ledger !== undefined && qos > 0;
  const isIdPersisted = mayPersist && qos === 2 && log !== undefined;
  if (mayPersist && ledger.isFailed && (isIdPersisted || ports.routing.persists(message, route))) {
    dropRefused(session, connection, message, id, qos, 'store_failed');
    return;
  }
  const promises = ledger === undefined ? 0 : ledger.promises;
  const notedBefore = ledger === undefined ? 0 : ledger.unwritten.noted;
  // one commit persists the packet id and the effects of the message; if it fails, the client sends the message again as a new one
  if (mayPersist) awaitCommit(message, ledger.ticket, isIdPersisted);
  if (isIdPersisted) log.flowChanged();
  let code = 0;
  if (route.kind === TopicKind.delayed) code = publishing.delay(message);
  else if (publishing.route(message, route) === 0) code = ReasonCode.noMatchingSubscribers;
  if (code >= 0x80) ports.metrics.counts[Metric.packetsPublishError]++;
  acknowledge(session, connection, qos, id, code, mayPersist ? ticketOfAnswer(ledger, promises, message) : 0);
  if (ledger !== undefined) connection.chargeUnwritten(ledger, notedBefore);
}

/** Drop a message that cannot be persisted or queued, and refuse it. The publisher may send it again. */
function dropRefused(
  session: Session,
  connection: Connection<Session>,
  message: Message,
  id: number,
  qos: QoS,
  reason: 'store_failed' | 'quota',
  decider?: Decider
): void {
  const { ports } = session;
  ports.metrics.counts[Metric.packetsPublishError]++;
  ports.announcer.dropped(message, reason, undefined, undefined, decider);
  if (qos === 2) releaseIncoming(session, id);
  refuseTemporarily(session, connection, qos === 1 ? PUBACK : PUBREC, id, reason);
}

/** Free the packet id of an incoming QoS 2 message that is refused. */
function releaseIncoming(session: Session, id: number): void {
  session.outlet.inflight?.forgetRel(id); // [MQTT-4.3.3-9]
  session.log?.flowTouched();
}

/**
 * Finish a message whose connection closed while a hook decided. A QoS 2 message must be routed now, since the session has its packet id
 * and will not route a repeated PUBLISH [MQTT-4.3.3-10]. The next connection of the client is not read before that.
 * @param isUndecided its packet id was in `Inflight.undecided`, and is to be persisted now
 */
function finishWithoutConnection(
  session: Session,
  gone: Connection<Session>,
  { message, route, reasonCode, decider }: PublishDecision,
  id: number,
  qos: QoS,
  isUndecided: boolean
): void {
  const { ports, log } = session;
  const { ledger } = ports;
  const isPersisted = isUndecided && log !== undefined && ledger !== undefined;
  const mayLackRoom = qos > 0 && ports.pressure.isRefusing;
  const lack = mayLackRoom ? ports.publishing.refusal(message, ports.routing.freshened(route)) : undefined;
  if (reasonCode >= 0x80 || lack !== undefined || (isPersisted && ledger.isFailed)) {
    if (qos === 2) session.outlet.inflight?.forgetRel(id);
    if (isPersisted) log.flowTouched(); // the session is not unloaded while a packet id is undecided
    if (reasonCode === ReasonCode.serverShuttingDown)
      ports.announcer.dropped(message, 'server_shutting_down', undefined);
    else if (reasonCode < 0x80)
      ports.announcer.dropped(message, lack === undefined ? 'store_failed' : 'quota', undefined, route, lack);
    else {
      countRefusal(ports, reasonCode);
      ports.announcer.dropped(message, decider?.drop ?? 'not_authorized', undefined, route, decider);
    }
    return;
  }
  if (isPersisted) {
    awaitCommit(message, ledger.ticket, true);
    log.flowChanged();
    // the PUBREC is never sent, as the connection has closed, but if the commit fails, its queue discards the packet id
    answer(session, gone, PUBREC, id, 0, ledger.ticket);
  }
  if (route.kind === TopicKind.delayed) ports.publishing.delay(message);
  else ports.publishing.route(message, ports.routing.freshened(route));
}

/**
 * Refuse a message that the client may not publish. A 3.x client gets a normal acknowledgement [MQTT3-3.3.5-2], unless `aclDenyAction` is
 * `disconnect`. The refusal of a schema is only acknowledged, if MQTT has an acknowledgement that can say it.
 */
function refuseForbidden(
  session: Session,
  connection: Connection<Session>,
  message: Message,
  route: Route,
  id: number,
  qos: QoS,
  reasonCode: number,
  decider: Decider | undefined
): void {
  countRefusal(session.ports, reasonCode);
  session.ports.announcer.dropped(message, decider?.drop ?? 'not_authorized', undefined, route, decider);
  const isAnswered = decider?.drop === 'schema' && qos > 0 && session.protocolVersion === 5;
  if (session.client.agreement.zone.aclDenyAction === 'disconnect' && !isAnswered) {
    if (qos === 2) releaseIncoming(session, id); // no PUBREC has been sent to the client
    session.fail(new ProtocolError(reasonCode, refusalText(message, decider)), 'not_authorized');
    return;
  }
  if (isAnswered) noteReason(connection, id, decider?.reasonString);
  acknowledge(session, connection, qos, id, session.protocolVersion === 5 ? reasonCode : 0, 0);
}

function refusalText({ topic }: Message, decider: Decider | undefined): string {
  if (decider?.drop !== 'schema') return `the client may not publish to topic "${topic}"`;
  return `the payload to topic "${topic}" does not match a schema`;
}

function countRefusal({ metrics }: SessionPorts<Session>, code: number): void {
  metrics.counts[code === ReasonCode.notAuthorized ? Metric.packetsPublishAuthError : Metric.packetsPublishError]++;
}

/** Send the acknowledgement that the QoS requires [MQTT-3.3.4-1]. */
function acknowledge(
  session: Session,
  connection: Connection<Session>,
  qos: QoS,
  id: number,
  code: number,
  ticket: number
): void {
  if (qos === 0) return;
  if (qos === 2 && code >= 0x80) releaseIncoming(session, id);
  answer(session, connection, qos === 1 ? PUBACK : PUBREC, id, code, ticket);
}

/**
 * Check the Receive Maximum and, for QoS 2, whether the packet id is new.
 * @returns false if the packet needs no further handling
 * @throws ProtocolError 0x93, 0x97
 */
function admitFlow(session: Session, connection: Connection<Session>, qos: QoS, id: number): boolean {
  const { ports, client } = session;
  const { zone } = client.agreement;
  const { inflight } = session.outlet;
  if (qos === 2 && inflight?.awaitsRel(id)) {
    ports.metrics.counts[Metric.packetsPublishInuse]++;
    inflight.repeatedRel(id);
    const ticket = ports.ledger?.isFailed ? 0 : (session.log?.ticket ?? 0); // while the store fails, known packet ids are those it has
    answer(session, connection, PUBREC, id, 0, ticket, true); // [MQTT-4.3.3-10]
    return false;
  }
  const unacknowledged = (inflight?.unreleased ?? 0) + (connection.pendingAcks?.pubacks ?? 0);
  if (session.protocolVersion === 5 && unacknowledged >= zone.receiveMaximum) {
    // [MQTT-3.3.4-7]
    throw new ProtocolError(
      ReasonCode.receiveMaximumExceeded,
      `the client has more than ${zone.receiveMaximum} unacknowledged messages (option receiveMaximum)`
    );
  }
  if (qos === 2) {
    if (zone.maxAwaitingRel > 0 && (inflight?.awaitingCount ?? 0) >= zone.maxAwaitingRel) {
      ports.metrics.counts[Metric.packetsPublishDropped]++;
      ports.metrics.counts[Metric.messagesQos2Dropped]++;
      if (session.protocolVersion !== 5)
        throw new ProtocolError(
          ReasonCode.quotaExceeded,
          'too many QoS 2 messages wait for PUBREL (option maxAwaitingRel)'
        );
      answer(session, connection, PUBREC, id, ReasonCode.quotaExceeded); // PUBREC has no reason code 0x93 [MQTT-3.5.2-1]
      return false;
    }
    awaitRel(session, id);
  }
  return true;
}

/** Note that an incoming QoS 2 packet id waits for PUBREL. */
function awaitRel(session: Session, id: number): void {
  const { awaitRelTimeout } = session.client.agreement.zone;
  const { nowMs } = session.ports.time;
  session.outlet.ensureInflight().awaitRel(id, awaitRelTimeout > 0 ? nowMs : undefined);
  if (awaitRelTimeout > 0) session.timers.dueAt(nowMs + awaitRelTimeout);
}

function checkCapabilities(session: Session, qos: QoS, retain: boolean): void {
  const { zone } = session.client.agreement;
  if (qos > zone.maxQosAllowed)
    throw new ProtocolError(ReasonCode.qosNotSupported, `PUBLISH: QoS ${qos} is not supported (option maxQosAllowed)`); // [MQTT-3.2.2-11]
  if (retain && !zone.retainAvailable)
    throw new ProtocolError(
      ReasonCode.retainNotSupported,
      'PUBLISH: retained messages are not supported (option retainAvailable)'
    ); // [MQTT-3.2.2-14]
}

function routeOf(
  session: Session,
  connection: Connection<Session>,
  buf: Buffer,
  topicAt: number,
  topicEnd: number
): Route {
  const { ports } = session;
  if (session.client.mountpoint !== '' || ports.rewrites.hasRules)
    return mappedRoute(session, connection, buf, topicAt, topicEnd);
  return connection.reader.topics.route(session, ports, buf, topicAt, topicEnd);
}

/** Get the route of a topic name that is rewritten or mounted. */
function mappedRoute(
  session: Session,
  connection: Connection<Session>,
  buf: Buffer,
  topicAt: number,
  topicEnd: number
): Route {
  const { ports, client } = session;
  const { topics } = connection.reader;
  const known = topics.mapped;
  if (known !== undefined && isSameTopic(known.bytes, buf, topicAt, topicEnd)) {
    if (known.route !== undefined && ports.routing.isFresh(known.route)) return known.route;
    const route = ports.routing.of(known.topic);
    if (!route.isStale || known.route !== undefined)
      topics.keepMapped({ ...known, route: route.isStale ? undefined : route });
    return route;
  }
  const given = readTopicName(buf, topicAt, topicEnd);
  checkControls(client.agreement.zone, given, 'topic name');
  checkLevels(client.agreement.zone, levelCount(given));
  const topic = mappedName(session, given);
  if (topic === undefined)
    throw new ProtocolError(
      ReasonCode.topicNameInvalid,
      'PUBLISH: the topic name and the mount point together are too long'
    );
  const bytes = Buffer.allocUnsafeSlow(topicEnd - topicAt);
  buf.copy(bytes, 0, topicAt, topicEnd);
  const route = ports.routing.of(topic);
  topics.keepMapped({ given, bytes, topic, isRewritten: topic !== given, route: route.isStale ? undefined : route });
  return route;
}

/** The topic name that is routed for one that a client sends; undefined if it is too long with the mount point. */
function mappedName({ ports, client }: Session, given: string): string | undefined {
  return mountedName(ports.rewrites.apply(given, 'publish'), client.mountpoint);
}

/** Map the topics that a client has published to before again, because rewriting has been started or stopped. */
export function remapTopics(session: Session): void {
  session.connection?.reader.knownTopics?.remap((given) => mappedName(session, given));
}

function routeOfAlias(
  session: Session,
  connection: Connection<Session>,
  buf: Buffer,
  topicAt: number,
  topicEnd: number,
  alias: number
): Route {
  if (alias > session.client.agreement.zone.maxTopicAlias) {
    throw new ProtocolError(
      ReasonCode.topicAliasInvalid,
      `PUBLISH: topic alias ${alias} is greater than the Topic Alias Maximum of ${session.client.agreement.zone.maxTopicAlias}`
    ); // [MQTT-3.2.2-17, -18]
  }
  if (topicEnd > topicAt) {
    const route = routeOf(session, connection, buf, topicAt, topicEnd);
    const { topics } = connection.reader;
    const isMapped = session.client.mountpoint !== '' || session.ports.rewrites.hasRules;
    topics.setAlias(alias, route.topic, isMapped ? topics.mapped?.given : undefined);
    return route;
  }
  const topic = alias === 0 ? undefined : connection.reader.topics.topicOf(alias);
  if (topic === undefined)
    throw new ProtocolError(
      ReasonCode.protocolError,
      alias === 0 ? 'PUBLISH: the topic name is empty' : `PUBLISH: topic alias ${alias} has not been set`
    );
  return session.ports.routing.of(topic);
}

/** Copy a message under the topic name that it is routed to. */
function withTopic(message: Message, topic: string): Message {
  const { layout, qos, retain, origin, takenAtMs, timestamp, expiryInterval, bytes, payloadAt } = message;
  const buf = encodeMessage(message, layout, {
    qos,
    retain,
    dup: false,
    messageId: 1,
    subscriptionIds: undefined,
    expirySec: expiryInterval,
    alias: 0,
    topic
  });
  return Message.of(buf, layout, topic, qos, retain, bytes - payloadAt, origin, takenAtMs, timestamp, expiryInterval);
}

function malformed(what: string): ProtocolError {
  return new ProtocolError(ReasonCode.malformedPacket, `PUBLISH: ${what}`);
}

const QOS_RECEIVED = [Metric.messagesQos0Received, Metric.messagesQos1Received, Metric.messagesQos2Received];
