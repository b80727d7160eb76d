import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import { type Client, connectClient } from '../../lib/client/client.ts';
import type { ClientOptions, ReceivedMessage } from '../../lib/client/options.ts';
import { describeKey, Kind } from '../../lib/store/keys.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import { Batch, type Entry, type Store } from '../../lib/store/store.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';

/** Options of a session that outlives its connection by an hour. */
export const PERSISTENT = { clean: false, sessionExpiry: '1h' } as const;

/** Waits for this many turns of the event loop. */
export async function turns(count: number): Promise<void> {
  for (let left = count; left > 0; left--) await setImmediate();
}

/**
 * Wraps a store with the delays of a disk, records what was committed, and can crash: from then on nothing is written and no call
 * completes.
 */
export class MortalStore implements Store {
  readonly name: string;
  readonly committed: Batch[] = [];
  /** Turns of the event loop before a commit is stored, and from then until it completes. */
  turnsBefore = (): number => 0;
  turnsAfter = (): number => 0;
  /** The same for reading. */
  turnsToRead = (): number => 0;
  /**
   * Returns the effect of a failing commit; `applies` stores all of it nevertheless. From then on every commit fails until the store is
   * opened again. `refuses` stores nothing and reports this (`isUntouched`); the store remains usable.
   */
  fault = (): 'rejects' | 'applies' | 'refuses' | undefined => undefined;
  readonly #inner: Store;
  #isDead = false;
  #isBroken = false;
  #pending: Batch | undefined;

  constructor(inner: Store = memoryStore()) {
    this.name = inner.name;
    this.#inner = inner;
  }

  open(): Promise<void> {
    this.#isBroken = false;
    return this.#inner.open();
  }

  async close(): Promise<void> {
    if (!this.#isDead) await this.#inner.close();
  }

  async commit(batch: Batch): Promise<void> {
    const fault = this.#isBroken ? 'rejects' : this.fault();
    if (fault === 'refuses') throw Object.assign(new Error('no space left'), { isUntouched: true });
    this.#isBroken = fault !== undefined;
    const copy = copyOf(batch);
    this.#pending = fault === 'rejects' ? undefined : copy;
    await turns(this.turnsBefore());
    if (this.#isDead) return;
    if (fault !== 'rejects') await this.#keep(copy);
    await turns(this.turnsAfter());
    if (fault !== undefined && !this.#isDead) throw new Error('no space left');
  }

  async #keep(batch: Batch): Promise<void> {
    this.#pending = undefined;
    this.committed.push(batch);
    await this.#inner.commit(batch);
  }

  async read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]> {
    const entries = await this.#inner.read(from, to, limit);
    await turns(this.turnsToRead());
    return entries;
  }

  /** @param isPendingKept whether the commit in progress is stored although it has not completed */
  async die(isPendingKept = false): Promise<void> {
    this.#isDead = true;
    if (isPendingKept && this.#pending !== undefined) await this.#keep(this.#pending);
  }

  /** Stops writing, like a store after a failed commit. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Returns a copy of its contents in memory. */
  async copy(): Promise<MortalStore> {
    if (this.#isBroken) await this.#inner.open().catch(() => undefined); // it may just have been closed, to be opened again
    const batch = new Batch();
    for (const { key, value } of await this.entries()) batch.put(key, value);
    const copy = await MortalStore.of([batch]);
    copy.turnsBefore = this.turnsBefore;
    copy.turnsAfter = this.turnsAfter;
    copy.turnsToRead = this.turnsToRead;
    copy.fault = this.fault;
    return copy;
  }

  /** Returns all entries. */
  entries(): Promise<Entry[]> {
    return this.#inner.read(Buffer.of(0), Buffer.of(255), 1e9);
  }

  /** Describes the entries, except the format and the numbers of commits. */
  async contents(): Promise<string[]> {
    const entries = await this.entries();
    return entries.filter(({ key }) => key[0] > Kind.commit).map(({ key }) => describeKey(key));
  }

  /**
   * Creates a store with the batches that were committed to another one.
   * @param inner an empty store
   */
  static async of(batches: readonly Batch[], inner?: Store): Promise<MortalStore> {
    const store = new MortalStore(inner);
    await store.open();
    for (const batch of batches) await store.#inner.commit(batch);
    await store.close();
    return store;
  }
}

function copyOf(batch: Batch): Batch {
  const copy = new Batch();
  for (const [at, key] of batch.keys.entries()) {
    const value = batch.values[at];
    if (value === undefined) copy.delete(Buffer.from(key));
    else copy.put(Buffer.from(key), Buffer.from(value));
  }
  return copy;
}

/** Successive brokers on one store. */
export class Lives {
  store = new MortalStore();
  kit!: TestBroker;
  /** Incremented when the process crashes: events of an earlier broker are ignored. */
  life = 0;
  /** Options of the next broker. */
  options: Omit<BrokerOptions, 'clock' | 'store'>;
  /** True if the brokers have a store. */
  isKept = true;
  #streams: Duplex[] = [];

  constructor(options: Omit<BrokerOptions, 'clock' | 'store'> = {}) {
    this.options = options;
  }

  async begin(now?: number): Promise<this> {
    const { store } = this;
    this.kit = await createTestBroker({
      ...this.options,
      ...(this.isKept ? { store } : {}),
      leakCheck: false,
      clock: { now, stuckMs: 20_000 }
    });
    return this;
  }

  async connect(options: ClientOptions): Promise<Client> {
    const stream = this.kit.stream();
    this.#streams.push(stream);
    return connectClient(stream, { clock: this.kit.clock, ...options });
  }

  /** Connects a client and records the messages it receives. */
  async listen(options: ClientOptions): Promise<{ client: Client; got: ReceivedMessage[]; texts(): string[] }> {
    const client = await this.connect({ ...PERSISTENT, ...options });
    const got: ReceivedMessage[] = [];
    client.on('message', (message) => got.push(message));
    return { client, got, texts: () => got.map(({ payload }) => `${payload}`) };
  }

  /** Returns the newest wires, in the order in which their clients connected. */
  get streams(): readonly Duplex[] {
    return this.#streams;
  }

  /** Subscribes and disconnects, so that later messages are queued. */
  async leave(clientId: string, filter: string, qos: 0 | 1 | 2 = 1, options: ClientOptions = {}): Promise<void> {
    const client = await this.connect({ clientId, ...PERSISTENT, ...options });
    await client.subscribe({ topic: filter, qos });
    await client.disconnect();
    await this.kit.clock.advance(100);
  }

  /** Lets everything be written, then crashes the process and starts another broker on the store. */
  async crash(downForMs = 0): Promise<void> {
    await this.kit.clock.advance(100);
    await this.kill({ downForMs });
  }

  /** Crashes the process at this moment and starts another broker on the store. */
  async kill(options: { readonly downForMs?: number; readonly isPendingKept?: boolean } = {}): Promise<void> {
    const { kit, store } = this;
    this.life++;
    const died = store.die(options.isPendingKept);
    for (const stream of this.#streams) kit.link(stream).cut();
    this.#streams = [];
    await died;
    const now = kit.clock.now() + (options.downForMs ?? 0);
    this.store = await store.copy();
    await kit[Symbol.asyncDispose]().catch(() => undefined); // whether its store failed at the end or not
    await this.begin(now);
  }

  /** Stops the broker cleanly and starts another one. */
  async restart(downForMs = 0, wills: 'publish' | 'keep' = 'publish'): Promise<void> {
    const { kit } = this;
    await kit.clock.settle();
    await kit.broker.stop({ wills });
    const now = kit.clock.now() + downForMs;
    await kit[Symbol.asyncDispose]();
    this.#streams = [];
    await this.begin(now);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kit[Symbol.asyncDispose]();
  }
}
