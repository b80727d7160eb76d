// A real broker with three things replaced: its clock, its ports, and the streams between it and its clients, which
// go through a `Link`. The end of a kit releases the links and stops the broker at once, so that no will is
// published, and reports what the app has left open, but not what the kit has opened. Everything here is public and
// documented; what is needed of the broker beyond its public members comes from `engineOf`.

import type { Duplex } from 'node:stream';
import type { ByteStream } from '../base/byte-stream.ts';
import { BrokerError, InvalidInput, NotFound, StateError } from '../base/errors.ts';
import { checkNames, isPlainObject, nearest } from '../base/fields.ts';
import { type Broker, engineOf, handlersOf, type SchemaBroker, serveLocal } from '../broker/broker.ts';
import type { ConnectOptions } from '../broker/call-options.ts';
import type { BrokerOptions } from '../broker/configuration/options.ts';
import type { SchemaTable } from '../broker/configuration/payload-schemas.ts';
import { type Client, clientOptionsOf, connectOver } from '../client/client.ts';
import { duplexPair } from '../client/duplex.ts';
import { localPair } from '../client/local-stream.ts';
import type { Hook, Refusal } from '../events/hooks.ts';
import type { Message } from '../packets/message.ts';
import type { TransportInfo } from '../records/client.ts';
import { VirtualClock, type VirtualClockOptions } from './clock.ts';
import { Expectation, type ExpectOptions, type SeenMessage } from './expectation.ts';
import { type FakeTimers, TimerFollower } from './fake-timers.ts';
import { Link, type LoggedPacket } from './link.ts';
import { type MqttJsClient, reconnect } from './mqtt-js.ts';
import { originOf, traceOf } from './origin.ts';
import { type ReplayLog, type ReplayOptions, replay } from './replay.ts';
import { TracedBroker } from './traced-broker.ts';

/** Options of the broker and of the kit. */
export interface TestBrokerOptions<Data = unknown> extends Omit<BrokerOptions<Data>, 'clock'> {
  /** A virtual clock, or options for a new one. */
  readonly clock?: VirtualClock | VirtualClockOptions;
  /**
   * Fake timers of the test runner that the clock moves: `vi` of Vitest, `jest` of Jest, or `mock.timers` of node:test.
   *
   * The kit fakes `setTimeout`, `setInterval` and `Date` until it is disposed of, unless the test has faked them before; then the clock
   * begins at their date. The code under test may use these functions instead of `kit.clock`: `kit.clock.advance` fires its timers in the
   * right order with those of the broker, and `Date` is the time of the clock. With `mock.timers`, time passes in steps of at most 10 ms.
   * Default: none; timers of the code under test are real.
   */
  readonly timers?: FakeTimers;
  /**
   * The action of dispose if the application under test has left resources open.
   *
   * These resources are handlers of `broker.subscribe`, `broker.messages` and `broker.respond`, clients of `broker.connect`, streams of `broker.stream`,
   * timers of `kit.clock`, and expectations and replays that were not awaited. `warn` (default) emits a process warning with the code TEST_LEAKS,
   * `error` throws a LeakError, and `ignore` does nothing. Clients and streams of the kit are closed with the kit, event listeners and
   * hooks with the broker; they are not leaks.
   *
   * With `error`, a test that fails and leaks throws a SuppressedError: its property `suppressed` is the error of the test, `error` is the
   * LeakError. From Node 24 on, the report of node:test shows neither of them; use `warn` to see both.
   */
  readonly leaks?: LeakPolicy;
  /** `false` is the same as `leaks: 'ignore'`. */
  readonly leakCheck?: boolean;
}

/** The way in which leaks are reported. */
export type LeakPolicy = 'warn' | 'error' | 'ignore';

/** The application under test left resources open. `code` is TEST_LEAKS. The message has one line per leak. */
export class LeakError extends BrokerError {
  /** One line for each leak. */
  readonly leaks: readonly string[];

  constructor(leaks: readonly string[]) {
    super(
      'TEST_LEAKS',
      `the test left ${leaks.length} resource(s) open (see the option leaks):\n  ${leaks.join('\n  ')}`
    );
    this.leaks = leaks;
  }
}

/** Options of `kit.listen`. */
export interface PortOptions {
  /** Port on 127.0.0.1. Default: 0, a free one. */
  readonly port?: number;
  /** MQTT over WebSocket instead of TCP, on the path `/mqtt`, or on another one. Default false. */
  readonly webSocket?: boolean | string;
}

/** A port of a kit, which closes with the kit. */
export interface TestPort extends AsyncDisposable {
  /** The port number. */
  readonly port: number;
  /** For clients: `mqtt://127.0.0.1:PORT` or `ws://127.0.0.1:PORT/mqtt`. */
  readonly url: string;
  /** Close the port earlier than the kit. Connected clients stay connected. */
  close(): Promise<void>;
}

/** The uses of ports and files by a kit. lib has neither, so the entry point `embermq/testing` passes them. */
export interface KitOutside {
  /** Opens a port for the broker of the kit. */
  openPort(broker: Broker, options: PortOptions): Promise<TestPort>;
  /** Reads a file as text. */
  readFile(file: string | URL): Promise<string>;
}

/** Options whose defaults differ from those of the broker, so that each run is the same. */
const DEFAULTS = {
  timerResolution: 1,
  memoryHighWatermark: 0,
  sharedSubscriptionStrategy: 'round_robin'
} as const;

const POLICIES: readonly LeakPolicy[] = ['warn', 'error', 'ignore'];

/** A client of the kit: its client id (for its newest connection), the client itself, or its stream. */
export type LinkTarget = string | Client | Duplex;

/**
 * Create and start a broker for one test, without ports and with virtual time.
 *
 * ```ts
 * await using kit = await createTestBroker();
 * await using client = await kit.connect({ clientId: 'c', keepalive: 60 });
 * kit.link('c').halfOpen();
 * await kit.clock.advance('90s'); // the keep alive of the client times out
 * ```
 *
 * The options are those of the broker. Three defaults differ: `timerResolution` is 1 ms, so that timeouts are exact to the millisecond;
 * `memoryHighWatermark` is 0 (disabled), because the memory usage of the process differs from run to run; and
 * `sharedSubscriptionStrategy` is `round_robin`, because `random` differs as well.
 *
 * Pass the clock to the device under test as an argument: `kit.clock` in tests and `systemClock` in production. Its timers then fire during
 * `kit.clock.advance`. For code that uses `setTimeout`, such as MQTT.js, pass the fake timers of the test runner as the option `timers`.
 */
export async function createTestBroker(options?: TestBrokerOptions, outside?: KitOutside): Promise<TestBroker>;
export async function createTestBroker<Data>(
  options?: TestBrokerOptions<Data>,
  outside?: KitOutside
): Promise<TestBroker<Data>>;
export async function createTestBroker<Data>(
  options?: TestBrokerOptions<Data>,
  outside?: KitOutside
): Promise<TestBroker<Data>> {
  const kit = new TestBroker<Data>(options, outside);
  try {
    await kit.broker.start();
  } catch (error) {
    kit.restoreTimers();
    throw error;
  }
  return kit;
}

/** The broker of a kit with the option `schemas`. */
export interface WithSchemaBroker<S extends SchemaTable> {
  /** The broker: `message.value` has the type of the schema of the same filter. */
  readonly broker: SchemaBroker<S>;
}

/** The kit of some options: `TestBroker`, with typed values if they have schemas. */
export type TestBrokerOf<S extends SchemaTable> = [keyof S] extends [never]
  ? TestBroker
  : WithSchemaBroker<S> & TestBroker;

/** A broker with its virtual clock and the links to its clients. Created by `createTestBroker`. */
export class TestBroker<Data = unknown> {
  /** The broker, which is started. */
  readonly broker: Broker<Data>;
  /** The clock of the broker. Pass it to the code under test. */
  readonly clock: VirtualClock;
  /** Interval timers of the clock, for the option `timerVariant` of MQTT.js. Its keep alive then runs in virtual time. */
  readonly mqttTimers: {
    /** Starts an interval timer. */
    readonly set: (run: () => void, delayMs?: number) => number;
    /** Ends an interval timer. */
    readonly clear: (id: number) => void;
  };
  readonly #outside: KitOutside | undefined;
  readonly #follower: TimerFollower | undefined;
  readonly #traced: TracedBroker<Data>;
  readonly #policy: LeakPolicy;
  readonly #links: Link[] = [];
  readonly #linkOf = new Map<object, Link>();
  /** The broker's ends of the streams that the kit created. */
  readonly #ends = new WeakSet<ByteStream>();
  /** Expectations and replays that have not ended: what each is, and where it was made. */
  readonly #waiting = new Set<{ readonly what: string; readonly trace: Error }>();
  readonly #intervals = new Map<number, unknown>();
  #refusals: { readonly clientId: string | undefined; readonly refusal: Refusal }[] = [];
  /** The messages that the broker published in this turn because a link was cut. */
  #publishedInTurn: Message[] = [];
  #endRefusing: (() => void) | undefined;
  #isReachable = true;
  #isDisposed = false;
  #lastInterval = 0;
  #lastClient = 0;

  constructor(options: TestBrokerOptions = {}, outside?: KitOutside) {
    this.#outside = outside;
    const { clock, timers, leakCheck = true, leaks = leakCheck ? 'warn' : 'ignore', ...rest } = options;
    if (!POLICIES.includes(leaks))
      throw new InvalidInput('OPTION_INVALID', 'leaks', `one of ${POLICIES.join(', ')}`, leaks);
    this.clock = clockOf(clock);
    this.#policy = leaks;
    this.#follower = timers === undefined ? undefined : new TimerFollower(timers);
    this.#leadTimers(clock);
    try {
      this.#traced = new TracedBroker<Data>({ ...DEFAULTS, ...rest, clock: this.clock });
    } catch (error) {
      this.restoreTimers();
      throw error;
    }
    this.broker = this.#traced;
    this.clock.attach(engineOf(this.broker).services.work);
    this.mqttTimers = {
      set: (run, delayMs = 0) => this.#setInterval(run, delayMs),
      clear: (id) => this.#clearInterval(id)
    };
  }

  #leadTimers(clock: TestBrokerOptions['clock']): void {
    if (this.#follower === undefined) return;
    const isSet = clock instanceof VirtualClock || clock?.now !== undefined;
    const now = this.#follower.start(isSet ? this.clock.now() : undefined, this.clock.now());
    this.clock.lead(this.#follower, now);
  }

  /** Restore the timers that the option `timers` has faked. @internal */
  restoreTimers(): void {
    this.#follower?.stop();
    this.clock.lead(undefined);
  }

  /**
   * Connect an in-process client over a link. The default for `clientId` is `client-1`, `client-2` and so on.
   * @throws as `broker.connect`; CONNECTION_CLOSED while the broker is not reachable; StateError KIT_MISSING after dispose
   */
  async connect(options: ConnectOptions = {}): Promise<Client> {
    const { transportInfo } = options;
    const [end, stream] = localPair(engineOf(this.broker).services.work);
    const link = this.#open(end, stream, transportInfo);
    const client = await connectOver(stream, {
      clientId: `client-${++this.#lastClient}`,
      clock: this.clock,
      ...clientOptionsOf(options)
    });
    if (link !== undefined) this.#linkOf.set(client, link);
    return client;
  }

  /**
   * Open a stream to the broker for any client: `new mqtt.MqttClient(() => kit.stream(), options)`.
   * @throws StateError KIT_MISSING after dispose
   */
  stream(transportInfo: Partial<TransportInfo> = {}): Duplex {
    const [end, client] = duplexPair(engineOf(this.broker).services.work);
    const link = this.#open(end, client, transportInfo);
    if (link !== undefined) this.#linkOf.set(client, link);
    return client;
  }

  /**
   * Let a client of MQTT.js connect again after its connection was lost, and send what it has queued while it was offline.
   *
   * `client.reconnect()` alone begins with empty stores and forgets the messages at QoS 1 and 2. Not needed if the client reconnects on its
   * own (`reconnectPeriod`) with the option `timers`. Has no effect on a client that is connected.
   * @returns when the client is connected, and the broker has what was queued
   * @throws the error of the client, such as a refusal of the broker, or ECONNREFUSED while `isReachable` is false
   */
  async reconnect<S>(client: MqttJsClient<S>): Promise<void> {
    return reconnect(client, this.clock);
  }

  /**
   * Open a port on loopback for devices in other processes. It closes with the kit.
   *
   * The clock stays virtual: keep alives and expiries of these clients run while the test advances it. Packets that they send take real
   * time, for which the clock does not wait, unless the test gives it a promise with `clock.track`. Their connections have no `link`.
   * @throws BrokerError LISTENER_BIND_FAILED; InvalidInput OPTION_INVALID, OPTION_UNKNOWN
   */
  async listen(options: PortOptions = {}): Promise<TestPort> {
    return this.#outer.openPort(this.broker as Broker, options);
  }

  /**
   * Let clients do what those of a recording have done, at the same times of the clock, and advance the clock to its end.
   *
   * `embermq record` makes the file. Packet ids are those that this broker chooses, clients with an assigned client id ask for the recorded
   * one, and connections end as they did: with DISCONNECT, abruptly, or by this broker. A message that the broker sends is acknowledged when
   * the same message was in the recording; at once if it is not in the recording. Clients that are connected at its end stay connected.
   * @param file a path or URL
   * @returns what the broker has sent and closed, which is the same each time
   * @throws BrokerError FILE_UNREADABLE; InvalidInput RECORDING_INVALID, which names the line, OPTION_UNKNOWN, OPTION_INVALID; StateError
   *   KIT_MISSING after dispose; as `clock.advance`
   */
  async replay(file: string | URL, options: ReplayOptions = {}): Promise<ReplayLog> {
    this.#checkOpen();
    checkNames(options, ['clients'], 'replay');
    const { clients } = options;
    if (clients !== undefined && typeof clients !== 'function')
      throw new InvalidInput('OPTION_INVALID', 'clients', 'a function such as (clientId) => boolean', clients);
    return this.#waitFor(`a replay of "${file}"`, traceOf(this.replay), async () =>
      replay(this, await this.#outer.readFile(file), String(file), options)
    );
  }

  /** @throws StateError KIT_MISSING after dispose, as when a test does not await what it does */
  #checkOpen(): void {
    if (!this.#isDisposed) return;
    const text =
      'this kit is disposed of: its test has ended; await in the test all that uses the kit, and end clients that connect again';
    throw new StateError('KIT_MISSING', text);
  }

  get #outer(): KitOutside {
    if (this.#outside !== undefined) return this.#outside;
    const text = 'this kit has neither ports nor files; create it with createTestBroker of embermq/testing';
    throw new StateError('PORTS_MISSING', text);
  }

  /** Connect a client's stream to the broker over a link. @param end the peer of the client's stream @returns undefined: it is refused */
  #open(end: ByteStream, client: ByteStream, transportInfo: Partial<TransportInfo> | undefined): Link | undefined {
    this.#checkOpen();
    const { work } = engineOf(this.broker).services;
    if (!this.#isReachable) {
      end.destroy();
      client.destroy(
        Object.assign(new Error('the broker cannot be reached, because kit.isReachable is false'), {
          code: 'ECONNREFUSED'
        })
      );
      return undefined;
    }
    const [ours, theirs] = localPair(work);
    this.#ends.add(ours);
    serveLocal(this.broker, ours, transportInfo ?? {});
    const link = new Link(end, theirs, this.clock, () => {
      client.destroy();
      this.#loseConnection(ours);
    });
    this.#links.push(link);
    return link;
  }

  /**
   * True if clients can connect. Default: true.
   *
   * While it is false, new connections and streams are refused with ECONNREFUSED. Open connections stay open; see `link(...).cut()`.
   */
  get isReachable(): boolean {
    return this.#isReachable;
  }

  set isReachable(isReachable: boolean) {
    this.#isReachable = isReachable;
  }

  /**
   * The network link of a client, to simulate faults: `cut`, `halfOpen`, `delay`, `drop`, `duplicate`, `withholdAcks`, `slowReader`.
   * @throws NotFound LINK_NOT_FOUND
   */
  link(target: LinkTarget): Link {
    const link = typeof target === 'string' ? this.#linksOf(target).at(-1) : this.#linkOf.get(target);
    if (link !== undefined) return link;
    const isName = typeof target === 'string';
    const near = isName ? nearest(target, [...new Set(this.#links.map(({ clientId }) => clientId))]) : undefined;
    const remedy = near === undefined ? 'use kit.connect or kit.stream' : `did you mean "${near}"?`;
    const name = isName ? `client "${target}"` : 'the stream or client';
    throw new NotFound('LINK_NOT_FOUND', `${name} is not connected through this kit; ${remedy}`);
  }

  /** The packets between a client and the broker, in order, over all connections of the client. Empty if it has never connected. */
  packets(target: LinkTarget): LoggedPacket[] {
    const links = typeof target === 'string' ? this.#linksOf(target) : [this.link(target)];
    return links.flatMap((link) => link.packets());
  }

  /**
   * Answer the next CONNECT, or the next CONNECT of one client, with a CONNACK of this reason code.
   *
   * The code is an MQTT 5.0 code from 0x80; it is translated to a return code for 3.x clients.
   * @throws InvalidInput OPTION_INVALID for any other code
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
    // Registered before the hooks of the test, and only while there is a CONNECT to refuse.
    this.#endRefusing ??= this.broker.hook('preConnect', this.#refuse, { isFirst: true });
  }

  /**
   * Advance the clock until the broker accepts a matching message, for one second by default.
   *
   * Messages that came before do not count, except for a will that was published because of a `cut` in the same turn. To expect a message
   * that comes at once, call this before its cause, and await it afterwards.
   * @throws ExpectationFailed MESSAGE_EXPECTED, which lists the messages that arrived instead; the error that `where` throws; InvalidInput;
   *   StateError KIT_MISSING after dispose
   */
  async expectMessage(filter: string, options: ExpectOptions = {}): Promise<SeenMessage> {
    return this.#expect(filter, options, (expectation) => expectation.expectMessage(), traceOf(this.expectMessage));
  }

  /**
   * Advance the clock, by one second by default, and check that no matching message is accepted.
   * @throws ExpectationFailed MESSAGE_UNEXPECTED, at the time of the message; the error that `where` throws; InvalidInput; StateError
   *   KIT_MISSING after dispose
   */
  async expectNoMessage(filter: string, options: ExpectOptions = {}): Promise<void> {
    return this.#expect(filter, options, (expectation) => expectation.expectNone(), traceOf(this.expectNoMessage));
  }

  /**
   * Close the clients and streams of the kit, stop the broker, and report leaks according to the option `leaks`.
   * @throws LeakError TEST_LEAKS with `leaks: 'error'`
   */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#report(await this.#end());
    } finally {
      this.restoreTimers();
    }
  }

  /** @returns the leaks */
  async #end(): Promise<string[]> {
    await this.clock.settle();
    const leaks = this.#policy === 'ignore' ? [] : this.#leaks();
    for (const id of [...this.#intervals.keys()]) this.#clearInterval(id);
    this.#isDisposed = true;
    for (const link of this.#links) link.release(); // no wills are published, because the broker stops first
    await this.broker.stop({ timeoutMs: 0, wills: 'keep' });
    this.clock.detach(engineOf(this.broker).services.work);
    return leaks;
  }

  #report(leaks: readonly string[]): void {
    if (leaks.length === 0) return;
    const error = new LeakError(leaks);
    if (this.#policy === 'error') throw error;
    process.emitWarning(error.message, { type: 'TestLeakWarning', code: error.code });
  }

  #leaks(): string[] {
    const open = [...engineOf(this.broker).connections.all].filter(
      ({ stream, session }) => session.client.transportInfo.transport === 'local' && !this.#ends.has(stream)
    );
    const line = (resource: object) => this.#traced.originOf(resource);
    return [
      ...open.map((connection) => {
        const { clientId } = connection.session.client;
        return `client "${clientId}" of broker.connect or broker.stream is still connected; disconnect it; opened at ${line(connection)}`;
      }),
      ...handlersOf(this.broker).map(
        (handler) =>
          `a handler of "${handler.filter}" (broker.subscribe, broker.messages, broker.respond) is still subscribed; call the function that the call has returned, or use the option signal; subscribed at ${line(handler)}`
      ),
      ...this.clock.timers.map(({ inMs, origin }) => `a timer is still armed, due in ${inMs} ms, set at ${origin}`),
      ...[...this.#waiting].map(({ what, trace }) => `${what} was not awaited; made at ${originOf(trace)}`)
    ];
  }

  async #expect<T>(
    filter: string,
    options: ExpectOptions,
    wait: (expectation: Expectation) => Promise<T>,
    trace: Error
  ): Promise<T> {
    this.#checkOpen();
    const { broker, clock } = this;
    const expectation = new Expectation(broker, clock, filter, options, this.#publishedInTurn);
    return this.#waitFor(`an expectation on "${filter}"`, trace, () => wait(expectation));
  }

  /** Wait for what a test must await. It is a leak if it has not ended when the kit is disposed of. */
  async #waitFor<T>(what: string, trace: Error, wait: () => Promise<T>): Promise<T> {
    const waiting = { what, trace };
    this.#waiting.add(waiting);
    try {
      return await wait();
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  /** Make the broker notice at once that a connection is lost. A will that it publishes counts for expectations of the same turn. */
  #loseConnection(ours: ByteStream): void {
    const { broker } = this;
    const connection = [...engineOf(broker).connections.all].find(({ stream }) => stream === ours);
    if (connection === undefined) return;
    const note = ({ message }: { message: Message }) => this.#publishedInTurn.push(message);
    const stop = broker.subscribe('$SYS/#', (message) => note({ message }), { retainHandling: 2 });
    broker.on('message.publish', note);
    connection.peerEnded();
    broker.off('message.publish', note);
    stop();
    void Promise.resolve().then(() => {
      this.#publishedInTurn = [];
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

function clockOf(clock: TestBrokerOptions['clock']): VirtualClock {
  if (clock instanceof VirtualClock) return clock;
  if (clock === undefined || (isPlainObject(clock) && Object.getPrototypeOf(clock) !== Date.prototype))
    return new VirtualClock(clock);
  throw new InvalidInput(
    'OPTION_INVALID',
    'clock',
    "a VirtualClock, or its options such as { now: '2026-05-01' }",
    clock
  );
}
