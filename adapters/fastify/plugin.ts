// Imported by name, so that fake timers of a test framework do not replace them.
import { clearInterval, clearTimeout, setInterval, setTimeout } from 'node:timers';
import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { type Broker, type BrokerOptions, createBroker, ReasonCode, StateError } from '../../lib/index.ts';
import { managementApis } from '../management/index.ts';
import { attachWebSocket, type Listener, listen } from '../net/index.ts';
import { streamsApi } from '../streams-api/index.ts';
import { type Webhook, webhook } from '../webhook/index.ts';
import { type FastifyMqttOptions, type FastifyMqttSettings, readFastifyOptions } from './options.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** The broker, which the plugin `fastifyMqtt` of `embermq/fastify` starts and stops with the app. */
    readonly mqtt: Broker;
  }
}

const NAME = 'embermq';
const DECORATOR = 'mqtt';
/** Interval at which idle connections are closed after `closeTimeout`. */
const SWEEP_MS = 50;

/**
 * The broker as a plugin of Fastify 5: it starts when the app is ready, serves MQTT over WebSocket on the server of the
 * app, and stops when the app closes. `app.mqtt` is the broker, in all contexts of the app that registers the plugin.
 *
 * ```ts
 * await app.register(fastifyMqtt, { listen: 1883, management: true });
 * app.post('/alarm', async () => app.mqtt.publish('alarms', 'fire'));
 * ```
 * `register` rejects with InvalidInput OPTION_UNKNOWN or OPTION_INVALID, and with StateError PLUGIN_REGISTERED if the
 * app already has the plugin. `ready` and `listen` reject with the errors of `broker.start`.
 */
export const fastifyMqtt: FastifyPluginAsync<FastifyMqttOptions> = Object.assign(
  async (fastify: FastifyInstance, options: FastifyMqttOptions) => {
    if (fastify.hasDecorator(DECORATOR)) {
      const text = `fastify.${DECORATOR} exists already; register fastifyMqtt once, in the outermost context that uses it`;
      throw new StateError('PLUGIN_REGISTERED', text);
    }
    await new MqttInApp(fastify, readFastifyOptions(options)).mount();
  },
  {
    // The decorator belongs to the app, not to a context of the plugin. This is what the package fastify-plugin sets.
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: NAME,
    [Symbol.for('plugin-meta')]: { name: NAME, fastify: '5.x' }
  }
);

/** The use of a broker by the apps of this process. */
interface Use {
  /** The number of apps that are ready and not closed. */
  apps: number;
  /** True if an app has started the broker, so that the last one stops it. */
  isStartedHere: boolean;
}

const uses = new WeakMap<Broker, Use>();

/** The broker within the life cycle of an app. */
class MqttInApp {
  readonly #fastify: FastifyInstance;
  readonly #settings: FastifyMqttSettings;
  readonly #broker: Broker;
  readonly #webSocket: Listener | undefined;
  readonly #listeners: Listener[] = [];
  readonly #webhooks: Webhook[] = [];
  /** Undefined: the app is not ready. */
  #use: Use | undefined;
  #isClosing = false;
  #stopping: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sweep: NodeJS.Timeout | undefined;

  constructor(fastify: FastifyInstance, settings: FastifyMqttSettings) {
    const { broker, webSocket } = settings;
    this.#fastify = fastify;
    this.#settings = settings;
    this.#broker = isBroker(broker) ? broker : createBroker({ logger: fastify.log, ...broker });
    this.#webSocket = webSocket === false ? undefined : attachWebSocket(this.#broker, fastify.server, webSocket);
  }

  async mount(): Promise<void> {
    const broker = this.#broker;
    const fastify = this.#fastify;
    const { management, streamsApi: streams, webhooks, listen: places } = this.#settings;
    // before anything that may fail, so that closing the app later leaves nothing open
    fastify.addHook('onReady', () => this.#start());
    fastify.addHook('preClose', () => this.#leaveServer());
    fastify.addHook('onClose', () => this.#close());
    for (const options of webhooks) this.#webhooks.push(webhook(broker, options));
    if (management.length > 0) fastify.register(managementApis(broker, management).fastify);
    for (const options of streams) fastify.register(streamsApi(broker, { prefix: '/streams-api', ...options }).fastify);
    for (const place of places) this.#listeners.push(await listen(broker, place));
    fastify.decorate(DECORATOR, broker);
  }

  async #start(): Promise<void> {
    if (this.#isClosing) return; // `close` was called before the app was ready: Fastify calls `onReady` after `onClose`
    const broker = this.#broker;
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
   * until `closeTimeout`.
   */
  async #leaveServer(): Promise<void> {
    this.#isClosing = true;
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
    const { server } = this.#fastify;
    if (!this.#isLast && this.#broker.state === 'connected') {
      server.closeAllConnections?.();
      return;
    }
    this.#stop().catch(() => {}); // reported when the app has closed
    this.#sweep = setInterval(() => server.closeIdleConnections?.(), SWEEP_MS);
  }

  /** Called when the HTTP server has closed. */
  async #close(): Promise<void> {
    this.#isClosing = true;
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
    this.#stopping ??= this.#broker.stop();
    if (this.#use !== undefined) this.#use.isStartedHere = false;
    return this.#stopping;
  }

  /** Disconnect the clients of listeners as a stop does: their sessions are kept. */
  #disconnect(listeners: readonly Listener[]): void {
    const names = new Set(listeners.map(({ name }) => name));
    for (const session of this.#broker.sessions) {
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
