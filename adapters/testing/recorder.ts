// A recorder stands between the clients and a broker of any make, because the traffic worth recording is often that of
// another broker, and a broker that runs need not be restarted or configured for it. It passes bytes on unchanged, and
// reads nothing while a client, the broker or the file is slow.

import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { BrokerError, InvalidInput } from '../../lib/index.ts';
import { type RecordedConnection, RecordingWriter } from '../../lib/testing/index.ts';

/** Options of `recordTraffic`. */
export interface RecordOptions {
  /** Opens a connection to the broker, one for each client. */
  readonly connect: () => Duplex | Promise<Duplex>;
  /** Port for the clients. Default: 0, a free one. */
  readonly port?: number;
  /** Address for the clients. Default: 127.0.0.1, for clients of this machine. */
  readonly host?: string;
  /** True: the file has the passwords. Default false: they are replaced by `redacted`. */
  readonly passwords?: boolean;
  /** Called if the broker cannot be reached for a client, whose connection is then closed. */
  readonly onError?: (error: Error) => void;
}

/** A recorder that runs. */
export interface TrafficRecorder extends AsyncDisposable {
  /** The port for the clients. */
  readonly port: number;
  /** The number of connections so far. */
  readonly connections: number;
  /** The number of packets so far. */
  readonly frames: number;
  /** Rejects when the file cannot be written, and resolves when the recorder is closed. */
  readonly ended: Promise<void>;
  /** Close the port and the connections, and complete the file. @throws BrokerError FILE_UNWRITABLE */
  close(): Promise<void>;
}

/**
 * Record the traffic between MQTT clients and a broker for `kit.replay`.
 *
 * Clients connect to the port of the recorder, over TCP without TLS, which connects to the broker for each of them. The file has every
 * packet with its time, and who has closed the connection. It is readable by its owner only, because it contains payloads and user names.
 *
 * ```ts
 * const recorder = await recordTraffic('traffic.jsonl', { port: 1884, connect: () => connect(1883, 'broker') });
 * ```
 * @param file a path; the file must not exist
 * @throws InvalidInput OPTION_INVALID; BrokerError FILE_UNWRITABLE if the file exists or cannot be created; LISTENER_BIND_FAILED
 */
export async function recordTraffic(file: string, options: RecordOptions): Promise<TrafficRecorder> {
  const unwritable = (cause: unknown): BrokerError =>
    new BrokerError('FILE_UNWRITABLE', `cannot write ${file}: ${(cause as Error).message}`, { cause });
  const { port = 0, host = '127.0.0.1', connect } = options;
  if (typeof connect !== 'function')
    throw new InvalidInput('OPTION_INVALID', 'connect', 'a function that opens a connection to the broker', connect);
  const output = createWriteStream(file, { flags: 'wx', mode: 0o600 });
  await once(output, 'open').catch((cause) => {
    throw unwritable(cause);
  });
  const recorder = new Recorder(output, options, unwritable);
  try {
    await recorder.listen(port, host);
  } catch (cause) {
    await recorder.close();
    const text = `cannot listen on ${host}:${port}: ${(cause as Error).message}; choose another port`;
    throw new BrokerError('LISTENER_BIND_FAILED', text, { cause });
  }
  return recorder;
}

class Recorder implements TrafficRecorder {
  readonly ended: Promise<void>;
  readonly #output: WriteStream;
  readonly #options: RecordOptions;
  readonly #writer: RecordingWriter;
  readonly #server: Server;
  readonly #streams = new Set<Duplex>();
  readonly #unwritable: (cause: unknown) => BrokerError;
  #fault: unknown;

  constructor(output: WriteStream, options: RecordOptions, unwritable: (cause: unknown) => BrokerError) {
    this.#output = output.setMaxListeners(0); // each connection may wait for it
    this.#options = options;
    this.#unwritable = unwritable;
    const { passwords } = options;
    const monotonic = () => performance.now();
    const write = (line: string) => output.writable && output.write(line); // a broker may be dialled longer
    this.#writer = new RecordingWriter(write, { passwords, monotonic, startedAt: new Date() });
    this.#server = createServer((client) => void this.#serve(client));
    this.ended = new Promise((resolve, reject) => {
      output.on('error', (cause) => {
        this.#fault = cause;
        void this.close().catch(reject);
      });
      output.on('finish', resolve);
    });
    this.ended.catch(() => {}); // `close` throws as well
  }

  get port(): number {
    return (this.#server.address() as AddressInfo | null)?.port ?? 0;
  }

  get connections(): number {
    return this.#writer.connections;
  }

  get frames(): number {
    return this.#writer.frames;
  }

  async listen(port: number, host: string): Promise<void> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
  }

  async close(): Promise<void> {
    this.#server.close();
    if (this.#output.writable) {
      this.#writer.end();
      const finished = once(this.#output, 'finish');
      this.#output.end();
      await finished.catch((cause) => (this.#fault = cause));
    }
    for (const stream of this.#streams) stream.destroy();
    if (this.#fault !== undefined) throw this.#unwritable(this.#fault);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(client: Socket): Promise<void> {
    client.on('error', () => {}); // its end is recorded
    client.setNoDelay();
    this.#streams.add(client.once('close', () => this.#streams.delete(client)));
    const record = this.#writer.open(client.remoteAddress ?? '');
    try {
      const broker = await this.#options.connect();
      broker.on('error', () => {});
      this.#streams.add(broker.once('close', () => this.#streams.delete(broker)));
      this.#join(client, broker, record);
    } catch (error) {
      record.ended(client.destroyed ? 'client' : 'broker');
      client.destroy();
      this.#options.onError?.(error as Error);
    }
  }

  #join(client: Duplex, broker: Duplex, record: RecordedConnection): void {
    if (client.destroyed) {
      record.ended('client'); // while the broker was dialled
      broker.destroy();
      return;
    }
    this.#forward(client, broker, (chunk) => record.sent(chunk));
    this.#forward(broker, client, (chunk) => record.received(chunk));
    const end = (by: 'client' | 'broker', other: Duplex) => () => {
      record.ended(by);
      other.end();
    };
    for (const event of ['end', 'close']) {
      client.on(event, end('client', broker));
      broker.on(event, end('broker', client));
    }
  }

  #forward(from: Duplex, to: Duplex, note: (chunk: Buffer) => void): void {
    from.on('data', (chunk: Buffer) => {
      if (!this.#output.writable) return;
      note(chunk);
      to.write(chunk);
      const slow = [to, this.#output].find(({ writableNeedDrain }) => writableNeedDrain);
      if (slow === undefined) return;
      from.pause();
      slow.once('drain', () => from.resume());
    });
    to.once('close', () => from.resume()); // its end must be read
  }
}
