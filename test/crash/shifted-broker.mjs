// A broker whose wall clock is ahead: `node shifted-broker.mjs FOLDER MILLISECONDS`. The built package, as the command would run it.
import { createBroker, systemClock } from 'embermq';
import { levelStore } from 'embermq/level';
import { listen } from 'embermq/net';

const [folder, aheadMs] = process.argv.slice(2);
const clock = { ...systemClock, now: () => systemClock.now() + Number(aheadMs) };
const broker = createBroker({ store: levelStore(folder), clock });
broker.on('error', ({ error, during }) => process.stderr.write(`error in ${during}: ${error.stack}\n`));
const { port } = await (async () => {
  const listening = listen(broker, 0);
  await broker.start();
  return listening;
})();
process.stdout.write(`ready ${JSON.stringify({ mqtt: port })}\n`);
