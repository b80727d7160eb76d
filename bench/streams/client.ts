import { connect, type Socket } from 'node:net';
import { connectFrame, DISCONNECT_FRAME, subscribeFrame } from '../load/frames.ts';

/** The address of a broker. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

const SHAPE = { v5: false, clean: true };
const NO_REST = Buffer.alloc(0);
const ANSWER_MS = 10_000;

/** A client of a broker, over MQTT 3.1.1 without keep alive. */
export class Client {
  readonly #socket: Socket;
  readonly #message: (topic: string, payload: string) => void;
  #rest: Buffer = NO_REST;
  #answered: ((code: number) => void) | undefined;
  #refused: ((error: Error) => void) | undefined;
  /** The reason why the connection has ended. */
  fault: Error | undefined;

  private constructor(socket: Socket, message: (topic: string, payload: string) => void) {
    this.#socket = socket;
    this.#message = message;
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', (error) => this.#end(error));
    socket.on('close', () => this.#end(new Error('the broker has closed the connection')));
  }

  /**
   * @param message called with each message of the subscriptions
   * @throws the reason why it cannot connect
   */
  static async connect(
    { host, port }: Address,
    id: string,
    message: (topic: string, payload: string) => void
  ): Promise<Client> {
    const client = new Client(connect({ host, port, noDelay: true }), message);
    const code = await client.#ask(connectFrame(id, SHAPE));
    if (code !== 0) throw new Error(`the broker has refused the connection with ${code}`);
    return client;
  }

  /** @throws Error if it is refused */
  async subscribe(filter: string): Promise<void> {
    const code = await this.#ask(subscribeFrame([filter], { v5: false, qos: 0, id: 1 }));
    if (code >= 0x80) throw new Error(`the broker has refused the subscription to ${filter}`);
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  /** Number of bytes that the system has not accepted yet. */
  get unsent(): number {
    return this.#socket.writableLength;
  }

  close(): void {
    this.#socket.removeAllListeners('close');
    this.#socket.end(DISCONNECT_FRAME);
  }

  async #ask(frame: Buffer): Promise<number> {
    if (this.fault !== undefined) throw this.fault;
    const limit = AbortSignal.timeout(ANSWER_MS);
    return new Promise((resolve, reject) => {
      limit.addEventListener('abort', () => reject(new Error('the broker does not answer')));
      this.#answered = resolve;
      this.#refused = reject;
      this.#socket.write(frame);
    });
  }

  #read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (at + 2 <= bytes.length) {
      let body = at + 1;
      let length = 0;
      for (let shift = 0; body < bytes.length; shift += 7) {
        length += (bytes[body] & 127) * 2 ** shift;
        if (bytes[body++] < 128) break;
      }
      if (bytes[body - 1] > 127 || body + length > bytes.length) break;
      this.#packet(bytes[at] >> 4, bytes, body, body + length);
      at = body + length;
    }
    this.#rest = at === bytes.length ? NO_REST : bytes.subarray(at);
  }

  #packet(type: number, bytes: Buffer, from: number, to: number): void {
    if (type === 3) {
      const payloadAt = from + 2 + bytes.readUInt16BE(from);
      this.#message(bytes.latin1Slice(from + 2, payloadAt), bytes.toString('utf8', payloadAt, to));
    } else if (type === 2 || type === 9) this.#answered?.(bytes[to - 1]);
  }

  #end(error: Error): void {
    this.fault ??= error;
    this.#refused?.(this.fault);
  }
}
