import { connect as connectSocket } from 'node:net';
import { type Credentials, connectFrame, DISCONNECT_FRAME, type Supply, subscribeFrame } from './frames.ts';
import { FRONT_BYTES, type Load } from './load.ts';
import { openWire, type WireStream } from './wire.ts';

/** A publisher with more unsent bytes than this waits for its socket. */
const UNSENT_BYTES = 65_536;
/** The maximum number of unacknowledged messages of a publisher at a fixed rate. */
const RATE_IN_FLIGHT = 2000;

let sources = 0;

/** One connection of the load generator: a publisher, subscriber or both. Its fields are public, because this is the hot path. */
export class Client {
  readonly load: Load;
  readonly index: number;
  readonly id: string;
  readonly port: number;
  readonly v5: boolean;
  /** Credentials for the next CONNECT. */
  credentials: Credentials | undefined;
  socket: WireStream | undefined;
  online = false;
  sessionPresent = false;
  /** True if the client is in the list of connections that act at the end of this turn. */
  marked = false;
  /** The number of messages received. */
  got = 0;

  // Publishing
  supply: Supply | undefined;
  window = 0;
  /** The total number of messages to send. */
  limit = Number.POSITIVE_INFINITY;
  sent = 0;
  /** The number of deliveries of messages that this client has sent. */
  delivered = 0;
  inFlight = 0;

  /** Called for every message after it was counted. */
  onMessage: ((sequence: number, publisher: number) => void) | undefined;

  rest: Buffer | undefined;
  restBytes = 0;
  /** The responses of this turn: a range of this slab. */
  answers: Buffer | undefined;
  answersFrom = 0;
  answersTo = 0;
  /** The received QoS 2 packet ids that are not released yet. */
  awaitingRel: Uint8Array | undefined;
  lastSubscribeId = 0;
  #acknowledgeConnect: ((refused?: Error) => void) | undefined;
  readonly #subscribed = new Map<number, (refused?: Error) => void>();

  constructor(load: Load, index: number, id: string, port = load.task.port) {
    this.port = port;
    this.load = load;
    this.index = index;
    this.id = id;
    this.v5 = load.task.v5;
    this.window = load.task.window;
  }

  /** Open the socket, send CONNECT and wait for the CONNACK. */
  connect(clean = true): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#acknowledgeConnect = (refused) => (refused === undefined ? resolve() : reject(refused));
      this.open(clean);
    });
  }

  /** Open the socket and send CONNECT. */
  open(clean: boolean): void {
    const socket = this.#openStream();
    this.socket = socket;
    this.restBytes = 0;
    socket.on('error', () => {});
    socket.on('close', () => this.#closed(socket));
    socket.on('drain', () => this.wake());
    socket.write(connectFrame(this.id, { v5: this.v5, clean, credentials: this.credentials }));
  }

  #openStream(): WireStream {
    const { landing, task } = this.load;
    const target = {
      host: '127.0.0.1',
      port: this.port,
      // One source address has 28,000 ports, but a storm uses more. On Linux, all addresses of 127/8 can be used without configuration.
      ...(process.platform === 'linux' ? { localAddress: `127.1.0.${1 + (sources++ % 200)}` } : {})
    };
    const read = (bytes: number) => {
      if (this.socket === socket) this.read(bytes);
    };
    const onread = {
      buffer: landing,
      callback: (bytes: number) => {
        read(bytes);
        return true;
      }
    };
    const socket: WireStream =
      task.wire === 'tcp'
        ? connectSocket({ ...target, noDelay: true, onread })
        : openWire(task.wire, target, { buffer: landing, read });
    return socket;
  }

  /** Subscribe and wait for the SUBACK. Rejects if a filter is refused. */
  subscribe(filters: readonly string[], qos: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const id = (this.lastSubscribeId = (this.lastSubscribeId % 60_000) + 1);
      this.#subscribed.set(id, (refused) => (refused === undefined ? resolve() : reject(refused)));
      this.socket?.write(subscribeFrame(filters, { v5: this.v5, qos, id }));
    });
  }

  leave(): Promise<void> {
    const { socket } = this;
    if (socket === undefined || socket.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      const giveUp = setTimeout(() => socket.destroy(), 2000);
      socket.once('close', () => {
        clearTimeout(giveUp);
        resolve();
      });
      socket.end(DISCONNECT_FRAME);
    });
  }

  /** Send DISCONNECT and close without waiting. */
  drop(): void {
    this.online = false;
    this.socket?.write(DISCONNECT_FRAME);
    this.destroy();
  }

  /** Reset the connection, like a host that has lost its state. */
  reset(): void {
    const { socket } = this;
    this.socket = undefined;
    this.online = false;
    this.answers = undefined;
    socket?.resetAndDestroy();
  }

  destroy(): void {
    const { socket } = this;
    this.socket = undefined;
    this.online = false;
    socket?.destroy();
  }

  #closed(socket: WireStream): void {
    if (this.socket !== socket) return;
    this.online = false;
    this.socket = undefined;
    if (this.load.closing) return;
    this.load.disconnected++;
    this.#acknowledgeConnect?.(new Error(`connection of ${this.id} was closed before its CONNACK`));
  }

  // Reading

  /** Process the bytes that were read into the landing area. */
  read(bytes: number): void {
    const { memory } = this.load;
    const nowUs = this.load.nowUs();
    let at = FRONT_BYTES - this.restBytes;
    if (this.restBytes > 0) this.rest?.copy(memory, at, 0, this.restBytes);
    const end = FRONT_BYTES + bytes;
    this.restBytes = 0;
    while (end - at >= 2) {
      let body = at + 1;
      let length = memory[body++];
      if (length > 127) {
        length &= 127;
        let shift = 7;
        let byte = 128;
        while (byte > 127 && body < end) {
          byte = memory[body++];
          length |= (byte & 127) << shift;
          shift += 7;
        }
        if (byte > 127) break;
      }
      const next = body + length;
      if (next > end) break;
      const head = memory[at];
      if ((head & 0xf0) === 0x30) this.#message(head, body, nowUs);
      else this.#control(head, body, next);
      at = next;
    }
    if (at < end) this.#keep(at, end);
  }

  #keep(from: number, to: number): void {
    const bytes = to - from;
    if (bytes > FRONT_BYTES) throw new RangeError(`a frame of more than ${FRONT_BYTES} bytes`);
    if (this.rest === undefined || this.rest.length < bytes) this.rest = Buffer.allocUnsafe(Math.max(bytes, 2048));
    this.load.memory.copy(this.rest, 0, from, to);
    this.restBytes = bytes;
  }

  #message(head: number, body: number, nowUs: number): void {
    const { load } = this;
    const { memory, view } = load;
    let at = body + 2 + ((memory[body] << 8) | memory[body + 1]);
    if ((head & 6) !== 0) {
      const id = (memory[at] << 8) | memory[at + 1];
      at += 2;
      if ((head & 6) === 2) this.#answer(0x40, id);
      else {
        this.#answer(0x50, id);
        this.awaitingRel ??= new Uint8Array(65_536);
        if (this.awaitingRel[id] !== 0) {
          load.idsReused++;
          return;
        }
        this.awaitingRel[id] = 1;
        load.unreleased++;
      }
    }
    if (this.v5) at = skipProperties(memory, at);
    const publisher = view.getUint32(at + 4, true);
    const sequence = view.getUint32(at + 8, true);
    this.got++;
    load.received++;
    load.lastReceivedUs = nowUs;
    if (load.measuring) load.latencies.add((nowUs - view.getUint32(at, true)) >>> 0);
    if (load.flows !== undefined) load.flows.note(load.flowOf(publisher, this.index), sequence);
    if (load.fan > 0) {
      const from = load.publishers[publisher];
      if (from !== undefined) {
        from.delivered++;
        if (!from.marked && load.publishing) load.mark(from);
      }
    }
    if (this.onMessage !== undefined) this.onMessage(sequence, publisher);
  }

  #control(head: number, body: number, next: number): void {
    const { load } = this;
    const { memory } = load;
    load.noteProgress();
    const type = head >> 4;
    const id = (memory[body] << 8) | memory[body + 1];
    const refused = this.v5 && next - body > 2 && memory[body + 2] >= 0x80;
    switch (type) {
      case 4:
      case 7:
        if (refused) load.badAcks++;
        if (this.supply?.release(id) === true) this.inFlight--;
        else load.badAcks++;
        this.wake();
        break;
      case 5:
        if (refused) load.badAcks++;
        this.#answer(0x62, id);
        break;
      case 6:
        if (this.awaitingRel !== undefined && this.awaitingRel[id] !== 0) {
          this.awaitingRel[id] = 0;
          load.unreleased--;
        }
        this.#answer(0x70, id);
        break;
      case 2:
        this.#connack(body, next);
        break;
      case 9:
        this.#suback(id, body + 2, next);
        break;
      case 14:
        this.socket?.destroy();
    }
  }

  #connack(body: number, next: number): void {
    const { memory } = this.load;
    const done = this.#acknowledgeConnect;
    this.#acknowledgeConnect = undefined;
    if (memory[body + 1] !== 0) {
      done?.(new Error(`connection of ${this.id} was refused with ${memory[body + 1]}`));
      return;
    }
    this.online = true;
    this.sessionPresent = memory[body] === 1;
    if (this.v5) this.load.receiveMaximum = Math.min(this.load.receiveMaximum, receiveMaximum(memory, body + 2, next));
    done?.();
  }

  #suback(id: number, at: number, next: number): void {
    const { memory } = this.load;
    if (this.v5) at = skipProperties(memory, at);
    let refused: Error | undefined;
    for (; at < next; at++)
      if (memory[at] >= 0x80) refused = new Error(`subscription of ${this.id} was refused with ${memory[at]}`);
    this.#subscribed.get(id)?.(refused);
    this.#subscribed.delete(id);
  }

  #answer(head: number, id: number): void {
    const { load } = this;
    load.reserve(4);
    if (this.answers !== load.slab || this.answersTo !== load.slabAt) {
      this.#sendAnswers();
      this.answers = load.slab;
      this.answersFrom = load.slabAt;
    }
    const at = load.slabAt;
    const { slab } = load;
    slab[at] = head;
    slab[at + 1] = 2;
    slab[at + 2] = id >> 8;
    slab[at + 3] = id & 255;
    load.slabAt = this.answersTo = at + 4;
    if (!this.marked) load.mark(this);
  }

  // Writing

  /** Schedule the client to act at the end of this turn. */
  wake(): void {
    if (!this.marked) this.load.mark(this);
  }

  /** Send the responses of this turn, and the messages that the window now allows. */
  turn(): void {
    this.marked = false;
    const room = this.load.publishing && this.load.task.rate === 0 ? this.#room() : 0;
    const { supply, socket } = this;
    if (room <= 0 || supply === undefined || socket === undefined) {
      this.#sendAnswers();
      return;
    }
    const split = this.answers !== undefined || room > supply.slots - supply.slot;
    if (split) socket.cork();
    this.#sendAnswers();
    this.#send(room, this.load.nowUs());
    if (split) socket.uncork();
  }

  /** Send one message at a fixed rate. It is skipped if the broker is far behind. */
  sendOne(dueUs: number): void {
    if (!this.online || this.socket === undefined || this.socket.writableLength > UNSENT_BYTES / 4) return;
    if (this.inFlight < RATE_IN_FLIGHT) this.#send(1, dueUs);
  }

  /** Count missing messages as delivered. */
  forgive(): void {
    this.delivered = this.sent * this.load.fan;
    this.wake();
  }

  #room(): number {
    if (!this.online || this.supply === undefined || this.socket === undefined) return 0;
    if (this.socket.writableLength > UNSENT_BYTES) return 0;
    const { fan, task } = this.load;
    let room = this.limit - this.sent;
    if (fan > 0) {
      const windows = task.qos === 0 ? 1 : 2;
      room = Math.min(room, Math.ceil(windows * this.window + this.delivered / fan) - this.sent);
    }
    return task.qos === 0 ? Math.min(room, UNSENT_BYTES) : Math.min(room, this.window - this.inFlight);
  }

  #send(count: number, nowUs: number): void {
    const { supply, socket, load } = this;
    if (supply === undefined || socket === undefined) return;
    this.sent += count;
    load.sent += count;
    load.expected += count * Math.max(load.fan, 1);
    if (load.task.qos > 0) this.inFlight += count;
    for (let left = count; left > 0; ) {
      const batch = Math.min(left, supply.slots - supply.slot);
      socket.write(supply.take(batch, nowUs));
      left -= batch;
    }
  }

  #sendAnswers(): void {
    if (this.answers === undefined) return;
    this.socket?.write(this.answers.subarray(this.answersFrom, this.answersTo));
    this.answers = undefined;
  }
}

function skipProperties(memory: Buffer, at: number): number {
  let length = 0;
  let shift = 0;
  let byte = 128;
  while (byte > 127) {
    byte = memory[at++];
    length |= (byte & 127) << shift;
    shift += 7;
  }
  return at + length;
}

/** The Receive Maximum in the properties of a CONNACK that begin at `at`; 65535 if it is absent. */
function receiveMaximum(memory: Buffer, at: number, next: number): number {
  const end = Math.min(next, skipProperties(memory, at));
  while (memory[at++] > 127);
  while (at < end) {
    const id = memory[at++];
    if (id === 0x21) return (memory[at] << 8) | memory[at + 1];
    if (id === 0x11 || id === 0x27) at += 4;
    else if (id === 0x13 || id === 0x22) at += 2;
    else if (id === 0x24 || id === 0x25 || id === 0x28 || id === 0x29 || id === 0x2a) at += 1;
    else {
      at += 2 + ((memory[at] << 8) | memory[at + 1]);
      if (id === 0x26) at += 2 + ((memory[at] << 8) | memory[at + 1]);
    }
  }
  return 65_535;
}
