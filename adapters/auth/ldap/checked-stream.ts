import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { BrokerError } from '../../../lib/index.ts';
import { firstMessage, MAX_MESSAGE_BYTES, readResponse } from './ber.ts';

/** Maximum size of the responses to one request. */
const MAX_RESPONSE_BYTES = 4 * MAX_MESSAGE_BYTES;

/**
 * An open connection to an LDAP server that passes on only valid messages, one at a time. The first invalid message
 * closes it. It has the members of a socket that the LDAP client uses.
 */
export class CheckedStream extends Duplex {
  readonly connecting = false;
  readonly readyState = 'open';
  readonly #socket: Socket;
  #rest: Buffer = Buffer.alloc(0);
  /** Bytes since the last request. */
  #receivedBytes = 0;
  #fault: Error | undefined = undefined;

  constructor(socket: Socket) {
    super({ readableObjectMode: true, allowHalfOpen: false });
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
    socket.setKeepAlive(true, 60_000);
  }

  /** The reason why the connection was closed; undefined: it is open, or was closed without an error. */
  get fault(): Error | undefined {
    return this.#fault;
  }

  /** Choose whether the connection keeps the process running. */
  keepRunning(isWanted: boolean): void {
    if (isWanted) this.#socket.ref();
    else this.#socket.unref();
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#receivedBytes = 0;
    this.#socket.write(chunk, (error) => done(error));
  }

  override _final(done: () => void): void {
    this.#socket.end();
    done();
  }

  /** The error is stored instead of emitted: only requests in progress would listen, and they fail in any case. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#fault ??= error ?? undefined;
    this.#socket.destroy();
    done();
  }

  #receive(chunk: Buffer): void {
    this.#receivedBytes += chunk.length;
    try {
      if (this.#receivedBytes > MAX_RESPONSE_BYTES)
        throw new BrokerError('LDAP_INVALID', `the responses are larger than ${MAX_RESPONSE_BYTES} bytes`);
      this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
      for (let message = firstMessage(this.#rest); message !== undefined; message = firstMessage(this.#rest)) {
        this.#rest = this.#rest.subarray(message.length);
        const response = readResponse(message);
        if (response !== undefined && !this.destroyed) this.push(response.bytes);
      }
    } catch (error) {
      this.destroy(error as Error);
    }
  }
}
