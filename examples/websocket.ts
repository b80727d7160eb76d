// MQTT over WebSocket on the HTTP server that an app already has: the same port, on the path /mqtt.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createBroker } from 'embermq';
import { attachWebSocket } from 'embermq/net';
import mqtt from 'mqtt';

const server = createServer((_request, response) => response.end('the page of the app'));

const broker = createBroker();
attachWebSocket(broker, server, { path: '/mqtt' });
await broker.start();

await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as AddressInfo;

const page = await fetch(`http://127.0.0.1:${port}/`);
console.log(`GET / returned: ${await page.text()}`);

const browser = await mqtt.connectAsync(`ws://127.0.0.1:${port}/mqtt`);
await browser.subscribeAsync('news');
const news = new Promise<string>((resolve) => browser.on('message', (_topic, payload) => resolve(String(payload))));
await broker.publish({ topic: 'news', payload: 'hello, browser' });
console.log(`news: ${await news}`);

await browser.endAsync();
await broker.stop();
server.close();
// prints:
// GET / returned: the page of the app
// news: hello, browser
