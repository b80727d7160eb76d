import type { Acceptor } from './gate.ts';
import { type Listener, NetListener } from './net-listener.ts';
import type { TcpOptions, UnixOptions } from './options.ts';
import type { TlsMaterial, TlsSettings } from './tls.ts';
import { Transport, tcp, tls, unix, ws, wss } from './transport.ts';
import type { WebSocketSettings } from './websocket.ts';

/**
 * What `listen` takes in one object: a port, with `tls` and `ws` where wanted, or the path of a Unix socket. With `ws`, `path` is the path
 * of the URL.
 */
export type ListenOptions =
  | (TcpOptions & { tls?: TlsSettings; ws?: boolean | WebSocketSettings; path?: string })
  | UnixOptions;

/**
 * Let clients in over the network.
 *
 * Before `broker.start()` the listener is only made known: the broker opens it when it starts, and rejects its start if the address can not be
 * had. On a broker that has started it is opened at once: `await` it to have it open or to catch the error; without `await` an error
 * becomes the broker's `error` event. The broker closes it when it stops.
 *
 * ```ts
 * listen(broker, 1883);
 * listen(broker, { port: 8883, host: '0.0.0.0', tls: { certFile: 'server.crt', keyFile: 'server.key' } });
 * listen(broker, ws({ port: 8083, path: '/mqtt' }));
 * ```
 * @param where a port of 127.0.0.1, options, or what `tcp`, `tls`, `ws`, `wss` or `unix` described
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID or OPTION_MISSING
 */
export function listen(broker: Acceptor, where: number | ListenOptions | Transport): Listening {
  const listener = new NetListener(broker, describe(where));
  broker.attach(listener);
  return new Listening(broker, listener);
}

/** What `Listening` needs besides of a listener. */
interface Openable extends Listener {
  readonly opening: Promise<void> | undefined;
  report(error: unknown): void;
}

/** A listener that can also be awaited: resolves to it when it is open, or at once where the broker has not started yet. */
export class Listening implements Listener, PromiseLike<Listener> {
  readonly #listener: Openable;
  readonly #opened: Promise<Listener>;
  #isAwaited = false;

  constructor(broker: Acceptor, listener: Openable) {
    this.#listener = listener;
    const isStarted = broker.state === 'connected' || listener.opening !== undefined;
    this.#opened = isStarted ? listener.open().then(() => listener) : Promise.resolve(listener);
    this.#opened.catch((error) => {
      if (!this.#isAwaited) listener.report(error);
    });
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

  open(): Promise<void> {
    return this.#listener.open();
  }

  close(): Promise<void> {
    return this.#listener.close();
  }

  reload(material?: TlsMaterial): Promise<void> {
    return this.#listener.reload(material);
  }

  info(): ReturnType<Listener['info']> {
    return this.#listener.info();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // biome-ignore lint/suspicious/noThenProperty: being awaited is what this class is for
  then<A = Listener, B = never>(
    opened?: ((listener: Listener) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null
  ): PromiseLike<A | B> {
    this.#isAwaited = true;
    return this.#opened.then(opened, failed);
  }
}

function describe(where: number | ListenOptions | Transport): Transport {
  if (where instanceof Transport) return where;
  if (typeof where === 'number') return tcp({ port: where });
  if (!('port' in where)) return unix(where);
  const { tls: security, ws: webSocket, ...rest } = where;
  if (webSocket === undefined || webSocket === false)
    return security === undefined ? tcp(rest) : tls({ ...rest, ...security });
  const settings = webSocket === true ? {} : webSocket;
  return security === undefined ? ws({ ...rest, ...settings }) : wss({ ...rest, ...security, ...settings });
}
