import { bridge } from '../../adapters/bridge/index.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { listen } from '../../adapters/net/index.ts';
import { createBroker } from '../../lib/index.ts';

// A durable broker with a listener, and a bridge if its options are given. It prints its port.
const { folder, port, link } = JSON.parse(process.argv[2]);
const broker = createBroker({ store: levelStore(folder), sessionExpiryInterval: '1h' });
const listener = listen(broker, port);
await broker.start();
if (link !== undefined) {
  bridge(broker, link);
  // until the first connection, the remote server has no subscription and keeps nothing for the bridge
  if (port === 0) await broker.nextEvent('bridge.connected');
}
console.log((await listener).port);
setInterval(() => undefined, 60_000);
