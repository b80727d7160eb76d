import { checkBroker, INSPECT, listenerText } from '../../lib/adapter.ts';
import { type BrokerError, InvalidInput } from '../../lib/index.ts';
import type { Acceptor } from './acceptor.ts';
import { type Listener, NetListener } from './net-listener.ts';
import type { TcpOptions, UnixOptions } from './options.ts';
import type { TlsMaterial, TlsSettings } from './tls-options.ts';
import { Transport, tcp, tls, unix, ws, wss } from './transport.ts';
import type { WebSocketSettings } from './websocket.ts';

/**
 * Options of `listen`: a port, optionally with `tls` and `ws`, or the path of a Unix socket. With `ws`, `path` is the path of the URL.
 */
export type ListenOptions =
  | (TcpOptions & {
      /** Settings of TLS. Default: no TLS. */
      tls?: TlsSettings;
      /** MQTT over WebSocket: `true`, or its settings. Default: false, plain TCP. */
      ws?: boolean | WebSocketSettings;
      /** With `ws`, the path of the URL. Default: `/mqtt`. */
      path?: string;
    })
  | UnixOptions;

/**
 * Accept clients over the network.
 *
 * Before `broker.start()` the listener is only added: the broker opens it when it starts, and its start fails if the address cannot be
 * bound. On a started broker the listener is opened at once: `await` the result to wait until it is open or to catch the error; without
 * `await`, an error becomes an `error` event of the broker. The broker closes the listener when it stops, and opens it again when it starts
 * again. `close()` removes it.
 *
 * ```ts
 * listen(broker, 1883);
 * listen(broker, { port: 8883, host: '0.0.0.0', tls: { certFile: 'server.crt', keyFile: 'server.key' } });
 * listen(broker, ws({ port: 8083, path: '/mqtt' }));
 * ```
 * @param where a port on 127.0.0.1, as a number or a string (`process.env.PORT`); options; or the result of `tcp`, `tls`, `ws`, `wss` or
 * `unix`
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, OPTION_MISSING, PSK_INVALID, ZONE_UNKNOWN or LISTENER_NAME_IN_USE
 */
export function listen(broker: Acceptor, where: number | string | ListenOptions | Transport): Listening {
  checkBroker(broker, 'listen');
  return new Listening(broker, new NetListener(broker, describe(where)));
}

/** A listener for the app: `open` and `close` also add it to the broker and remove it. */
export class AppListener implements Listener {
  readonly #broker: Acceptor;
  readonly #listener: Listener;

  constructor(broker: Acceptor, listener: Listener) {
    this.#broker = broker;
    this.#listener = listener;
  }

  get name(): string {
    return this.#listener.name;
  }

  get protocol(): Listener['protocol'] {
    return this.#listener.protocol;
  }

  get address(): Listener['address'] {
    return this.#listener.address;
  }

  get port(): number | undefined {
    return this.#listener.port;
  }

  async open(): Promise<void> {
    if (!this.#broker.listeners().includes(this.#listener)) this.#broker.attach(this.#listener);
    try {
      await this.#listener.open();
      if (this.#broker.state === 'connected') this.#listener.accept?.();
    } catch (error) {
      // a listener that could not be opened must not prevent the next start of the broker
      this.#broker.detach(this.#listener);
      throw error;
    }
  }

  close(): Promise<void> {
    this.#broker.detach(this.#listener);
    return this.#listener.close();
  }

  reload(material?: TlsMaterial): Promise<void> {
    return this.#listener.reload(material);
  }

  info(): ReturnType<Listener['info']> {
    return this.#listener.info();
  }

  /** Close the listener, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal */
  [INSPECT](depth: number, options: object): string {
    return listenerText(this, depth, options);
  }
}

/** A listener that can be awaited: it resolves to the listener once that is open, or at once if the broker is not started. */
export class Listening extends AppListener implements PromiseLike<Listener> {
  readonly #opened: Promise<Listener>;
  #isAwaited = false;

  /** @throws InvalidInput LISTENER_NAME_IN_USE */
  constructor(broker: Acceptor, listener: Listener) {
    super(broker, listener);
    broker.attach(listener);
    // resolves to another object, because a promise that resolves to a thenable would await it again
    const open = new AppListener(broker, listener);
    this.#opened = broker.state === 'connected' ? open.open().then(() => open) : Promise.resolve(open);
    this.#opened.catch((error) => {
      if (!this.#isAwaited) broker.failed(error, `opening listener ${listener.name}`, undefined);
    });
  }

  // biome-ignore lint/suspicious/noThenProperty: being awaited is the purpose of this class
  then<A = Listener, B = never>(
    opened?: ((listener: Listener) => A | PromiseLike<A>) | null,
    failed?: ((reason: BrokerError) => B | PromiseLike<B>) | null
  ): Promise<A | B> {
    this.#isAwaited = true;
    return this.#opened.then(opened, failed);
  }

  /** See `Promise.catch`. Rejects if the listener could not be opened. */
  catch<B = never>(failed?: ((reason: BrokerError) => B | PromiseLike<B>) | null): Promise<Listener | B> {
    return this.then(undefined, failed);
  }

  /** See `Promise.finally`. */
  finally(run?: (() => void) | null): Promise<Listener> {
    this.#isAwaited = true;
    return this.#opened.finally(run);
  }
}

function describe(where: number | string | ListenOptions | Transport): Transport {
  if (where instanceof Transport) return where;
  if (typeof where === 'number' || typeof where === 'string') return tcp({ port: where as number });
  if (typeof where !== 'object' || where === null || !('port' in where || 'path' in where)) {
    throw new InvalidInput('OPTION_MISSING', 'port', 'a port such as 1883, or the path of a Unix socket', where);
  }
  if (!('port' in where)) return unix(where);
  const { tls: security, ws: webSocket, ...rest } = where;
  if (webSocket === undefined || webSocket === false)
    return security === undefined ? tcp(rest) : tls({ ...rest, ...security });
  const settings = webSocket === true ? {} : webSocket;
  return security === undefined ? ws({ ...rest, ...settings }) : wss({ ...rest, ...security, ...settings });
}
