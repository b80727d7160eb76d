// A broker inside an app, without a port: the app publishes, subscribes and reads retained messages.
import { createBroker } from 'embermq';

const broker = createBroker();
await broker.start();

broker.subscribe('sensors/+/temperature', ({ topic, payload }) => {
  console.log(`${topic} is ${payload}`);
});

await broker.publish({ topic: 'sensors/attic/temperature', payload: '21.5', retain: true });
await broker.publish({ topic: 'sensors/cellar/temperature', payload: '12', retain: true });

for await (const message of broker.retained.match('sensors/#')) console.log(`retained: ${message.topic}`);

await broker.stop();
// prints:
// sensors/attic/temperature is 21.5
// sensors/cellar/temperature is 12
// retained: sensors/attic/temperature
// retained: sensors/cellar/temperature
