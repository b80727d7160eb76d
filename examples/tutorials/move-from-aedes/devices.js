// The clients of the tutorial "Move from Aedes": a device, a reader, and two that must be refused. Run it while one of the apps is running.

// #region devices
import mqtt from 'mqtt';

const connect = (name, password, clean = true) =>
  mqtt.connectAsync('mqtt://127.0.0.1:1883', { clientId: name, username: name, password, clean, reconnectPeriod: 0 });
const next = (client) =>
  new Promise((resolve) => client.once('message', (topic, payload) => resolve(`${topic} ${payload}`)));

await connect('ann', 'a guess').catch(({ message }) => console.log(`refused: ${message}`));

const attic = await connect('attic', 'a key', false);
const answer = next(attic);
await attic.subscribeAsync('rooms/attic/#', { qos: 1 });
await attic.publishAsync('rooms/attic/celsius', '16', { qos: 1 });
console.log(`attic reads ${await answer}`);

const ann = await connect('ann', 'a password');
const retained = next(ann);
await ann.subscribeAsync('rooms/+/heating');
console.log(`ann reads ${await retained}`);
await ann.subscribeAsync('secrets/#').catch(({ message }) => console.log(`refused: ${message}`));
const closed = new Promise((resolve) => ann.once('close', resolve));
ann.publish('rooms/attic/celsius', '30'); // not her room
await closed;
console.log('ann was disconnected');
await attic.endAsync();
// #endregion
