import { hrefOf } from '../app/place.ts';
import { get } from '../app/requests.ts';
import { session } from '../app/session.ts';
import { countText } from '../model/format.ts';
import { CopyAs } from '../parts/copy.tsx';
import { Badge, Head } from '../parts/facts.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { T } from '../texts.ts';

const L = T.listeners;
const EVERY_MS = 5_000;
/** In place of the address of a listener that is not open. */
const NOT_OPEN = 'undefined';

interface ListenerRow {
  readonly protocol: string;
  readonly listen_on: string;
  readonly max_conns: number;
  readonly current_conns: number;
  /** Empty lists stand for empty objects. */
  readonly shutdown_count: unknown;
}

const COLUMNS: readonly Column<ListenerRow>[] = [
  {
    head: L.address,
    isWide: true,
    cell: ({ listen_on }) => (listen_on === NOT_OPEN ? L.noAddress : <Name of={listen_on} />)
  },
  {
    head: L.transport,
    cell: ({ protocol, listen_on }) => {
      const name = /^[a-z]+:[a-z]+/.exec(protocol)?.[0] ?? protocol;
      const isHere = protocol.startsWith('http') && location.port !== '' && listen_on.endsWith(`:${location.port}`);
      return (
        <span title={protocol}>
          {(L.transports as Readonly<Record<string, string>>)[name] ?? protocol}
          {isHere && <span class="aside"> {L.here}</span>}
        </span>
      );
    }
  },
  {
    head: L.state,
    cell: ({ listen_on }) =>
      listen_on === NOT_OPEN ? <Badge kind="bad">{L.closed}</Badge> : <Badge kind="good">{L.open}</Badge>
  },
  {
    head: L.connections,
    isNumber: true,
    cell: ({ current_conns, max_conns }) => (
      <>
        {countText(current_conns)}
        <span class="aside"> {max_conns === 0 ? L.noLimit : L.ofMax(max_conns)}</span>
      </>
    )
  },
  {
    head: L.ended,
    isMinor: true,
    about: L.endedAbout,
    cell: ({ shutdown_count }) => {
      const counts = Object.entries(shutdown_count as Readonly<Record<string, number>>);
      counts.sort(([, a], [, b]) => b - a);
      return counts.length === 0 ? (
        <span class="aside">{L.noneEnded}</span>
      ) : (
        <ul class="reasons">
          {counts.map(([reason, count]) => (
            <li key={reason}>
              {reason.replaceAll('_', ' ')} <b class="tabular">{countText(count)}</b>
            </li>
          ))}
        </ul>
      );
    }
  }
];

/** The ports of the broker, with their connections. */
export function Page() {
  const node = session.value?.node ?? '';
  const { value, error, reload } = useLoaded<readonly ListenerRow[]>(
    'listeners',
    (signal, isBackground) => get('/nodes/{node}/listeners', { params: { node }, signal, isBackground }),
    { everyMs: EVERY_MS }
  );
  return (
    <>
      <Head title={T.views.listeners}>
        <CopyAs request={{ path: '/listeners' }} ctl={['listeners']} />
      </Head>
      <Table
        caption={T.views.listeners}
        columns={COLUMNS}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ protocol, listen_on }, index) => `${protocol} ${listen_on} ${index}`}
        empty={L.none}
      />
      <p class="aside">{L.about}</p>
      <a href={hrefOf('options', { q: 'connections' })}>{L.limits}</a>
    </>
  );
}
