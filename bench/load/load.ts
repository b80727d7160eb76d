import { Client } from './client.ts';
import type { FlowCheck } from './flow-check.ts';
import { Histogram } from './histogram.ts';
import type { Faults, FullTask } from './task.ts';

/** Free bytes before the landing area, for the incomplete frame that the previous read left. */
export const FRONT_BYTES = 16_384;
const LANDING_BYTES = 262_144;
const SLAB_BYTES = 65_536;
const STALL_MS = 1000;

/**
 * The state that all connections of a load generator share: the memory that sockets read into, the counters, and the turn.
 *
 * All sockets read into the same memory. This is possible because a read and its callback are one step, and only `Client.rest` keeps a
 * copy of the bytes. Responses and messages are collected per connection and sent once per turn of the event loop.
 */
export class Load {
  readonly task: FullTask;
  readonly memory = Buffer.allocUnsafeSlow(FRONT_BYTES + LANDING_BYTES);
  readonly view = new DataView(this.memory.buffer, this.memory.byteOffset, this.memory.length);
  readonly landing = this.memory.subarray(FRONT_BYTES);
  readonly latencies = new Histogram();
  readonly clients: Client[] = [];
  /** The publishers, by the index in the payload. */
  publishers: Client[] = [];
  flows: FlowCheck | undefined;
  /** Returns the flow of a message, given its publisher and its receiver. */
  flowOf: (publisher: number, receiver: number) => number = (_, receiver) => receiver;

  received = 0;
  sent = 0;
  /** The number of deliveries expected for the messages sent so far. */
  expected = 0;
  /** The number of receivers of each message; 0 if publishers do not wait for deliveries. */
  fan = 1;
  publishing = false;
  measuring = false;
  /** True if connections may now be closed. */
  closing = false;
  disconnected = 0;
  badAcks = 0;
  /** The number of duplicates that no flow check counts. */
  repeated = 0;
  idsReused = 0;
  /** The number of QoS 2 deliveries whose PUBREL has not arrived yet. */
  unreleased = 0;
  /** The smallest Receive Maximum of all CONNACKs. */
  receiveMaximum = 65_535;
  lastReceivedUs = 0;

  slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  slabAt = 0;

  #marked: Client[] = [];
  #waiting: { readonly done: () => boolean; readonly resolve: () => void }[] = [];
  #progress = 0;

  constructor(task: FullTask) {
    this.task = task;
  }

  /** The clock of all timestamps, in microseconds modulo 2^32. */
  nowUs(): number {
    return (performance.now() * 1000) >>> 0;
  }

  /** @param port default: that of the broker */
  client(index: number, id: string, port?: number): Client {
    const client = new Client(this, index, id, port);
    this.clients.push(client);
    return client;
  }

  /** Call `client.turn` when all sockets that are ready now have been read. */
  mark(client: Client): void {
    client.marked = true;
    this.#marked.push(client);
    if (this.#marked.length === 1) setImmediate(() => this.#turn());
  }

  #turn(): void {
    const marked = this.#marked;
    this.#marked = [];
    for (let i = 0; i < marked.length; i++) marked[i].turn();
    for (let i = this.#waiting.length - 1; i >= 0; i--) {
      if (this.#waiting[i].done()) this.#waiting.splice(i, 1)[0].resolve();
    }
  }

  /** Reserve space for the bytes of a response, at `slabAt` in `slab`. */
  reserve(bytes: number): void {
    if (this.slabAt + bytes <= SLAB_BYTES) return;
    this.slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    this.slabAt = 0;
  }

  /** Wait until `done()` returns true. It is called after every turn. Rejects if nothing is received for `idleMs`. */
  async until(done: () => boolean, what: string, idleMs = 20_000): Promise<void> {
    if (!(await this.settled(done, idleMs))) throw new Error(`${what}: no progress for ${idleMs} ms`);
  }

  /** Wait until `done()` returns true. @returns false if nothing was received for `idleMs` */
  async settled(done: () => boolean, idleMs: number): Promise<boolean> {
    if (done()) return true;
    return new Promise((resolve) => {
      let last = -1;
      let sinceMs = performance.now();
      const watch = setInterval(() => {
        const moved = this.received + this.#progress;
        if (done()) finish(true);
        else if (moved !== last) [last, sinceMs] = [moved, performance.now()];
        else if (performance.now() - sinceMs > idleMs) finish(false);
      }, 20);
      const entry = { done, resolve: () => finish(true) };
      const finish = (good: boolean): void => {
        clearInterval(watch);
        this.#waiting = this.#waiting.filter((other) => other !== entry);
        resolve(good);
      };
      this.#waiting.push(entry);
    });
  }

  /** Record the arrival of a packet other than a delivery, such as a CONNACK or an acknowledgement. */
  noteProgress(): void {
    this.#progress++;
  }

  startPublishing(): void {
    this.publishing = true;
    for (const publisher of this.publishers) if (!publisher.marked) this.mark(publisher);
    if (this.task.rate > 0) this.#pace();
    else if (this.task.qos === 0) this.#forgiveStalls();
  }

  /** Send at a fixed rate. A timestamp is the time at which the message was due, so delays in this process count as latency. */
  #pace(): void {
    const startMs = performance.now();
    const { rate } = this.task;
    let sent = 0;
    const step = (): void => {
      if (!this.publishing) return;
      const due = ((performance.now() - startMs) / 1000) * rate;
      for (; sent < due; sent++) {
        const dueUs = (startMs * 1000 + (sent * 1e6) / rate) >>> 0;
        this.publishers[sent % this.publishers.length].sendOne(dueUs);
      }
      // Timers have a resolution of 1 ms. Checking again immediately only uses the core of this process.
      setImmediate(step);
    };
    step();
  }

  /**
   * Give up missing messages after a second without deliveries, because a lost QoS 0 message would block its publisher
   * forever.
   */
  #forgiveStalls(): void {
    let last = this.received;
    const watch = setInterval(() => {
      if (!this.publishing) return clearInterval(watch);
      if (this.received === last) for (const publisher of this.publishers) publisher.forgive();
      last = this.received;
    }, STALL_MS);
  }

  /** Stop publishing and wait for the messages in flight. Messages that do not arrive for `patienceMs` count as lost. */
  async drain(): Promise<void> {
    this.publishing = false;
    const complete = (): boolean =>
      this.received >= this.expected && this.unacknowledged() === 0 && this.unreleased <= 0;
    await this.settled(complete, this.task.patienceMs);
    // Wait a little longer for duplicates.
    await new Promise((resolve) => setTimeout(resolve, 100));
  }

  unacknowledged(): number {
    let sum = 0;
    for (const publisher of this.publishers) sum += publisher.inFlight;
    return sum;
  }

  faults(): Faults {
    const duplicated = (this.flows?.duplicated ?? 0) + this.repeated;
    return {
      lost: this.expected - (this.received - duplicated),
      duplicated,
      reordered: this.flows?.reordered ?? 0,
      disconnected: this.disconnected,
      badAcks: this.badAcks,
      unacknowledged: this.unacknowledged(),
      idsReused: this.idsReused
    };
  }

  /** Open connections, with a limited number at a time. Rejects if one is refused. */
  async connect(clients: readonly Client[], clean = true): Promise<void> {
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < clients.length) await clients[next++].connect(clean);
    };
    await Promise.all(Array.from({ length: Math.min(this.task.concurrency, clients.length) }, worker));
  }

  /** Send DISCONNECT on each connection, and wait until the broker has closed all. */
  async leave(clients: readonly Client[]): Promise<void> {
    this.closing = true;
    await Promise.all(clients.map((client) => client.leave()));
    this.closing = false;
  }

  destroy(): void {
    this.closing = true;
    this.publishing = false;
    for (const client of this.clients) client.destroy();
  }
}
