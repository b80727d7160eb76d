import type { Duplex } from 'node:stream';
import { Broker, coreOf, handledFiltersOf } from '../broker/broker.ts';
import type { BrokerOptions } from '../broker/options.ts';
import { type Client, connectClient } from '../client/client.ts';
import { duplexPair } from '../client/duplex.ts';
import type { ClientOptions } from '../client/options.ts';
import type { ConnectionMeta } from '../client-info.ts';
import { BrokerError, InvalidInput, NotFound } from '../errors.ts';
import type { Hook, Refusal } from '../hooks.ts';
import type { Message } from '../packets/message.ts';
import { VirtualClock, type VirtualClockOptions } from './clock.ts';
import { Expectation, type ExpectOptions, type SeenMessage } from './expectation.ts';
import { Link, type LoggedPacket } from './link.ts';

/** Options of the broker, and two of the kit. */
export interface TestBrokerOptions extends Omit<BrokerOptions, 'clock'> {
  /** A clock of your own, or options of the one that is made. */
  readonly clock?: VirtualClock | VirtualClockOptions;
  /**
   * What happens at dispose when the app under test has left something behind: handlers of `broker.subscribe` and `broker.messages`, clients
   * of `broker.connect` and streams of `broker.stream`, timers of `kit.clock`, expectations that nobody awaited. `warn` (default): a process
   * warning with the code TEST_LEAKS; `error`: dispose throws a LeakError; `ignore`: nothing. Clients and streams of the kit itself are no
   * leaks, they end with it; neither are event listeners and hooks, which end with the broker.
   *
   * With `error`, a test that fails and leaves something behind fails with a SuppressedError: its property `suppressed` is the test's own
   * error, `error` the LeakError. The report of node:test shows neither of them from Node 24 on: `warn` hides nothing.
   */
  readonly leaks?: LeakPolicy;
  /** false: the same as `leaks: 'ignore'`. */
  readonly leakCheck?: boolean;
}

/** What to do about leaks. */
export type LeakPolicy = 'warn' | 'error' | 'ignore';

/** What the app under test left behind. `code` is TEST_LEAKS; one line of the message for each of `leaks`. */
export class LeakError extends BrokerError {
  readonly leaks: readonly string[];

  constructor(leaks: readonly string[]) {
    super('TEST_LEAKS', `the test left ${leaks.length} thing(s) behind (option leaks):\n  ${leaks.join('\n  ')}`);
    this.leaks = leaks;
  }
}

const POLICIES: readonly LeakPolicy[] = ['warn', 'error', 'ignore'];

/** A client in the kit: its id (the newest connection counts), the client itself, or its stream. */
export type LinkTarget = string | Client | Duplex;

/**
 * Make a started broker for one test: no port, no real time.
 *
 * ```ts
 * await using kit = await createTestBroker();
 * await using client = await kit.connect({ clientId: 'c', keepalive: 60 });
 * kit.link('c').halfOpen();
 * await kit.clock.advance('90s'); // the broker gives the client up
 * ```
 *
 * Options are the broker's. Other defaults than the broker's own: `timerResolution` 1 ms, so that a timeout comes to the millisecond; no
 * look at the memory of the process (`memoryHighWatermark` 0), which would differ from run to run.
 *
 * A device under test takes the clock as an argument, `kit.clock` here and `systemClock` in the field; its timers then pass with
 * `kit.clock.advance`. MQTT.js does not: its reconnect, connect timeout and keep alive run on real timers. For its keep alive pass
 * `timerVariant: kit.mqttTimers`; switch reconnecting off (`reconnectPeriod: 0`) and call `reconnect` from a timer of the clock.
 */
export async function createTestBroker(options: TestBrokerOptions = {}): Promise<TestBroker> {
  const kit = new TestBroker(options);
  await kit.broker.start();
  return kit;
}

/** A broker, the time it lives in, and the wires to it. Made by `createTestBroker`. */
export class TestBroker {
  /** The broker itself, started. */
  readonly broker: Broker;
  /** The broker's time, and the time of whatever takes it. */
  readonly clock: VirtualClock;
  /** Interval timers on the clock, for MQTT.js' option `timerVariant`: its keep alive then runs in virtual time. */
  readonly mqttTimers: {
    readonly set: (run: () => void, delayMs?: number) => number;
    readonly clear: (id: number) => void;
  };
  readonly #policy: LeakPolicy;
  readonly #links: Link[] = [];
  readonly #byEnd = new Map<object, Link>();
  /** The broker's ends of what the kit handed out. */
  readonly #ends = new WeakSet<Duplex>();
  readonly #expectations = new Set<Expectation>();
  readonly #intervals = new Map<number, unknown>();
  #refusals: { readonly clientId: string | undefined; readonly refusal: Refusal }[] = [];
  /** What the broker published while a link was cut in this turn. */
  #justPublished: Message[] = [];
  #endRefusing: (() => void) | undefined;
  #isReachable = true;
  #lastInterval = 0;
  #lastClient = 0;

  constructor(options: TestBrokerOptions = {}) {
    const { clock, leakCheck = true, leaks = leakCheck ? 'warn' : 'ignore', ...rest } = options;
    if (!POLICIES.includes(leaks))
      throw new InvalidInput('OPTION_INVALID', 'leaks', `one of ${POLICIES.join(', ')}`, leaks);
    this.clock = clock instanceof VirtualClock ? clock : new VirtualClock(clock);
    this.#policy = leaks;
    this.broker = new Broker({ timerResolution: 1, memoryHighWatermark: 0, ...rest, clock: this.clock });
    this.clock.attach(this.broker.work);
    this.mqttTimers = {
      set: (run, delayMs = 0) => this.#setInterval(run, delayMs),
      clear: (id) => this.#clearInterval(id)
    };
  }

  /** A client inside this process, over a link that can be spoiled. `clientId` is by default `client-1`, `client-2` and so on. */
  async connect(options: ClientOptions & { readonly connection?: Partial<ConnectionMeta> } = {}): Promise<Client> {
    const { connection, ...rest } = options;
    const stream = this.stream(connection);
    const client = await connectClient(stream, {
      clientId: `client-${++this.#lastClient}`,
      clock: this.clock,
      ...rest
    });
    this.#byEnd.set(client, this.#byEnd.get(stream) as Link);
    return client;
  }

  /** A stream to the broker for any client: `new mqtt.MqttClient(() => kit.stream(), options)`. */
  stream(connection: Partial<ConnectionMeta> = {}): Duplex {
    const [end, client] = duplexPair(this.broker.work);
    if (!this.#isReachable) {
      end.destroy();
      client.destroy(
        Object.assign(new Error('the broker can not be reached (kit.isReachable)'), { code: 'ECONNREFUSED' })
      );
      return client;
    }
    const [ours, theirs] = duplexPair(this.broker.work);
    this.#ends.add(ours);
    this.broker.handle(ours, { transport: 'local', ...connection });
    const link = new Link(end, theirs, this.clock, () => {
      client.destroy();
      this.#lose(ours);
    });
    this.#links.push(link);
    this.#byEnd.set(client, link);
    return client;
  }

  /** While false, connections and streams are refused as by a network that is down; those that are open stay, see `link(...).cut()`. */
  get isReachable(): boolean {
    return this.#isReachable;
  }

  set isReachable(isReachable: boolean) {
    this.#isReachable = isReachable;
  }

  /**
   * The wire to a client, to spoil it: `cut`, `halfOpen`, `delay`, `drop`, `duplicate`, `withholdAcks`, `slowReader`.
   * @throws NotFound LINK_NOT_FOUND
   */
  link(target: LinkTarget): Link {
    const link = typeof target === 'string' ? this.#linksOf(target).at(-1) : this.#byEnd.get(target);
    if (link !== undefined) return link;
    const name = typeof target === 'string' ? `client "${target}"` : 'that stream or client';
    throw new NotFound('LINK_NOT_FOUND', `${name} did not connect through this kit (kit.connect, kit.stream)`);
  }

  /** What a client and the broker sent each other, over all of the client's connections, in order. Empty for one that never came. */
  packets(target: LinkTarget): LoggedPacket[] {
    const links = typeof target === 'string' ? this.#linksOf(target) : [this.link(target)];
    return links.flatMap((link) => link.packets());
  }

  /**
   * Answer the next CONNECT, or the next one of this client, with a CONNACK of this reason code (0x80 or above; return codes of 3.x are
   * translated).
   * @throws InvalidInput OPTION_INVALID for any other code, or none
   */
  refuseNext(reasonCode: number, options?: Omit<Refusal, 'allow' | 'reasonCode'>): void;
  refuseNext(clientId: string | undefined, reasonCode: number, options?: Omit<Refusal, 'allow' | 'reasonCode'>): void;
  refuseNext(first: string | number | undefined, second?: unknown, third?: object): void {
    const [clientId, reasonCode, options] =
      typeof first === 'number' ? [undefined, first, second as object] : [first, second as number, third];
    if (!Number.isInteger(reasonCode) || reasonCode < 0x80 || reasonCode > 0xff) {
      throw new InvalidInput('OPTION_INVALID', 'reasonCode', 'a reason code from 0x80 to 0xff', reasonCode);
    }
    this.#refusals = [...this.#refusals, { clientId, refusal: { ...options, allow: false, reasonCode } }];
    // in front of the test's own hooks, and only while there is something to refuse
    this.#endRefusing ??= this.broker.hook('preConnect', this.#refuse, { isFirst: true });
  }

  /**
   * Wait for a message that the broker accepts from now on, or that a `cut` just before has caused (a will), letting virtual time pass until it comes.
   * @throws ExpectationFailed MESSAGE_EXPECTED naming what came instead; what `where` throws; InvalidInput
   */
  async expectMessage(filter: string, options: ExpectOptions = {}): Promise<SeenMessage> {
    return this.#expect(filter, options, (expectation) => expectation.comes());
  }

  /**
   * Let the time pass, one second by default, and see to it that no such message comes.
   * @throws ExpectationFailed MESSAGE_UNEXPECTED, at the time of the message
   */
  async expectNoMessage(filter: string, options: ExpectOptions = {}): Promise<void> {
    return this.#expect(filter, options, (expectation) => expectation.staysAway());
  }

  /**
   * Cut what the kit handed out, and stop the broker. What the app under test left behind is reported as the option `leaks` says.
   * @throws LeakError TEST_LEAKS with `leaks: 'error'`
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.clock.settle();
    const leaks = this.#policy === 'ignore' ? [] : this.#leaks();
    for (const id of [...this.#intervals.keys()]) this.#clearInterval(id);
    for (const link of this.#links) link.release(); // wills are not published: the broker stops first
    await this.broker.stop({ timeoutMs: 0, wills: 'keep' });
    this.clock.detach(this.broker.work);
    if (leaks.length === 0) return;
    const error = new LeakError(leaks);
    if (this.#policy === 'error') throw error;
    process.emitWarning(error.message, { type: 'TestLeakWarning', code: error.code });
  }

  #leaks(): string[] {
    const open = [...coreOf(this.broker).links].filter(
      ({ stream, meta }) => meta.transport === 'local' && !this.#ends.has(stream)
    );
    return [
      ...open.map(
        ({ session: { clientId } }) =>
          `client "${clientId}" of broker.connect or broker.stream is still connected: disconnect it`
      ),
      ...handledFiltersOf(this.broker).map(
        (filter) =>
          `a handler of "${filter}" (broker.subscribe, broker.messages) is still subscribed: call what subscribe returned, or use the option signal`
      ),
      ...this.clock.timers.map(({ inMs, origin }) => `a timer is still armed, due in ${inMs} ms, set at ${origin}`),
      ...[...this.#expectations].map(({ filter }) => `an expectation on "${filter}" was not awaited`)
    ];
  }

  async #expect<T>(filter: string, options: ExpectOptions, wait: (expectation: Expectation) => Promise<T>): Promise<T> {
    const expectation = new Expectation(this.broker, this.clock, filter, options, this.#justPublished);
    this.#expectations.add(expectation);
    try {
      return await wait(expectation);
    } finally {
      this.#expectations.delete(expectation);
    }
  }

  /** The broker notices now that a connection has gone. What it publishes at that, a will, is for expectations that begin in the same turn. */
  #lose(ours: Duplex): void {
    const { broker } = this;
    const connection = [...coreOf(broker).links].find(({ stream }) => stream === ours);
    if (connection === undefined) return;
    const note = ({ message }: { message: Message }) => this.#justPublished.push(message);
    const stop = broker.subscribe('$SYS/#', (message) => note({ message }), { retainHandling: 2 });
    broker.on('message.publish', note);
    connection.peerEnded();
    broker.off('message.publish', note);
    stop();
    void Promise.resolve().then(() => {
      this.#justPublished = [];
    });
  }

  #linksOf(clientId: string): Link[] {
    return this.#links.filter((link) => link.clientId === clientId);
  }

  readonly #refuse: Hook<'preConnect'> = ({ client }) => {
    const found = this.#refusals.find(({ clientId }) => clientId === undefined || clientId === client.clientId);
    if (found === undefined) return undefined;
    this.#refusals = this.#refusals.filter((refusal) => refusal !== found);
    if (this.#refusals.length === 0) {
      this.#endRefusing?.();
      this.#endRefusing = undefined;
    }
    return found.refusal;
  };

  #setInterval(run: () => void, delayMs: number): number {
    const id = ++this.#lastInterval;
    const again = () => {
      this.#intervals.set(id, this.clock.internal.setTimeout(ring, delayMs));
    };
    const ring = () => {
      again();
      run();
    };
    again();
    return id;
  }

  #clearInterval(id: number): void {
    this.clock.clearTimeout(this.#intervals.get(id));
    this.#intervals.delete(id);
  }
}
