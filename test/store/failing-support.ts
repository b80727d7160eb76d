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
export const FAULTS: readonly Fault[] = ['throws', 'rejects', 'applies'];

/** A broker on a store that works for now, a session that is away and subscribes `kept/#`, and what is told. */
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

/** What waits for the reader: it comes, takes all and goes. */
export async function waiting(kit: TestBroker): Promise<string[]> {
  const reader = await kit.connect({ clientId: 'reader', ...PERSISTENT });
  const got: string[] = [];
  reader.on('message', ({ payload }) => got.push(`${payload}`));
  await kit.clock.advance('1s');
  await reader.disconnect();
  return got.sort();
}

/** What is retained under `state/`. */
export async function retained(broker: Broker): Promise<string[]> {
  const found: string[] = [];
  for await (const { topic, payload } of broker.retained('state/#'))
    found.push(`${topic.slice('state/'.length)}: ${payload}`);
  return found.sort();
}

export async function acked(client: RawClient, cmd: AckPacket['cmd']): Promise<number> {
  return ((await client.next(cmd)) as AckPacket).reasonCode;
}

/** The store works again, and the broker has found out. */
export async function mended(kit: TestBroker, store: FaultyStore): Promise<void> {
  store.fault = undefined;
  store.isShut = false;
  await kit.clock.advance('20s');
}

/** Go on until it succeeds; time passes while it is under way, and each time it does not succeed. */
export async function insist<T>(kit: TestBroker, what: () => Promise<T>): Promise<T> {
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

/** What is in it now. */
export async function copyOf(store: FaultyStore): Promise<Store> {
  const copy = memoryStore();
  const entries = await store.read(Buffer.of(0), Buffer.alloc(8, 0xff), 1e9);
  await change(copy, (batch) => {
    for (const { key, value } of entries) batch.put(key, value);
  });
  return copy;
}
