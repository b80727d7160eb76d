// A broker with a store on disk, for a process with few file descriptors: `node descriptor-app.ts FOLDER RESERVE`. It prints events as
// lines
// of JSON, and the figures of its listener for each line that it reads.
import { levelStore } from '../../adapters/level/index.ts';
import { listen } from '../../adapters/net/index.ts';
import { createBroker } from '../../lib/index.ts';

const [folder, reserve] = process.argv.slice(2);
const broker = createBroker({ store: levelStore(folder) });
const say = (event: object) => process.stdout.write(`${JSON.stringify(event)}\n`);
broker.on('error', ({ error }) => say({ error: (error as Error & { code?: string }).code, message: error.message }));
broker.subscribe('$SYS/brokers/+/alarms/+', ({ topic, payload }) => {
  say({ alarm: topic.split('/').at(-1), ...JSON.parse(payload.toString()) });
});
const listening = listen(broker, { port: 0, name: 'main', reservedDescriptors: Number(reserve) });
await broker.start();
const { port } = await listening;
process.stdin.on('data', () => say({ info: listening.info() }));
process.stdin.on('end', () => broker.stop({ timeoutMs: 0 }).then(() => process.exit()));
say({ port });
