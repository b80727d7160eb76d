// Clients without a socket: a client of the broker with a will and a session that outlives its connection, and MQTT.js over a stream.
import { createBroker } from 'embermq';
import mqtt from 'mqtt';

const broker = createBroker();
await broker.start();

// The session is kept for an hour after the connection has closed.
const options = {
  clientId: 'boiler',
  clean: false,
  sessionExpiry: 3600,
  will: { topic: 'boiler/state', payload: 'lost' }
};
const boiler = await broker.connect(options);
await boiler.subscribe('boiler/set', { qos: 2 });

// Any client library can use a stream of the broker, for example MQTT.js.
const panel = new mqtt.MqttClient(() => broker.stream() as never, { clientId: 'panel', protocolVersion: 5 });
const states = new Promise<string>((resolve) => panel.on('message', (_topic, payload) => resolve(String(payload))));
await panel.subscribeAsync('boiler/state');

boiler.destroy(); // closes the connection without DISCONNECT, so the will is published
console.log(`panel reads: ${await states}`);

await panel.publishAsync('boiler/set', '55', { qos: 2 }); // queued in the backlog of the boiler's session
const again = await broker.connect(options);
console.log(`session present: ${again.connack.sessionPresent}`);
for await (const message of again.messages()) {
  console.log(`boiler is set to ${message.payload}`);
  break;
}

await again.disconnect();
await panel.endAsync();
await broker.stop();
// prints:
// panel reads: lost
// session present: true
// boiler is set to 55
