import { bridge } from '../../adapters/bridge/index.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { listen } from '../../adapters/net/index.ts';
import { createBroker } from '../../lib/index.ts';

// A durable broker with a listener, and a bridge if its options are given. It prints its port.
const { folder, port, link } = JSON.parse(process.argv[2]);
// the other process may be away for longer than the queues of the defaults suffice
const unlimited = { maxMqueueLen: 0, maxMqueueBytes: 0 };
const broker = createBroker({ store: levelStore(folder), sessionExpiryInterval: '1h', ...unlimited });
const listener = listen(broker, port);
if (link !== undefined) bridge(broker, link);
await broker.start();
if (link !== undefined) {
  // until the first connection, the remote server has no subscription and keeps nothing for the bridge
  if (port === 0) await broker.nextEvent('bridge.connected');
}
console.log((await listener).port);
setInterval(() => undefined, 60_000);
