// A row for each operation; `withNodeForms` makes two of one, for the cluster and for a node. Records are
// written by the tables of `lib/records`, whose column decides the names. Lists come from the directory in parts, and
// pages continue where the previous one ended (`positions`). Kicking ends the session and does not publish the will, as
// in the documented products.

import { plainAddress, recordNames } from '../../../lib/adapter.ts';
import type { ClientQuery, ClientRecord } from '../../../lib/index.ts';
import { Fault, net } from '../../rest/index.ts';
import { componentOf, flag, integer, listOf, objectOf, oneOf, optional, text } from '../../rest/kit/index.ts';
import { sensorAs } from '../examples.ts';
import { Listing, wholeOf } from '../listing.ts';
import { msOf } from '../moment.ts';
import { type Context, operation } from '../operation.ts';
import { LATER } from '../revisions.ts';
import { writer } from '../wire.ts';

const moment = (description: string) => optional(integer(`${description}, in seconds or milliseconds since 1970`));

/** The conditions of client lists. All given conditions must hold. */
export const CONDITIONS = objectOf({
  clientid: optional(text('The client id')),
  username: optional(text('The user name')),
  zone: optional(text('The zone')),
  ip_address: optional(text('The IP address of the client')),
  conn_state: optional(oneOf(['connected', 'idle', 'disconnected'], 'The state of the connection')),
  clean_start: optional(flag('True if the last CONNECT asked for a new session')),
  proto_name: optional(
    oneOf(
      ['MQTT', 'MQIsdp', 'CoAP', 'LwM2M', 'MQTT-SN'],
      'The protocol: MQTT, or MQIsdp (MQTT 3.1). There are no clients of the others'
    )
  ),
  proto_ver: optional(integer('The protocol version: 3, 4 or 5', { min: 3, max: 5 })),
  _like_clientid: optional(text('A part of the client id')),
  _like_username: optional(text('A part of the user name')),
  _gte_created_at: moment('The session was created at this time or later'),
  _lte_created_at: moment('The session was created at this time or earlier'),
  _gte_connected_at: moment('The client connected at this time or later'),
  _lte_connected_at: moment('The client connected at this time or earlier')
});

/** The original products return an empty list for an unknown protocol. */
const ORIGINAL_CONDITIONS = objectOf({
  ...CONDITIONS.properties,
  proto_name: optional(text('The protocol')),
  proto_ver: optional(integer('The version of the protocol: 3, 4 or 5'))
});

const NAMES = recordNames('client', 'later');
/** The schema of the record of a client, and its writer. */
export const { schema: CLIENT, write } = writer<ClientRecord>(
  'Client',
  'A client: its session and its connection',
  NAMES
);
const EXAMPLE = sensorAs(NAMES);
const READ = { method: 'GET', in: LATER, data: listOf(CLIENT) } as const;
const CACHE = listOf(
  componentOf('CachedDecision', 'A decision about the rights of a client that its connection has cached', {
    access: oneOf(['publish', 'subscribe'], 'The action that was checked'),
    topic: text('The topic name or topic filter'),
    result: oneOf(['allow', 'deny'], 'The answer'),
    updated_time: integer('When it was given, in milliseconds since 1970'),
    by: optional(text('What refuses it: records, client, rules, source, hook or default; see `GET /x/rights`')),
    detail: optional(text('What refuses it, in a phrase, for example the rule with its number and its source'))
  })
);

export type Conditions = Readonly<Partial<Record<keyof typeof CONDITIONS.properties, unknown>>>;

/**
 * The directory query for the conditions of a list.
 * @throws Fault wrongParameter, except with `isOriginal`
 */
export function queryOf({ isOriginal }: Pick<Context, 'isOriginal'>, given: Conditions): ClientQuery {
  const ms = (value: unknown) => (typeof value === 'number' ? msOf(value) : undefined);
  const address = given.ip_address as string | undefined;
  return {
    clientId: given.clientid as string | undefined,
    username: given.username as string | undefined,
    zone: given.zone as string | undefined,
    ipAddress: isOriginal || address === undefined ? address : writtenAddress(address),
    isConnected: given.conn_state === undefined ? undefined : given.conn_state === 'connected',
    cleanStart: given.clean_start as boolean | undefined,
    protocolName: given.proto_name as string | undefined,
    protocolVersion: given.proto_ver as ClientQuery['protocolVersion'],
    clientIdContains: given._like_clientid as string | undefined,
    usernameContains: given._like_username as string | undefined,
    createdFrom: ms(given._gte_created_at),
    createdTo: ms(given._lte_created_at),
    connectedFrom: ms(given._gte_connected_at),
    connectedTo: ms(given._lte_connected_at)
  };
}

/**
 * An IP address in the form of the records.
 * @throws Fault wrongParameter
 */
function writtenAddress(given: string): string {
  const plain = plainAddress(given.toLowerCase()) ?? given;
  const { isIP, SocketAddress } = net();
  const version = isIP(plain);
  if (version === 0)
    throw new Fault('wrongParameter', `the parameter "ip_address" must be an IP address, not "${given}"`, 'ip_address');
  return version === 4 ? plain : new SocketAddress({ address: plain, family: 'ipv6' }).address;
}

function list(context: Context, given: Conditions): Listing<ClientRecord> {
  const { positions, revision } = context;
  const query = queryOf(context, given);
  // there are no records of clients without CONNECT
  if (given.conn_state === 'idle') return new Listing([], write, { count: -1, hasNext: false });
  const parts = positions.page(context, 'clients', query);
  return new Listing(parts, write, (end) => wholeOf(revision, given, end));
}

async function lookUp({ broker }: Context, clientId: string): Promise<Listing<ClientRecord>> {
  const client = await broker.directory.client(clientId);
  return new Listing(client === undefined ? [] : [client], write);
}

function byUsername({ broker, page }: Context, username: string): Listing<ClientRecord> {
  return new Listing(broker.directory.parts('clients', { username, limit: page.limit }), write);
}

async function kick({ broker }: Context, clientId: string): Promise<void> {
  // as in the original: the session ends, and its will is not published
  if (!broker.sessions.has(clientId)) throw new Fault('unknownClient', `there is no client "${clientId}"`, 'not_found');
  await broker.sessions.kick(clientId, { will: 'drop' });
}

/** Clients, in the later revisions. */
export const CLIENTS = [
  operation({
    ...READ,
    name: 'list_clients',
    descr: 'A list of clients on current node',
    onNode: ['list_node_clients', 'A list of clients on specified node'],
    path: '/clients',
    ctl: {
      'clients list [PART=_like_clientid]':
        'clientid username ip_address port connected proto_ver subscriptions_cnt mqueue_len',
      'sessions list [PART=_like_clientid]':
        'clientid connected mqueue_len mqueue_dropped inflight subscriptions_cnt awaiting_rel expiry_interval created_at'
    },
    example: { query: { _like_clientid: 'sensor', conn_state: 'connected' }, data: [EXAMPLE] },
    paged: 'max',
    query: CONDITIONS,
    originalQuery: ORIGINAL_CONDITIONS,
    run: (context, { query }) => list(context, query)
  }),
  operation({
    ...READ,
    name: 'lookup_client',
    descr: 'Lookup a client in the cluster',
    onNode: ['lookup_node_client', 'Lookup a client on the node'],
    path: '/clients/:clientid',
    ctl: 'clients show ID',
    example: { params: { clientid: 'sensor-1' }, data: [EXAMPLE] },
    run: (context, { params }) => lookUp(context, params.clientid)
  }),
  operation({
    ...READ,
    name: 'lookup_client_via_username',
    descr: 'Lookup a client via username in the cluster',
    onNode: ['lookup_node_client_via_username', 'Lookup a client via username on the node'],
    path: '/clients/username/:username',
    example: { params: { username: 'sensors' }, data: [EXAMPLE] },
    run: (context, { params }) => byUsername(context, params.username)
  }),
  operation({
    name: 'kickout_client',
    descr: 'Kick out the client in the cluster',
    onNode: ['kickout_node_client', 'Kick out the client on the node'],
    method: 'DELETE',
    path: '/clients/:clientid',
    ctl: 'clients kick ID',
    example: { params: { clientid: 'sensor-1' } },
    in: LATER,
    run: (context, { params }) => kick(context, params.clientid)
  }),
  operation({
    name: 'clean_acl_cache',
    method: 'DELETE',
    path: '/clients/:clientid/acl_cache',
    descr: 'Clear the ACL cache of a specified client in the cluster',
    example: { params: { clientid: 'sensor-1' } },
    in: LATER,
    run: ({ broker }, { params: { clientid } }) => {
      if (!broker.sessions.has(clientid))
        throw new Fault('unknownClient', `there is no client "${clientid}"`, 'not_found');
      broker.access.invalidate(clientid);
    }
  }),
  operation({
    name: 'list_acl_cache',
    method: 'GET',
    path: '/clients/:clientid/acl_cache',
    descr: 'List the ACL cache of a specified client in the cluster',
    example: {
      params: { clientid: 'sensor-1' },
      data: [{ access: 'subscribe', topic: 'commands/sensor-1', result: 'allow', updated_time: 1_767_225_600_000 }]
    },
    in: LATER,
    data: CACHE,
    run: ({ broker }, { params: { clientid } }) => {
      if (!broker.sessions.has(clientid))
        throw new Fault('unknownClient', `there is no client "${clientid}"`, 'not_found');
      const now = broker.clock.now();
      // undefined fields are not written
      return broker.access.cache(clientid).map(({ action, topic, access, ageMs, by, detail }) => ({
        access: action,
        topic,
        result: access,
        updated_time: Math.round(now - ageMs),
        by,
        detail
      }));
    }
  })
];
