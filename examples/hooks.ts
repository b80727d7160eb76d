// Hooks authenticate and authorize clients, also asynchronously, for example after a database has answered.
import { covers, createBroker, type Hooks } from 'embermq';

const tokens = new Map([['meter-7', 'secret']]);

const hooks: Hooks = {
  // A hook that returns undefined leaves the decision to the next hook. If no hook decides, the client is refused,
  // unless allowAnonymous is set to true.
  async authenticate({ client, password }) {
    if (tokens.get(client.clientId) === password?.toString()) return { allow: true, username: client.clientId };
    return { allow: false, reasonCode: 0x86 };
  },
  // Each client may only publish below its own name.
  authorizePublish: ({ client, message }) => message.topic.startsWith(`${client.username}/`),
  // Every client may subscribe to alarms, with QoS 1 at most: the hook returns the maximum QoS. Use covers to compare filters, because
  // matches is for topic names only.
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
