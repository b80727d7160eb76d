import Type from 'typebox';
import { recordNames, type SessionRecord } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { SESSION as EXAMPLE, NODE } from '../examples.ts';
import { Listing } from '../listing.ts';
import { type Context, operation } from '../operation.ts';
import { EARLIER } from '../revisions.ts';
import { writer } from '../wire.ts';
import { checkNode } from './clients.ts';

const { schema: SESSION, write } = writer<SessionRecord>('Session', recordNames('session', 'earlier'));
const DATA = Type.Array(SESSION);

async function list({ broker, page: { skip, limit } }: Context): Promise<Listing<SessionRecord>> {
  const { entries, count } = await broker.directory.sessions({ skip, limit });
  return Listing.written(entries, { count }, write);
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
  operation({
    name: 'list_sessions',
    method: 'GET',
    path: '/sessions',
    descr: 'A list of sessions in the cluster',
    example: { data: [EXAMPLE] },
    in: EARLIER,
    data: DATA,
    paged: 'max',
    run: (context) => list(context)
  }),
  operation({
    name: 'list_node_sessions',
    method: 'GET',
    path: '/nodes/:node/sessions',
    descr: 'A list of sessions on a node',
    example: { params: { node: NODE }, query: { _page: 1, _limit: 1 }, data: [EXAMPLE] },
    in: EARLIER,
    data: DATA,
    paged: 'max',
    run: (context, { params }) => {
      checkNode(context, params.node);
      return list(context);
    }
  }),
  operation({
    name: 'lookup_session',
    method: 'GET',
    path: '/sessions/:clientid',
    descr: 'Lookup a session in the cluster',
    example: { params: { clientid: 'sensor-1' }, data: [EXAMPLE] },
    in: EARLIER,
    data: DATA,
    run: (context, { params }) => lookUp(context, params.clientid)
  }),
  operation({
    name: 'lookup_node_session',
    method: 'GET',
    path: '/nodes/:node/sessions/:clientid',
    descr: 'Lookup a session on the node',
    example: { params: { node: NODE, clientid: 'sensor-1' }, data: [EXAMPLE] },
    in: EARLIER,
    data: DATA,
    run: (context, { params }) => {
      checkNode(context, params.node);
      return lookUp(context, params.clientid);
    }
  }),
  // "presisent" is the documented spelling
  operation({
    name: 'clean_presisent_session',
    method: 'DELETE',
    path: '/sessions/persistent/:clientid',
    descr: 'Clean a persistent session in the cluster',
    example: { params: { clientid: 'sensor-2' } },
    in: EARLIER,
    run: (context, { params }) => clean(context, params.clientid)
  }),
  operation({
    name: 'clean_node_presisent_session',
    method: 'DELETE',
    path: '/nodes/:node/sessions/persistent/:clientid',
    descr: 'Clean a persistent session on the node',
    example: { params: { node: NODE, clientid: 'sensor-2' } },
    in: EARLIER,
    run: (context, { params }) => {
      checkNode(context, params.node);
      return clean(context, params.clientid);
    }
  })
];
