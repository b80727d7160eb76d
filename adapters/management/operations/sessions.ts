import { recordNames } from '../../../lib/adapter.ts';
import type { SessionRecord } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { listOf } from '../../rest/kit/index.ts';
import { SESSION as EXAMPLE } from '../examples.ts';
import { Listing } from '../listing.ts';
import { type Context, operation } from '../operation.ts';
import { EARLIER } from '../revisions.ts';
import { writer } from '../wire.ts';
import { inClusterAndOnNode } from './on-node.ts';

const { schema: SESSION, write } = writer<SessionRecord>('Session', recordNames('session', 'earlier'));
const DATA = listOf(SESSION);

async function list(context: Context): Promise<Listing<SessionRecord>> {
  const { broker, walks } = context;
  const parts = walks.page(context, 'sessions', {}, (page) => broker.directory.parts('sessions', page));
  return Listing.read(parts, ({ count }) => ({ count }), write);
}

async function lookUp({ broker }: Context, clientId: string): Promise<Listing<SessionRecord>> {
  const session = await broker.directory.session(clientId);
  return Listing.written(session === undefined ? [] : [session], undefined, write);
}

async function clean({ broker: { sessions } }: Context, clientId: string): Promise<void> {
  if (!sessions.has(clientId))
    throw new Fault('unknownSession', `the client "${clientId}" has no session`, 'not_found');
  if (sessions.get(clientId).state === 'connected')
    throw new Fault(
      'sessionRunning',
      `the client "${clientId}" is connected: disconnect it first (DELETE /connections/{clientid})`,
      'running_session'
    );
  await sessions.discard(clientId);
}

/** The sessions of clients, in the earlier revision. */
export const SESSIONS = [
  ...inClusterAndOnNode(
    ['list_node_sessions', 'A list of sessions on a node'],
    operation({
      name: 'list_sessions',
      descr: 'A list of sessions in the cluster',
      method: 'GET',
      path: '/sessions',
      example: { data: [EXAMPLE] },
      in: EARLIER,
      data: DATA,
      paged: 'max',
      run: (context) => list(context)
    })
  ),
  ...inClusterAndOnNode(
    ['lookup_node_session', 'Lookup a session on the node'],
    operation({
      name: 'lookup_session',
      descr: 'Lookup a session in the cluster',
      method: 'GET',
      path: '/sessions/:clientid',
      example: { params: { clientid: 'sensor-1' }, data: [EXAMPLE] },
      in: EARLIER,
      data: DATA,
      run: (context, { params }) => lookUp(context, params.clientid)
    })
  ),
  // "presisent" is the documented spelling
  ...inClusterAndOnNode(
    ['clean_node_presisent_session', 'Clean a persistent session on the node'],
    operation({
      name: 'clean_presisent_session',
      descr: 'Clean a persistent session in the cluster',
      method: 'DELETE',
      path: '/sessions/persistent/:clientid',
      example: { params: { clientid: 'sensor-2' } },
      in: EARLIER,
      run: (context, { params }) => clean(context, params.clientid)
    })
  )
];
