// A bridge has no queue. The design had bridges on the outbox. But the promise "QoS 2 neither loses nor doubles over
// kill -9" needs the packet ids of both sides in one commit with what waits. A session has exactly that: its queue,
// ids and states are committed by the ledger. So a bridge is a relay of packets between a session here and one at the
// server, with equal ids; it keeps nothing itself, and recovery is that of MQTT. What waits has the limits of a
// session, in options of the bridge. MQTT.js as its client would cost more and keep separate ids.

import { randomBytes } from 'node:crypto';
import { type BridgeAccess, bridgeAccessOf, type ConnectorKind, checkBroker, type Inflow } from '../../lib/adapter.ts';
import { type Broker, type ByteStream, InvalidInput, StateError } from '../../lib/index.ts';
import { dial } from '../outgoing/index.ts';
import type { Leg } from './leg.ts';
import { type BridgeOptions, type BridgeSettings, localClientId, readBridgeOptions } from './options.ts';
import {
  type BridgeCounters,
  END_OF_SESSION,
  type EndedSessions,
  openLocal,
  Relay,
  type RelayContext,
  subscribeLocal
} from './relay.ts';
import { TopicMap } from './topics.ts';

/** Forwards messages between a broker and another MQTT server. */
export class Bridge {
  /** The name of the bridge. */
  readonly name: string;
  readonly #broker: Broker;
  readonly #access: BridgeAccess;
  readonly #settings: BridgeSettings;
  readonly #context: RelayContext;
  readonly #detach: () => void;
  readonly #outages: ReturnType<BridgeAccess['outages']>;
  #isStarted = false;
  #isClosed = false;
  /** True if the local session exists and has the subscriptions. */
  #isPrepared = false;
  /** True if the local session began after the last connection to the remote server. */
  #isSessionNew = false;
  #preparing: Leg | undefined = undefined;
  #dialing: AbortController | undefined = undefined;
  #relay: Relay | undefined = undefined;
  #isConnected = false;
  #lastError: Error | undefined = undefined;
  #failures = 0;
  #connectedMs = 0;
  #retryTimer: unknown = undefined;
  #connectTimer: unknown = undefined;
  #keepAliveTimer: unknown = undefined;
  #alarmTimer: unknown = undefined;
  /** Keeps the process running while there is no connection; the timers of a broker do not. */
  #handle: NodeJS.Timeout | undefined = undefined;

  /** @internal @param staleFilters see `RelayContext` */
  constructor(broker: Broker, settings: BridgeSettings, staleFilters: readonly string[] = []) {
    this.name = settings.name;
    this.#broker = broker;
    this.#access = bridgeAccessOf(broker);
    this.#settings = settings;
    this.#context = {
      broker,
      access: this.#access,
      settings,
      out: new TopicMap(settings.out),
      in: new TopicMap(settings.in),
      staleFilters,
      counters: { sent: 0, received: 0, dropped: 0, refused: 0, connected: 0 },
      token: randomBytes(9).toString('base64url')
    };
    this.#outages = this.#access.outages(() => broker.clock.now());
    this.#outages.begin();
    this.#detach = broker.connectors.attach('bridge', this);
    this.#access.made(this.name);
    broker.on('broker.started', this.#brokerStarted);
    broker.on('broker.stopped', this.#brokerStopped);
    if (settings.start) this.start();
  }

  /** True if the bridge is connected, or connects as soon as possible. */
  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** `idle`: the bridge is not started; `disconnected`: there is currently no connection to the remote server. */
  get state(): 'idle' | 'connected' | 'disconnected' {
    if (!this.#isStarted) return 'idle';
    return this.#isConnected ? 'connected' : 'disconnected';
  }

  /** Number of messages that wait to be sent to the remote server, or for its acknowledgement. */
  get size(): number {
    if (!this.#hasSession) return 0;
    const { mqueueLen, inflight } = this.#broker.sessions.get(localClientId(this.name)).counters();
    return mqueueLen + inflight;
  }

  /**
   * The reason why the last connection has ended or could not be established; undefined while the bridge is connected.
   */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  /** Counters of forwarded messages since the bridge was created. */
  get counters(): BridgeCounters {
    return { ...this.#context.counters };
  }

  /** The messages of the remote server, for the question why one did not arrive. @internal */
  get inflow(): Inflow {
    return {
      publishes: (topic) => this.#context.in.isTarget(topic),
      outages: this.#outages
    };
  }

  /** @deprecated Use `counters`. */
  get figures(): BridgeCounters {
    return this.counters;
  }

  /** Connect, and forward messages. A bridge is started when it is created, unless the option `start` is false. */
  start(): void {
    if (this.#isStarted || this.#isClosed) return;
    this.#isStarted = true;
    this.#failures = 0;
    if (this.#broker.state === 'connected') this.#begin();
  }

  /** Disconnect. Messages for the remote server are queued until the next start. */
  stop(): void {
    this.#halt({});
  }

  #halt(ends: EndedSessions): void {
    if (!this.#isStarted) return;
    this.#isStarted = false;
    this.#endConnecting(ends.local || !this.#settings.isPersisted);
    this.#relay?.close(undefined, ends);
    this.#clearAlarm();
    clearInterval(this.#handle);
    this.#lastError = undefined;
  }

  /** Stop, and delete the queued messages unless they are persisted. */
  close(): void {
    if (this.#isClosed) return;
    this.#halt({ local: !this.#settings.isPersisted });
    this.#isClosed = true;
    this.#detach();
    this.#broker.off('broker.started', this.#brokerStarted);
    this.#broker.off('broker.stopped', this.#brokerStopped);
    if (!this.#settings.isPersisted) this.#deleteSession();
  }

  /**
   * Close, and delete the queued messages, including those in the store. The session at the remote server also ends if
   * the bridge is connected with MQTT 5.0; otherwise it remains there.
   */
  delete(): void {
    this.#halt({ local: true, remote: true });
    this.close();
    this.#deleteSession();
  }

  /** @deprecated Use `delete`. */
  discard(): void {
    this.delete();
  }

  #deleteSession(): void {
    if (!this.#hasSession) return;
    try {
      this.#broker.sessions.get(localClientId(this.name)).kick();
    } catch (error) {
      this.#broker.failed(error, `closing the bridge ${this.name}`);
    }
  }

  get #hasSession(): boolean {
    return this.#broker.sessions.has(localClientId(this.name));
  }

  readonly #brokerStarted = (): void => {
    this.#isPrepared = false;
    this.#failures = 0;
    if (this.#isStarted) this.#begin();
  };

  readonly #brokerStopped = (): void => {
    this.#endConnecting();
    this.#relay?.close(new StateError('BROKER_NOT_STARTED', 'the broker was stopped'));
    this.#broker.clock.clearTimeout(this.#retryTimer);
    this.#clearAlarm();
    clearInterval(this.#handle);
  };

  // ------------------------------------------------------------------------------------------------------------- connecting

  #begin(): void {
    clearInterval(this.#handle);
    this.#handle = setInterval(() => undefined, 0x7fff_ffff);
    this.#armAlarm();
    this.#connect();
  }

  #connect(): void {
    const { clock } = this.#broker;
    clock.clearTimeout(this.#retryTimer);
    const isBusy = this.#relay !== undefined || this.#dialing !== undefined || this.#preparing !== undefined;
    if (!this.#isStarted || this.#broker.state !== 'connected' || isBusy) return;
    this.#connectTimer = clock.setTimeout(() => {
      const { connectTimeout } = this.#settings;
      this.#failed(new StateError('CONNECT_TIMEOUT', `the remote server did not answer within ${connectTimeout} ms`));
    }, this.#settings.connectTimeout);
    if (this.#isPrepared && this.#hasSession) void this.#dial();
    else {
      this.#isPrepared = false; // the session may have been deleted meanwhile
      this.#prepare();
    }
  }

  /**
   * Create the local session and subscribe, so that messages are queued while there is no connection to the remote
   * server.
   */
  #prepare(): void {
    const { isPersisted } = this.#settings;
    const isClean = !isPersisted && !this.#isPrepared;
    const leg = openLocal(
      this.#access,
      this.#settings,
      { receiveMaximum: 1 },
      {
        receive: (packet) => {
          if (packet.cmd !== 'connack' || this.#isPrepared) return;
          if (packet.reasonCode !== 0) throw new StateError('BRIDGE_REFUSED', 'this broker has refused the bridge');
          this.#isPrepared = true;
          if (!packet.sessionPresent) this.#isSessionNew = true;
          subscribeLocal(this.#broker.sessions.get(localClientId(this.name)), this.#settings.out);
          leg.close({ cmd: 'disconnect', reasonCode: 0 });
          this.#preparing = undefined;
          void this.#dial();
        },
        processed: () => undefined,
        closed: (error) => this.#failed(error),
        blocked: () => undefined
      },
      isClean
    );
    this.#preparing = leg;
  }

  async #dial(): Promise<void> {
    const dialing = new AbortController();
    this.#dialing = dialing;
    let stream: ByteStream;
    try {
      stream = await dial(this.#settings, dialing.signal);
    } catch (error) {
      if (this.#dialing === dialing) this.#failed(error as Error);
      return;
    }
    if (this.#dialing !== dialing) {
      stream.destroy();
      return;
    }
    this.#dialing = undefined;
    try {
      this.#attach(stream);
    } catch (error) {
      stream.destroy();
      this.#failed(error as Error);
    }
  }

  #attach(stream: ByteStream): void {
    const { settings, counters } = this.#context;
    // the packet ids of a lost local session must not collide with those that the remote session still has
    const isClean = settings.clean || (this.#isSessionNew && settings.out.some(({ qos }) => qos === 2));
    const relay = new Relay(this.#context, stream, isClean, {
      accepted: () => {
        this.#isSessionNew = false;
      },
      sessionLost: () => {
        this.#isSessionNew = true;
      },
      connected: (sessionPresent) => {
        this.#broker.clock.clearTimeout(this.#connectTimer);
        this.#isConnected = true;
        this.#outages.end();
        this.#lastError = undefined;
        this.#connectedMs = this.#broker.clock.monotonic();
        counters.connected++;
        this.#clearAlarm();
        this.#keepAlive(relay);
        this.#access.announce('bridge.connected', { bridge: this.name, sessionPresent });
      },
      closed: (error) => {
        if (this.#relay === relay) this.#relay = undefined;
        this.#failed(error);
      }
    });
    this.#relay = relay;
  }

  #keepAlive(relay: Relay): void {
    const { clock } = this.#broker;
    const intervalMs = relay.keepAlive * 1000 * 0.75;
    if (intervalMs === 0) return;
    relay.ping();
    const check = () => {
      if (this.#relay !== relay) return;
      if (relay.ping()) this.#keepAliveTimer = clock.setTimeout(check, intervalMs);
      else relay.close(new StateError('BRIDGE_TIMEOUT', 'the remote server no longer answers'));
    };
    this.#keepAliveTimer = clock.setTimeout(check, intervalMs);
  }

  // ----------------------------------------------------------------------------------------------------------------- ending

  /** Called when connecting has failed or a connection has ended: try again later. */
  #failed(error: Error): void {
    const wasConnected = this.#isConnected;
    this.#isConnected = false;
    this.#endConnecting();
    if (this.#relay !== undefined) {
      this.#relay.close(error); // this method is called again
      return;
    }
    const { clock } = this.#broker;
    if (this.#isStarted) {
      this.#lastError = error;
      this.#armAlarm();
      const { backOff, maxBackOff } = this.#settings;
      if (wasConnected && clock.monotonic() - this.#connectedMs >= backOff) this.#failures = 0;
      const delayMs = Math.min(maxBackOff, backOff * 2 ** Math.min(this.#failures++, 30));
      clock.clearTimeout(this.#retryTimer);
      this.#retryTimer = clock.setTimeout(() => this.#connect(), delayMs * (0.75 + Math.random() / 2));
    }
    if (!wasConnected) return;
    this.#outages.begin();
    const cause = this.#isStarted ? error : undefined;
    this.#access.announce('bridge.disconnected', { bridge: this.name, error: cause });
  }

  /**
   * Abort an attempt to connect, and remove the timers of a connection.
   * @param endsSession true if the local session ends as well
   */
  #endConnecting(endsSession = !this.#settings.isPersisted): void {
    const { clock } = this.#broker;
    clock.clearTimeout(this.#connectTimer);
    clock.clearTimeout(this.#keepAliveTimer);
    clock.clearTimeout(this.#retryTimer);
    const dialing = this.#dialing;
    this.#dialing = undefined;
    dialing?.abort(new StateError('BRIDGE_STOPPED', 'connecting was aborted'));
    this.#preparing?.close(endsSession ? END_OF_SESSION : undefined);
    this.#preparing = undefined;
  }

  get #alarmId(): string {
    return `bridge_down:${this.name}`;
  }

  #armAlarm(): void {
    const { clock, alarms } = this.#broker;
    if (this.#alarmTimer !== undefined) return;
    this.#alarmTimer = clock.setTimeout(() => {
      alarms.raise({
        id: this.#alarmId,
        severity: 'error',
        title: `the bridge ${this.name} has no connection`,
        summary: `the bridge ${this.name} is not connected to ${this.#settings.url.host}: ${this.#lastError?.message ?? 'no answer'}`
      });
    }, this.#settings.alarmAfter);
  }

  #clearAlarm(): void {
    this.#broker.clock.clearTimeout(this.#alarmTimer);
    this.#alarmTimer = undefined;
    this.#broker.alarms.clear(this.#alarmId);
  }
}

/**
 * Forward messages between a broker and another MQTT server:
 * `bridge(broker, { url: 'mqtt://server', out: [{ filter: 'site/#', qos: 1 }], in: [{ filter: 'commands/#', qos: 1 }] })`.
 *
 * Without a connection, messages to the server are queued in a session of this broker, and messages from the server in
 * the session of the bridge there. With `isPersisted`, and a store at both sides, QoS 1 loses no messages and QoS 2
 * neither loses nor duplicates messages when a process ends.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN, OPTION_MISSING; StateError RECORD_EXISTS if a bridge with this
 * name exists
 */
export function bridge(broker: Broker, options: BridgeOptions): Bridge {
  checkBroker(broker, 'bridge');
  return new Bridge(broker, readBridgeOptions(options));
}

/**
 * Allow bridges to be created at run time, over the management interface or with `broker.connectors`:
 * `createBroker({ connectors: [bridges()] })`. Passwords and keys are stored with the state of the broker, and never
 * shown.
 */
export function bridges(): ConnectorKind<Broker> {
  return {
    name: 'bridge',
    secrets: ['password', 'key', 'passphrase'],
    check: (given) => {
      if ('start' in given)
        throw new InvalidInput(
          'OPTION_UNKNOWN',
          'bridge.start',
          'no "start": it is started, and can be stopped',
          given.start
        );
      const { url } = readBridgeOptions(given as unknown as BridgeOptions);
      // the settings are shown, and the usual message contains the value
      const expected = 'a URL without a password; use "password"';
      if (url.password !== '')
        throw new InvalidInput('OPTION_INVALID', 'bridge.url', expected, undefined, `bridge.url: expected ${expected}`);
    },
    create: (broker, given, before) => {
      const settings = readBridgeOptions(given as unknown as BridgeOptions);
      const present = new Set(settings.in.map(({ subscription }) => subscription));
      const past = before === undefined ? [] : readBridgeOptions(before as unknown as BridgeOptions).in;
      const stale = past.map(({ subscription }) => subscription).filter((filter) => !present.has(filter));
      return new Bridge(broker, settings, stale);
    }
  };
}
