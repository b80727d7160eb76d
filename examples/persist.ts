// State on disk: retained messages, sessions with their queued messages, and tables of the app are available again
// after a restart.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBroker } from 'embermq';
import { levelStore } from 'embermq/level';

const folder = await mkdtemp(join(tmpdir(), 'persist-')); // in an app: a folder such as data/broker
const lamp = { clientId: 'lamp', clean: false, sessionExpiry: '1d' };

const first = createBroker({ store: levelStore(folder) });
await first.start();
const client = await first.connect(lamp);
await client.subscribe('lamp/set', { qos: 1 });
await client.disconnect();
await first.publish({ topic: 'lamp/set', payload: 'on', qos: 1 }); // queued, because the lamp is offline
await first.publish({ topic: 'lamp/room', payload: 'attic', qos: 1, retain: true });
await first.table('rooms').set('attic', { floor: 3 });
await first.stop();

const second = createBroker({ store: levelStore(folder) }); // in an app: the next process
await second.start();
console.log('retained:', (await second.retained.get('lamp/room'))?.payload.toString());
console.log('table:', second.table('rooms').get('attic'));
const again = await second.connect(lamp);
console.log('session present:', again.connack.sessionPresent);
for await (const { topic, payload } of again.messages()) {
  console.log(`queued: ${topic} ${payload}`);
  break;
}
await second.stop();
await rm(folder, { recursive: true });
// prints:
// retained: attic
// table: { floor: 3 }
// session present: true
// queued: lamp/set on
