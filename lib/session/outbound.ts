import { Metric } from '../metrics.ts';
import type { Frame, Message } from '../packets/message.ts';
import type { ProtocolVersion, QoS } from '../packets/types.ts';
import type { Zone } from '../zone.ts';
import type { TopicAliases } from './aliases.ts';
import type { Connection } from './connection.ts';
import type { SessionHost } from './host.ts';
import { Awaiting, Inflight } from './inflight.ts';
import { markedCopy } from './output.ts';
import { Backlog } from './queue.ts';
import { handOutQos, type RetainedFeed, RetainedFeeds } from './retained-feed.ts';
import type { Session } from './session.ts';
import type { Subscriber, Subscription } from './subscription.ts';

/** The largest packet there is; what a client takes that names no Maximum Packet Size. */
export const LARGEST_PACKET = 268_435_460;
/** Messages of a backlog or of retained feeds sent in one go, before others have their turn. */
const PUMP_AT_ONCE = 500;

/**
 * The side of a session that faces its client: what is delivered goes out at once, in flight, or into the backlog, and follows as
 * window and stream allow.
 */
export abstract class Outbound implements Subscriber {
  readonly host: SessionHost;
  zoneSettings: Zone;
  /** Where the chart is: `idle`, `connected`, `disconnected` or `gone`. */
  state: 'idle' | 'connected' | 'disconnected' | 'gone' = 'idle';
  link: Connection | undefined = undefined;
  clientId = '';
  protocolVersion: ProtocolVersion = 4;
  sessionExpiry = 0;
  mountpoint = '';
  maxFrame = LARGEST_PACKET;
  aliases: TopicAliases | undefined = undefined;
  inflight: Inflight | undefined = undefined;
  window = 0;
  backlog: Backlog | undefined = undefined;
  feeds: RetainedFeeds | undefined = undefined;
  /** Ids in flight that this connection has not sent again yet, for want of send quota [MQTT-4.9.0-2]. */
  resending: Set<number> | undefined = undefined;
  dropped = 0;
  rawLayout: 0 | 4 | 5 = 0;
  #isPumpedLater = false;

  constructor(host: SessionHost, zone: Zone) {
    this.host = host;
    this.zoneSettings = zone;
  }

  /** The session itself: what hooks, events and the host are given. */
  abstract get client(): Session;

  get isOnline(): boolean {
    return this.state === 'connected';
  }

  get hasRoom(): boolean {
    return (
      this.link !== undefined &&
      this.state === 'connected' &&
      !this.link.isBlocked &&
      (this.inflight?.count ?? 0) < this.window
    );
  }

  get isPersistent(): boolean {
    return this.sessionExpiry > 0;
  }

  /** May runs of QoS 0 frames pass untouched, in and out? */
  updateLane(): void {
    const { link } = this;
    const isPlain = link !== undefined && !link.isClosed && this.state === 'connected' && this.mountpoint === '';
    const layout = this.protocolVersion === 5 ? 5 : 4;
    if (link !== undefined) link.laneLayout = isPlain ? layout : 0;
    const isClear =
      isPlain &&
      !link.isBlocked &&
      this.aliases === undefined &&
      this.feeds === undefined &&
      (this.backlog?.zeroes ?? 0) === 0;
    this.rawLayout = isClear ? layout : 0;
  }

  deliverRun(run: Frame, bytes: number, count: number): void {
    const link = this.link as Connection;
    const { counts } = this.host.metrics;
    link.push(run, -1, bytes);
    link.sentPackets += count;
    link.sentMessages += count;
    counts[Metric.packetsSent] += count;
    counts[Metric.packetsPublishSent] += count;
    counts[Metric.messagesSent] += count;
    counts[Metric.messagesQos0Sent] += count;
    counts[Metric.messagesDelivered] += count;
  }

  deliver(message: Message, subscription: Subscription): boolean {
    const { host, zoneSettings } = this;
    if (this.state === 'gone') return false; // its subscriptions are being taken out
    if ((subscription.nl || zoneSettings.ignoreLoopDeliver) && message.clientId === this.clientId) {
      const { own } = subscription;
      if (own !== undefined && !zoneSettings.ignoreLoopDeliver) return this.deliver(message, own);
      this.#drop(message, 'no_local'); // [MQTT-3.8.3-3]
      return false;
    }
    if (host.hooks.deliver.length > 0 && !message.isSystem && !host.mayDeliver(message, this.client)) {
      this.#drop(message, 'hook');
      return false;
    }
    const { qos } = message;
    const granted = subscription.qos;
    const atQos = zoneSettings.upgradeQos ? (qos > granted ? qos : granted) : qos < granted ? qos : granted; // [MQTT-3.8.4-8]
    if (this.feeds !== undefined) this.#feedAhead(message.topic);
    return this.#offer(message, atQos, subscription.rap && message.retain, subscription.ids); // [MQTT-3.3.1-12, -13]
  }

  #offer(message: Message, qos: QoS, retain: boolean, ids: readonly number[] | undefined): boolean {
    const { link, backlog } = this;
    if (link === undefined || link.isBlocked || link.isClosed) return this.#enqueue(message, qos, retain, ids);
    if (qos === 0) {
      if (backlog !== undefined && backlog.zeroes > 0) return this.#enqueue(message, qos, retain, ids);
    } else if (
      (this.inflight !== undefined && this.inflight.count >= this.window) ||
      (backlog !== undefined && backlog.length > backlog.zeroes)
    ) {
      return this.#enqueue(message, qos, retain, ids);
    }
    return this.#transmit(link, message, qos, retain, ids);
  }

  #enqueue(message: Message, qos: QoS, retain: boolean, ids: readonly number[] | undefined): boolean {
    const { zoneSettings, host } = this;
    if (qos === 0 && ((this.link === undefined && !zoneSettings.mqueueStoreQos0) || host.isShedding)) {
      this.#drop(message, 'qos0_msg');
      return false;
    }
    message.store();
    this.backlog ??= new Backlog(zoneSettings, (dropped, reason) => this.#drop(dropped, reason));
    if (qos === 0) this.rawLayout = 0;
    return this.backlog.push(message, qos, retain, ids);
  }

  /** Send one message now. @returns false if it was dropped: expired, or too large for this client */
  #transmit(
    link: Connection,
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined
  ): boolean {
    const { host } = this;
    let expirySec = -1;
    let isAged = false;
    if (message.expiryInterval >= 0) {
      const seconds = message.secondsHere(host.nowMs);
      // not specified: an interval of 0 means those that are there now
      if (host.nowMs >= message.expiresAtMs && host.nowMs > message.takenAtMs) {
        this.#drop(message, 'expired'); // [MQTT-3.3.2-5]
        return false;
      }
      expirySec = message.expiryInterval - seconds; // [MQTT-3.3.2-6]
      isAged = seconds > 0;
    }
    const layout = this.protocolVersion === 5 ? 5 : 4;
    const first = 0x30 | (qos << 1) | (retain ? 1 : 0);
    const isPlain =
      this.mountpoint === '' &&
      this.aliases === undefined &&
      (layout === 4 ||
        (ids === undefined && (expirySec < 0 || (!isAged && message.layout === 5 && qos > 0 === message.idAt > 0))));
    let frame: Frame;
    let mark = -1;
    if (isPlain) {
      frame = message.form(layout, qos > 0);
      if (frame.end - frame.start > this.maxFrame) {
        this.#drop(message, 'too_large'); // [MQTT-3.1.2-24, -25]
        return false;
      }
      mark = (first << 16) | (qos > 0 ? this.#takeId(message, qos, retain, ids) : 0);
    } else {
      const id = qos > 0 ? this.#takeId(message, qos, retain, ids) : 0;
      const packet = this.#encodeOwn(message, layout, qos, retain, false, id, ids, expirySec);
      if (packet === undefined) {
        if (qos > 0) this.inflight?.free(id);
        this.#drop(message, 'too_large');
        return false;
      }
      frame = { buf: packet, start: 0, end: packet.length, idAt: 0 };
    }
    link.push(frame, mark, frame.end - frame.start);
    this.#count(link, qos);
    if (host.isTapped) host.tapSent(link, markedCopy(frame, mark));
    if (host.events.heard['message.delivered'] && !message.isSystem)
      host.events.emit('message.delivered', { message, client: this.client, qos, retain });
    return true;
  }

  #count(link: Connection, qos: QoS): void {
    const { counts } = this.host.metrics;
    link.sentPackets++;
    link.sentMessages++;
    counts[Metric.packetsSent]++;
    counts[Metric.packetsPublishSent]++;
    counts[Metric.messagesSent]++;
    counts[QOS_SENT[qos]]++;
    counts[Metric.messagesDelivered]++;
  }

  #takeId(message: Message, qos: QoS, retain: boolean, ids: readonly number[] | undefined): number {
    this.inflight ??= new Inflight();
    let kept: Message | undefined;
    if (this.isPersistent || this.zoneSettings.retryInterval > 0 || this.host.events.heard['message.acked']) {
      message.store();
      kept = message;
    }
    return this.inflight.take(
      qos === 1 ? Awaiting.puback : Awaiting.pubrec,
      kept,
      qos | (retain ? 4 : 0),
      kept === undefined ? undefined : ids
    );
  }

  /** A packet that nobody else can share: mount point, alias, subscription identifiers, time left. */
  #encodeOwn(
    message: Message,
    layout: 4 | 5,
    qos: QoS,
    retain: boolean,
    dup: boolean,
    messageId: number,
    ids: readonly number[] | undefined,
    expirySec: number
  ): Buffer | undefined {
    const topic = this.mountpoint === '' ? undefined : unmounted(message.topic, this.mountpoint);
    const plain = { qos, retain, dup, messageId, ids, expirySec, alias: 0, topic };
    if (this.aliases !== undefined && layout === 5) {
      const choice = this.aliases.choose(message.topic);
      if (choice !== 0) {
        const alias = Math.abs(choice);
        const packet = message.encode(layout, { ...plain, alias, topic: choice > 0 ? '' : topic });
        if (packet.length <= this.maxFrame) return packet;
        if (choice < 0) this.aliases.forget(message.topic); // without it three bytes fewer
      }
    }
    const packet = message.encode(layout, plain);
    return packet.length <= this.maxFrame ? packet : undefined;
  }

  /** Send what waits, as far as the window and the stream allow. */
  pump(): void {
    const { host, backlog } = this;
    const link = this.link;
    if (link === undefined || this.state !== 'connected' || this.#isPumpedLater) return;
    if (this.resending !== undefined) this.#resendSome(link);
    if (backlog === undefined && this.feeds === undefined) return;
    let left = PUMP_AT_ONCE;
    if (backlog !== undefined) {
      while (backlog.length > 0 && this.link === link && !link.isBlocked && left > 0) {
        const queued = backlog.shift((this.inflight?.count ?? 0) < this.window);
        if (queued === undefined) break;
        left--;
        this.#transmit(link, queued.message, queued.qos, queued.retain, queued.ids);
      }
    }
    while (this.feeds !== undefined && this.link === link && !link.isBlocked && left > 0) {
      const { feeds } = this;
      if (feeds.mayLoad) left -= 1 + (this.#load(feeds) >> 5);
      else {
        const feed = feeds.choose(this.#hasQuota(backlog));
        if (feed === undefined || (backlog !== undefined && backlog.zeroes > 0)) break;
        left--;
        const message = feeds.next(feed);
        if (message !== undefined) this.#handOut(feed, message);
      }
      if (feeds.isDone) this.feeds = undefined;
    }
    if (this.link !== link) return; // a listener ended it
    if (left <= 0) {
      this.#isPumpedLater = true;
      host.pumpLater(this.client);
    } else if (this.rawLayout === 0 && this.feeds === undefined) this.updateLane();
  }

  /** The turn has come for what `pump` left over. */
  pumpOn(): void {
    this.#isPumpedLater = false;
    this.pump();
  }

  /** Hand out retained messages for new subscriptions, as there is room. */
  feed(feeds: readonly RetainedFeed[]): void {
    if (this.state !== 'connected' || feeds.length === 0) return;
    this.feeds ??= new RetainedFeeds();
    for (const feed of feeds) this.feeds.ask(feed);
    this.rawLayout = 0;
    this.pump();
  }

  /** What waits in the backlog goes before retained messages. */
  #hasQuota(backlog: Backlog | undefined): boolean {
    return (this.inflight?.count ?? 0) < this.window && (backlog?.length ?? 0) === 0;
  }

  #load(feeds: RetainedFeeds): number {
    return feeds.load(
      (subscription) => this.client.subscriptions.get(subscription.filter) === subscription,
      this.zoneSettings.upgradeQos
    );
  }

  #handOut(feed: RetainedFeed, message: Message): void {
    const { subscription } = feed;
    if ((subscription.nl || this.zoneSettings.ignoreLoopDeliver) && message.clientId === this.clientId) {
      this.#drop(message, 'no_local'); // [MQTT-3.8.3-3]
      return;
    }
    if (this.host.hooks.deliver.length > 0 && !message.isSystem && !this.host.mayDeliver(message, this.client)) {
      this.#drop(message, 'hook');
      return;
    }
    const qos = handOutQos(message, subscription, this.zoneSettings.upgradeQos);
    this.#offer(message, qos, true, subscription.ids); // [MQTT-3.3.1-12]
  }

  /** A newer message must not overtake the retained one of its topic. */
  #feedAhead(topic: string): void {
    const entry = this.host.retained.get(topic);
    if (entry === undefined) return;
    for (const feed of this.feeds as RetainedFeeds) {
      const message = feed.takeAhead(entry);
      if (message !== undefined) this.#handOut(feed, message);
    }
  }

  /** The connection goes before all retained messages are out: a session that outlives it gets the rest on the next one. */
  keepFeeds(): void {
    if (this.isPersistent) this.feeds?.unload();
    else this.feeds = undefined;
    if (this.feeds?.isDone) this.feeds = undefined;
  }

  /**
   * Send again what was not acknowledged, in order, with DUP [MQTT-4.4.0-1, MQTT-3.3.1-1].
   * @param before a mark of `inflight`: only what was sent until then
   */
  resend(before?: number): void {
    const { link, inflight, host } = this;
    if (link === undefined || inflight === undefined) return;
    for (const id of inflight.inOrder(before)) {
      if (inflight.stateOf(id) === Awaiting.pubcomp) {
        link.acknowledge(((0x62 << 24) | (2 << 16) | id) >>> 0);
        host.metrics.counts[Metric.packetsPubrelSent]++;
      } else {
        (this.resending ??= new Set()).add(id);
      }
    }
    if (this.resending !== undefined) this.#resendSome(link);
  }

  /** The next of those to be sent again, as far as the stream and the Receive Maximum of this connection allow [MQTT-3.3.4-9]. */
  #resendSome(link: Connection): void {
    const { inflight, host, resending } = this;
    if (inflight === undefined || resending === undefined) return;
    const layout = this.protocolVersion === 5 ? 5 : 4;
    for (const id of resending) {
      if (link.isBlocked || inflight.count - resending.size >= this.window) return;
      resending.delete(id);
      const message = inflight.messageOf(id);
      if (message === undefined) continue;
      const flags = inflight.flagsOf(id);
      const qos = (flags & 3) as QoS;
      const left =
        message.expiryInterval < 0 ? -1 : Math.max(0, message.expiryInterval - message.secondsHere(host.nowMs)); // [MQTT-4.3.3-7]
      const packet = this.#encodeOwn(
        message,
        layout,
        qos,
        (flags & 4) !== 0,
        true,
        id,
        inflight.subscriptionIdsOf(id),
        left
      );
      if (packet === undefined) {
        inflight.free(id);
        this.#drop(message, 'too_large');
        continue;
      }
      link.push({ buf: packet, start: 0, end: packet.length, idAt: 0 }, -1, packet.length);
      this.#count(link, qos);
      if (host.isTapped) host.tapSent(link, packet);
    }
    this.resending = undefined;
  }

  #drop(message: Message, reason: Parameters<SessionHost['dropped']>[1]): void {
    this.dropped++;
    this.host.dropped(message, reason, this.client);
  }
}

const QOS_SENT = [Metric.messagesQos0Sent, Metric.messagesQos1Sent, Metric.messagesQos2Sent];

/** A topic as the client knows it: without the mount point. */
function unmounted(topic: string, mountpoint: string): string {
  return topic.startsWith(mountpoint) ? topic.slice(mountpoint.length) : topic;
}
