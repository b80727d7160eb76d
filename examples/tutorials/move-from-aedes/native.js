// The app of the tutorial "Move from Aedes" on the native interface of embermq.

// #region native-broker
import { createBroker } from 'embermq';
import { levelStore } from 'embermq/level';
import { listen, tcp } from 'embermq/net';

const broker = createBroker({
  store: levelStore('broker-data'), // the folder of before: sessions and retained messages stay
  sessionExpiryInterval: Infinity, // as in Aedes; 2 hours without it
  aclDenyAction: 'disconnect' // as in Aedes; without it, a refused message is ignored
});
// #endregion

// #region native-authenticate
const passwords = new Map([
  ['ann', 'a password'],
  ['attic', 'a key']
]);

broker.hook('authenticate', ({ username = '', password }) => {
  if (passwords.has(username) && passwords.get(username) === password?.toString()) return true;
  return { allow: false, reasonCode: 0x86 }; // return code 4 for MQTT 3
});
// #endregion

// #region native-authorize
broker.hook('authorizePublish', ({ client, message }) => message.topic.startsWith(`rooms/${client.username}/`));
broker.hook('authorizeSubscribe', ({ filter }) => filter.startsWith('rooms/'));
broker.hook('deliver', ({ client, message }) => {
  if (message.topic.endsWith('/celsius') && client.username !== 'ann') return false; // only ann sees temperatures
  return undefined;
});
// #endregion

broker.on('client.connected', ({ client }) => console.log(`${client.clientId} has connected`));
broker.on('client.disconnected', ({ client }) => console.log(`${client.clientId} has disconnected`));

broker.subscribe('rooms/+/celsius', async ({ topic, payload }) => {
  console.log(`${topic} is ${payload}`);
  const state = Number(payload) < 18 ? 'on' : 'off';
  await broker.publish(topic.replace('celsius', 'heating'), state, { qos: 1, retain: true });
});

// #region native-server
listen(broker, tcp({ port: 1883 }));
await broker.start();
console.log('ready');
process.once('SIGTERM', () => broker.stop());
// #endregion
