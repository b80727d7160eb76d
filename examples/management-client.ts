// The typed client of the management interface: paths, parameters, bodies and answers have types. It needs only fetch.
import { createBroker } from 'embermq';
import { managementApi } from 'embermq/management';
import { ManagementClient } from 'embermq/management/client';
import { listenHttp } from 'embermq/net';

// The interface of a running broker. In production, this is `npx embermq serve` or an app on another machine.
const broker = createBroker();
const http = listenHttp(broker, 0, managementApi(broker, { revision: 'later', prefix: '/api/v4' }).node);
await broker.start();
await broker.applications.create({ id: 'me', secret: 'a secret' });
const lamp = await broker.connect({ clientId: 'lamp' });
await lamp.subscribe('lamp/set', { qos: 1 }, ({ payload }) => console.log(`lamp received: ${payload}`));

const client = new ManagementClient({ url: `http://127.0.0.1:${http.port}/api/v4`, id: 'me', secret: 'a secret' });
const [found] = await client.get('/clients/{clientid}', { params: { clientid: 'lamp' } });
console.log(`${found.clientid} has ${found.subscriptions_cnt} subscription`);
for await (const { clientid, topic, qos } of client.list('/subscriptions')) console.log(clientid, topic, qos);
await client.post('/mqtt/publish', { body: { topic: 'lamp/set', payload: 'on', qos: 1, clientid: 'client' } });
await lamp.ping(); // until the lamp has received it
await client.delete('/clients/{clientid}', { params: { clientid: 'lamp' } });
console.log('clients:', (await client.get('/clients')).length);

await broker.stop();
// prints:
// lamp has 1 subscription
// lamp lamp/set 1
// lamp received: on
// clients: 0
