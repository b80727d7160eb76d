import { createServer, type Server, type Socket } from 'node:net';
import { pathToFileURL } from 'node:url';

/**
 * Relays that show the minimum cost of a broker on Node's sockets. `raw` forwards bytes blindly after it has read the topic of the first
 * PUBLISH of a connection. `min` parses the frame of every packet, finds its route by topic, and collects its writes per turn, for QoS 0
 * and 1. It does not check, limit, retain or persist anything.
 *
 *     node relay.js raw|min PORT
 */

/** Faults of a `min` relay, to test that a load generator detects them: every nth PUBLISH is dropped, duplicated or swapped with the next. */
export interface RelayFaults {
  readonly dropEach?: number;
  readonly doubleEach?: number;
  readonly swapEach?: number;
}

declare global {
  interface Buffer {
    /** Twice as fast as `toString('latin1', from, to)` for short strings. Node provides it, but its types do not declare it. */
    latin1Slice(from: number, to: number): string;
  }
}

const CONNACK_V4 = Buffer.from([0x20, 2, 0, 0]);
const CONNACK_V5 = Buffer.from([0x20, 3, 0, 0, 0]);

/** Create a server that forwards bytes blindly. */
export function createRawRelay(): Server {
  const receivers = new Map<string, Set<Socket>>();
  return createServer({ noDelay: true }, (socket) => {
    let v5 = 0;
    socket.on('error', () => socket.destroy());
    socket.on('data', function handshake(chunk: Buffer) {
      const type = chunk[0] >> 4;
      if (type === 1) {
        v5 = chunk[8] === 5 ? 1 : 0;
        socket.write(v5 === 1 ? CONNACK_V5 : CONNACK_V4);
      } else if (type === 8) {
        const filter = textAt(chunk, 4 + v5);
        const subscribed = receivers.get(filter) ?? new Set();
        receivers.set(filter, subscribed.add(socket));
        socket.on('close', () => subscribed.delete(socket));
        socket.write(Buffer.from(v5 === 1 ? [0x90, 4, chunk[2], chunk[3], 0, 0] : [0x90, 3, chunk[2], chunk[3], 0]));
      } else if (type === 3) {
        let at = 1;
        while ((chunk[at++] & 128) !== 0);
        const targets = [...(receivers.get(textAt(chunk, at)) ?? [])];
        socket.off('data', handshake);
        const forward = (bytes: Buffer): void => {
          for (let i = 0; i < targets.length; i++) targets[i].write(bytes);
        };
        forward(chunk);
        socket.on('data', forward);
      }
    });
  });
}

/** Create a server with the minimum of MQTT that QoS 0 and 1 need. */
export function createMinRelay(faults: RelayFaults = {}): Server {
  const relay = new MinRelay(faults);
  return createServer({ noDelay: true }, (socket) => new Peer(socket, relay));
}

class MinRelay {
  readonly faults: RelayFaults;
  readonly faulty: boolean;
  readonly exact = new Map<string, Peer[]>();
  readonly wild: { readonly levels: readonly string[]; readonly peer: Peer }[] = [];
  readonly #routes = new Map<string, Peer[]>();
  #dirty: Peer[] = [];
  #published = 0;
  #pending: { readonly targets: Peer[]; readonly frame: Buffer } | undefined;

  constructor(faults: RelayFaults) {
    this.faults = faults;
    this.faulty = Object.keys(faults).length > 0;
  }

  route(topic: string): Peer[] {
    let targets = this.#routes.get(topic);
    if (targets === undefined) {
      targets = [...(this.exact.get(topic) ?? [])];
      const levels = topic.split('/');
      for (const entry of this.wild) if (reaches(entry.levels, levels)) targets.push(entry.peer);
      if (this.#routes.size >= 1_000_000) this.#routes.clear();
      this.#routes.set(topic, targets);
    }
    return targets;
  }

  subscriptionsChanged(): void {
    this.#routes.clear();
  }

  /** Schedule writes for the end of the poll phase, so that each receiver gets one write per turn. */
  schedule(peer: Peer): void {
    this.#dirty.push(peer);
    if (this.#dirty.length === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    const dirty = this.#dirty;
    this.#dirty = [];
    for (let i = 0; i < dirty.length; i++) dirty[i].flush();
  }

  /** Forward one frame, with the requested faults. */
  emitFaulty(targets: Peer[], frame: Buffer): void {
    const { dropEach, doubleEach, swapEach } = this.faults;
    const nth = ++this.#published;
    if (dropEach !== undefined && nth % dropEach === 0) return;
    if (swapEach !== undefined && this.#pending === undefined && nth % swapEach === 0) {
      this.#pending = { targets, frame: Buffer.from(frame) };
      return;
    }
    emit(targets, frame);
    if (doubleEach !== undefined && nth % doubleEach === 0) emit(targets, frame);
    if (this.#pending?.targets === targets) {
      emit(targets, this.#pending.frame);
      this.#pending = undefined;
    }
  }
}

class Peer {
  readonly #socket: Socket;
  readonly #relay: MinRelay;
  #out: Buffer[] = [];
  #outBytes = 0;
  #rest: Buffer | undefined;
  #v5 = 0;
  readonly #filters: string[] = [];
  /** The packet ids in use for this receiver; created with its first QoS 1 message. */
  #inFlight: Uint8Array | undefined;
  #lastId = 0;

  constructor(socket: Socket, relay: MinRelay) {
    this.#socket = socket;
    this.#relay = relay;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#leave());
  }

  push(slice: Buffer): void {
    this.#out.push(slice);
    this.#outBytes += slice.length;
    if (this.#out.length === 1) this.#relay.schedule(this);
  }

  /** Send a QoS 1 frame with a packet id of this receiver. */
  pushAcknowledged(frame: Buffer, idAt: number): void {
    this.#inFlight ??= new Uint8Array(65_536);
    do this.#lastId = this.#lastId === 65_535 ? 1 : this.#lastId + 1;
    while (this.#inFlight[this.#lastId] !== 0);
    this.#inFlight[this.#lastId] = 1;
    const copy = Buffer.allocUnsafe(frame.length);
    frame.copy(copy);
    copy[idAt] = this.#lastId >> 8;
    copy[idAt + 1] = this.#lastId & 255;
    this.push(copy);
  }

  flush(): void {
    const out = this.#out;
    const bytes = this.#outBytes;
    this.#out = [];
    this.#outBytes = 0;
    if (!this.#socket.writable) return;
    this.#socket.write(out.length === 1 ? out[0] : Buffer.concat(out, bytes));
  }

  #read(chunk: Buffer): void {
    if (this.#rest !== undefined) chunk = Buffer.concat([this.#rest, chunk]);
    this.#rest = undefined;
    const relay = this.#relay;
    const end = chunk.length;
    let at = 0;
    // Adjacent QoS 0 frames of the same route are sent as one slice.
    let runStart = 0;
    let run: Peer[] | undefined;
    while (end - at >= 2) {
      let body = at + 1;
      let length = 0;
      let shift = 0;
      let byte = 128;
      while (byte > 127 && body < end) {
        byte = chunk[body++];
        length |= (byte & 127) << shift;
        shift += 7;
      }
      const next = body + length;
      if (byte > 127 || next > end) break;
      const head = chunk[at];
      const quick = (head & 0xf6) === 0x30 ? relay.route(textAt(chunk, body)) : undefined;
      if (quick === undefined || quick !== run || relay.faulty) {
        if (run !== undefined) emit(run, chunk.subarray(runStart, at));
        run = undefined;
        if (quick === undefined) this.#packet(head, chunk, { start: at, body, next });
        else if (relay.faulty) relay.emitFaulty(quick, chunk.subarray(at, next));
        else {
          run = quick;
          runStart = at;
        }
      }
      at = next;
    }
    if (run !== undefined) emit(run, chunk.subarray(runStart, at));
    if (at < end) this.#rest = chunk.subarray(at);
  }

  #packet(head: number, chunk: Buffer, { start, body, next }: { start: number; body: number; next: number }): void {
    switch (head >> 4) {
      case 1:
        this.#v5 = chunk[body + 6] === 5 ? 1 : 0;
        this.push(this.#v5 === 1 ? CONNACK_V5 : CONNACK_V4);
        break;
      case 3: {
        const idAt = body + 2 + ((chunk[body] << 8) | chunk[body + 1]);
        const targets = this.#relay.route(textAt(chunk, body));
        const frame = chunk.subarray(start, next);
        for (let i = 0; i < targets.length; i++) targets[i].pushAcknowledged(frame, idAt - start);
        this.push(Buffer.from([0x40, 2, chunk[idAt], chunk[idAt + 1]]));
        break;
      }
      case 4:
        if (this.#inFlight !== undefined) this.#inFlight[(chunk[body] << 8) | chunk[body + 1]] = 0;
        break;
      case 8:
        this.#subscribe(chunk, body, next);
        break;
      case 12:
        this.push(Buffer.from([0xd0, 0]));
        break;
      case 14:
        this.#socket.end();
    }
  }

  #subscribe(chunk: Buffer, body: number, next: number): void {
    const codes: number[] = [];
    for (let at = body + 2 + this.#v5; at < next; ) {
      const filter = textAt(chunk, at);
      at += 3 + filter.length;
      codes.push(chunk[at - 1]);
      this.#filters.push(filter);
      if (/[+#]/.test(filter)) this.#relay.wild.push({ levels: filter.split('/'), peer: this });
      else this.#relay.exact.set(filter, [...(this.#relay.exact.get(filter) ?? []), this]);
    }
    this.#relay.subscriptionsChanged();
    const properties = this.#v5 === 1 ? [0] : [];
    const rest = [chunk[body], chunk[body + 1], ...properties, ...codes];
    this.push(Buffer.from([0x90, rest.length, ...rest]));
  }

  #leave(): void {
    if (this.#filters.length === 0) return;
    const { exact, wild } = this.#relay;
    for (const filter of this.#filters) {
      const left = (exact.get(filter) ?? []).filter((peer) => peer !== this);
      if (left.length > 0) exact.set(filter, left);
      else exact.delete(filter);
    }
    for (let at = wild.length - 1; at >= 0; at--) if (wild[at].peer === this) wild.splice(at, 1);
    this.#relay.subscriptionsChanged();
  }
}

function emit(targets: readonly Peer[], slice: Buffer): void {
  for (let i = 0; i < targets.length; i++) targets[i].push(slice);
}

function textAt(chunk: Buffer, at: number): string {
  return chunk.latin1Slice(at + 2, at + 2 + ((chunk[at] << 8) | chunk[at + 1]));
}

function reaches(filter: readonly string[], levels: readonly string[]): boolean {
  for (let at = 0; at < filter.length; at++) {
    if (filter[at] === '#') return true;
    if (at >= levels.length || (filter[at] !== '+' && filter[at] !== levels[at])) return false;
  }
  return filter.length === levels.length;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [kind, port] = process.argv.slice(2);
  const server = kind === 'raw' ? createRawRelay() : createMinRelay();
  server.listen({ port: Number(port), host: '127.0.0.1', backlog: 4096 });
}
