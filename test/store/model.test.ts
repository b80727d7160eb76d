import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Client } from '../../lib/client/client.ts';
import type { ReceivedMessage } from '../../lib/client/options.ts';
import { ClientSession } from '../../lib/client/session.ts';
import type { QoS } from '../../lib/packets/types.ts';
import { Random } from '../fuzz/random.ts';
import { Lives, PERSISTENT, turns } from './support.ts';

const SEEDS = Number(process.env.SEEDS ?? 30);
const STEPS = Number(process.env.STEPS ?? 150);

/** A client with a memory of its own, that comes and goes. */
class Peer {
  readonly clientId: string;
  readonly session = new ClientSession();
  client: Client | undefined;
  hasBeen = false;

  constructor(clientId: string) {
    this.clientId = clientId;
  }

  get isHere(): boolean {
    return this.client?.isConnected === true;
  }

  async come(lives: Lives, options: object = {}): Promise<boolean> {
    try {
      const client = await lives.connect({
        clientId: this.clientId,
        ...PERSISTENT,
        session: this.session,
        ...options
      });
      if (this.hasBeen) assert.equal(client.connack.sessionPresent, true, `the session of ${this.clientId} is lost`);
      this.hasBeen = true;
      this.client = client;
      return true;
    } catch (error) {
      if ((error as Error).name === 'AssertionError') throw error;
      return false; // it was cut meanwhile
    }
  }
}

interface Sent {
  readonly topic: string;
  readonly publisher: string;
  readonly n: number;
  readonly qos: QoS;
}

/** Drives random clients against a broker that dies at random moments, and compares what comes with what was promised. */
class Model {
  readonly random: Random;
  readonly lives: Lives;
  readonly publishers = [new Peer('p1'), new Peer('p2')];
  readonly subscribers = ([0, 1, 2] as const).map((qos) => ({
    qos,
    peer: new Peer(`s${qos}`),
    got: [] as ReceivedMessage[],
    /** Those of them that were read from an earlier connection when a later one was there: the network has held them up. */
    late: new Set<ReceivedMessage>(),
    /** Acknowledges messages; it takes its time where it is slow. */
    unacknowledged: [] as (() => void)[],
    isSlow: false
  }));
  readonly sent = new Map<string, Sent>();
  /** What may be lost: the app has not been told that the broker has it. */
  readonly unpromised = new Set<string>();
  #n = 0;

  constructor(seed: number) {
    const random = new Random(seed);
    this.random = random;
    // hooks that sometimes take their time
    const publish = () => (random.once(2) ? undefined : turns(random.below(8)).then(() => undefined));
    const outputHighWaterMark = random.once(2) ? 1 : undefined;
    this.lives = new Lives({ outputHighWaterMark, ...(random.once(3) ? { hooks: { publish } } : {}) });
  }

  async run(steps: number): Promise<void> {
    const { lives, random } = this;
    const slow = random.below(6);
    lives.store.turnsBefore = () => random.below(slow + 1);
    lives.store.turnsAfter = () => random.below(slow + 1);
    lives.store.turnsToRead = () => random.below(slow + 1);
    await lives.begin();
    for (const { peer, qos } of this.subscribers) {
      await peer.come(lives);
      await (peer.client as Client).subscribe([{ topic: 't/#', qos }]);
      await (peer.client as Client).disconnect();
    }
    for (const peer of this.publishers) await peer.come(lives);
    for (let step = 0; step < steps; step++) await this.#step();
    await this.#drain();
    this.#check();
    await lives[Symbol.asyncDispose]();
  }

  async #step(): Promise<void> {
    const { random, lives } = this;
    switch (random.below(13)) {
      case 0:
      case 1:
      case 2:
      case 3:
        for (let left = 1 + random.below(8); left > 0; left--) this.#publish();
        return;
      case 4:
      case 5:
        return turns(random.below(8));
      case 6:
        await lives.kit.clock.advance(random.below(120));
        return;
      case 7:
      case 8:
        return this.#toggle(random.pick(this.subscribers));
      case 9: {
        const peer = random.pick(this.publishers);
        if (peer.isHere) this.#leave(peer);
        else await this.#within(peer.come(lives));
        return;
      }
      case 10: {
        const { unacknowledged } = random.pick(this.subscribers);
        for (const ack of unacknowledged.splice(0, random.below(6))) ack();
        return;
      }
      case 11: {
        const stream = lives.streams.at(-1 - random.below(5));
        if (stream === undefined) return;
        if (random.once(2)) lives.kit.link(stream).slowReader();
        else lives.kit.link(stream).heal();
        return;
      }
      default:
        if (random.once(3)) await lives.kill({ isPendingKept: random.once(2) });
    }
  }

  #publish(): void {
    const { random } = this;
    const peer = random.pick(this.publishers);
    const isApp = random.once(4);
    if (!peer.isHere && !isApp) return;
    const n = ++this.#n;
    const qos = random.below(3) as QoS;
    const topic = `t/${random.below(2)}`;
    const publisher = isApp ? 'app' : peer.clientId;
    const name = `${publisher}:${n}`;
    this.sent.set(name, { topic, publisher, n, qos });
    if (isApp) {
      this.unpromised.add(name);
      const { life } = this.lives;
      this.lives.kit.broker.publish(topic, name, { qos }).then(
        () => this.lives.life === life && this.unpromised.delete(name),
        () => undefined
      );
      return;
    }
    (peer.client as Client).publish(topic, name, { qos, retain: random.once(20) }).catch(() => undefined);
  }

  #leave(peer: Peer): void {
    const client = peer.client as Client;
    if (this.random.once(2)) void client.disconnect();
    else client.destroy();
    peer.client = undefined;
  }

  async #toggle(subscriber: (typeof this.subscribers)[number]): Promise<void> {
    const { peer } = subscriber;
    if (peer.isHere && this.random.once(2)) this.#leave(peer);
    else await this.#within(this.#arrive(subscriber)); // perhaps it takes over
  }

  async #arrive(subscriber: (typeof this.subscribers)[number], isLast = false): Promise<void> {
    const { random } = this;
    const { peer } = subscriber;
    subscriber.unacknowledged = [];
    if (subscriber.isSlow) peer.client?.destroy(); // what it gets now would be neither acknowledged nor forgotten
    await turns(1);
    subscriber.isSlow = !isLast && random.once(2);
    const { isSlow } = subscriber;
    // ids that were handed over and not acknowledged: the client has died with them
    for (const [id, isAcknowledged] of peer.session.incoming) if (!isAcknowledged) peer.session.incoming.delete(id);
    const receiveMaximum = isLast ? 65_535 : 1 + random.below(10);
    if (!(await peer.come(this.lives, { receiveMaximum, acknowledge: 'manual' }))) return;
    const client = peer.client as Client;
    client.on('message', (message) => {
      const ack = () => {
        if (!client.isConnected) return;
        if (peer.client !== client) subscriber.late.add(message);
        subscriber.got.push(message);
        message.ack();
      };
      if (isSlow) subscriber.unacknowledged.push(ack);
      else ack();
    });
  }

  /** It may never be answered: the broker dies first. */
  async #within(coming: Promise<unknown>): Promise<void> {
    await Promise.race([coming, turns(this.random.below(30))]);
    coming.catch(() => undefined);
    await turns(1);
    if (this.random.once(4)) return this.lives.kill({ isPendingKept: this.random.once(2) });
    await coming;
  }

  async #drain(): Promise<void> {
    const { lives } = this;
    for (const stream of lives.streams) lives.kit.link(stream).heal();
    await lives.kit.clock.advance(100);
    for (const subscriber of this.subscribers) await this.#arrive(subscriber, true);
    for (const peer of this.publishers) if (!peer.isHere) await peer.come(lives);
    for (let left = 5; left > 0; left--) await lives.kit.clock.advance(1000);
    for (const { session, clientId } of this.publishers)
      assert.equal(session.outgoing.size, 0, `${clientId} has no answer to ${[...session.outgoing.keys()]}`);
  }

  #check(): void {
    for (const { peer, qos: granted, got, late } of this.subscribers) {
      const times = new Map<string, number>();
      const last = new Map<string, number>();
      for (const received of got) {
        const { payload, qos } = received;
        const name = `${payload}`;
        const message = this.sent.get(name);
        assert.ok(message, `${peer.clientId} got ${name}, which nobody sent`);
        // its flow had ended on the connection that took over: no client would have read it from the old one any more
        if (late.has(received) && times.has(name)) continue;
        const count = (times.get(name) ?? 0) + 1;
        times.set(name, count);
        if (late.has(received)) continue;
        if (count > 1 || (qos === 0 && message.qos === 1)) continue; // the first was lost, perhaps, and this is a repeat
        if (message.publisher === 'app' && this.lives.options.hooks !== undefined) continue; // its calls do not wait for each other
        const flow = `${message.publisher} ${message.topic} ${message.qos} ${qos}`;
        assert.ok((last.get(flow) ?? 0) < message.n, `${peer.clientId} got ${name} behind number ${last.get(flow)}`);
        last.set(flow, message.n);
      }
      for (const [name, { qos }] of this.sent) {
        const atQos = Math.min(qos, granted);
        const count = times.get(name) ?? 0;
        if (atQos > 0 && !this.unpromised.has(name))
          assert.ok(count > 0, `${peer.clientId} has not got ${name} (QoS ${qos})`);
        if (atQos === 2 || (atQos === 0 && qos === 2))
          assert.ok(count <= 1, `${peer.clientId} got ${name} ${count} times`);
      }
    }
  }
}

describe('A broker that dies at random moments', () => {
  const first = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  console.log(`# random crashes: SEED=${first}`);
  for (
    let seed = first;
    seed < first + (process.env.SEED === undefined ? SEEDS : Number(process.env.SEEDS ?? 1));
    seed++
  )
    it(`loses nothing that it has acknowledged, and repeats nothing of QoS 2 (seed ${seed})`, () =>
      new Model(seed).run(STEPS));
});
