// An Express app with its own routes serves the management interface in all revisions, metrics and health.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createBroker } from 'embermq';
import { healthHandler, managementApis, metricsHandler } from 'embermq/management';
import express from 'express';

const broker = createBroker();
await broker.start();
await broker.applications.create({ id: 'me', secret: 'a secret' });

const app = express();
app.get('/', (_request, response) => void response.send('the shop'));
app.get('/api/orders', (_request, response) => void response.json([{ id: 1 }]));
app.use(
  managementApis(broker, [
    { revision: 'earlier', prefix: '/api/v3' },
    { revision: 'later', prefix: '/api/v4' },
    { revision: 'hosted', prefix: '/api', unmatched: 'next' } // other paths below /api are left to the app
  ]).node
);
app.use(metricsHandler(broker).node);
app.use(healthHandler(broker).node);
app.get('/api/invoices', (_request, response) => void response.json([{ id: 2 }]));

const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;

const device = await broker.connect({ clientId: 'device-1' });
const headers = { authorization: `Basic ${Buffer.from('me:a secret').toString('base64')}` };
for (const path of [
  '/api/orders',
  '/api/invoices',
  '/api/v3/connections/device-1',
  '/api/v4/clients/device-1',
  '/api/clients/device-1',
  '/readyz',
  '/metrics'
]) {
  const text = await (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).text();
  const found = /"client_?id":"[^"]+"|^embermq_connections\{.*$/m.exec(text)?.[0];
  console.log(path, found ?? text);
}

await device.disconnect();
server.close();
server.closeAllConnections();
await broker.stop();
// prints:
// /api/orders [{"id":1}]
// /api/invoices [{"id":2}]
// /api/v3/connections/device-1 "client_id":"device-1"
// /api/v4/clients/device-1 "clientid":"device-1"
// /api/clients/device-1 "clientid":"device-1"
// /readyz ok
// /metrics embermq_connections{node="embermq@127.0.0.1"} 1
