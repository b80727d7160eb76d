// A broker on a TCP port, and a device that uses MQTT.js. Port 0 selects a free port; your app would use 1883.
import { createBroker } from 'embermq';
import { listen } from 'embermq/net';
import mqtt from 'mqtt';

const broker = createBroker();
const listener = listen(broker, 0);
await broker.start();

const device = await mqtt.connectAsync(`mqtt://127.0.0.1:${listener.port}`, { protocolVersion: 5, clientId: 'lamp' });
await device.subscribeAsync('lamp/set', { qos: 1 });
const received = new Promise<string>((resolve) => device.on('message', (_topic, payload) => resolve(String(payload))));

await broker.publish({ topic: 'lamp/set', payload: 'on', qos: 1 });
console.log(`lamp received: ${await received}`);

await device.endAsync();
await broker.stop();
// prints:
// lamp received: on
