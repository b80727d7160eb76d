import type { Server } from 'node:http';
// Imported by name, so that fake timers of a test framework do not replace them.
import { clearInterval, clearTimeout, setInterval, setTimeout } from 'node:timers';
import { type Broker, type BrokerOptions, createBroker, ReasonCode } from '../../lib/index.ts';
import { managementApis } from '../management/index.ts';
import { attachWebSocket, type Listener, listen } from '../net/index.ts';
import type { HttpMounts } from '../rest/index.ts';
import { streamsApi } from '../streams-api/index.ts';
import { type Webhook, webhook } from '../webhook/index.ts';
import type { HostSettings } from './options.ts';

/** Interval at which idle connections are closed after `closeTimeout`. */
const SWEEP_MS = 50;

/** The use of a broker by the apps of this process. */
interface Use {
  /** The number of apps that are ready and not closed. */
  apps: number;
  /** True if an app has started the broker, so that the last one stops it. */
  isStartedHere: boolean;
}

const uses = new WeakMap<Broker, Use>();

/** The broker within the life cycle of an app: `attachTo`, `open`, `start`, and at the end `leaveServer`, `close`. */
export class HostedBroker {
  readonly broker: Broker;
  readonly #settings: HostSettings;
  #server: Server | undefined;
  #webSocket: Listener | undefined;
  readonly #listeners: Listener[] = [];
  readonly #webhooks: Webhook[] = [];
  /** Undefined: the app is not ready. */
  #use: Use | undefined;
  #isClosing = false;
  #leaving: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sweep: NodeJS.Timeout | undefined;

  /** @param defaults options of a new broker, unless the app sets them */
  constructor(settings: HostSettings, defaults: BrokerOptions) {
    const { broker } = settings;
    this.#settings = settings;
    this.broker = isBroker(broker) ? broker : createBroker({ ...defaults, ...broker });
  }

  /** Serve MQTT over WebSocket on the HTTP server of the app, unless `webSocket` is false. */
  attachTo(server: Server): void {
    const { webSocket } = this.#settings;
    this.#server = server;
    this.#webSocket = webSocket === false ? undefined : attachWebSocket(this.broker, server, webSocket);
  }

  /** The interfaces to mount on the server of the app. */
  mounts(): readonly HttpMounts[] {
    const { management, streamsApi: streams } = this.#settings;
    const { broker } = this;
    return [
      ...(management.length > 0 ? [managementApis(broker, management)] : []),
      ...streams.map((options) => streamsApi(broker, { prefix: '/streams-api', ...options }))
    ];
  }

  /** Add the webhooks and the separate ports, which open when the broker starts. */
  async open(): Promise<void> {
    const { webhooks, listen: places } = this.#settings;
    for (const options of webhooks) this.#webhooks.push(webhook(this.broker, options));
    for (const place of places) this.#listeners.push(await listen(this.broker, place));
  }

  /** Start the broker, unless it runs. @throws errors of `broker.start` */
  async start(): Promise<void> {
    if (this.#isClosing) return; // the app was closed before it was ready
    const { broker } = this;
    const use = uses.get(broker) ?? { apps: 0, isStartedHere: false };
    uses.set(broker, use);
    use.isStartedHere ||= broker.state !== 'connected';
    use.apps++;
    this.#use = use;
    try {
      await broker.start(); // even if it is connected: a stop may have been requested
    } catch (error) {
      if (--use.apps === 0) use.isStartedHere = false;
      this.#use = undefined;
      throw error;
    }
  }

  /** True if the broker stops with this app. */
  get #isLast(): boolean {
    return this.#use?.apps === 0 && this.#use.isStartedHere;
  }

  /**
   * Disconnect the clients from the HTTP server of the app, which does not close while it has connections. HTTP requests in progress can use the broker
   * until `closeTimeout`. Only the first call counts, because an app can be closed twice.
   */
  leaveServer(): Promise<void> {
    this.#isClosing = true;
    this.#leaving ??= this.#leaveServer();
    return this.#leaving;
  }

  async #leaveServer(): Promise<void> {
    if (this.#use !== undefined) this.#use.apps--;
    if (this.#webSocket !== undefined) {
      await this.#webSocket.close();
      this.#disconnect([this.#webSocket]);
    }
    if (this.#use?.isStartedHere) this.#timer = setTimeout(() => this.#endRequests(), this.#settings.closeTimeout);
  }

  /**
   * Stop the broker even though requests are in progress. This ends event streams, whose idle connections would keep
   * the server open. If other apps use the broker, the requests end when their connections close.
   */
  #endRequests(): void {
    if (!this.#isLast && this.broker.state === 'connected') {
      this.#server?.closeAllConnections?.();
      return;
    }
    this.#stop().catch(() => {}); // reported when the app has closed
    this.#sweep = setInterval(() => this.#server?.closeIdleConnections?.(), SWEEP_MS);
  }

  /** Called when the HTTP server has closed. Stops the broker if this is the last of the apps that have started it. Only the first call counts. */
  close(): Promise<void> {
    this.#isClosing = true;
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#timer);
    clearInterval(this.#sweep);
    try {
      if (this.#stopping !== undefined || this.#isLast) await this.#stop(); // waits for events that webhooks still send
      await this.#leaveBroker();
    } finally {
      for (const hook of this.#webhooks) hook.close();
    }
  }

  /** Close everything that the app has opened at a broker that continues without it or is started again. */
  async #leaveBroker(): Promise<void> {
    const closed = await Promise.allSettled(this.#listeners.map((listener) => listener.close()));
    this.#disconnect(this.#listeners); // even if a listener could not be closed
    for (const one of closed) if (one.status === 'rejected') throw one.reason;
  }

  #stop(): Promise<void> {
    this.#stopping ??= this.broker.stop();
    if (this.#use !== undefined) this.#use.isStartedHere = false;
    return this.#stopping;
  }

  /** Disconnect the clients of listeners as a stop does: their sessions are kept. */
  #disconnect(listeners: readonly Listener[]): void {
    const names = new Set(listeners.map(({ name }) => name));
    for (const session of this.broker.sessions) {
      const { listener } = session.transportInfo;
      if (listener !== undefined && names.has(listener))
        session.kick({ reasonCode: ReasonCode.serverShuttingDown, session: 'keep' });
    }
  }
}

/** Recognized by its methods, because a second copy of the package has a different class. */
function isBroker(value: Broker | BrokerOptions): value is Broker {
  return typeof (value as Broker).start === 'function' && typeof (value as Broker).attach === 'function';
}
