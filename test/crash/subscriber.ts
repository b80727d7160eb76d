import type { AckPacket, Packet, PublishPacket, QoS } from '../../lib/packets/types.ts';
import type { Random } from '../fuzz/random.ts';
import { Peer, type PeerOptions } from './peer.ts';
import { type Receiver, reaches, type Sent, type World } from './world.ts';

/** The period in which a filter was subscribed: possibly from `from` to `to`, certainly from `sureFrom` to `sureTo`. */
interface Stretch {
  readonly from: number;
  sureFrom: number;
  sureTo: number;
  to: number;
}

interface Wanted {
  readonly filter: string;
  readonly qos: QoS;
  readonly id: number;
  readonly stretches: Stretch[];
  isWanted: boolean;
}

/** The received messages by topic, of one subscriber or of a share group. */
export class Inbox implements Receiver {
  readonly name: string;
  readonly seen = new Map<string, Set<number>>();
  readonly last = new Map<string, number>();
  readonly pending = new Set<Sent>();
  readonly members: Subscriber[] = [];

  constructor(world: World, name: string) {
    this.name = name;
    world.receivers.push(this);
  }

  has({ topic, seq }: Sent): boolean {
    return this.seen.get(topic)?.has(seq) ?? false;
  }

  note({ topic, seq }: Sent): void {
    let seen = this.seen.get(topic);
    if (seen === undefined) this.seen.set(topic, (seen = new Set()));
    seen.add(seq);
  }

  accepted(sent: Sent): void {
    if (!this.has(sent) && this.members.some((member) => member.wasSubscribed(sent))) this.pending.add(sent);
  }

  missing(): string[] {
    return [...this.pending].map(
      ({ topic, seq, sentAt, ackedAt }) =>
        `${this.name} lacks ${topic} ${seq}, sent at ${sentAt}, acknowledged at ${ackedAt}`
    );
  }
}

/** A subscriber with a persistent session that connects, disconnects and checks every message it receives. */
export class Subscriber extends Peer {
  readonly #filters: Wanted[];
  readonly #inbox: Inbox;
  readonly #isShared: boolean;
  /** QoS 2 packet ids that wait for PUBREL. */
  readonly #received = new Set<number>();
  readonly #asked = new Map<number, { wanted: Wanted; stretch: Stretch; isEnd: boolean }>();
  /** Acknowledgements that are sent later, in order. */
  #acks: AckPacket[] = [];
  #isHolding = false;
  readonly #isSlow: boolean;
  readonly #isRestless: boolean;
  /** In ticks. */
  #offlineSince = 0;
  /** Messages that expired before they could be sent. */
  readonly #expired = new Set<Sent>();
  #lastId = 0;
  /** Messages received on this connection. */
  #came = new Set<Sent>();

  constructor(
    world: World,
    random: Random,
    options: PeerOptions,
    filters: readonly (readonly [filter: string, qos: QoS])[],
    given: { readonly inbox?: Inbox; readonly isRestless?: boolean } = {}
  ) {
    super(world, random, options);
    this.#isShared = given.inbox !== undefined;
    this.#inbox = given.inbox ?? new Inbox(world, options.clientId);
    this.#inbox.members.push(this);
    this.#isSlow = random.once(3);
    this.#isRestless = given.isRestless ?? true;
    this.#filters = filters.map(([filter, qos], at) => ({ filter, qos, id: at + 1, stretches: [], isWanted: true }));
  }

  /** True if every request has been answered. */
  get isSettled(): boolean {
    return this.isOnline && this.#asked.size === 0;
  }

  /** Tell whether it was certainly subscribed while the broker processed this message. */
  wasSubscribed(sent: Sent): boolean {
    return this.#filters.some(({ filter, stretches }) => {
      const stretch = stretches.at(-1);
      return (
        stretch !== undefined &&
        stretch.sureFrom < sent.sentAt &&
        stretch.sureTo === Infinity &&
        reaches(filter, sent.topic)
      );
    });
  }

  protected override welcomed(): void {
    this.#came = new Set();
    for (const wanted of this.#filters) {
      const stretch = wanted.stretches.at(-1);
      const isSure = stretch !== undefined && stretch.sureFrom < Infinity && stretch.sureTo === Infinity;
      const isOut = stretch === undefined || stretch.to < Infinity;
      if (wanted.isWanted && !isSure) this.#subscribe(wanted);
      else if (!wanted.isWanted && !isOut) this.#unsubscribe(wanted);
    }
    if (this.world.isLoading) this.#plan();
  }

  /** Plans an action while messages are published. */
  busy(): void {
    if (this.isOnline) this.#plan();
  }

  /** Plans an action while messages are published, unless this subscriber only waits. */
  #plan(): void {
    if (!this.#isRestless) return;
    this.later(this.random.below(300), () => {
      if (!this.world.isLoading) return;
      const { random } = this;
      switch (random.below(6)) {
        case 0:
        case 1:
          this.#away(random.once(2));
          return;
        case 2: {
          const wanted = random.pick(this.#filters);
          if (!this.isOnline || this.#asked.size > 0) break;
          wanted.isWanted = !wanted.isWanted;
          if (wanted.isWanted) this.#subscribe(wanted);
          else this.#unsubscribe(wanted);
          break;
        }
        case 3:
          if (random.once(3) && !this.#isShared) this.wantsCleanStart = true;
          if (this.isOnline) this.connect(); // takes over its own session
          return;
      }
      this.#plan();
    });
  }

  #away(isPolite: boolean): void {
    this.wantsOnline = false;
    this.leave(isPolite);
    this.later(this.random.below(400), () => this.comeBack());
  }

  #subscribe(wanted: Wanted): void {
    const { filter: topic, qos, id, stretches } = wanted;
    // A subscription that was not answered may exist or not.
    let stretch = stretches.at(-1);
    if (stretch === undefined || stretch.to < Infinity || stretch.sureTo < Infinity) {
      const from = stretch !== undefined && stretch.to === Infinity ? stretch.from : this.world.tick();
      stretch = { from, sureFrom: Infinity, sureTo: Infinity, to: Infinity };
      stretches.push(stretch);
    }
    const messageId = this.#nextId();
    this.#asked.set(messageId, { wanted, stretch, isEnd: false });
    const properties = this.options.version === 5 ? { subscriptionIdentifier: [id] } : {};
    const subscriptions = [{ topic, qos, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const];
    this.send({ cmd: 'subscribe', messageId, subscriptions: [...subscriptions], properties });
  }

  #unsubscribe(wanted: Wanted): void {
    const stretch = wanted.stretches.at(-1) as Stretch;
    stretch.sureTo = Math.min(stretch.sureTo, this.world.tick());
    const messageId = this.#nextId();
    this.#asked.set(messageId, { wanted, stretch, isEnd: true });
    this.send({ cmd: 'unsubscribe', messageId, unsubscriptions: [wanted.filter] });
  }

  #nextId(): number {
    return (this.#lastId = (this.#lastId % 65_535) + 1);
  }

  protected override received(packet: Packet): void {
    switch (packet.cmd) {
      case 'publish':
        this.#take(packet);
        break;
      case 'pubrel':
        this.#received.delete(packet.messageId);
        this.#acknowledge({ cmd: 'pubcomp', messageId: packet.messageId, reasonCode: 0 });
        break;
      case 'suback':
      case 'unsuback': {
        const asked = this.#asked.get(packet.messageId);
        this.#asked.delete(packet.messageId);
        if (asked === undefined || packet.granted.some((code) => code >= 0x80)) {
          this.world.fault(`${this.name}: ${JSON.stringify(packet)}`);
          return;
        }
        const { stretch, isEnd, wanted } = asked;
        if (isEnd) {
          // No message that is sent from now on may arrive.
          for (const one of wanted.stretches) one.to = Math.min(one.to, this.world.tick());
        } else stretch.sureFrom = Math.min(stretch.sureFrom, this.world.tick());
        break;
      }
    }
  }

  #take(packet: PublishPacket): void {
    const { topic, payload, qos, messageId = 0 } = packet;
    if (qos === 2) {
      const isNew = !this.#received.has(messageId);
      this.#received.add(messageId);
      if (isNew) this.#check(packet);
      this.#acknowledge({ cmd: 'pubrec', messageId, reasonCode: 0 });
    } else {
      this.#check(packet);
      if (qos === 1) this.#acknowledge({ cmd: 'puback', messageId, reasonCode: 0 });
    }
    if (payload.length === 0) this.world.fault(`${this.name}: ${topic} has no payload`);
  }

  #acknowledge(packet: AckPacket): void {
    if (!this.#isSlow) {
      this.send(packet);
      return;
    }
    this.#acks.push(packet);
    if (this.#isHolding) return;
    this.#isHolding = true;
    this.later(this.random.below(6), () => {
      this.#isHolding = false;
      for (const ack of this.#acks.splice(0)) this.send(ack);
    });
  }

  #check(packet: PublishPacket): void {
    const { world } = this;
    const { topic, payload, qos, dup, properties } = packet;
    const seq = Number.parseInt(payload.toString('latin1', 0, 12), 10);
    const sent = world.topics.get(topic)?.[seq];
    const what = `${this.name}: ${topic} ${seq}, QoS ${qos}${dup ? ', DUP' : ''}, id ${packet.messageId}`;
    if (sent === undefined) {
      world.fault(`${what}: no client sent it`);
      return;
    }
    const filter = this.#filters.find((one) => reaches(one.filter, topic));
    if (
      filter === undefined ||
      !filter.stretches.some(({ from, to }) => from < Math.min(sent.ackedAt, world.tick()) && to > sent.sentAt)
    ) {
      world.fault(
        `${what}: not subscribed when it was sent (${sent.sentAt} to ${sent.ackedAt}), but ${JSON.stringify(filter)}`
      );
      return;
    }
    const atQos = Math.min(filter.qos, sent.qos);
    if (qos !== atQos) world.fault(`${what}: expected QoS ${atQos}`);
    if (this.options.version === 5 && !properties?.subscriptionIdentifier?.includes(filter.id))
      world.fault(`${what}: the subscription identifier ${filter.id} is missing`);
    if (sent.isForbidden) world.fault(`${what}: it is not due, or was cancelled`);
    // Messages that were in flight before are sent again, expired or not [MQTT-4.3.3-7].
    if (this.#expired.has(sent) && !dup) world.fault(`${what}: it has expired`);
    const inbox = this.#inbox;
    inbox.pending.delete(sent);
    if (inbox.has(sent)) {
      if (qos === 2) world.fault(`${what}: delivered twice`);
      else if (!this.#isShared && this.#came.has(sent) && !sent.isRepeated)
        world.fault(`${what}: delivered twice on one connection`);
    } else {
      const last = inbox.last.get(topic) ?? -1;
      // A message that is sent again may arrive at a client that has subscribed in the meantime.
      const isLate = sent.isRepeated && !this.wasSubscribed(sent);
      if (seq < last && !isLate && !this.#isShared && !topic.startsWith('d/'))
        world.fault(`${what}: delivered after ${last}`);
      inbox.last.set(topic, seq);
      inbox.note(sent);
    }
    this.#came.add(sent);
  }

  protected override lost(): void {
    this.#offlineSince = this.world.tick();
    this.#acks = [];
    this.#isHolding = false;
    this.#asked.clear();
  }

  /** Called when the clock has been advanced: messages that expired while this client was offline must not arrive. */
  clockMoved(): void {
    for (const sent of this.#inbox.pending) {
      if (!this.world.isExpired(sent)) continue;
      this.#inbox.pending.delete(sent);
      if (sent.sentAt > this.#offlineSince) this.#expired.add(sent);
    }
  }

  protected override forgotten(): void {
    const nowAt = this.world.tick();
    for (const { stretches } of this.#filters)
      for (const stretch of stretches) {
        stretch.sureTo = Math.min(stretch.sureTo, nowAt);
        stretch.to = Math.min(stretch.to, nowAt);
      }
    this.#received.clear();
    if (!this.#isShared) this.#inbox.pending.clear();
  }
}
