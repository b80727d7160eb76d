import type { Packet, PublishPacket, QoS } from '../../lib/packets/types.ts';
import type { Random } from '../fuzz/random.ts';
import { Peer, type PeerOptions } from './peer.ts';
import type { Sent, World } from './world.ts';

/** Seconds. Messages with an expiry interval expire when the clock is advanced, and only then. */
export const SHORT_SEC = 600;
/** Delay of delayed messages and delayed wills, in seconds. */
export const DELAY_SEC = 3_000;

interface Kind {
  /** The relative frequency of this kind. */
  readonly weight: number;
  readonly topic: string;
  readonly qos: QoS;
  readonly isRetained?: boolean;
  readonly expires?: boolean;
  readonly isDelayed?: boolean;
}

/** Publishes as fast as the broker acknowledges, each topic at one QoS, and sends unacknowledged messages again if its session was kept. */
export class Publisher extends Peer {
  readonly #kinds: readonly Kind[];
  readonly #window: number;
  /** In the order in which they were sent. */
  readonly #outgoing = new Map<number, { sent: Sent; packet: PublishPacket; isReleased: boolean }>();
  #lastId = 0;

  constructor(world: World, random: Random, options: PeerOptions, number: number) {
    super(world, random, options);
    this.#window = random.pick([1, 5, 20, 50]);
    const expires = options.version === 5;
    this.#kinds = [
      { weight: 8, topic: `t/${number}/q1/a`, qos: 1 },
      { weight: 4, topic: `t/${number}/q1/b`, qos: 1 },
      { weight: 8, topic: `t/${number}/q2/a`, qos: 2 },
      { weight: 4, topic: `t/${number}/q2/b`, qos: 2 },
      { weight: 4, topic: `s/${number}/q1`, qos: 1 },
      { weight: 4, topic: `s/${number}/q2`, qos: 2 },
      { weight: 2, topic: `x/${number}`, qos: 1, expires },
      { weight: 1, topic: `r/${number}/a`, qos: 1, isRetained: true },
      { weight: 1, topic: `r/${number}/b`, qos: 2, isRetained: true },
      { weight: 1, topic: `r/${number}/x`, qos: 1, isRetained: true, expires },
      { weight: 1, topic: `d/${number}`, qos: 2, isDelayed: true }
    ];
  }

  get isSettled(): boolean {
    return this.isOnline && this.#outgoing.size === 0;
  }

  protected override welcomed(sessionPresent: boolean): void {
    if (sessionPresent) this.#sendAgain();
    this.#fill();
    if (this.world.isLoading && this.random.once(3)) {
      this.later(this.random.below(300), () => {
        if (!this.world.isLoading) return;
        // Half of them reconnect while the broker still has the previous connection.
        if (this.random.once(2)) this.leave(false);
        this.connect();
      });
    }
  }

  #sendAgain(): void {
    for (const [messageId, { sent, packet, isReleased }] of this.#outgoing) {
      if (isReleased) this.send({ cmd: 'pubrel', messageId, reasonCode: 0 });
      else {
        sent.isRepeated = true;
        sent.aheadMs = this.world.aheadMs;
        this.send({ ...packet, dup: true });
      }
    }
  }

  /** Starts or continues the load. */
  fill(): void {
    if (this.isOnline) this.#fill();
  }

  #fill(): void {
    const { world } = this;
    while (world.isLoading && world.budget > 0 && this.#outgoing.size < this.#window) {
      world.budget--;
      this.#publish();
    }
  }

  #publish(): void {
    const { world, random } = this;
    const kind = this.#choose();
    const { topic, qos, isRetained = false } = kind;
    const isClear = isRetained && random.once(5);
    const expiryMs = kind.expires ? SHORT_SEC * 1000 : Infinity;
    const sent = world.send(topic, qos, { expiryMs, isClear });
    sent.isForbidden = sent.isWaiting = kind.isDelayed === true;
    do this.#lastId = (this.#lastId % 65_535) + 1;
    while (this.#outgoing.has(this.#lastId));
    const size = random.once(50) ? random.below(50_000) : random.below(100);
    const packet: PublishPacket = {
      cmd: 'publish',
      topic: kind.isDelayed ? `$delayed/${DELAY_SEC}/${topic}` : topic,
      payload: isClear ? Buffer.alloc(0) : Buffer.from(`${sent.seq} `.padEnd(size, '.')),
      qos,
      dup: false,
      retain: isRetained,
      messageId: this.#lastId,
      properties: kind.expires ? { messageExpiryInterval: SHORT_SEC } : {}
    };
    this.#outgoing.set(this.#lastId, { sent, packet, isReleased: false });
    this.send(packet);
  }

  #choose(): Kind {
    const kinds = this.#kinds;
    let left = this.random.below(kinds.reduce((sum, { weight }) => sum + weight, 0));
    return kinds.find(({ weight }) => (left -= weight) < 0) as Kind;
  }

  protected override received(packet: Packet): void {
    const { world } = this;
    if (packet.cmd !== 'puback' && packet.cmd !== 'pubrec' && packet.cmd !== 'pubcomp') return;
    const { messageId, reasonCode } = packet;
    const out = this.#outgoing.get(messageId);
    if (out === undefined) {
      world.fault(`${this.name}: ${packet.cmd} for packet id ${messageId}, which is not in use`);
      return;
    }
    // PUBCOMP may report an unknown packet id if the previous PUBCOMP did not arrive.
    if (reasonCode >= 0x80 && packet.cmd !== 'pubcomp') {
      world.fault(`${this.name}: ${packet.cmd} 0x${reasonCode.toString(16)} for ${out.sent.topic} ${out.sent.seq}`);
      this.#outgoing.delete(messageId);
      return;
    }
    if (packet.cmd !== 'pubcomp') world.acknowledged(out.sent);
    if (packet.cmd === 'pubrec') {
      if (!out.isReleased) {
        out.isReleased = true;
        // PUBREL packets are sent again in the order of the PUBREC packets.
        this.#outgoing.delete(messageId);
        this.#outgoing.set(messageId, out);
      }
      this.send({ cmd: 'pubrel', messageId, reasonCode: 0 });
    } else {
      this.#outgoing.delete(messageId);
      this.#fill();
    }
  }

  protected override lost(): void {}

  /** Discard the state: unacknowledged messages may have arrived or not; there will be no answer. */
  protected override forgotten(): void {
    this.#outgoing.clear();
  }
}
