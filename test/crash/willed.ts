import type { Packet, Will } from '../../lib/packets/types.ts';
import type { Random } from '../fuzz/random.ts';
import { Peer, type PeerOptions } from './peer.ts';
import type { Sent, World } from './world.ts';

/** A client with a will, a different one for each connection. */
export class Willed extends Peer {
  readonly #delaySec: number;
  #will: Sent | undefined;
  #before: Sent | undefined;
  #isPolite = false;
  /** Time by which the clock was ahead when the connection ended. */
  #lostAheadMs = 0;

  constructor(world: World, random: Random, options: PeerOptions, delaySec: number) {
    super(world, random, options);
    this.#delaySec = delaySec;
  }

  protected override will(): Will {
    this.#before = this.#will;
    const topic = `w/${this.name}`;
    this.#will = this.world.send(topic, 2);
    return {
      topic,
      payload: Buffer.from(`${this.#will.seq} `),
      qos: 2,
      retain: false,
      properties: this.#delaySec === 0 ? {} : { willDelayInterval: this.#delaySec }
    };
  }

  protected override welcomed(): void {
    // The client reconnected in time.
    if (this.#delaySec > 0 && this.#before !== undefined && this.#lostAheadMs === this.world.aheadMs)
      this.#before.isForbidden = true;
    if (!this.world.isLoading) return;
    this.later(this.random.below(400), () => {
      if (!this.world.isLoading || this.random.once(3)) return;
      this.wantsOnline = false;
      this.leave(this.random.once(2));
      this.later(this.random.below(200), () => this.comeBack());
    });
  }

  override leave(isPolite: boolean): void {
    this.#isPolite = isPolite;
    super.leave(isPolite);
    this.#isPolite = false;
  }

  /** A will without a delay is published now, or when the broker runs again. */
  protected override lost(wasOnline: boolean): void {
    this.#lostAheadMs = this.world.aheadMs;
    if (wasOnline && !this.#isPolite && this.#delaySec === 0 && this.#will !== undefined)
      this.world.acknowledged(this.#will);
  }

  protected override received(_packet: Packet): void {}
  protected override forgotten(): void {}
}
