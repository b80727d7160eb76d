// A broker with a store on disk, for a process with few file descriptors:
// `node descriptor-app.ts FOLDER RESERVE [push]`. It says when it has loaded its modules, and begins when it reads a line.
// It prints events as lines of JSON, and the counters of its listener
// for each line that it reads. With `push`, it listens for pushed rows instead, and prints the number of open
// descriptors.
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { levelStore } from '../../adapters/level/index.ts';
import { listen } from '../../adapters/net/index.ts';
import { httpPushSource, StreamsPort } from '../../adapters/streams/http/index.ts';
import { createBroker } from '../../lib/index.ts';

const [folder, reserve, push] = process.argv.slice(2);
const say = (event: object) => process.stdout.write(`${JSON.stringify(event)}\n`);
say({ loaded: true });
await once(process.stdin, 'data');
const shared = new StreamsPort({ port: 0, reservedDescriptors: Number(reserve) });
const broker = createBroker({
  store: levelStore(folder),
  streams: { sources: [httpPushSource({ port: shared })] }
});
broker.on('error', ({ error }) => say({ error: (error as Error & { code?: string }).code, message: error.message }));
broker.subscribe('$SYS/brokers/+/alarms/+', ({ topic, payload }) => {
  say({ alarm: topic.split('/').at(-1), ...JSON.parse(payload.toString()) });
});
process.stdin.on('end', () => broker.stop({ timeoutMs: 0 }).then(() => process.exit()));
if (push === undefined) {
  const listening = listen(broker, { port: 0, name: 'main', reservedDescriptors: Number(reserve) });
  await broker.start();
  const { port } = await listening;
  process.stdin.on('data', () => say({ info: listening.info() }));
  say({ port });
} else {
  await broker.start();
  await broker.streams.create('CREATE STREAM rows () WITH (TYPE="httppush", DATASOURCE="/rows", FORMAT="json")');
  await broker.streams.rules.create({ id: 'r', sql: 'SELECT * FROM rows', actions: [() => {}] });
  process.stdin.on('data', async () => {
    const status = await broker.streams.rules.status('r');
    say({ used: readdirSync('/proc/self/fd').length, status: JSON.stringify(status) });
  });
  say({ port: shared.number });
}
