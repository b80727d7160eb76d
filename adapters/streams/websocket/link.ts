import { type ClientOptions, WebSocket } from 'ws';
import { BrokerError, type Clock } from '../../../lib/index.ts';
import { type OutgoingTls, tlsOf, withTrustHint } from '../../outgoing/index.ts';
import { BackOff } from '../back-off.ts';
import { TRUST_REMEDY } from '../tls-files.ts';
import { CLOSE_MS, type Limits } from './options.ts';
import { Peer } from './peer.ts';

/** Time limit for passing an output to the system. */
const SEND_MS = 20_000;

/** The target of a link. */
export interface LinkTarget {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: OutgoingTls;
}

/** Callbacks of a link. */
export interface LinkListener {
  connected(): void;
  disconnected(reason: unknown): void;
  message(data: Buffer): void;
}

/** A connection to a server. A lost one is established again after 1 to 30 seconds. */
export class Link {
  readonly #target: LinkTarget;
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #listener: LinkListener;
  readonly #backOff: BackOff;
  #connecting: WebSocket | undefined;
  #peer: Peer | undefined;
  #isClosed = false;
  #reason = 'it is being established';

  constructor(target: LinkTarget, clock: Clock, limits: Limits, listener: LinkListener) {
    this.#target = target;
    this.#clock = clock;
    this.#limits = limits;
    this.#listener = listener;
    this.#backOff = new BackOff(clock);
    this.#connect();
  }

  /** The open connection. */
  get peer(): Peer | undefined {
    return this.#peer;
  }

  /**
   * Send data. Resolves when the bytes are passed to the system.
   * @throws BrokerError RESOURCE_DOWN, BUFFER_FULL, SEND_TIMEOUT
   */
  send(data: Buffer, isBinary: boolean): Promise<void> {
    const peer = this.#peer;
    const { host } = this.#target.url;
    if (peer?.isOpen !== true)
      return Promise.reject(new BrokerError('RESOURCE_DOWN', `no connection to ${host}: ${this.#reason}`));
    const { maxBuffered } = this.#limits;
    if (peer.bufferedBytes > maxBuffered) {
      const text = `${host} does not read: more than ${maxBuffered} bytes are queued (maxBuffered)`;
      return Promise.reject(new BrokerError('BUFFER_FULL', text));
    }
    return new Promise((resolve, reject) => {
      const late = new BrokerError('SEND_TIMEOUT', `${host} has not read an output within ${SEND_MS} ms`);
      const timer = this.#clock.setTimeout(() => peer.drop(late), SEND_MS);
      peer.send(data, isBinary, (error) => {
        this.#clock.clearTimeout(timer);
        if (error) reject(new BrokerError('RESOURCE_DOWN', `${host}: ${error.message}`, { cause: error }));
        else resolve();
      });
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#backOff.cancel();
    this.#connecting?.terminate();
    await this.#peer?.end('the rule has stopped');
  }

  #connect(): void {
    const { url, headers, tls } = this.#target;
    const { maxPayload, handshakeTimeout, pingInterval } = this.#limits;
    // closeTimeout is missing in the type definitions of ws
    const options: ClientOptions & { closeTimeout: number } = {
      ...tlsOf(tls),
      headers,
      maxPayload,
      perMessageDeflate: false,
      followRedirects: false,
      closeTimeout: CLOSE_MS
    };
    const socket = new WebSocket(url, options);
    this.#connecting = socket;
    let reason: Error | undefined;
    const timer = this.#clock.setTimeout(() => {
      reason = new BrokerError('SOURCE_DOWN', `no connection to ${url.host} within ${handshakeTimeout} ms`);
      socket.terminate();
    }, handshakeTimeout);
    const failed = (error: Error) => {
      reason ??= withTrustHint(error, TRUST_REMEDY, 'SOURCE_DOWN');
    };
    const closed = () => {
      this.#clock.clearTimeout(timer);
      this.#connecting = undefined;
      this.#lost(reason ?? new Error('the connection was closed'));
    };
    socket.on('error', failed);
    socket.once('close', closed);
    socket.once('open', () => {
      this.#clock.clearTimeout(timer);
      this.#connecting = undefined;
      socket.off('error', failed);
      socket.off('close', closed);
      this.#peer = new Peer(socket, this.#clock, pingInterval, {
        message: (data) => this.#listener.message(data),
        closed: (error) => this.#lost(error)
      });
      this.#backOff.reset();
      this.#listener.connected();
    });
  }

  #lost(reason: Error): void {
    this.#peer = undefined;
    if (this.#isClosed) return;
    this.#reason = reason.message;
    this.#listener.disconnected(reason);
    this.#backOff.later(() => this.#connect());
  }
}
