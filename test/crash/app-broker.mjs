// A broker in an app, whose wall clock may be ahead and which publishes the messages sent to it: `node app-broker.mjs BUILD FOLDER
// SETTINGS`, with the built package in BUILD.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [build, folder, settings] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(build, 'dist', path)).href);
const { createBroker, systemClock } = await load('lib/index.js');
const { levelStore } = await load('adapters/level/index.js');
const { listen } = await load('adapters/net/index.js');
const { durability, priorities, aheadMs, webhook: hook } = JSON.parse(settings);
const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
const broker = createBroker({ store: levelStore(folder, { durability }), mqueuePriorities: priorities, clock });
const complain = (error) => process.stderr.write(`${error.stack}\n`);
broker.on('error', ({ error }) => complain(error));
if (hook !== undefined) {
  const { webhook } = await load('adapters/webhook/index.js');
  webhook(broker, hook);
}
const { port } = await (async () => {
  const listening = listen(broker, 0);
  await broker.start();
  return listening;
})();
process.on('message', ({ id, ...message }) => broker.publish(message).then(() => process.send(id), complain));
process.stdout.write(`ready ${JSON.stringify({ mqtt: port })}\n`);
