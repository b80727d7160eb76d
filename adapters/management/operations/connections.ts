import { recordNames } from '../../../lib/adapter.ts';
import type { ClientRecord } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { listOf } from '../../rest/kit/index.ts';
import { CONNECTION as EXAMPLE } from '../examples.ts';
import { Listing } from '../listing.ts';
import { type Context, operation } from '../operation.ts';
import { EARLIER } from '../revisions.ts';
import { writer } from '../wire.ts';
import { inClusterAndOnNode } from './on-node.ts';

/** The connected clients, under the field names of a connection. */
const { schema: CONNECTION, write } = writer<ClientRecord>('Connection', recordNames('connection', 'earlier'));
const DATA = listOf(CONNECTION);

async function list(context: Context): Promise<Listing<ClientRecord>> {
  const { broker, walks } = context;
  const parts = walks.page(context, 'connections', {}, (page) =>
    broker.directory.parts('clients', { isConnected: true, ...page })
  );
  return Listing.read(parts, () => ({ count: broker.metrics.gauge('connections') }), write);
}

async function lookUp({ broker }: Context, clientId: string): Promise<Listing<ClientRecord>> {
  const client = await broker.directory.client(clientId);
  return Listing.written(client?.isConnected ? [client] : [], undefined, write);
}

async function byUsername({ broker, page: { limit } }: Context, username: string): Promise<Listing<ClientRecord>> {
  return Listing.read(
    broker.directory.parts('clients', { username, isConnected: true, limit }),
    () => undefined,
    write
  );
}

async function kick({ broker: { sessions } }: Context, clientId: string): Promise<void> {
  if (!sessions.has(clientId) || sessions.get(clientId).state !== 'connected')
    throw new Fault('unknownClient', `the client "${clientId}" is not connected`, 'not_found');
  // as in the original: a session that outlives its connection is kept, and the will is published
  await sessions.kick(clientId, { session: 'keep' });
}

/** The connections of clients, in the earlier revision. */
export const CONNECTIONS = [
  ...inClusterAndOnNode(
    ['list_node_connections', 'A list of connections on a node'],
    operation({
      name: 'list_connections',
      descr: 'A list of connections in the cluster',
      method: 'GET',
      path: '/connections',
      example: { data: [EXAMPLE] },
      in: EARLIER,
      data: DATA,
      paged: 'max',
      run: (context) => list(context)
    })
  ),
  ...inClusterAndOnNode(
    ['lookup_node_connections', 'Lookup a connection on node'],
    operation({
      name: 'lookup_connections',
      descr: 'Lookup a connection in the cluster',
      method: 'GET',
      path: '/connections/:clientid',
      example: { params: { clientid: 'sensor-1' }, data: [EXAMPLE] },
      in: EARLIER,
      data: DATA,
      run: (context, { params }) => lookUp(context, params.clientid)
    })
  ),
  // the documentation lists the form for a node first, and has swapped the two descriptions
  ...inClusterAndOnNode(
    ['lookup_node_connection_via_username', 'Lookup a connection via username in the cluster'],
    operation({
      name: 'lookup_connection_via_username',
      descr: 'Lookup a connection via username on a node',
      method: 'GET',
      path: '/connection/username/:username',
      example: { params: { username: 'sensors' }, data: [EXAMPLE] },
      in: EARLIER,
      data: DATA,
      run: (context, { params }) => byUsername(context, params.username)
    })
  ).reverse(),
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
