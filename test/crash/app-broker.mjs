// A broker in an app, whose wall clock may be ahead and which publishes what it is sent: `node app-broker.mjs FOLDER SETTINGS`. The built
// package, as the command would run it.
import { createBroker, systemClock } from 'embermq';
import { levelStore } from 'embermq/level';
import { listen } from 'embermq/net';

const [folder, settings] = process.argv.slice(2);
const { durability, priorities, aheadMs } = JSON.parse(settings);
const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
const broker = createBroker({ store: levelStore(folder, { durability }), mqueuePriorities: priorities, clock });
const complain = (error) => process.stderr.write(`${error.stack}\n`);
broker.on('error', ({ error }) => complain(error));
const { port } = await (async () => {
  const listening = listen(broker, 0);
  await broker.start();
  return listening;
})();
process.on('message', ({ id, ...message }) => broker.publish(message).then(() => process.send(id), complain));
process.stdout.write(`ready ${JSON.stringify({ mqtt: port })}\n`);
