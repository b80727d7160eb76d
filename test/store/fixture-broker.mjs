// The broker of `make-fixture.mjs`: `node fixture-broker.mjs BUILD FOLDER`, with the built package in BUILD. It answers each message of its
// parent: `{ set: [table, key, value] }`, `{ delete: [table, key] }`, `{ stop: true }`.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [build, folder] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(build, 'dist', path)).href);
const { createBroker } = await load('lib/index.js');
const { levelStore } = await load('adapters/level/index.js');
const { listen } = await load('adapters/net/index.js');

const broker = createBroker({
  store: levelStore(folder),
  allowAnonymous: true,
  sessionExpiryInterval: Infinity,
  maxInflight: 16
});
broker.on('error', ({ error }) => process.stderr.write(`${error.stack}\n`));
const listening = listen(broker, 0);
await broker.start();
const { port } = await listening;

process.on('message', async ({ set, delete: deleted, stop }) => {
  if (set !== undefined) await broker.table(set[0]).set(set[1], set[2]);
  if (deleted !== undefined) await broker.table(deleted[0]).delete(deleted[1]);
  if (stop) await broker.stop({ wills: 'keep' });
  process.send({ done: true }, () => {
    if (stop) process.disconnect();
  });
});
process.send({ port });
