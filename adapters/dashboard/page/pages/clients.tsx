import { choice, hrefOf, place } from '../app/place.ts';
import { getPage } from '../app/requests.ts';
import { serverTime } from '../app/session.ts';
import { agoText, countText, timeText } from '../model/format.ts';
import { CopyAs } from '../parts/copy.tsx';
import { Badge, Head } from '../parts/facts.tsx';
import { Conditions, type FieldRow } from '../parts/fields.tsx';
import { List } from '../parts/list.tsx';
import { Name } from '../parts/name.tsx';
import type { Column } from '../parts/table.tsx';
import { T } from '../texts.ts';
import { addressOf, type ClientRow, protocolText } from './client/row.ts';

const C = T.clients;
const F = T.form;

/** All conditions of `GET /clients` in the revision `later`. */
const FIELDS: readonly FieldRow[] = [
  { name: '_like_clientid', label: C.likeId, placeholder: C.part },
  { name: '_like_username', label: C.likeUser, placeholder: C.part },
  {
    name: 'conn_state',
    label: C.state,
    type: 'choice',
    choices: [
      ['', F.any],
      ['connected', C.connected],
      ['disconnected', C.disconnected],
      ['idle', C.idle]
    ]
  },
  { name: 'ip_address', label: C.address },
  { name: 'clientid', label: C.exactId, isMinor: true },
  { name: 'username', label: C.exactUser, isMinor: true },
  { name: 'zone', label: C.zone, isMinor: true },
  {
    name: 'proto_ver',
    label: C.protocol,
    type: 'choice',
    isMinor: true,
    choices: [
      ['', F.any],
      ['5', 'MQTT 5.0'],
      ['4', 'MQTT 3.1.1'],
      ['3', 'MQTT 3.1']
    ]
  },
  {
    name: 'proto_name',
    label: C.protocolName,
    type: 'choice',
    isMinor: true,
    choices: [
      ['', F.any],
      ['MQTT', 'MQTT'],
      ['MQIsdp', 'MQIsdp']
    ]
  },
  {
    name: 'clean_start',
    label: C.cleanStart,
    type: 'choice',
    isMinor: true,
    choices: [
      ['', F.any],
      ['true', F.yes],
      ['false', F.no]
    ]
  },
  { name: '_gte_connected_at', label: C.connectedFrom, type: 'time', isMinor: true },
  { name: '_lte_connected_at', label: C.connectedTo, type: 'time', isMinor: true },
  { name: '_gte_created_at', label: C.createdFrom, type: 'time', isMinor: true },
  { name: '_lte_created_at', label: C.createdTo, type: 'time', isMinor: true }
];

const COLUMNS: readonly Column<ClientRow>[] = [
  {
    head: C.id,
    isWide: true,
    cell: ({ clientid }) => (
      <a href={hrefOf('client', { id: clientid })}>
        <Name of={clientid} />
      </a>
    )
  },
  {
    head: C.user,
    isMinor: true,
    cell: ({ username }) => (username === 'undefined' ? '' : <Name of={username} max={40} />)
  },
  { head: C.state, cell: (row) => <StateOf row={row} /> },
  { head: C.address, isMinor: true, cell: (row) => addressOf(row) ?? C.inProcess },
  { head: C.protocol, isMinor: true, cell: (row) => protocolText(row) },
  { head: C.subscriptions, isNumber: true, cell: ({ subscriptions_cnt }) => countText(subscriptions_cnt) },
  { head: C.queued, isNumber: true, cell: ({ mqueue_len }) => countText(mqueue_len) },
  { head: C.inflight, isNumber: true, isMinor: true, cell: ({ inflight }) => countText(inflight) },
  { head: C.dropped, isNumber: true, isMinor: true, cell: ({ mqueue_dropped }) => countText(mqueue_dropped) },
  {
    head: C.received,
    isNumber: true,
    isMinor: true,
    about: C.receivedAbout,
    cell: ({ recv_msg }) => countText(recv_msg)
  },
  { head: C.sent, isNumber: true, isMinor: true, about: C.sentAbout, cell: ({ send_msg }) => countText(send_msg) }
];

/** The clients: those that are connected, and those whose sessions are kept. */
export function Page() {
  const query = queryOf();
  const isFiltered = Object.values(query).some((value) => value !== undefined);
  return (
    <>
      <Head title={T.views.clients}>
        <CopyAs request={{ path: '/clients', query }} ctl={ctlWords(query)} />
      </Head>
      <Conditions fields={FIELDS} />
      <List<ClientRow>
        caption={T.views.clients}
        columns={COLUMNS}
        keyOf={({ clientid }) => clientid}
        empty={isFiltered ? C.noneFound : C.none}
        conditions={JSON.stringify(query)}
        load={(page, signal) => getPage('/clients', { query: { ...query, ...page }, signal })}
      />
    </>
  );
}

type ClientQuery = NonNullable<NonNullable<Parameters<typeof getPage<'/clients'>>[1]>['query']>;

/** The conditions in the address, as the interface takes them: times in seconds since 1970. */
function queryOf(): ClientQuery {
  const { choices } = place.value;
  const given = FIELDS.map(({ name, type }) => {
    const value = choices[name];
    if (value === undefined || value === '') return [name, undefined];
    return [name, type === 'time' ? Math.floor(new Date(value).getTime() / 1000) : value];
  });
  return Object.fromEntries(given) as ClientQuery;
}

/** `ctl` supports only the condition for a part of the client id. */
function ctlWords(query: ClientQuery): readonly string[] | undefined {
  const used = Object.entries(query).filter(([, value]) => value !== undefined);
  if (used.some(([name]) => name !== '_like_clientid')) return undefined;
  const part = choice('_like_clientid');
  return part === '' ? ['clients', 'list'] : ['clients', 'list', '--', part];
}

function StateOf({ row }: { readonly row: ClientRow }) {
  const { connected, connected_at, disconnected_at } = row;
  const since = serverTime(connected ? connected_at : disconnected_at);
  return (
    <span title={since === undefined ? undefined : timeText(since)}>
      <Badge kind={connected ? 'good' : 'quiet'}>{connected ? C.connected : C.disconnected}</Badge>
      {since !== undefined && <span class="aside"> {agoText(since, Date.now(), T.time)}</span>}
    </span>
  );
}
