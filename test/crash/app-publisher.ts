import type { QoS } from '../../lib/packets/types.ts';
import type { Random } from '../fuzz/random.ts';
import type { BrokerProcess } from './broker-process.ts';
import type { World } from './world.ts';

const NUMBER = 4;
const KINDS: readonly { readonly topic: string; readonly qos: QoS; readonly retain?: boolean }[] = [
  { topic: `t/${NUMBER}/q1/a`, qos: 1 },
  { topic: `t/${NUMBER}/q2/b`, qos: 2 },
  { topic: `s/${NUMBER}/q2`, qos: 2 },
  { topic: `r/${NUMBER}/a`, qos: 1, retain: true }
];

/** The app that has the broker in its process: it publishes with `broker.publish`, and does not repeat messages after a crash. */
export class AppPublisher {
  readonly #world: World;
  readonly #random: Random;
  readonly #window: number;
  #broker: BrokerProcess | undefined;
  #outgoing = 0;

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
    this.#window = random.pick([1, 5, 20]);
  }

  get isSettled(): boolean {
    return this.#outgoing === 0;
  }

  /** Starts or continues the load. */
  fill(broker: BrokerProcess): void {
    if (this.#broker !== broker) this.#outgoing = 0;
    this.#broker = broker;
    const world = this.#world;
    while (world.isLoading && world.budget > 0 && this.#outgoing < this.#window) {
      world.budget--;
      this.#publish(broker);
    }
  }

  #publish(broker: BrokerProcess): void {
    const { topic, qos, retain = false } = this.#random.pick(KINDS);
    const isClear = retain && this.#random.once(5);
    const sent = this.#world.send(topic, qos, { isClear });
    const payload = isClear ? '' : `${sent.seq} `.padEnd(this.#random.below(100), '.');
    this.#outgoing++;
    broker.publish({ topic, payload, qos, retain }, () => {
      this.#world.acknowledged(sent);
      if (this.#broker !== broker) return;
      this.#outgoing--;
      this.fill(broker);
    });
  }

  /** Called when the broker has ended with all unanswered messages. */
  lost(): void {
    this.#broker = undefined;
    this.#outgoing = 0;
  }
}
