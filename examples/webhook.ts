// Events as HTTP requests: events of clients reach a web server as JSON. While the server is down, events are queued.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { createBroker } from 'embermq';
import { webhook } from 'embermq/webhook';

// The web server that receives the events. In production it is another process.
const server = createServer(async (request, response) => {
  const { action, topic, payload } = (await json(request)) as Record<string, string>;
  console.log(action === 'message_publish' ? `${action}: ${topic} ${payload}` : action);
  response.end();
});
await once(server.listen(0, '127.0.0.1'), 'listening');
const { port } = server.address() as AddressInfo;

const broker = createBroker();
const hook = webhook(broker, {
  url: `http://127.0.0.1:${port}/events`,
  rules: [
    { event: 'client.connected' },
    { event: 'message.publish', topic: 'sensors/#' },
    { event: 'client.disconnected' }
  ]
});
await broker.start();

const sensor = await broker.connect({ clientId: 'sensor-1' });
await sensor.publish('sensors/1', '21.5', { qos: 1 });
await sensor.publish('other/1', 'not sent', { qos: 1 });
await sensor.disconnect();

await hook.idle(); // until everything is sent
await broker.stop();
server.close();
// prints:
// client_connected
// message_publish: sensors/1 21.5
// client_disconnected
