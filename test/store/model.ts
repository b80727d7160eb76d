import assert from 'node:assert/strict';
import type { Client } from '../../lib/client/client.ts';
import type { ClientOptions, ReceivedMessage } from '../../lib/client/options.ts';
import { ClientSession } from '../../lib/client/session.ts';
import { checkStore } from '../../lib/index.ts';
import type { QoS } from '../../lib/packets/types.ts';
import { Random } from '../fuzz/random.ts';
import { Lives, PERSISTENT, turns } from './support.ts';

/** A client with its own memory, which connects and disconnects. */
class Peer {
  readonly clientId: string;
  readonly session = new ClientSession();
  readonly #isOfVersion4: boolean;
  client: Client | undefined;
  hasBeen = false;

  constructor(clientId: string, isOfVersion4 = false) {
    this.clientId = clientId;
    this.#isOfVersion4 = isOfVersion4;
  }

  get isHere(): boolean {
    return this.client?.isConnected === true;
  }

  async come(lives: Lives, options: object = {}): Promise<boolean> {
    const ofVersion = this.#isOfVersion4
      ? { protocolVersion: 4, clean: false, sessionExpiry: undefined, receiveMaximum: undefined }
      : {};
    try {
      const client = await lives.connect({
        clientId: this.clientId,
        ...PERSISTENT,
        session: this.session,
        ...options,
        ...ofVersion
      } as ClientOptions);
      if (this.hasBeen) assert.equal(client.connack.sessionPresent, true, `the session of ${this.clientId} is lost`);
      this.hasBeen = true;
      this.client = client;
      return true;
    } catch (error) {
      if ((error as Error).name === 'AssertionError') throw error;
      return false; // the connection was cut in the meantime, or nothing could be written
    }
  }
}

/**
 * The answer to the sender of a message; undefined if there is none and will be none, because the process crashed or the connection ended.
 */
type Answer = 'yes' | 'no' | undefined;

interface Sent {
  readonly topic: string;
  readonly publisher: string;
  readonly n: number;
  readonly qos: QoS;
  readonly isRemoval?: boolean;
  answer: Answer;
}

const RETAINED_TOPICS = ['r/0', 'r/1', 'r/2', 'r/3'];
const TABLE_KEYS = ['k0', 'k1', 'k2'];

/**
 * Drives random clients and an app against a broker that crashes at random moments, and whose store may also fail at random moments;
 * compares the messages received, the retained messages and the entries of a table with what was promised.
 */
export class Model {
  readonly random: Random;
  readonly lives: Lives;
  readonly publishers: readonly Peer[];
  readonly subscribers = ([0, 1, 2] as const).map((qos) => ({
    qos,
    peer: new Peer(`s${qos}`),
    got: [] as ReceivedMessage[],
    /** Answers that were read from an earlier connection after a later one existed, because the network had delayed them. */
    late: new Set<ReceivedMessage>(),
    /** Acknowledges messages, with a delay if the client is slow. */
    unacknowledged: [] as (() => void)[],
    isSlow: false
  }));
  readonly sent = new Map<string, Sent>();
  /** Topics with a retained message in progress: the app waits for one before it publishes the next. */
  readonly #setting = new Set<string>();
  /** True if a commit has failed and none has succeeded since. */
  #isDown = false;
  readonly #errors: string[] = [];
  readonly #fails: boolean;
  #n = 0;

  /** @param fails whether the store fails as well */
  constructor(seed: number, { fails = false } = {}) {
    const random = new Random(seed);
    this.random = random;
    this.#fails = fails;
    this.publishers = [new Peer('p1', fails && random.once(3)), new Peer('p2')];
    // Hooks that sometimes answer late.
    const publish = () => (random.once(2) ? undefined : turns(random.below(8)).then(() => undefined));
    this.lives = new Lives({
      delayedPublish: true,
      outputHighWaterMark: random.once(2) ? 1 : undefined,
      ...(random.once(3) ? { hooks: { publish } } : {}),
      ...(random.once(6) ? { mqueuePriorities: { 't/1': 5 } } : {}),
      ...(random.once(6) ? { maxInflight: 1 } : {}),
      ...(random.once(4) ? { retryInterval: '300ms' } : {})
    });
  }

  async run(steps: number): Promise<void> {
    const { lives, random } = this;
    const slow = random.below(6);
    lives.store.turnsBefore = () => random.below(slow + 1);
    lives.store.turnsAfter = () => random.below(slow + 1);
    lives.store.turnsToRead = () => random.below(slow + 1);
    await lives.begin();
    this.#hear();
    for (const { peer, qos } of this.subscribers) {
      await peer.come(lives);
      await (peer.client as Client).subscribe([{ topic: 't/#', qos }]);
      await (peer.client as Client).disconnect();
    }
    for (const peer of this.publishers) await peer.come(lives);
    const seldom = random.pick([20, 60]);
    const fault = () => (random.once(seldom) ? random.pick(['rejects', 'applies', 'refuses'] as const) : undefined);
    if (this.#fails) lives.store.fault = fault;
    for (let step = 0; step < steps; step++) await this.#step();
    lives.store.fault = () => undefined;
    await this.#drain();
    this.#check();
    await this.#checkState('before the last death');
    await this.#kill(true);
    await this.#checkState('after the last death');
    await lives.kit.clock.advance('1s');
    await lives.kit.broker.stop();
    assert.deepEqual((await checkStore(lives.store)).findings, []);
    assert.deepEqual(this.#errors, []);
    await lives[Symbol.asyncDispose]();
  }

  async #step(): Promise<void> {
    const { random, lives } = this;
    switch (random.below(16)) {
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
        await lives.kit.clock.advance(random.below(random.once(4) ? 1_500 : 120));
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
      case 12:
        return this.#retain(random.pick(RETAINED_TOPICS));
      case 13:
        return this.#put(random.pick(TABLE_KEYS));
      case 14: {
        const qos = (1 + random.below(2)) as QoS;
        const name = this.#name({ topic: 't/delayed', publisher: 'delayed', qos });
        this.#note(name, lives.kit.broker.publish('$delayed/1/t/delayed', name, { qos }));
        return;
      }
      default:
        if (random.once(3)) await this.#kill(random.once(2));
    }
  }

  /** Errors of the broker: none except those of the store. */
  #hear(): void {
    const { broker } = this.lives.kit;
    this.#isDown = false;
    broker.on('store.failed', () => {
      this.#isDown = true;
    });
    broker.on('store.recovered', () => {
      this.#isDown = false;
    });
    broker.on('error', ({ error, during }) => {
      const { code, message } = error as Error & { code?: string };
      if (!this.#fails || (code !== 'STORE_FAILED' && message !== 'no space left'))
        this.#errors.push(`${during}: ${message}`);
    });
  }

  async #kill(isPendingKept: boolean): Promise<void> {
    const { lives } = this;
    // The failed commit may have been stored. If the process continues, its changes are reverted, which has not happened here yet.
    if (this.#isDown || lives.store.isBroken)
      for (const sent of this.sent.values()) if (sent.answer === 'no') sent.answer = undefined;
    this.#setting.clear();
    const { fault } = lives.store;
    lives.store.fault = () => undefined; // a broker does not start if it cannot write
    await lives.kill({ isPendingKept });
    lives.store.fault = fault;
    this.#hear();
  }

  #name(sent: Omit<Sent, 'n' | 'answer'>): string {
    const n = ++this.#n;
    const name = `${sent.publisher}:${n}`;
    this.sent.set(name, { ...sent, n, answer: undefined });
    return name;
  }

  /** Records an answer if it belongs to the current process. */
  #note(name: string, answered: Promise<unknown>): Promise<void> {
    const { lives } = this;
    const { life } = lives;
    const sent = this.sent.get(name) as Sent;
    const note = (answer: Answer) => {
      if (lives.life === life) sent.answer = answer;
    };
    return answered.then(
      () => note('yes'),
      ({ code, reasonCode }) => note(code === 'STORE_FAILED' || reasonCode === 0x97 ? 'no' : undefined)
    );
  }

  #publish(): void {
    const { random } = this;
    const peer = random.pick(this.publishers);
    const isApp = random.once(4);
    if (!peer.isHere && !isApp) return;
    const qos = random.below(3) as QoS;
    const topic = `t/${random.below(2)}`;
    const name = this.#name({ topic, publisher: isApp ? 'app' : peer.clientId, qos });
    if (isApp) void this.#note(name, this.lives.kit.broker.publish(topic, name, { qos }));
    else void this.#note(name, (peer.client as Client).publish(topic, name, { qos, retain: random.once(20) }));
  }

  #retain(topic: string): void {
    const { random, lives } = this;
    if (this.#setting.has(topic)) return;
    this.#setting.add(topic);
    const isRemoval = random.once(4);
    const qos = random.below(3) as QoS;
    const name = this.#name({ topic, publisher: 'retained', qos, isRemoval });
    const { life } = lives;
    const set = lives.kit.broker.publish(topic, isRemoval ? '' : name, { qos, retain: true });
    void this.#note(name, set).then(() => lives.life === life && this.#setting.delete(topic));
  }

  #put(key: string): void {
    const isRemoval = this.random.once(4);
    const name = this.#name({ topic: key, publisher: 'table', qos: 0, isRemoval });
    const table = this.lives.kit.broker.table('figures');
    void this.#note(name, isRemoval ? table.delete(key) : table.set(key, name));
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
    else await this.#within(this.#arrive(subscriber)); // this may take over the session
  }

  async #arrive(subscriber: (typeof this.subscribers)[number], isLast = false): Promise<void> {
    const { random } = this;
    const { peer } = subscriber;
    subscriber.unacknowledged = [];
    if (subscriber.isSlow) peer.client?.destroy(); // its messages would be neither acknowledged nor recorded from here on
    await turns(1);
    subscriber.isSlow = !isLast && random.once(2);
    const { isSlow } = subscriber;
    // Packet ids that were delivered and not acknowledged: the client has crashed with them.
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

  /** This may never be answered, because the broker crashes before. */
  async #within(coming: Promise<unknown>): Promise<void> {
    await Promise.race([coming, turns(this.random.below(30))]);
    coming.catch(() => undefined);
    await turns(1);
    if (this.random.once(4)) return this.#kill(this.random.once(2));
    await Promise.race([coming, this.lives.kit.clock.advance(200)]); // the answer may wait for the store
  }

  async #drain(): Promise<void> {
    const { lives } = this;
    for (const stream of lives.streams) lives.kit.link(stream).heal();
    await lives.kit.clock.advance(100);
    for (let left = 4; left > 0; left--) await lives.kit.clock.advance('10s'); // by then the broker has tried a failed store again
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
        assert.ok(message, `${peer.clientId} got ${name}, which no client sent`);
        // The flow of the message had ended on the connection that took over, so no client would have read it from the old one.
        if (late.has(received) && times.has(name)) continue;
        const count = (times.get(name) ?? 0) + 1;
        times.set(name, count);
        if (late.has(received)) continue;
        if (count > 1 || (qos === 0 && message.qos === 1)) continue; // the first one may have been lost, and this one is a repetition
        if (!this.#isInOrder(message)) continue;
        const flow = `${message.publisher} ${message.topic} ${message.qos} ${qos}`;
        assert.ok((last.get(flow) ?? 0) < message.n, `${peer.clientId} got ${name} after number ${last.get(flow)}`);
        last.set(flow, message.n);
      }
      for (const [name, message] of this.sent) {
        const { qos, topic } = message;
        if (!topic.startsWith('t/')) continue;
        const atQos = Math.min(qos, granted);
        const count = times.get(name) ?? 0;
        if (atQos > 0 && this.#isPromised(message))
          assert.ok(count > 0, `${peer.clientId} did not receive ${name} (QoS ${qos})`);
        // A delayed message is published, and written, when it is due: at QoS 0 it may be delivered again after a crash.
        if (atQos === 2 || (atQos === 0 && qos === 2 && message.publisher !== 'delayed'))
          assert.ok(count <= 1, `${peer.clientId} got ${name} ${count} times`);
      }
      const { inflight, mqueueLen } = this.lives.kit.broker.sessions.get(peer.clientId).counters();
      assert.equal(inflight + mqueueLen, 0, `messages are queued for ${peer.clientId}`);
    }
  }

  /** Calls of an app do not wait for each other's hooks, and a message that was refused and is sent again by a client arrives later. */
  #isInOrder({ publisher, answer }: Sent): boolean {
    if (publisher === 'delayed') return false;
    if (publisher === 'app') return this.lives.options.hooks === undefined && (!this.#fails || answer === 'yes');
    return !this.#fails;
  }

  /**
   * A client repeats a message until it is answered, and this one was: `session.outgoing` is empty. It may have been refused if the store
   * fails.
   */
  #isPromised({ publisher, answer }: Sent): boolean {
    return answer === 'yes' || (!this.#fails && this.publishers.some(({ clientId }) => clientId === publisher));
  }

  async #checkState(when: string): Promise<void> {
    const { broker } = this.lives.kit;
    const is = new Map<string, string>(broker.table<string>('figures'));
    for await (const { topic, payload } of broker.retained.match('r/#')) is.set(topic, `${payload}`);
    for (const topic of [...RETAINED_TOPICS, ...TABLE_KEYS]) {
      const all = [...this.sent].filter(([, sent]) => sent.topic === topic);
      const since = all.findLastIndex(([, { answer }]) => answer === 'yes');
      const legal = all.slice(Math.max(0, since)).filter(([, { answer }]) => answer !== 'no');
      const names = legal.map(([name, { isRemoval }]) => (isRemoval ? undefined : name));
      if (since < 0) names.push(undefined);
      assert.ok(names.includes(is.get(topic)), `${when}: ${topic} is ${is.get(topic)}, and not one of ${names}`);
    }
  }
}
