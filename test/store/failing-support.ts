import { type Broker, checkStore, memoryStore } from '../../lib/index.ts';
import type { AckPacket } from '../../lib/packets/types.ts';
import type { Store } from '../../lib/store/store.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import type { RawClient } from '../support/raw-client.ts';
import { turns } from '../support/wire.ts';
import { type Fault, FaultyStore } from './faulty-store.ts';
import { change } from './filled-store.ts';

export const PERSISTENT = { clean: false, sessionExpiry: '1h' } as const;
export const RAW_PERSISTENT = { clean: false, properties: { sessionExpiryInterval: 3_600 } } as const;
export const FAULTS: readonly Fault[] = ['throws', 'rejects', 'applies', 'refuses'];

/** Starts a broker on a working store, with an offline session that is subscribed to `kept/#`, and records its events. */
export async function stage(): Promise<{ kit: TestBroker; store: FaultyStore; told: string[] }> {
  const store = new FaultyStore();
  const kit = await createTestBroker({ store, leakCheck: false, delayedPublish: true });
  const told: string[] = [];
  kit.broker.on('error', ({ error }) => told.push(`error: ${(error as Error & { code: string }).code}`));
  kit.broker.on('store.failed', ({ error }) => told.push(`failed: ${(error as Error & { code: string }).code}`));
  kit.broker.on('store.recovered', () => told.push('recovered'));
  kit.broker.subscribe('$SYS/brokers/+/alarms/#', ({ topic }) => told.push(`alarm: ${topic.split('/').at(-1)}`));
  const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
  await reader.subscribe({ topic: 'kept/#', qos: 2 });
  await reader.disconnect();
  return { kit, store, told };
}

/** Connects the reader, returns the messages queued for it, and disconnects it. */
export async function waiting(kit: TestBroker): Promise<string[]> {
  const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
  const got: string[] = [];
  reader.on('message', ({ payload }) => got.push(`${payload}`));
  await kit.clock.advance('1s');
  await reader.disconnect();
  return got.sort();
}

/** Returns the messages retained under `state/`. */
export async function retained(broker: Broker): Promise<string[]> {
  const found: string[] = [];
  for await (const { topic, payload } of broker.retained.match('state/#'))
    found.push(`${topic.slice('state/'.length)}: ${payload}`);
  return found.sort();
}

export async function acked(client: RawClient, cmd: AckPacket['cmd']): Promise<number> {
  return ((await client.next(cmd)) as AckPacket).reasonCode;
}

/** Makes the store work again, and waits until the broker has noticed. */
export async function recover(kit: TestBroker, store: FaultyStore): Promise<void> {
  store.fault = undefined;
  store.isShut = false;
  await kit.clock.advance('20s');
}

/** Retries until the operation succeeds; time passes during each attempt and after each failure. */
export async function retry<T>(kit: TestBroker, what: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    let isSettled = false;
    const done = what().finally(() => {
      isSettled = true;
    });
    done.catch(() => undefined);
    for (let seconds = 0; seconds < 30 && !isSettled; seconds++) {
      await turns();
      if (!isSettled) await kit.clock.advance('1s');
    }
    try {
      return await done;
    } catch (error) {
      if (tries === 20) throw error;
      await kit.clock.advance('1s');
    }
  }
}

export async function check(store: FaultyStore) {
  return checkStore(await copyOf(store));
}

/** Returns a copy of the current contents in an in-memory store. */
export async function copyOf(store: FaultyStore): Promise<Store> {
  const copy = memoryStore();
  const entries = await store.read(Buffer.of(0), Buffer.alloc(8, 0xff), 1e9);
  await change(copy, (batch) => {
    for (const { key, value } of entries) batch.put(key, value);
  });
  return copy;
}
