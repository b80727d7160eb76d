// The app of the tutorial "Move from Aedes" before it moves: users, rooms of which each user has its own, and a thermostat.

// #region broker
import { once } from 'node:events';
import { createServer } from 'node:net';
import { Aedes } from 'aedes';
import persistence from 'aedes-persistence'; // or the one for Redis, MongoDB, LevelDB

const aedes = await Aedes.createBroker({ persistence: persistence() });
// #endregion

// #region authenticate
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
// #endregion

// #region authorize
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
// #endregion

// #region events
aedes.on('clientReady', ({ id }) => console.log(`${id} has connected`));
aedes.on('clientDisconnect', ({ id }) => console.log(`${id} has disconnected`));
// #endregion

// #region thermostat
const thermostat = ({ topic, payload }, done) => {
  console.log(`${topic} is ${payload}`);
  const heating = topic.replace('celsius', 'heating');
  const state = Number(payload) < 18 ? 'on' : 'off';
  aedes.publish({ topic: heating, payload: state, qos: 1, retain: true }, done);
};
aedes.subscribe('rooms/+/celsius', thermostat);
// #endregion

// #region server
const server = createServer(aedes.handle);
await once(server.listen(1883, '127.0.0.1'), 'listening');
console.log('ready');
process.once('SIGTERM', () => {
  server.close();
  aedes.close();
});
// #endregion
