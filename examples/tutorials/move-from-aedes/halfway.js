// The app of the tutorial "Move from Aedes" on embermq, with the handlers of Aedes. State, events and the thermostat have moved.

// #region halfway
import { once } from 'node:events';
import { createServer } from 'node:net';
import { Aedes } from 'embermq/aedes';
import { levelStore } from 'embermq/level';

const aedes = await Aedes.createBroker({ persistence: levelStore('broker-data') });
const { broker } = aedes;
// #endregion

const passwords = new Map([
  ['ann', 'a password'],
  ['attic', 'a key']
]);

aedes.authenticate = (client, username = '', password, done) => {
  if (passwords.has(username) && passwords.get(username) === password?.toString()) {
    client.user = username;
    return done(null, true);
  }
  done(Object.assign(new Error('wrong password'), { returnCode: 4 }), false);
};
aedes.authorizePublish = (client, { topic }, callback) => {
  const isOwn = topic.startsWith(`rooms/${client.user}/`);
  callback(isOwn ? null : new Error('not your room'));
};
aedes.authorizeSubscribe = (_client, subscription, callback) => {
  callback(null, subscription.topic.startsWith('rooms/') ? subscription : null);
};
aedes.authorizeForward = (client, packet) => {
  if (packet.topic.endsWith('/celsius') && client.user !== 'ann') return null; // only ann sees temperatures
  return packet;
};

// #region own
broker.on('client.connected', ({ client }) => console.log(`${client.clientId} has connected`));
broker.on('client.disconnected', ({ client }) => console.log(`${client.clientId} has disconnected`));

broker.subscribe('rooms/+/celsius', async ({ topic, payload }) => {
  console.log(`${topic} is ${payload}`);
  const state = Number(payload) < 18 ? 'on' : 'off';
  await broker.publish(topic.replace('celsius', 'heating'), state, { qos: 1, retain: true });
});
// #endregion

const server = createServer(aedes.handle);
await once(server.listen(1883, '127.0.0.1'), 'listening');
console.log('ready');
process.once('SIGTERM', () => {
  server.close();
  aedes.close();
});
