// Users with passwords, and access rules: each user may use the topics below its own name, and ann may read everything.
import { acl, createBroker, users } from 'embermq';

const broker = createBroker({
  auth: [
    users([
      { username: 'ann', password: 'ann-secret' },
      { username: 'meter-7', password: 'meter-secret' }
    ]),
    acl([
      { access: 'allow', topic: '%u/#' },
      { access: 'allow', username: 'ann', action: 'subscribe', topic: '#' }
    ])
  ]
});
await broker.start();

const ann = await broker.connect({ username: 'ann', password: 'ann-secret' });
await ann.subscribe('#', ({ topic, payload }) => console.log(`ann reads ${topic}: ${payload}`));

const meter = await broker.connect({ username: 'meter-7', password: 'meter-secret' });
await meter.publish('meter-7/kWh', '1503', { qos: 1 });
await meter.publish('meter-8/kWh', '0', { qos: 1 }).catch((error) => console.log(error.message));

await broker.connect({ username: 'meter-7', password: 'guess' }).catch((error) => console.log(error.message));
await broker.connect().catch((error) => console.log(error.message)); // without a user name

await broker.stop();
// prints:
// ann reads meter-7/kWh: 1503
// PUBLISH to "meter-8/kWh" was refused: not authorized
// CONNECT was refused: bad user name or password
// CONNECT was refused: not authorized
