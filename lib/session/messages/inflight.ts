// The packet ids of a session in both directions, and the flows that they stand for.
//
// Outgoing messages in flight need no object each: parallel arrays, at most half full, so that a free place is found in
// a few steps; a session that sends no QoS 1 or 2 message shares one empty ring. PUBREC frees the message but not its
// packet id, which is why `count` and `unacknowledged` differ. A packet id can be assigned before its PUBLISH is sent
// (`UNSENT`), because the commit in between must contain it; the client cannot acknowledge it until then. Accessors do
// not check that an id is in use, except `stateOf`, `acknowledgeable`, `release` and `free`.
//
// Incoming QoS 2 ids are a bit set of at most 8 KiB, in memory and in the store. All 65,535 ids may wait
// (`maxAwaitingRel` 0) and none is forgotten (`awaitRelTimeout` 0; documented: 300 s), because forgetting one risks a
// duplicate delivery.
//
// Deliver hooks and listeners may close the connection: code behind such a call compares `outlet.writer` with the one
// that it was given, and leaves the message to the next connection.

import { IdSet } from '../../base/collections/id-set.ts';
import type { Writer } from '../../connection/writer.ts';
import { Metric, type Metrics } from '../../events/metrics.ts';
import type { DropReason } from '../../events/reasons.ts';
import { PUBREL, shortAck } from '../../packets/acks.ts';
import { detachFromPublisher, type Message } from '../../packets/message.ts';
import { secondsInBroker } from '../../packets/message-expiry.ts';
import type { QoS } from '../../packets/types.ts';
import { afterCommit } from '../../store/after-commit.ts';
import type { PersistedMessage } from '../../store/segment.ts';
import type { Session } from '../session.ts';
import { askDeliverHooks } from './deliver-hooks.ts';
import { reached } from './delivery-stages.ts';
import { countSent, measuredAck, type Outlet } from './outlet.ts';

/** The acknowledgement that an outgoing packet id waits for. */
export const Awaiting = { nothing: 0, puback: 1, pubrec: 2, pubcomp: 3 } as const;

/** Flag of a packet id whose PUBLISH has never been sent, so that the client cannot acknowledge it. */
export const UNSENT = 8;
/** Flag of a packet id whose message was read from the store, where it is unchanged by deliver hooks. */
const RESTORED = 16;
/** Size of the ring when the first packet id is assigned. */
const FIRST_SIZE = 16;

/** The ring of sessions without packet ids in flight. Nothing is written to it. */
const NO_IDS = new Uint16Array(1);
const NO_BYTES = new Uint8Array(1);
const NO_ORDER = new Uint32Array(1);
const NO_MESSAGES: undefined[] = [undefined];

/**
 * The packet ids of a session: outgoing QoS 1 and 2 messages that wait for an acknowledgement, incoming QoS 2 messages that wait for PUBREL
 * or for the decision of a hook.
 *
 * Outgoing ids are in a ring indexed by the low bits of the packet id, so that a message needs no object. Packet ids are assigned in
 * sequence. An id whose slot in the ring is taken is skipped, so an id in flight is never assigned again [MQTT-2.2.1-4].
 *
 * Created with the first of these messages, and removed when the store alone has them; not while a hook decides, or a time for
 * `awaitRelTimeout` is noted.
 */
export class Inflight {
  /** Number of outgoing packet ids in use, including those that wait for PUBCOMP. */
  count = 0;
  /** Number of outgoing packet ids that wait for PUBACK or PUBREC. */
  unacknowledged = 0;
  /** Bytes of the outgoing messages that are stored here. */
  bytes = 0;
  /** Outgoing packet ids whose message this connection still has to send again, because the send quota is used up [MQTT-4.9.0-2]. */
  resending: Set<number> | undefined = undefined;
  /** Incoming QoS 2 packet ids that wait for PUBREL. */
  awaitingRel: IdSet | undefined = undefined;
  /** Ids of `awaitingRel` on whose messages a hook still decides. They are not persisted: after a crash they count as not received. */
  undecided: Set<number> | undefined = undefined;
  /** Resolves when the publish hooks have decided on the last message that waits for them. */
  deciding: Promise<void> | undefined = undefined;
  readonly #outlet: Outlet;
  /** Number and bytes of the reservations in `count` and `bytes`. */
  #reserved = 0;
  #reservedBytes = 0;
  #last = 0;
  #sent = 0;
  #mask = 0;
  #ids = NO_IDS;
  #states = NO_BYTES;
  #flags = NO_BYTES;
  #order = NO_ORDER;
  #messages: (Message | undefined)[] = NO_MESSAGES;
  /** The stored forms of the messages; undefined if the session is only in memory. */
  #persisted: (PersistedMessage | undefined)[] | undefined = undefined;
  #subscriptionIds: Map<number, readonly number[]> | undefined = undefined;
  /** Ids of `awaitingRel` that an earlier connection received. They do not count for the Receive Maximum of this connection. */
  #carriedOver: IdSet | undefined = undefined;
  /** Time at which each id of `awaitingRel` was received; only if the zone has an `awaitRelTimeout`. */
  #since: Map<number, number> | undefined = undefined;

  constructor(outlet: Outlet) {
    this.#outlet = outlet;
  }

  // -------------------------------------------------------------------------------------------------- outgoing packet ids

  /** Assign a packet id to a QoS 1 or 2 message. */
  assign(
    message: Message,
    qos: QoS,
    retain: boolean,
    subscriptionIds: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): number {
    const outlet = this.#outlet;
    if (persisted !== undefined) outlet.log?.flowTouched();
    let resendable: Message | undefined;
    if (outlet.client.isPersistent || this.#isNeededUntilAcked) {
      detachFromPublisher(message);
      resendable = message;
    }
    return this.assignId(
      qos === 1 ? Awaiting.puback : Awaiting.pubrec,
      resendable,
      qos | (retain ? 4 : 0),
      resendable === undefined ? undefined : subscriptionIds,
      persisted
    );
  }

  /** True if messages in flight must be stored until they are acknowledged, even if the session ends with its connection. */
  get #isNeededUntilAcked(): boolean {
    const { agreement, ports, session } = this.#outlet;
    const { retryInterval, maxInflightBytes } = agreement.zone;
    if (retryInterval > 0 || maxInflightBytes > 0 || ports.events.heard['message.acked']) return true;
    if (this.#outlet.followers !== undefined) return true;
    return session.subscriptions.shared > 0; // handed over to other members of the share group when the session ends
  }

  /**
   * Assign the next free packet id.
   * @param state of `Awaiting`
   * @param message stored for resending, for `message.acked` and for `bytes`; undefined if none of these is needed
   * @param flags QoS in bits 0-1, retain in bit 2
   * @param subscriptionIds subscription identifiers
   * @param persisted the stored form of the message
   */
  assignId(
    state: number,
    message: Message | undefined,
    flags: number,
    subscriptionIds: readonly number[] | undefined,
    persisted?: PersistedMessage
  ): number {
    if ((this.count + 1) * 2 > this.#mask + 1) this.#grow();
    let id = this.#last;
    do {
      id = id === 65_535 ? 1 : id + 1;
    } while (this.#ids[id & this.#mask] !== 0);
    this.#last = id;
    const at = id & this.#mask;
    this.#ids[at] = id;
    this.#states[at] = state;
    this.#flags[at] = flags;
    this.#order[at] = this.#sent++;
    this.#messages[at] = message;
    if (message !== undefined) this.bytes += message.bytes;
    if (subscriptionIds !== undefined) (this.#subscriptionIds ??= new Map()).set(id, subscriptionIds);
    if (persisted !== undefined) (this.#persisted ??= new Array(this.#mask + 1).fill(undefined))[at] = persisted;
    this.count++;
    this.unacknowledged++;
    return id;
  }

  /** Count a message as in flight before its packet id is assigned. `cancelReservation` must follow. */
  reserve(bytes: number): void {
    this.count++;
    this.bytes += bytes;
    this.#reserved++;
    this.#reservedBytes += bytes;
  }

  /** Undo `reserve`: the packet id is assigned now, or is not needed. */
  cancelReservation(bytes: number): void {
    this.count--;
    this.bytes -= bytes;
    this.#reserved--;
    this.#reservedBytes -= bytes;
  }

  /**
   * Restore a packet id that was in flight when the session was unloaded; in the order of the packets. `restoreMessage` adds its message.
   * @param state of `Awaiting`
   * @param flags as for `assignId`, and `UNSENT`
   */
  restore(id: number, state: number, flags: number): void {
    while ((this.count + 1) * 2 > this.#mask + 1 || this.#ids[id & this.#mask] !== 0) this.#grow();
    const at = id & this.#mask;
    this.#ids[at] = this.#last = id;
    this.#states[at] = state;
    this.#flags[at] = flags;
    this.#order[at] = this.#sent++;
    this.count++;
    if (state !== Awaiting.pubcomp) this.unacknowledged++;
  }

  /** Add the message of a restored packet id. */
  restoreMessage(id: number, persisted: PersistedMessage): void {
    const at = id & this.#mask;
    this.#messages[at] = persisted.message;
    this.#flags[at] |= RESTORED;
    this.bytes += persisted.message.bytes;
    if (persisted.subscriptionIds !== undefined)
      (this.#subscriptionIds ??= new Map()).set(id, persisted.subscriptionIds);
    (this.#persisted ??= new Array(this.#mask + 1).fill(undefined))[at] = persisted;
  }

  /** Tell whether the message of a packet id was read from the store, and `replaceMessage` has not been called since. */
  isRestored(id: number): boolean {
    return (this.#flags[id & this.#mask] & RESTORED) !== 0;
  }

  /** Replace a message that waits for PUBACK or PUBREC by the result of the deliver hooks. */
  replaceMessage(id: number, message: Message, qos: QoS, retain: boolean): void {
    const at = id & this.#mask;
    const replaced = this.#messages[at];
    if (replaced !== undefined) {
      this.bytes += message.bytes - replaced.bytes;
      this.#messages[at] = message;
    }
    this.#states[at] = qos === 1 ? Awaiting.puback : Awaiting.pubrec;
    this.#flags[at] = (this.#flags[at] & UNSENT) | qos | (retain ? 4 : 0);
  }

  /** The stored form of the message of a packet id. */
  persistedOf(id: number): PersistedMessage | undefined {
    return this.#persisted?.[id & this.#mask];
  }

  /** The acknowledgement that a packet id waits for; `Awaiting.nothing` if the id is not in use. */
  stateOf(id: number): number {
    const at = id & this.#mask;
    return this.#ids[at] === id ? this.#states[at] : Awaiting.nothing;
  }

  /** The acknowledgement that the client may send: as `stateOf`, but `Awaiting.nothing` until the PUBLISH has been sent. */
  acknowledgeable(id: number): number {
    const at = id & this.#mask;
    return this.#ids[at] === id && (this.#flags[at] & UNSENT) === 0 ? this.#states[at] : Awaiting.nothing;
  }

  /** Record that the PUBLISH of a packet id has not been sent. */
  markUnsent(id: number): void {
    this.#flags[id & this.#mask] |= UNSENT;
  }

  /** Record that the PUBLISH of a packet id has been sent. */
  markSent(id: number): void {
    this.#flags[id & this.#mask] &= ~UNSENT;
  }

  wasSent(id: number): boolean {
    return (this.#flags[id & this.#mask] & UNSENT) === 0;
  }

  /**
   * Release a message after its PUBREC: from then on only PUBREL is sent again [MQTT-4.3.3-6].
   * @returns the message, if stored; undefined if the id is not in use, because a hook or a listener has ended the session
   */
  release(id: number): Message | undefined {
    const at = id & this.#mask;
    if (this.#ids[at] !== id) return undefined;
    const message = this.#messages[at];
    if (this.#states[at] !== Awaiting.pubcomp) this.unacknowledged--;
    this.#states[at] = Awaiting.pubcomp;
    this.#messages[at] = undefined;
    if (message !== undefined) this.bytes -= message.bytes;
    if (this.#persisted !== undefined) this.#persisted[at] = undefined;
    this.#order[at] = this.#sent++; // PUBRELs are sent again in the order of the PUBRECs [MQTT-4.6.0-4]
    this.#subscriptionIds?.delete(id);
    return message;
  }

  /** Free a packet id when its flow has ended. @returns as `release` */
  free(id: number): Message | undefined {
    const at = id & this.#mask;
    if (this.#ids[at] !== id) return undefined;
    const message = this.#messages[at];
    this.#ids[at] = 0;
    if (this.#states[at] !== Awaiting.pubcomp) this.unacknowledged--;
    this.#states[at] = Awaiting.nothing;
    this.#messages[at] = undefined;
    if (message !== undefined) this.bytes -= message.bytes;
    if (this.#persisted !== undefined) this.#persisted[at] = undefined;
    this.#subscriptionIds?.delete(id);
    this.count--;
    return message;
  }

  /** The flags of a packet id: QoS in bits 0-1, retain in bit 2. */
  flagsOf(id: number): number {
    return this.#flags[id & this.#mask] & 7;
  }

  /** The retain flag of the delivery of a packet id. It stays until the id is assigned again. */
  isRetained(id: number): boolean {
    return (this.#flags[id & this.#mask] & 4) !== 0;
  }

  messageOf(id: number): Message | undefined {
    return this.#messages[id & this.#mask];
  }

  subscriptionIdsOf(id: number): readonly number[] | undefined {
    return this.#subscriptionIds?.get(id);
  }

  /** A mark for `inOrder` that separates the packets sent so far from later ones. */
  get mark(): number {
    return this.#sent;
  }

  /**
   * List the packet ids in use, in the order in which their last packet was first sent [MQTT-4.6.0-1].
   * @param before a `mark`: only packets sent before it
   */
  inOrder(before = this.#sent): number[] {
    const places: number[] = [];
    // the differences remain correct when the counter wraps at 2^32
    for (let at = 0; at <= this.#mask; at++)
      if (this.#ids[at] !== 0 && ((this.#order[at] - before) | 0) < 0) places.push(at);
    return places.sort((a, b) => (this.#order[a] - this.#order[b]) | 0).map((at) => this.#ids[at]);
  }

  #grow(): void {
    const size = Math.max(FIRST_SIZE, (this.#mask + 1) * 2);
    const [ids, states, flags, order, messages] = [this.#ids, this.#states, this.#flags, this.#order, this.#messages];
    this.#mask = size - 1;
    this.#ids = new Uint16Array(size);
    this.#states = new Uint8Array(size);
    this.#flags = new Uint8Array(size);
    this.#order = new Uint32Array(size);
    this.#messages = new Array(size).fill(undefined);
    const persisted = this.#persisted;
    this.#persisted = persisted === undefined ? undefined : new Array(size).fill(undefined);
    for (let from = 0; from < ids.length; from++) {
      if (ids[from] === 0) continue;
      const at = ids[from] & this.#mask;
      this.#ids[at] = ids[from];
      this.#states[at] = states[from];
      this.#flags[at] = flags[from];
      this.#order[at] = order[from];
      this.#messages[at] = messages[from];
      if (this.#persisted !== undefined) this.#persisted[at] = persisted?.[from];
    }
  }

  // ------------------------------------------------------------------------------------------------------ acknowledgements

  /**
   * Process an acknowledgement, or a refusal by PUBREC: if its packet id is in this state, the flow ends and the id is free.
   * @returns the state in which the id was
   */
  acknowledged(id: number, awaited: number): number {
    const state = this.acknowledgeable(id);
    if (state !== awaited) return state;
    this.resending?.delete(id);
    const persisted = this.persistedOf(id);
    const isRetained = this.isRetained(id);
    if (this.#outlet.measured !== undefined) measuredAck(this.#outlet, id, awaited === Awaiting.puback ? 1 : 2);
    this.#countAcked(this.free(id), awaited === Awaiting.puback ? 1 : 2, isRetained);
    if (persisted !== undefined) this.#outlet.log?.finish(persisted);
    return state;
  }

  /** Note that the client has received a QoS 2 message (PUBREC): from now on only PUBREL is sent again. */
  received(id: number): void {
    const { log } = this.#outlet;
    this.resending?.delete(id);
    const persisted = this.persistedOf(id);
    if (this.#outlet.measured !== undefined) measuredAck(this.#outlet, id, 2);
    this.#countAcked(this.release(id), 2, this.isRetained(id));
    if (persisted !== undefined) log?.finish(persisted);
    log?.flowChanged(); // PUBREL must wait: a PUBLISH resent after PUBREL would be delivered a second time
  }

  /** Note that a QoS 2 flow is complete (PUBCOMP). */
  completed(id: number): void {
    this.free(id);
    this.#outlet.log?.flowTouched();
  }

  /** @param retain flag of the delivery */
  #countAcked(message: Message | undefined, qos: QoS, retain: boolean): void {
    const { ports, client, followers } = this.#outlet;
    const { metrics, events } = ports;
    metrics.counts[Metric.messagesAcked]++;
    if (followers !== undefined && message !== undefined) reached(this.#outlet, message, 'acknowledged');
    if (message !== undefined && !message.isSystem && events.heard['message.acked'])
      events.emit('message.acked', { message, client, qos, retain });
  }

  // ---------------------------------------------------------------------------------------------------------- sending again

  /**
   * Send unacknowledged packets again, in order and with DUP [MQTT-4.4.0-1, MQTT-3.3.1-1].
   * @param before a `mark`: only packets sent before it
   */
  resend(before?: number): void {
    const { writer, ports } = this.#outlet;
    if (writer === undefined) return;
    for (const id of this.inOrder(before)) {
      if (this.stateOf(id) === Awaiting.pubcomp) {
        sendPubrel(writer, ports.metrics, id);
      } else if (this.persistedOf(id)?.isDone) {
        this.free(id); // the message was refused after its packet id was assigned
      } else {
        (this.resending ??= new Set()).add(id);
      }
    }
    this.resendSome();
  }

  /** Continue sending messages again, as far as the stream and the Receive Maximum of this connection allow [MQTT-3.3.4-9]. */
  resendSome(): void {
    const { resending } = this;
    const outlet = this.#outlet;
    const { writer } = outlet;
    if (resending === undefined || writer === undefined) return;
    for (const id of resending) {
      if (writer.isBlocked || this.count - resending.size >= outlet.agreement.window) return;
      resending.delete(id);
      const message = this.messageOf(id);
      if (message === undefined) continue;
      this.#resendOne(writer, id, message);
      if (outlet.writer !== writer) return; // a hook or a listener closed it
    }
    this.resending = undefined;
  }

  #resendOne(writer: Writer<Session>, id: number, original: Message): void {
    const outlet = this.#outlet;
    const { ports } = outlet;
    const flags = this.flagsOf(id);
    const qos = (flags & 3) as QoS;
    const retain = (flags & 4) !== 0;
    const subscriptionIds = this.subscriptionIdsOf(id);
    const persisted = this.persistedOf(id);
    if (!this.wasSent(id)) {
      outlet.send(writer, original, qos, retain, subscriptionIds, persisted, id);
      return;
    }
    let message = original;
    if (this.isRestored(id) && ports.hooks.deliver.length > 0 && !message.isSystem) {
      const changed = askDeliverHooks(outlet, message); // the store has the message without the changes of the hooks
      if (typeof changed === 'string') {
        this.#giveUpSent(writer, message, changed, persisted, id, qos);
        return;
      }
      if (outlet.writer !== writer) return; // a hook closed it
      this.replaceMessage(id, changed, qos, retain);
      message = changed;
    }
    const { expiryInterval } = message;
    const agedSec = secondsInBroker(message, ports.time.nowMs);
    const expirySec = expiryInterval < 0 ? -1 : Math.max(0, expiryInterval - agedSec); // [MQTT-4.3.3-7]
    const packet = outlet.encode(message, qos, retain, true, id, subscriptionIds, expirySec);
    if (packet === undefined) {
      this.#giveUpSent(writer, message, 'too_large', persisted, id, qos);
      return;
    }
    persisted?.sent();
    writer.sendMessage({ buf: packet, start: 0, end: packet.length, packetIdAt: 0 }, -1);
    countSent(ports.metrics, qos);
  }

  /**
   * Drop a message that was sent on an earlier connection and cannot be sent again. The client may have received it with QoS 2, and would
   * take another message with this packet id for the same one, so the flow continues with PUBREL: the id is free after PUBCOMP.
   */
  #giveUpSent(
    writer: Writer<Session>,
    message: Message,
    reason: DropReason,
    persisted: PersistedMessage | undefined,
    id: number,
    qos: QoS
  ): void {
    const outlet = this.#outlet;
    outlet.measured?.delete(id);
    if (qos === 1) {
      this.free(id);
      outlet.drop(message, reason, persisted);
      return;
    }
    const { log, ports } = outlet;
    this.release(id);
    log?.flowChanged(); // PUBREL must wait; see `received`
    const ticket = log === undefined ? 0 : ports.ledger?.ticket;
    outlet.drop(message, reason, persisted);
    const release = () => {
      const isNeeded = outlet.writer === writer && this.acknowledgeable(id) === Awaiting.pubcomp;
      if (isNeeded) sendPubrel(writer, ports.metrics, id); // on the next connection, `resend` sends it
    };
    if (ports.ledger !== undefined && ticket !== 0) afterCommit(ports.ledger, release, ticket);
    else release();
  }

  // -------------------------------------------------------------------------------------------------- incoming packet ids

  /** Number of incoming packet ids that wait for PUBREL. */
  get awaitingCount(): number {
    return this.awaitingRel?.size ?? 0;
  }

  /** Number of them that count for the Receive Maximum of this connection [MQTT-3.3.4-7]. */
  get unreleased(): number {
    return this.awaitingCount - (this.#carriedOver?.size ?? 0);
  }

  awaitsRel(id: number): boolean {
    return this.awaitingRel?.has(id) === true;
  }

  /** Note that a packet id waits for PUBREL. @param nowMs time at which it was received; undefined if it does not expire */
  awaitRel(id: number, nowMs: number | undefined): void {
    (this.awaitingRel ??= new IdSet()).add(id);
    if (nowMs === undefined) return;
    (this.#since ??= new Map()).delete(id);
    this.#since.set(id, nowMs);
  }

  /** Count a packet id for this connection, because the client has repeated its PUBLISH. */
  repeatedRel(id: number): void {
    this.#carriedOver?.delete(id);
  }

  /** Free a packet id. @returns false if it was not in use */
  forgetRel(id: number): boolean {
    this.#carriedOver?.delete(id);
    return this.awaitingRel?.delete(id) ?? false;
  }

  /**
   * Free the packet ids that have waited for too long.
   * @param onExpired called for each of them
   * @returns monotonic milliseconds at which the next one expires
   */
  expireRel(nowMs: number, timeoutMs: number, onExpired: () => void): number {
    for (const [id, sinceMs] of this.#since ?? []) {
      if (sinceMs + timeoutMs > nowMs) return sinceMs + timeoutMs;
      this.#since?.delete(id);
      if (this.forgetRel(id)) onExpired();
    }
    return Infinity;
  }

  /** Use the packet ids from the store. @param nowMs start of the time of those that expire, unless it is known */
  restoreRel(ids: IdSet, nowMs: number | undefined): void {
    this.awaitingRel = ids.size > 0 ? ids : undefined;
    if (nowMs === undefined) return;
    for (const id of ids.values()) if (this.#since?.has(id) !== true) (this.#since ??= new Map()).set(id, nowMs);
  }

  // ------------------------------------------------------------------------------------------------------------------ hooks

  /** Note that a hook decides on the message of a packet id. */
  hold(id: number): void {
    (this.undecided ??= new Set()).add(id);
  }

  /** True if a hook decides on the message of a packet id. */
  get isDeciding(): boolean {
    return this.undecided !== undefined && this.undecided.size > 0;
  }

  decided(id: number): void {
    this.undecided?.delete(id);
  }

  /** Wait until this promise resolves, because hooks decide on a message. */
  wait(decision: Promise<void>): void {
    const done = decision.then(() => {
      if (this.deciding === done) this.deciding = undefined;
    });
    this.deciding = done;
  }

  // ------------------------------------------------------------------------------------------------- connected, away, ended

  /** Called when the client has connected. */
  attach(): void {
    this.resending = undefined;
    this.#carriedOver = this.awaitingCount > 0 ? new IdSet(this.awaitingRel) : undefined;
  }

  /** Called when the connection has closed. */
  detach(): void {
    this.#carriedOver = undefined;
  }

  /**
   * Remove the packet ids from memory, because the store has them or the session has ended.
   * @returns true if nothing is left: no hook decides on a message, and no time of an expiry is noted
   */
  unload(): boolean {
    this.awaitingRel = undefined;
    this.resending = this.#persisted = this.#subscriptionIds = undefined;
    this.unacknowledged = this.#mask = this.#last = 0;
    this.count = this.#reserved; // a hook may have ended the session
    this.bytes = this.#reservedBytes;
    this.#ids = NO_IDS;
    this.#states = this.#flags = NO_BYTES;
    this.#order = NO_ORDER;
    this.#messages = NO_MESSAGES;
    return this.deciding === undefined && (this.#since?.size ?? 0) === 0;
  }
}

function sendPubrel(writer: Writer<Session>, { counts }: Metrics, id: number): void {
  writer.acknowledge(shortAck(PUBREL, id));
  counts[Metric.packetsPubrelSent]++;
}
