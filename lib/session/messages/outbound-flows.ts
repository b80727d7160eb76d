// Deliver hooks are asked when a message is sent, not when it is queued. They and listeners may close the connection:
// code behind such a call compares `this.connection` with the one that it was given, and leaves the message to the
// next connection. The order in `send` is hooks, expiry, size, packet id, frame: a packet id is assigned when nothing
// can refuse the message but its encoded size, and is freed by `#giveUp`.
//
// Frames that need no changes for a client are shared by all receivers (`Message.form`); the first byte and the
// packet id are passed beside the frame (`mark`). `Delivery.pump` sends packets in flight again before it sends
// queued messages.

import { TopicAliases } from '../../connection/topic-aliases.ts';
import { Metric, type Metrics } from '../../events/metrics.ts';
import type { DropReason } from '../../events/reasons.ts';
import { PUBREL, shortAck } from '../../packets/acks.ts';
import { encodeMessage } from '../../packets/encode-message.ts';
import { detachFromPublisher, type Frame, type Message } from '../../packets/message.ts';
import { hasExpired, secondsInBroker } from '../../packets/message-expiry.ts';
import type { QoS } from '../../packets/types.ts';
import type { Subscriptions } from '../../routing/subscriptions.ts';
import { afterCommit } from '../../store/after-commit.ts';
import type { PersistedMessage } from '../../store/segment.ts';
import type { Agreement } from '../life/agreement.ts';
import type { SessionLog } from '../log/log.ts';
import type { DeliveryPorts, Outlet } from '../ports.ts';
import type { SessionClient } from '../session-client.ts';
import { askDeliverHooks, changedQosOf, type HookedReceiver } from './deliver-hooks.ts';
import { Awaiting, Inflight } from './inflight.ts';

/** More bytes than any message has. A small integer, like the sizes that it is compared with. */
const UNBOUNDED = 0x3fff_ffff;

/** The part of the delivery that `OutboundFlows` uses. */
export interface FlowOwner extends HookedReceiver {
  readonly subscriptions: Subscriptions;
  /** Queue a message. @returns false if it was dropped */
  enqueue(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): boolean;
  /** Drop a message. @param persisted the stored form of the message */
  drop(message: Message, reason: DropReason, persisted?: PersistedMessage): void;
}

/**
 * The outgoing messages of a session that are being sent or wait for an acknowledgement: packet ids, the Receive Maximum of the client,
 * topic aliases, and the packets that must be sent again on a new connection.
 */
export class OutboundFlows {
  readonly ports: DeliveryPorts;
  readonly client: SessionClient;
  readonly #owner: FlowOwner;
  /** The connection of the client; undefined while it is away. */
  connection: Outlet | undefined = undefined;
  /** The session in the store; undefined if it is only in memory. */
  log: SessionLog | undefined = undefined;
  inflight: Inflight | undefined = undefined;
  /** The agreement of the last connection. */
  agreement: Agreement;
  /** True if the session has ended: nothing is delivered to it. */
  isOver = false;
  /** Outgoing topic aliases; undefined if the client accepts none. */
  #aliases: TopicAliases | undefined = undefined;
  /** Packet ids in flight whose message this connection still has to send again, because the send quota is used up [MQTT-4.9.0-2]. */
  resending: Set<number> | undefined = undefined;

  constructor(ports: DeliveryPorts, client: SessionClient, owner: FlowOwner) {
    this.ports = ports;
    this.client = client;
    this.#owner = owner;
    this.agreement = client.agreement;
  }

  // ------------------------------------------------------------------------------------------------------------- connection

  /** Use this connection of a client that has connected, with the agreement in `client`. */
  attach(connection: Outlet): void {
    const { agreement } = this.client;
    const { topicAliases, zone } = agreement;
    this.connection = connection;
    this.agreement = agreement;
    this.#aliases = topicAliases > 0 ? new TopicAliases(topicAliases, zone.outboundAliasAfter) : undefined;
    this.resending = undefined;
  }

  detach(): void {
    this.connection = undefined;
    this.#aliases = undefined;
  }

  /** Persist the session from now on. */
  persistIn(log: SessionLog): void {
    this.log = log;
  }

  /** Note that the session ends. */
  end(): void {
    this.isOver = true;
  }

  /** Use these packet ids from the store; their messages follow (`Inflight.restoreMessage`). */
  restore(inflight: Inflight | undefined): void {
    this.inflight = inflight;
  }

  /** Remove everything from memory. */
  unload(): void {
    this.inflight = this.resending = undefined;
  }

  /** True if runs of QoS 0 frames need no changes for this client. */
  get isPlain(): boolean {
    return this.#aliases === undefined && this.client.mountpoint === '';
  }

  /** The topic of a topic alias that the broker has set. */
  topicOf(alias: number): string | undefined {
    return this.#aliases?.topicOf(alias);
  }

  /**
   * Maximum size of a QoS 1 or 2 message that may be sent now, in bytes; 0: none may be sent. A message larger than `maxInflightBytes` is
   * sent alone.
   */
  room(): number {
    const { inflight } = this;
    if (inflight === undefined) return UNBOUNDED;
    if (inflight.count >= this.agreement.window) return 0;
    const { maxInflightBytes } = this.agreement.zone;
    if (maxInflightBytes === 0 || inflight.bytes === 0) return UNBOUNDED;
    return Math.max(0, maxInflightBytes - inflight.bytes);
  }

  // ---------------------------------------------------------------------------------------------------------------- sending

  /** Send one message without waiting for a commit. @param id its packet id; 0 if none is assigned yet @returns false if it was dropped */
  send(
    connection: Outlet,
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined,
    id: number
  ): boolean {
    const { ports } = this;
    const { layout, maxFrame } = this.agreement;
    if (ports.hooks.deliver.length > 0 && !message.isSystem) {
      // asked when the message is sent and not when it is queued, so that permissions withdrawn in the meantime count
      const counted = qos > 0 && id === 0 ? (this.inflight ??= new Inflight()) : undefined;
      const changed = askDeliverHooks(ports, this.client, this.#owner, message, counted);
      if (typeof changed === 'string') return this.#giveUp(message, changed, persisted, id);
      if (this.connection !== connection) return this.#leaveToNextConnection(message, qos, retain, ids, persisted, id); // a hook closed it
      if (changed !== message) {
        qos = changedQosOf(changed, message, qos);
        if (changed.retain !== message.retain) retain = changed.retain;
        id = this.#replace(id, changed, qos, retain);
        message = changed;
      }
    }
    const hasPacketId = id > 0;
    let expirySec = -1;
    let isAged = false;
    if (message.expiryInterval >= 0) {
      const seconds = secondsInBroker(message, ports.time.nowMs);
      if (hasExpired(message, ports.time.nowMs)) return this.#giveUp(message, 'expired', persisted, id); // [MQTT-3.3.2-5]
      expirySec = message.expiryInterval - seconds; // [MQTT-3.3.2-6]
      isAged = seconds > 0;
    }
    const isPlain =
      this.#aliases === undefined &&
      this.client.mountpoint === '' &&
      (layout === 4 ||
        (ids === undefined &&
          (expirySec < 0 || (!isAged && message.layout === 5 && qos > 0 === message.packetIdAt > 0))));
    let frame: Frame;
    let mark = -1;
    if (isPlain) {
      frame = message.form(layout, qos > 0);
      if (frame.end - frame.start > maxFrame) return this.#giveUp(message, 'too_large', persisted, id); // [MQTT-3.1.2-24, -25]
      if (qos > 0 && id === 0) id = this.takeId(message, qos, retain, ids, persisted);
      mark = ((0x30 | (qos << 1) | (retain ? 1 : 0)) << 16) | id;
    } else {
      if (qos > 0 && id === 0) id = this.takeId(message, qos, retain, ids, persisted);
      const packet = this.#encode(message, qos, retain, false, id, ids, expirySec);
      if (packet === undefined) return this.#giveUp(message, 'too_large', persisted, id);
      frame = { buf: packet, start: 0, end: packet.length, packetIdAt: 0 };
    }
    if (hasPacketId) this.inflight?.markSent(id);
    connection.sendMessage(frame, mark);
    countSent(ports.metrics, qos);
    if (persisted !== undefined) {
      if (qos === 0) this.log?.finish(persisted);
      else persisted.sent();
    }
    if (ports.events.heard['message.delivered'] && !message.isSystem)
      ports.events.emit('message.delivered', { message, client: this.client, qos, retain });
    return true;
  }

  /** Drop a message that cannot be sent, and free its packet id. @returns false */
  #giveUp(message: Message, reason: DropReason, persisted: PersistedMessage | undefined, id: number): false {
    if (id > 0) this.inflight?.free(id);
    this.#owner.drop(message, reason, persisted);
    return false;
  }

  /**
   * Apply the change of a message by a deliver hook. Its packet id may be in the store, so it stays the same. @returns 0 if no id is needed
   * now
   */
  #replace(id: number, changed: Message, qos: QoS, retain: boolean): number {
    if (id === 0) return 0;
    if (qos > 0) this.inflight?.replaceMessage(id, changed, qos, retain);
    else this.inflight?.free(id);
    return qos > 0 ? id : 0;
  }

  /** Leave a message to the next connection, because a hook has closed this one. @returns false if it was dropped */
  #leaveToNextConnection(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined,
    id: number
  ): boolean {
    if (this.isOver) {
      this.#owner.drop(message, 'session_terminated', persisted);
      return false;
    }
    if (qos === 0) return persisted !== undefined || this.#owner.enqueue(message, qos, retain, ids, persisted);
    if (id === 0) id = this.takeId(message, qos, retain, ids, persisted);
    this.inflight?.markUnsent(id); // messages in flight are sent before queued ones
    return true;
  }

  /** Assign a packet id to a QoS 1 or 2 message. */
  takeId(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): number {
    this.inflight ??= new Inflight();
    if (persisted !== undefined) this.log?.flowTouched();
    let resendable: Message | undefined;
    if (this.client.isPersistent || this.#isNeededUntilAcked) {
      detachFromPublisher(message);
      resendable = message;
    }
    return this.inflight.take(
      qos === 1 ? Awaiting.puback : Awaiting.pubrec,
      resendable,
      qos | (retain ? 4 : 0),
      resendable === undefined ? undefined : ids,
      persisted
    );
  }

  /** True if messages in flight must be stored until they are acknowledged, even if the session ends with its connection. */
  get #isNeededUntilAcked(): boolean {
    const { retryInterval, maxInflightBytes } = this.agreement.zone;
    if (retryInterval > 0 || maxInflightBytes > 0 || this.ports.events.heard['message.acked']) return true;
    return this.#owner.subscriptions.shared > 0; // handed over to other members of the share group when the session ends
  }

  /**
   * Encode a PUBLISH that no other client can share: because of a mount point, a topic alias, subscription identifiers or the expiry.
   * @returns undefined if the packet is too large for the client
   */
  #encode(
    message: Message,
    qos: QoS,
    retain: boolean,
    dup: boolean,
    messageId: number,
    ids: readonly number[] | undefined,
    expirySec: number
  ): Buffer | undefined {
    const { layout, maxFrame } = this.agreement;
    const { mountpoint } = this.client;
    const topic = mountpoint === '' ? undefined : unmounted(message.topic, mountpoint);
    const plain = { qos, retain, dup, messageId, subscriptionIds: ids, expirySec, alias: 0, topic };
    const aliases = this.#aliases;
    if (aliases !== undefined && layout === 5) {
      const choice = aliases.choose(message.topic);
      if (choice !== 0) {
        const alias = Math.abs(choice);
        const packet = encodeMessage(message, layout, { ...plain, alias, topic: choice > 0 ? '' : topic });
        if (packet.length <= maxFrame) return packet;
        if (choice < 0) aliases.forget(message.topic); // without the alias the packet is three bytes shorter
      }
    }
    const packet = encodeMessage(message, layout, plain);
    return packet.length <= maxFrame ? packet : undefined;
  }

  // -------------------------------------------------------------------------------------------------------- acknowledgements

  /** The acknowledgement that the client may send for a packet id (`Awaiting`). */
  stateOf(id: number): number {
    return this.inflight === undefined ? Awaiting.nothing : this.inflight.acknowledgeable(id);
  }

  /**
   * Process an acknowledgement, or a refusal by PUBREC: if its packet id is in this state, the flow ends and the id is free.
   * @returns the state in which the id was
   */
  acknowledged(id: number, awaited: number): number {
    const { inflight } = this;
    if (inflight === undefined) return Awaiting.nothing;
    const state = inflight.acknowledgeable(id);
    if (state !== awaited) return state;
    this.resending?.delete(id);
    const persisted = inflight.persistedOf(id);
    const isRetained = inflight.isRetained(id);
    this.#countAcked(inflight.free(id), awaited === Awaiting.puback ? 1 : 2, isRetained);
    if (persisted !== undefined) this.log?.finish(persisted);
    return state;
  }

  /** Note that the client has received a QoS 2 message (PUBREC): from now on only PUBREL is sent again. */
  received(id: number): void {
    const inflight = this.inflight as Inflight;
    this.resending?.delete(id);
    const persisted = inflight.persistedOf(id);
    this.#countAcked(inflight.release(id), 2, inflight.isRetained(id));
    if (persisted !== undefined) this.log?.finish(persisted);
    this.log?.flowChanged(); // PUBREL must wait: a PUBLISH resent after PUBREL would be delivered a second time
  }

  /** Note that a QoS 2 flow is complete (PUBCOMP). */
  completed(id: number): void {
    this.inflight?.free(id);
    this.log?.flowTouched();
  }

  /** @param retain flag of the delivery */
  #countAcked(message: Message | undefined, qos: QoS, retain: boolean): void {
    const { metrics, events } = this.ports;
    metrics.counts[Metric.messagesAcked]++;
    if (message !== undefined && !message.isSystem && events.heard['message.acked'])
      events.emit('message.acked', { message, client: this.client, qos, retain });
  }

  // ----------------------------------------------------------------------------------------------------------- sending again

  /**
   * Send unacknowledged packets again, in order and with DUP [MQTT-4.4.0-1, MQTT-3.3.1-1].
   * @param before a `mark` of `inflight`: only packets sent before it
   */
  resend(before?: number): void {
    const { connection, inflight } = this;
    if (connection === undefined || inflight === undefined) return;
    for (const id of inflight.inOrder(before)) {
      if (inflight.stateOf(id) === Awaiting.pubcomp) {
        sendPubrel(connection, this.ports.metrics, id);
      } else if (inflight.persistedOf(id)?.isDone) {
        inflight.free(id); // the message was refused after its packet id was assigned
      } else {
        (this.resending ??= new Set()).add(id);
      }
    }
    this.resendSome();
  }

  /** Continue sending messages again, as far as the stream and the Receive Maximum of this connection allow [MQTT-3.3.4-9]. */
  resendSome(): void {
    const { inflight, connection } = this;
    const { resending } = this;
    if (inflight === undefined || resending === undefined || connection === undefined) return;
    for (const id of resending) {
      if (connection.isBlocked || inflight.count - resending.size >= this.agreement.window) return;
      resending.delete(id);
      const message = inflight.messageOf(id);
      if (message === undefined) continue;
      this.#resendOne(connection, inflight, id, message);
      if (this.connection !== connection) return; // a hook or a listener closed it
    }
    this.resending = undefined;
  }

  #resendOne(connection: Outlet, inflight: Inflight, id: number, original: Message): void {
    const { ports } = this;
    const qos = (inflight.flagsOf(id) & 3) as QoS;
    const retain = (inflight.flagsOf(id) & 4) !== 0;
    const ids = inflight.subscriptionIdsOf(id);
    const persisted = inflight.persistedOf(id);
    if (!inflight.wasSent(id)) {
      this.send(connection, original, qos, retain, ids, persisted, id);
      return;
    }
    let message = original;
    if (inflight.isRestored(id) && ports.hooks.deliver.length > 0 && !message.isSystem) {
      const changed = askDeliverHooks(ports, this.client, this.#owner, message); // the store has the message without the changes of the hooks
      if (typeof changed === 'string') {
        this.#giveUpSent(connection, message, changed, persisted, id, qos);
        return;
      }
      if (this.connection !== connection) return; // a hook closed it
      inflight.replaceMessage(id, changed, qos, retain);
      message = changed;
    }
    const { expiryInterval } = message;
    const agedSec = secondsInBroker(message, ports.time.nowMs);
    const expirySec = expiryInterval < 0 ? -1 : Math.max(0, expiryInterval - agedSec); // [MQTT-4.3.3-7]
    const packet = this.#encode(message, qos, retain, true, id, ids, expirySec);
    if (packet === undefined) {
      this.#giveUpSent(connection, message, 'too_large', persisted, id, qos);
      return;
    }
    persisted?.sent();
    connection.sendMessage({ buf: packet, start: 0, end: packet.length, packetIdAt: 0 }, -1);
    countSent(ports.metrics, qos);
  }

  /**
   * Drop a message that was sent on an earlier connection and cannot be sent again. The client may have received it with QoS 2, and would
   * take another message with this packet id for the same one, so the flow continues with PUBREL: the id is free after PUBCOMP.
   */
  #giveUpSent(
    connection: Outlet,
    message: Message,
    reason: DropReason,
    persisted: PersistedMessage | undefined,
    id: number,
    qos: QoS
  ): void {
    if (qos === 1) {
      this.#giveUp(message, reason, persisted, id);
      return;
    }
    const { ledger } = this.ports;
    this.inflight?.release(id);
    this.log?.flowChanged(); // PUBREL must wait; see `received`
    const ticket = this.log === undefined ? 0 : ledger?.ticket;
    this.#owner.drop(message, reason, persisted);
    const release = () => {
      const isNeeded = this.connection === connection && this.stateOf(id) === Awaiting.pubcomp;
      if (isNeeded) sendPubrel(connection, this.ports.metrics, id); // on the next connection, `resend` sends it
    };
    if (ledger !== undefined && ticket !== 0) afterCommit(ledger, release, ticket);
    else release();
  }
}

function sendPubrel(connection: Outlet, { counts }: Metrics, id: number): void {
  connection.acknowledge(shortAck(PUBREL, id));
  counts[Metric.packetsPubrelSent]++;
}

function countSent({ counts }: Metrics, qos: QoS): void {
  counts[Metric.packetsPublishSent]++;
  counts[Metric.messagesSent]++;
  counts[QOS_SENT[qos]]++;
  counts[Metric.messagesDelivered]++;
}

const QOS_SENT = [Metric.messagesQos0Sent, Metric.messagesQos1Sent, Metric.messagesQos2Sent];

/** Remove the mount point from a topic name. */
function unmounted(topic: string, mountpoint: string): string {
  return topic.startsWith(mountpoint) ? topic.slice(mountpoint.length) : topic;
}
