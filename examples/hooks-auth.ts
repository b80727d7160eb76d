// Who may come in, and what may they do? Hooks decide; they may be async and ask a database. Events tell afterwards.
import { covers, createBroker, type Hooks } from 'embermq';

const tokens = new Map([['meter-7', 'secret']]);

const hooks: Hooks = {
  // No opinion (undefined) leaves the decision to the next hook. Without any opinion the client is refused, unless allowAnonymous: true is set.
  async authenticate({ client, password }) {
    if (tokens.get(client.clientId) === password?.toString()) return { allow: true, username: client.clientId };
    return { allow: false, reasonCode: 0x86 };
  },
  // Everybody publishes below the own name only.
  authorizePublish: ({ client, message }) => message.topic.startsWith(`${client.username}/`),
  // Alarms are for everybody, at QoS 1 at most: the granted QoS is what is returned. covers compares filters, matches would not do.
  authorizeSubscribe: ({ filter }) => covers('alarms/#', filter) && 1
};

const broker = createBroker({ hooks });
await broker.start();
broker.on('client.disconnected', ({ client, reason }) => console.log(`${client.clientId} left: ${reason}`));

const meter = await broker.connect({ clientId: 'meter-7', password: 'secret' });
console.log('granted:', await meter.subscribe(['alarms/#', '#'], { qos: 2 }));
await meter.publish('meter-7/kWh', '1503', { qos: 1 });
await meter.publish('meter-8/kWh', '0', { qos: 1 }).catch((error) => console.log(error.message));
await broker.connect({ clientId: 'meter-8', password: 'guess' }).catch((error) => console.log(error.message));

await meter.disconnect();
await broker.stop();
// prints:
// granted: [ 1, 135 ]
// PUBLISH to "meter-8/kWh" was refused: not authorized
// CONNECT was refused: bad user name or password
// meter-7 left: normal
