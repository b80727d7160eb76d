import { choice, hrefOf, place } from '../app/place.ts';
import { get, getPage } from '../app/requests.ts';
import { serverTime } from '../app/session.ts';
import { agoText, countText, timeText } from '../model/format.ts';
import { CopyAs } from '../parts/copy.tsx';
import { Badge, Head } from '../parts/facts.tsx';
import { Conditions, type FieldRow } from '../parts/fields.tsx';
import { List } from '../parts/list.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { T } from '../texts.ts';
import { RateOf, type Rates, RatesOf } from './client/rates.tsx';
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

/** A client with its measured messages per second, in the list of the busiest ones. */
interface ListedClient extends ClientRow {
  readonly measured?: Rates;
}

/** The orders of the list: its own, or that of a rate, which the broker measures. */
const ORDERS: readonly string[] = ['received', 'sent'] satisfies (keyof Rates)[];

/** The column with a rate, whose heading changes the order of the list. */
function rateColumn(part: keyof Rates, head: string, about: string, isMinor: boolean): Column<ListedClient> {
  const isCurrent = choice('sort') === part;
  const { choices } = place.value;
  return {
    head,
    isNumber: true,
    isMinor,
    about: `${about} ${isCurrent ? C.unsort : C.sort}`,
    sort: {
      href: hrefOf('clients', { ...choices, page: undefined, cursor: undefined, sort: isCurrent ? undefined : part }),
      isCurrent
    },
    cell: ({ clientid, measured }) => <RateOf of={clientid} part={part} measured={measured?.[part]} />
  };
}

function columns(): readonly Column<ListedClient>[] {
  return [
    {
      head: C.id,
      isWide: true,
      cell: ({ clientid }) => (
        <a href={hrefOf('client', { id: clientid })}>
          <Name of={clientid} max={48} />
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
    rateColumn('received', C.receivedRate, C.receivedRateAbout, false),
    rateColumn('sent', C.sentRate, C.sentRateAbout, true),
    {
      head: C.subscriptions,
      isNumber: true,
      isMinor: true,
      cell: ({ subscriptions_cnt }) => countText(subscriptions_cnt)
    },
    { head: C.queued, isNumber: true, cell: ({ mqueue_len }) => countText(mqueue_len) },
    { head: C.inflight, isNumber: true, isMinor: true, cell: ({ inflight }) => countText(inflight) },
    { head: C.dropped, isNumber: true, isMinor: true, cell: ({ mqueue_dropped }) => countText(mqueue_dropped) }
  ];
}

/** The clients: those that are connected, and those whose sessions are kept. */
export function Page() {
  const query = queryOf();
  const sort = choice('sort');
  const isFiltered = Object.values(query).some((value) => value !== undefined);
  const by = ORDERS.includes(sort) ? (sort as keyof Rates) : undefined;
  return (
    <>
      <Head title={T.views.clients}>
        {by === undefined ? (
          <CopyAs request={{ path: '/clients', query }} ctl={ctlWords(['clients', 'list'], '/clients', query)} />
        ) : (
          <CopyAs
            request={{ path: '/x/busiest_clients', query: { ...query, by, limit: BUSIEST } }}
            ctl={ctlWords(['clients', 'busiest', `--by=${by}`, `--places=${BUSIEST}`], '/x/busiest_clients', {
              ...query,
              by,
              limit: BUSIEST
            })}
          />
        )}
      </Head>
      <Conditions fields={FIELDS} />
      {by === undefined ? (
        <List<ListedClient>
          caption={T.views.clients}
          columns={columns()}
          keyOf={({ clientid }) => clientid}
          empty={isFiltered ? C.noneFound : C.none}
          conditions={JSON.stringify(query)}
          load={(page, signal) => getPage('/clients', { query: { ...query, ...page }, signal })}
          live={(rows) => <RatesOf rows={rows} />}
        />
      ) : (
        <Busiest by={by} query={query} />
      )}
    </>
  );
}

/** Maximum number of clients in the list of the busiest ones. */
const BUSIEST = 100;

/** The clients with the most messages per second. They stay in their places until they are measured again. */
function Busiest({ by, query }: { readonly by: keyof Rates; readonly query: ClientQuery }) {
  const { value, error, isLoading, reload } = useLoaded(`${by} ${JSON.stringify(query)}`, (signal) =>
    get('/x/busiest_clients', { query: { ...query, by, limit: BUSIEST }, signal })
  );
  const rows = value?.map(({ client, received_per_s, sent_per_s }) => ({
    ...client,
    measured: { received: received_per_s, sent: sent_per_s }
  }));
  if (rows === undefined && error === undefined) return <p class="loading">{C.measuring}</p>;
  return (
    <>
      {rows !== undefined && <RatesOf rows={rows} />}
      <Table
        caption={C.busiest}
        columns={columns()}
        rows={rows}
        keyOf={({ clientid }) => clientid}
        empty={C.noneBusy}
        error={error}
        onRetry={reload}
        isLoading={isLoading}
      />
      <div class="pager">
        <span role="status">{isLoading ? C.measuring : C.measured(BUSIEST)}</span>
        <button type="button" class="small" disabled={isLoading} onClick={reload}>
          {C.measure}
        </button>
        <a class="button small-button" href={hrefOf('clients', { ...place.value.choices, sort: undefined })}>
          {C.unsorted}
        </a>
      </div>
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

/** The action of `ctl` for a list, which supports only the condition for a part of the client id; with others, `call` sends the request. */
function ctlWords(words: readonly string[], path: string, query: Readonly<Record<string, unknown>>): readonly string[] {
  const used = Object.entries(query).filter(([, value]) => value !== undefined);
  const part = choice('_like_clientid');
  if (used.every(([name]) => ['_like_clientid', 'by', 'limit'].includes(name)))
    return part === '' ? words : [...words, '--', part];
  return ['call', 'GET', `${path}?${new URLSearchParams(used.map(([name, value]) => [name, `${value}`]))}`];
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
