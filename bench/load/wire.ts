import { connect as connectSocket, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, createSecureContext } from 'node:tls';

/** Transport between the load generator and the broker. */
export type Wire = 'tcp' | 'tls' | 'ws';

/** The stream of a connection, in the form that the load generator uses. */
export interface WireStream extends Duplex {
  resetAndDestroy(): unknown;
}

/** Memory that all streams share, into which received bytes are copied. */
interface Landing {
  readonly buffer: Buffer;
  /** Called when the first `bytes` of the memory have been received. */
  read(bytes: number): void;
}

interface Target {
  readonly host: string;
  readonly port: number;
  readonly localAddress?: string;
}

/** Loaded once: the certificates of the system are not needed, and reading them for each connection would take most of the time. */
const TLS_CONTEXT = createSecureContext({ ca: [] });
/** The request that makes a connection an MQTT WebSocket. */
export const UPGRADE = [
  'GET /mqtt HTTP/1.1',
  'Host: localhost',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Protocol: mqtt',
  '\r\n'
].join('\r\n');

/** Open a connection over TLS or WebSocket. Over TCP, `Client` reads into the shared memory without a copy. */
export function openWire(wire: Exclude<Wire, 'tcp'>, target: Target, landing: Landing): WireStream {
  const socket = connectSocket({ ...target, noDelay: true });
  const stream = wire === 'tls' ? overTls(socket) : new WebSocketStream(socket);
  stream.on('data', (chunk: Buffer) => {
    for (let at = 0; at < chunk.length; at += landing.buffer.length)
      landing.read(chunk.copy(landing.buffer, 0, at, at + landing.buffer.length));
  });
  return stream;
}

/** TLS over a socket. The certificate was created for the measurement and is not verified. */
function overTls(socket: Socket): WireStream {
  socket.on('error', () => {});
  const stream = connectTls({ socket, rejectUnauthorized: false, secureContext: TLS_CONTEXT });
  return Object.assign(stream, { resetAndDestroy: () => socket.resetAndDestroy() });
}

/** The client side of a WebSocket with a mask of zeros, which leaves the bytes unchanged. */
class WebSocketStream extends Duplex {
  readonly #socket: Socket;
  #rest: Buffer = Buffer.alloc(0);
  #isUpgraded = false;

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    socket.on('data', (chunk) => this.#received(chunk));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
    socket.write(UPGRADE);
  }

  resetAndDestroy(): void {
    this.#socket.resetAndDestroy();
    this.destroy();
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const { length } = chunk;
    const head = length < 126 ? [0x82, 0x80 | length] : [0x82, 0xfe, length >> 8, length & 255];
    if (length > 65_535)
      head.splice(1, 3, 0xff, 0, 0, 0, 0, length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255);
    this.#socket.write(Buffer.from([...head, 0, 0, 0, 0]));
    if (this.#socket.write(chunk)) done();
    else this.#socket.once('drain', done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  #received(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (!this.#isUpgraded) {
      const end = bytes.indexOf('\r\n\r\n');
      this.#isUpgraded = end >= 0;
      if (this.#isUpgraded) bytes = bytes.subarray(end + 4);
    }
    if (this.#isUpgraded) bytes = bytes.subarray(this.#takeFrames(bytes));
    this.#rest = Buffer.from(bytes);
  }

  /** @returns the number of bytes of complete frames */
  #takeFrames(bytes: Buffer): number {
    let at = 0;
    while (bytes.length - at >= 2) {
      const short = bytes[at + 1] & 127;
      const body = at + (short === 126 ? 4 : short === 127 ? 10 : 2);
      if (bytes.length < body) break;
      const length = short === 126 ? bytes.readUInt16BE(at + 2) : short === 127 ? bytes.readUInt32BE(at + 6) : short;
      if (bytes.length < body + length) break;
      if ((bytes[at] & 15) === 2) this.push(bytes.subarray(body, body + length));
      at = body + length;
    }
    return at;
  }
}
