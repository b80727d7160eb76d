import type { Packet } from '../../lib/packets/types.ts';
import { Peer } from './peer.ts';

const FILTER = 'r/#';

/** A client that reads the retained messages once. */
export class RetainedReader extends Peer {
  readonly #found = new Map<string, number>();
  #onSuback: (() => void) | undefined;

  /** Connects, reads all retained messages, reports errors in them, and disconnects. */
  async look(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onSuback = resolve;
      this.connect();
    });
    await this.settled();
    await this.settled(); // each call acknowledges the messages received before it
    this.leave(true);
    this.wantsOnline = false;
    for (const topic of this.world.topics.keys()) if (topic.startsWith('r/')) this.#check(topic);
  }

  /** The retained message must be the last acknowledged one, or one that was sent after it. */
  #check(topic: string): void {
    const { world } = this;
    const log = world.topics.get(topic) ?? [];
    const from = log.findLastIndex(({ ackedAt }) => ackedAt < Infinity);
    const possible = log.slice(Math.max(from, 0));
    const found = this.#found.get(topic);
    const mayBeMissing = from < 0 || possible.some((sent) => sent.isClear || world.isExpired(sent));
    if (
      found === undefined
        ? mayBeMissing
        : possible.some((sent) => sent.seq === found && !sent.isClear && !world.isExpired(sent))
    )
      return;
    const expected = possible.map(({ seq, isClear }) => (isClear ? `${seq} (none)` : seq)).join(', ');
    world.fault(`retained ${topic}: ${found ?? 'none'}, not ${expected}`);
  }

  protected override welcomed(): void {
    const subscriptions = [
      { topic: FILTER, qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const
    ];
    this.send({ cmd: 'subscribe', messageId: 1, subscriptions: [...subscriptions] });
  }

  protected override received(packet: Packet): void {
    if (packet.cmd === 'suback') this.#onSuback?.();
    if (packet.cmd !== 'publish') return;
    const { topic, payload, messageId = 0, retain } = packet;
    if (!retain) this.world.fault(`retained ${topic}: without the flag`);
    this.#found.set(topic, Number.parseInt(payload.toString('latin1', 0, 12), 10));
    this.send({ cmd: 'puback', messageId, reasonCode: 0 });
  }

  protected override lost(): void {}
  protected override forgotten(): void {}
}
