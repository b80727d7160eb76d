import { recordNames } from '../../../lib/adapter.ts';
import type { ClientRecord } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { listOf } from '../../rest/kit/index.ts';
import { sensorAs } from '../examples.ts';
import { Listing } from '../listing.ts';
import { type Context, operation } from '../operation.ts';
import { EARLIER } from '../revisions.ts';
import { writer } from '../wire.ts';

const NAMES = recordNames('connection', 'earlier');
/** The connected clients, under the field names of a connection. */
const { schema: CONNECTION, write } = writer<ClientRecord>('Connection', 'A connection of a client', NAMES);
const EXAMPLE = sensorAs(NAMES);
const READ = { method: 'GET', in: EARLIER, data: listOf(CONNECTION) } as const;

function list(context: Context): Listing<ClientRecord> {
  const { broker, positions } = context;
  const parts = positions.page(context, 'clients', { isConnected: true });
  return new Listing(parts, write, () => ({ count: broker.metrics.gauge('connections') }));
}

async function lookUp({ broker }: Context, clientId: string): Promise<Listing<ClientRecord>> {
  const client = await broker.directory.client(clientId);
  return new Listing(client?.isConnected ? [client] : [], write);
}

function byUsername({ broker, page: { limit } }: Context, username: string): Listing<ClientRecord> {
  return new Listing(broker.directory.parts('clients', { username, isConnected: true, limit }), write);
}

async function kick({ broker: { sessions } }: Context, clientId: string): Promise<void> {
  if (!sessions.has(clientId) || sessions.get(clientId).state !== 'connected')
    throw new Fault('unknownClient', `the client "${clientId}" is not connected`, 'not_found');
  // as in the original: a session that outlives its connection is kept, and the will is published
  await sessions.kick(clientId, { session: 'keep' });
}

/** The connections of clients, in the earlier revision. */
export const CONNECTIONS = [
  operation({
    ...READ,
    name: 'list_connections',
    descr: 'A list of connections in the cluster',
    onNode: ['list_node_connections', 'A list of connections on a node'],
    path: '/connections',
    example: { data: [EXAMPLE] },
    paged: 'max',
    run: (context) => list(context)
  }),
  operation({
    ...READ,
    name: 'lookup_connections',
    descr: 'Lookup a connection in the cluster',
    onNode: ['lookup_node_connections', 'Lookup a connection on node'],
    path: '/connections/:clientid',
    example: { params: { clientid: 'sensor-1' }, data: [EXAMPLE] },
    run: (context, { params }) => lookUp(context, params.clientid)
  }),
  // the documentation lists the form for a node first, and has swapped the two descriptions
  operation({
    ...READ,
    name: 'lookup_connection_via_username',
    descr: 'Lookup a connection via username on a node',
    onNode: ['lookup_node_connection_via_username', 'Lookup a connection via username in the cluster', 'before'],
    path: '/connection/username/:username',
    example: { params: { username: 'sensors' }, data: [EXAMPLE] },
    run: (context, { params }) => byUsername(context, params.username)
  }),
  operation({
    name: 'kickout_connection',
    method: 'DELETE',
    path: '/connections/:clientid',
    descr: 'Kick out a connection',
    example: { params: { clientid: 'sensor-1' } },
    in: EARLIER,
    run: (context, { params }) => kick(context, params.clientid)
  })
];
