import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BrokerOptions } from '../../lib/broker/options.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import { Batch, type Store } from '../../lib/store/store.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';

/** What a store holds now, in another one: as if the process had died at this moment. */
async function copyOf(store: Store): Promise<Store> {
  const copy = memoryStore();
  await copy.open();
  const batch = new Batch();
  for (const { key, value } of await store.read(Buffer.of(0), Buffer.of(255), 1e9)) batch.put(key, value);
  await copy.commit(batch);
  await copy.close();
  return copy;
}

/** A broker on a store, and what becomes of it. */
class Lives {
  store = memoryStore();
  kit!: TestBroker;
  readonly #options: Omit<BrokerOptions, 'clock'>;

  constructor(options: Omit<BrokerOptions, 'clock'> = {}) {
    this.#options = options;
  }

  async begin(): Promise<this> {
    this.kit = await createTestBroker({ ...this.#options, store: this.store, leakCheck: false });
    return this;
  }

  /** The process dies; another one starts on what is in the store. */
  async crash(downFor = 0): Promise<void> {
    const { kit } = this;
    await kit.broker.work.settled();
    const now = kit.clock.now() + downFor;
    const copy = await copyOf(this.store);
    await kit[Symbol.asyncDispose]();
    this.store = copy;
    this.kit = await createTestBroker({
      ...this.#options,
      store: copy,
      clock: { now },
      leakCheck: false
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kit[Symbol.asyncDispose]();
  }
}

const PERSISTENT = { clean: false, sessionExpiry: '1h' } as const;

describe('A broker with a store', () => {
  it('hands out after a crash what was acknowledged before', async () => {
    await using lives = await new Lives().begin();
    const reader = await lives.kit.connect({ clientId: 'reader', ...PERSISTENT });
    await reader.subscribe({ topic: 'a/#', qos: 1 });
    await reader.disconnect();
    const writer = await lives.kit.connect({ clientId: 'writer' });
    for (let n = 0; n < 5; n++) await writer.publish(`a/${n}`, `${n}`, { qos: 1 });
    await lives.crash();
    const got: string[] = [];
    const again = await lives.kit.connect({ clientId: 'reader', ...PERSISTENT });
    again.on('message', (message) => got.push(`${message.payload}`));
    assert.equal(again.connack.sessionPresent, true);
    await lives.kit.clock.advance(0);
    assert.deepEqual(got, ['0', '1', '2', '3', '4']);
  });
});
