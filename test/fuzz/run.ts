import assert from 'node:assert/strict';
import mqttPacket from 'mqtt-packet';
import { Broker, engineOf } from '../../lib/broker/broker.ts';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import { EVENT_NAMES } from '../../lib/events/catalogue.ts';
import type { Hook } from '../../lib/events/hooks.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import type { AckPacket, Packet } from '../../lib/packets/types.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { framed, type Input, listed, METHOD, randomInput, split } from './inputs.ts';
import { judge, type Limits, type ReadPacket, type Verdict } from './model.ts';
import { Random } from './random.ts';
import { Peer, turns } from './wire.ts';

interface FuzzOptions {
  readonly runs: number;
  readonly seed: number;
  /** Called after each batch with the number of inputs so far. */
  readonly onProgress?: (done: number) => void;
}

interface FuzzResult {
  readonly runs: number;
  /** The number of inputs for each result. */
  readonly ends: Readonly<Record<string, number>>;
  /** Packets that `mqtt-packet` also read, with the same result. */
  readonly compared: number;
}

/** Connections that are tested concurrently. */
const BATCH = 120;
/** Number of inputs after which the brokers are replaced. */
const LIFE = 30_000;

/** A broker under test. */
interface Kind {
  readonly options: BrokerOptions;
  /** True if it supports the enhanced authentication. */
  readonly hasMethod: boolean;
  /** True if every event has a listener. */
  readonly isWatched: boolean;
}

/** Sends one challenge, then accepts the client. */
const authenticate: Hook<'authenticate'> = ({ method, round }) => {
  if (method === undefined) return undefined;
  if (method !== METHOD) return { allow: false, reasonCode: 0x8c };
  return round === 0 ? { challenge: Buffer.from('more') } : true;
};

/**
 * The ways in which a broker processes packets: directly; with hooks; one by one, with hooks that change them and listeners for every
 * event.
 */
const KINDS: readonly Kind[] = [
  { options: {}, hasMethod: false, isWatched: false },
  { options: { allowAnonymous: true, hooks: { authenticate } }, hasMethod: true, isWatched: false },
  {
    hasMethod: true,
    isWatched: true,
    options: {
      mountpoint: 'mounted/',
      rewrite: ['old/# ^old/(.+)$ new/$1'],
      sysForRemoteClients: true,
      awaitRelTimeout: 1_000,
      retryInterval: 2_000,
      autoSubscriptions: [{ topic: 'own/a', qos: 1 }],
      zones: { observer: { mountpoint: '' } },
      allowAnonymous: true,
      aclNomatch: 'allow',
      hooks: {
        authenticate,
        authorizeSubscribe: ({ filter }) => (filter.startsWith('later') ? Promise.resolve(1) : undefined),
        authorizePublish: ({ message }) => (message.topic.includes('later') ? Promise.resolve(true) : undefined),
        publish: ({ message }) => (message.topic.includes('x/y') ? { topic: 'x/z', payload: 'changed' } : undefined),
        deliver: ({ message }) => !message.topic.endsWith('c')
      }
    }
  }
];

/**
 * Sends inputs to brokers, each on its own connection, and checks after each batch: the connection has the state that the model predicts, a
 * healthy publisher and its observer were not disturbed, and nothing was thrown or reported. When a broker is stopped, nothing is left.
 * @throws AssertionError naming the input and its bytes
 */
export async function fuzz({ runs, seed, onProgress }: FuzzOptions): Promise<FuzzResult> {
  const tally: Tally = { ends: {}, compared: 0 };
  const random = new Random(seed);
  const inputs = pick(runs, random);
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0; // every second input is refused with an error
  try {
    for (let done = 0; done < runs; ) {
      const targets: Target[] = [];
      for (const [at, kind] of KINDS.entries())
        targets.push(await Target.start(kind, new Random(seed + done + at), tally));
      for (let lived = 0; lived < LIFE && done < runs; ) {
        const batch = inputs(Math.min(BATCH, runs - done));
        await serve(batch, targets, random);
        done += batch.length;
        lived += batch.length;
        onProgress?.(done);
      }
      for (const target of targets) await target.end();
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  return { runs, ...tally };
}

/** Each input is sent to one of the brokers that support its state. */
async function serve(inputs: readonly Input[], targets: readonly Target[], random: Random): Promise<void> {
  const parts = targets.map((): Input[] => []);
  for (const input of inputs) {
    const first = input.state === 'authenticating' || input.state === 'reauthenticating' ? 1 : 0;
    // Half of them go to the fastest broker.
    parts[random.once(2) ? first : first + random.below(targets.length - first)].push(input);
  }
  for (const [at, target] of targets.entries()) await target.serve(parts[at]);
}

interface Tally {
  readonly ends: Record<string, number>;
  compared: number;
}

/** The listed damages up to half of the runs, evenly spaced, then random sequences. */
function pick(runs: number, random: Random): (count: number) => Input[] {
  const all = [...listed()];
  const wanted = Math.min(all.length, runs >> 1);
  const chosen = Array.from(
    { length: wanted },
    (_, at) => all[Math.floor(((at + random.next()) * all.length) / wanted)]
  );
  // Each broker receives some of every kind.
  for (let at = chosen.length - 1; at > 0; at--) {
    const other = random.below(at + 1);
    [chosen[at], chosen[other]] = [chosen[other], chosen[at]];
  }
  let at = 0;
  return (count) => Array.from({ length: count }, () => chosen[at++] ?? randomInput(random));
}

/** An input that is being tested. */
interface Run {
  readonly input: Input;
  readonly verdict: Verdict;
  readonly peer: Peer;
  /** True if other inputs may use the same client id. */
  readonly isShared: boolean;
}

/** A broker with a healthy publisher and an observer, and its clock. */
class Target {
  readonly #broker: Broker;
  readonly #clock: ManualClock;
  readonly #random: Random;
  readonly #tally: Tally;
  readonly #limits: Limits;
  readonly #publisher: Peer;
  readonly #observer: Peer;
  /** Connections that must be closed after a while. */
  #gone: Run[] = [];
  #failures: Error[] = [];
  #sent = 0;
  #lastId = 0;
  #rounds = 0;

  private constructor(
    broker: Broker,
    clock: ManualClock,
    { hasMethod, isWatched }: Kind,
    random: Random,
    tally: Tally
  ) {
    this.#broker = broker;
    this.#clock = clock;
    this.#random = random;
    this.#tally = tally;
    this.#limits = { ...broker.zone(), hasMethod };
    broker.on('error', ({ error, during }) => {
      this.#failures.push(new Error(`an error event: ${during}: ${error.message}`, { cause: error }));
    });
    if (isWatched) for (const name of EVENT_NAMES) broker.on(name, () => undefined);
    const meta = {
      transport: 'stream',
      zone: broker.settings.zones.has('observer') ? 'observer' : 'external'
    } as const;
    this.#publisher = new Peer(broker, 5, { meta });
    this.#observer = new Peer(broker, 5, { meta });
  }

  static async start(kind: Kind, random: Random, tally: Tally): Promise<Target> {
    const clock = new ManualClock(Date.UTC(2026, 0, 1));
    const broker = new Broker({
      clock,
      timerResolution: 10,
      memoryHighWatermark: 0,
      maxPacketSize: 65_536,
      maxSessionExpiryInterval: 60,
      sessionExpiryInterval: 60,
      maxRetainedMessages: 200,
      maxDelayedMessages: 200,
      maxMqueueLen: 50,
      ...kind.options
    });
    await broker.start();
    const target = new Target(broker, clock, kind, random, tally);
    await target.#greet();
    return target;
  }

  async #greet(): Promise<void> {
    const connect = { cmd: 'connect', protocolVersion: 5, bridge: false, clean: true, keepalive: 0 } as const;
    this.#publisher.say({ ...connect, clientId: 'publisher' });
    const healthy = {
      topic: 'healthy/#',
      qos: 1,
      noLocal: false,
      retainAsPublished: false,
      retainHandling: 0
    } as const;
    this.#observer.say(
      { ...connect, clientId: 'observer' },
      { cmd: 'subscribe', messageId: 1, subscriptions: [healthy] }
    );
    await turns(4);
    assert.deepEqual(
      this.#publisher.take().map(({ cmd }) => cmd),
      ['connack']
    );
    const answers = this.#observer.take().map(({ cmd }) => cmd);
    assert.deepEqual(answers.slice(0, 2), ['connack', 'suback']);
  }

  async serve(inputs: readonly Input[]): Promise<void> {
    const runs = inputs.map((input) => this.#begin(input));
    this.#work();
    await turns(12); // inputs above their share of a turn are processed in rotation
    if (engineOf(this.#broker).publishing.hooks.hasHooks) await turns(6);
    this.#checkHealth();
    for (const run of runs) this.#guard(run, () => this.#check(run));
    if (this.#failures.length > 0) this.#blame(runs, this.#failures[0]);
    for (const run of runs) this.#leave(run);
    this.#clock.advance(50);
    await turns(1);
    if (++this.#rounds % 20 === 0) await this.#age();
  }

  #begin(input: Input): Run {
    const peer = new Peer(this.#broker, input.version);
    const isShared = this.#random.once(4) || input.state === 'new';
    const clientId = isShared ? `fuzz${this.#random.below(200)}` : `one${++this.#lastId}`;
    for (const frame of preamble(input, clientId, this.#random.once(2))) peer.wire.say(frame);
    for (const chunk of split(this.#random, input.bytes)) peer.wire.say(chunk);
    const verdict = judge(input, this.#limits);
    if (isProbed(verdict)) peer.wire.say(PINGREQ);
    this.#tally.ends[verdict.end] = (this.#tally.ends[verdict.end] ?? 0) + 1;
    return { input, verdict, peer, isShared };
  }

  #work(): void {
    this.#sent++;
    this.#publisher.say(
      {
        cmd: 'publish',
        topic: 'healthy/a',
        payload: Buffer.from(String(this.#sent)),
        qos: 1,
        dup: false,
        retain: false,
        messageId: (this.#sent % 65_535) + 1
      },
      { cmd: 'pingreq' }
    );
    this.#observer.say({ cmd: 'pingreq' });
  }

  #checkHealth(): void {
    const published = this.#publisher.take().filter(({ cmd }) => cmd !== 'publish');
    assert.deepEqual(published.map(({ cmd }) => cmd).sort(), ['pingresp', 'puback'], 'the healthy publisher is served');
    const heard = this.#observer.take();
    const messages = heard.filter((packet) => packet.cmd === 'publish' && packet.topic === 'healthy/a');
    const [message] = messages;
    assert.equal(messages.length, 1, 'the observer gets one message');
    assert.ok(
      message.cmd === 'publish' && message.payload.toString() === String(this.#sent),
      'and it is the right one'
    );
    assert.ok(
      heard.some(({ cmd }) => cmd === 'pingresp'),
      'the observer is answered'
    );
    this.#observer.say({ cmd: 'puback', messageId: message.messageId as number, reasonCode: 0 });
  }

  #check({ input, verdict, peer, isShared }: Run): void {
    for (const read of verdict.packets) this.#compare(read);
    const heard = input.state === 'new' ? readAs(verdict, peer) : peer.take();
    const last = heard.at(-1);
    if (verdict.end === 'narrow' || endedByAcknowledgement(verdict, peer, heard)) return;
    if (verdict.end === 'open' || verdict.end === 'waiting') {
      // The next connection of the same client id takes over; a 3.x client is not notified.
      const mayBeReplaced =
        isShared && (verdict.version !== 5 || (last?.cmd === 'disconnect' && last.reasonCode === 0x8e));
      if (peer.isClosed && mayBeReplaced) return;
      assert.ok(!peer.isClosed, `it stays open, not ${describe(last)}`);
      if (isProbed(verdict))
        assert.ok(
          heard.some(({ cmd }) => cmd === 'pingresp'),
          `PINGREQ is answered, not ${describe(last)}`
        );
      return;
    }
    assert.ok(peer.isClosed, `it is closed (0x${verdict.code?.toString(16)}), after ${describe(last)}`);
    const wasReplaced = last?.cmd === 'disconnect' && last.reasonCode === 0x8e && isShared;
    if (wasReplaced) return;
    if (verdict.end === 'left' || verdict.version !== 5) {
      assert.ok(last?.cmd !== 'disconnect', `it ends without a DISCONNECT, not ${describe(last)}`);
      return;
    }
    this.#checkRefusal(input, verdict, last);
  }

  /** Checks the reason code that a 5.0 client receives. */
  #checkRefusal(input: Input, verdict: Verdict, last: Packet | undefined): void {
    if (verdict.mayBeSilent && last === undefined) return;
    const isConnected = verdict.state === 'live' || verdict.state === 'reauthenticating';
    const expected = isConnected ? 'disconnect' : 'connack';
    assert.ok(last?.cmd === expected && last.reasonCode >= 0x80, `refused by ${expected}, not ${describe(last)}`);
    if (!input.isSimple || (expected === 'connack' && last.reasonCode === 0x80)) return;
    assert.equal(last.reasonCode, verdict.code, `refused with 0x${verdict.code?.toString(16)}, not ${describe(last)}`);
  }

  /** Compares an accepted packet with the result of another parser. */
  #compare({ packet, bytes, version }: ReadPacket): void {
    const other = foreign(bytes, version);
    if (other === undefined) return;
    this.#tally.compared++;
    assert.equal(other.cmd, packet.cmd);
    if (packet.cmd === 'publish') {
      const { topic, payload, qos, retain, dup } = packet;
      const its = [other.topic, other.payload, other.qos, other.retain, other.dup];
      assert.deepEqual(its, [topic, payload, qos, retain, dup]);
    } else if (packet.cmd === 'connect') {
      const { clientId, clean, keepalive } = packet;
      assert.deepEqual([other.clientId, other.clean, other.keepalive], [clientId, clean, keepalive]);
    } else if (packet.cmd === 'subscribe') {
      const its = (other.subscriptions as { topic: string }[]).map(({ topic }) => topic);
      const topics = packet.subscriptions.map(({ topic }) => topic);
      assert.deepEqual(its, topics);
    } else if (packet.cmd === 'unsubscribe') assert.deepEqual(other.unsubscriptions, packet.unsubscriptions);
  }

  /** Ends the connection of the peer in one of several ways, or leaves this to the broker. */
  #leave(run: Run): void {
    const { wire } = run.peer;
    this.#gone.push(run);
    switch (this.#random.below(8)) {
      case 0:
        return;
      case 1:
        wire.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
        return;
      case 2:
        wire.destroy();
        return;
      default:
        wire.leave();
    }
  }

  /** Lets time pass in steps, so that a hook whose work a timer started can answer before its own timeout. */
  async #pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 4_000) {
      this.#clock.advance(Math.min(4_000, ms - passed));
      await turns(1);
    }
  }

  /** Lets time pass until every connection of a silent client must be closed. */
  async #age(): Promise<void> {
    for (const { peer, verdict } of this.#gone) {
      const isTimed = verdict.state === 'new' || verdict.state === 'authenticating';
      if (!peer.isClosed && !isTimed) peer.wire.leave();
    }
    await this.#pass(14_000); // CONNECT timeout, then the time for closing
    await turns(2);
    for (const run of this.#gone)
      this.#guard(run, () => assert.ok(run.peer.wire.destroyed, 'its stream is closed after the timeouts'));
    this.#gone = [];
    await this.#pass(61_000); // session expiry
    await turns(4);
    const size = [...this.#broker.sessions].length;
    assert.ok(size <= 2 + BATCH, `${size} sessions after all have expired`);
    this.#publisher.take();
    const late = this.#observer.take().filter((packet) => packet.cmd === 'publish');
    for (const packet of late)
      this.#observer.say({ cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 });
  }

  async end(): Promise<void> {
    await this.#age();
    await this.#pass(3_600_000);
    await turns(4);
    const left = [...this.#broker.sessions].map(({ clientId }) => clientId);
    assert.deepEqual(left.sort(), ['observer', 'publisher'], 'no other session is left');
    const own = 1 + (this.#broker.settings.autoSubscriptions.length > 0 ? 2 : 0);
    assert.equal(engineOf(this.#broker).routing.count, own, 'no other subscription is left');
    assert.equal(engineOf(this.#broker).services.work.count, 0, 'no work is in flight');
    const stopped = this.#broker.stop({ timeoutMs: 0 });
    await turns(4);
    await stopped;
    assert.ok(this.#publisher.isClosed && this.#observer.isClosed);
    assert.equal(engineOf(this.#broker).services.wheel.size, 0, 'no timer is armed');
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  #guard(run: Run, check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#blame([run], error as Error);
    }
  }

  #blame(runs: readonly Run[], error: Error): never {
    const lines = runs.map(({ input, verdict }) => {
      const { name, version, state, bytes } = input;
      return `  ${name}; version ${version}, ${state}, expected ${verdict.end}: ${bytes.toString('hex').slice(0, 400)}`;
    });
    throw new Error(`${error.message}\n${lines.join('\n')}`, { cause: error });
  }
}

const PINGREQ = framed(0xc0);

/** Returns the frames that bring a connection into the state that an input needs. */
function preamble({ version, state }: Input, clientId: string, clean: boolean): Buffer[] {
  if (state === 'new') return [];
  const hasMethod = state === 'authenticating' || state === 'reauthenticating';
  const properties = hasMethod ? { authenticationMethod: METHOD } : undefined;
  const connect = { cmd: 'connect', protocolVersion: version, bridge: false, clientId, clean, keepalive: 0 } as const;
  const frames = [encode({ ...connect, properties }, version)];
  if (state === 'left') frames.push(framed(0xe0));
  if (state === 'reauthenticating') {
    for (const reasonCode of [0x18, 0x19])
      frames.push(encode({ cmd: 'auth', reasonCode, properties: { authenticationMethod: METHOD } }, 5));
  }
  return frames;
}

/** Tell whether a PINGREQ is sent after the input. */
function isProbed({ end, state }: Verdict): boolean {
  return end === 'open' && (state === 'live' || state === 'reauthenticating');
}

/** Reads the answers in the format of the version of the CONNECT. */
function readAs({ version, maxFrame }: Verdict, { wire }: Peer): Packet[] {
  if (version === undefined) {
    assert.equal(wire.heardBytes, 0, 'nothing is sent before a valid CONNECT');
    return [];
  }
  const reader = new PacketReader({ side: 'client', version, maximumPacketSize: Math.min(maxFrame, 268_435_460) });
  return reader.push(wire.hear());
}

/** The acknowledgements that a client may send for each packet type and QoS. */
const ANSWERS: Readonly<Record<string, readonly string[]>> = {
  'publish 1': ['puback'],
  'publish 2': ['pubrec'],
  'pubrel 0': ['pubrec', 'pubcomp']
};

/**
 * Tell whether the input acknowledged a packet in flight with a packet of the wrong type, which ends the connection (0x82). The packet ids
 * in flight depend on the session, so they can be known only from the packets that the broker has sent.
 */
function endedByAcknowledgement({ packets, version }: Verdict, peer: Peer, heard: readonly Packet[]): boolean {
  const last = heard.at(-1);
  if (!peer.isClosed || (version === 5 && (last?.cmd !== 'disconnect' || last.reasonCode !== 0x82))) return false;
  return heard.some((sent) => {
    const may = ANSWERS[`${sent.cmd} ${sent.cmd === 'publish' ? sent.qos : 0}`];
    const isWrong = ({ packet }: ReadPacket) =>
      ['puback', 'pubrec', 'pubcomp'].includes(packet.cmd) &&
      (packet as AckPacket).messageId === (sent as AckPacket).messageId &&
      !may?.includes(packet.cmd);
    return may !== undefined && packets.some(isWrong);
  });
}

function describe(last: Packet | undefined): string {
  return last === undefined ? 'no packet' : JSON.stringify(last);
}

/** Returns the result of the `mqtt-packet` package; undefined if it refuses the bytes. */
function foreign(bytes: Buffer, version: number): Record<string, unknown> | undefined {
  let found: Record<string, unknown> | undefined;
  const parser = mqttPacket.parser({ protocolVersion: version });
  parser.on('packet', (it) => {
    found = it as unknown as Record<string, unknown>;
  });
  parser.on('error', () => undefined);
  try {
    parser.parse(bytes);
  } catch {
    return undefined;
  }
  return found;
}
