import { recordNames } from '../../../lib/adapter.ts';
import type { SessionRecord } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { listOf } from '../../rest/kit/index.ts';
import { sensorAs } from '../examples.ts';
import { Listing } from '../listing.ts';
import { type Context, operation } from '../operation.ts';
import { EARLIER } from '../revisions.ts';
import { writer } from '../wire.ts';

const NAMES = recordNames('session', 'earlier');
const { schema: SESSION, write } = writer<SessionRecord>('Session', 'A session, with or without a connection', NAMES);
const EXAMPLE = sensorAs(NAMES);
const READ = { method: 'GET', in: EARLIER, data: listOf(SESSION) } as const;

function list(context: Context): Listing<SessionRecord> {
  return new Listing(context.positions.page(context, 'sessions', {}), write, ({ count }) => ({ count }));
}

async function lookUp({ broker }: Context, clientId: string): Promise<Listing<SessionRecord>> {
  const session = await broker.directory.session(clientId);
  return new Listing(session === undefined ? [] : [session], write);
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
    ...READ,
    name: 'list_sessions',
    descr: 'A list of sessions in the cluster',
    onNode: ['list_node_sessions', 'A list of sessions on a node'],
    path: '/sessions',
    example: { data: [EXAMPLE] },
    paged: 'max',
    run: (context) => list(context)
  }),
  operation({
    ...READ,
    name: 'lookup_session',
    descr: 'Lookup a session in the cluster',
    onNode: ['lookup_node_session', 'Lookup a session on the node'],
    path: '/sessions/:clientid',
    example: { params: { clientid: 'sensor-1' }, data: [EXAMPLE] },
    run: (context, { params }) => lookUp(context, params.clientid)
  }),
  // "presisent" is the documented spelling
  operation({
    name: 'clean_presisent_session',
    descr: 'Clean a persistent session in the cluster',
    onNode: ['clean_node_presisent_session', 'Clean a persistent session on the node'],
    method: 'DELETE',
    path: '/sessions/persistent/:clientid',
    example: { params: { clientid: 'sensor-2' } },
    in: EARLIER,
    run: (context, { params }) => clean(context, params.clientid)
  })
];
