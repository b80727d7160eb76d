// A store of the app: the state of a broker in one file, which is written again with each commit. For state of a few megabytes.
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBroker } from 'embermq';
import type { Batch, Entry, Store } from 'embermq/adapter';

/** Keys and values in base64. `storeContract` of `embermq/testing` has the tests that a store must pass. */
class FileStore implements Store {
  readonly name: string;
  #records = new Map<string, Buffer>();

  constructor(path: string) {
    this.name = path;
  }

  async open(): Promise<void> {
    const text = await readFile(this.name, 'utf8').catch((error) => {
      if (error.code === 'ENOENT') return '[]';
      throw error;
    });
    const pairs = JSON.parse(text) as [string, string][];
    this.#records = new Map(pairs.map(([key, value]) => [key, Buffer.from(value, 'base64')]));
  }

  async commit({ keys, values }: Batch): Promise<void> {
    for (const [at, key] of keys.entries()) {
      const value = values[at];
      if (value === undefined) this.#records.delete(key.toString('hex'));
      else this.#records.set(key.toString('hex'), Buffer.from(value));
    }
    const pairs = [...this.#records].map(([key, value]) => [key, value.toString('base64')]);
    await writeFile(`${this.name}.new`, JSON.stringify(pairs), { flush: true });
    await rename(`${this.name}.new`, this.name);
  }

  async read(from: Buffer, to: Buffer, limit: number): Promise<Entry[]> {
    const [first, end] = [from.toString('hex'), to.toString('hex')];
    const keys = [...this.#records.keys()].filter((key) => key >= first && key < end).sort();
    return keys
      .slice(0, limit)
      .map((key) => ({ key: Buffer.from(key, 'hex'), value: Buffer.from(this.#records.get(key) as Buffer) }));
  }

  async close(): Promise<void> {}
}

const folder = await mkdtemp(join(tmpdir(), 'custom-store-'));
for (const payload of ['on', 'off']) {
  const broker = createBroker({ store: new FileStore(join(folder, 'state.json')) });
  await broker.start();
  console.log('retained:', (await broker.retained.get('lamp'))?.payload.toString());
  await broker.publish('lamp', payload, { qos: 1, retain: true });
  await broker.stop();
}
await rm(folder, { recursive: true });
// prints:
// retained: undefined
// retained: on
