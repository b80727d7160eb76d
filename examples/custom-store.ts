// A store of the app: the state of a broker in one file, which is written again with each commit. For state of a few megabytes.
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBroker, StateError } from 'embermq';
import type { Store } from 'embermq/adapter';

/** Keys in hex, values in base64. `storeContract` of `embermq/testing` has the tests that a store must pass. */
function fileStore(name: string): Store {
  let records: Map<string, string> | undefined; // undefined: it is closed
  let written = Promise.resolve();
  const opened = () => {
    if (records === undefined) throw new StateError('STORE_CLOSED', `${name} is closed`);
    return records;
  };
  return {
    name,
    async open() {
      records = new Map(existsSync(name) ? JSON.parse(await readFile(name, 'utf8')) : []);
    },
    async commit({ keys, values }) {
      const all = opened();
      for (const [at, key] of keys.entries()) {
        const value = values[at]?.toString('base64');
        if (value === undefined) all.delete(key.toString('hex'));
        else all.set(key.toString('hex'), value);
      }
      const file = writeFile(`${name}.new`, JSON.stringify([...all]), { flush: true });
      written = file.then(() => rename(`${name}.new`, name));
      await written;
    },
    async read(from, to, limit) {
      const [first, end] = [from.toString('hex'), to.toString('hex')];
      const found = [...opened().keys()].filter((key) => key >= first && key < end).sort();
      const bytesOf = (key: string) => Buffer.from(opened().get(key) as string, 'base64');
      return found.slice(0, limit).map((key) => ({ key: Buffer.from(key, 'hex'), value: bytesOf(key) }));
    },
    async close() {
      await written.catch(() => undefined); // commit has rejected with it
      records = undefined;
    }
  };
}

const folder = await mkdtemp(join(tmpdir(), 'custom-store-'));
for (const payload of ['on', 'off']) {
  const broker = createBroker({ store: fileStore(join(folder, 'state.json')) });
  await broker.start();
  console.log('retained:', (await broker.retained.get('lamp'))?.payload.toString());
  await broker.publish('lamp', payload, { qos: 1, retain: true });
  await broker.stop();
}
await rm(folder, { recursive: true });
// prints:
// retained: undefined
// retained: on
