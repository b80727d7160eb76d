import { useState } from 'preact/hooks';
import { useWatch } from '../app/live.ts';
import { get } from '../app/requests.ts';
import { countText, rateText, shortCount, sizeText } from '../model/format.ts';
import { Chart, Sparkline } from '../parts/chart.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Problem } from '../parts/problem.tsx';
import { T } from '../texts.ts';

const O = T.overview;
const EVERY_MS = 10_000;

/** The counters and gauges of the page, by the names of `/x/figures`. */
const NAMES = [
  'connections.count',
  'sessions.count',
  'subscriptions.count',
  'retained.count',
  'messages.received',
  'messages.sent',
  'messages.dropped',
  'delivery.dropped',
  'bytes.received',
  'bytes.sent',
  'client.connected',
  'client.disconnected'
] as const;
type Name = (typeof NAMES)[number];

const CHARTS: readonly {
  readonly title: string;
  readonly lines: readonly (readonly [Name, string, number])[];
  readonly format: (value: number) => string;
}[] = [
  {
    title: O.messagesChart,
    lines: [
      ['messages.received', O.received, 1],
      ['messages.sent', O.sent, 2]
    ],
    format: shortCount
  },
  {
    title: O.bytesChart,
    lines: [
      ['bytes.received', O.bytesIn, 1],
      ['bytes.sent', O.bytesOut, 2]
    ],
    format: sizeText
  },
  {
    title: O.clientsChart,
    lines: [
      ['connections.count', O.connections, 3],
      ['sessions.count', O.sessions, 4]
    ],
    format: shortCount
  },
  {
    title: O.joinsChart,
    lines: [
      ['client.connected', O.connected, 3],
      ['client.disconnected', O.disconnected, 5]
    ],
    format: shortCount
  },
  {
    title: O.droppedChart,
    lines: [
      ['messages.dropped', O.noSubscribers, 4],
      ['delivery.dropped', O.byQueues, 5]
    ],
    format: shortCount
  }
];

interface History {
  readonly at: readonly number[];
  readonly series: Readonly<Record<string, readonly number[]>>;
}

/** The state of the broker at a glance. */
export function Page() {
  const {
    value: history,
    error,
    reload
  } = useLoaded<History>(
    'figures',
    (signal, isBackground) =>
      get('/x/figures', { query: { names: NAMES.join(',') }, signal, isBackground }) as Promise<History>,
    { everyMs: EVERY_MS }
  );
  const [live, setLive] = useState<Readonly<Record<string, number>>>({});
  useWatch('overview', { kind: 'overview' }, (data) => setLive((data.values ?? {}) as Record<string, number>));
  const seriesOf = (name: Name) => history?.series[name] ?? [];
  const latest = (name: Name) => live[name] ?? seriesOf(name).at(-1);
  return (
    <>
      <h1 tabIndex={-1}>{O.title}</h1>
      {error !== undefined && <Problem error={error} onRetry={reload} />}
      <section class="tiles">
        <Tile
          label={O.connections}
          value={countText(latest('connections.count'))}
          values={seriesOf('connections.count')}
        />
        <Tile label={O.received} value={rateText(latest('messages.received'))} values={seriesOf('messages.received')} />
        <Tile label={O.sent} value={rateText(latest('messages.sent'))} values={seriesOf('messages.sent')} />
        <Tile
          label={O.dropped}
          value={rateText(sum(latest('messages.dropped'), latest('delivery.dropped')))}
          values={seriesOf('delivery.dropped')}
        />
        <Tile label={O.sessions} value={countText(latest('sessions.count'))} values={seriesOf('sessions.count')} />
        <Tile
          label={O.subscriptions}
          value={countText(latest('subscriptions.count'))}
          values={seriesOf('subscriptions.count')}
        />
        <Tile label={O.retained} value={countText(latest('retained.count'))} values={seriesOf('retained.count')} />
      </section>
      <h2>{O.hour}</h2>
      {history !== undefined && history.at.length === 0 && <p class="empty">{O.noHistory}</p>}
      <section class="charts">
        {CHARTS.map(({ title, lines, format }) => (
          <Chart
            key={title}
            title={title}
            at={history?.at ?? []}
            lines={lines.map(([name, label, color]) => ({ label, color, values: seriesOf(name) }))}
            format={format}
            sync="overview"
          />
        ))}
      </section>
    </>
  );
}

function sum(...values: (number | undefined)[]): number | undefined {
  return values.every((value) => value === undefined)
    ? undefined
    : values.reduce<number>((all, value) => all + (value ?? 0), 0);
}

/** A value with its course in the last hour. */
function Tile({
  label,
  value,
  values,
  href
}: {
  readonly label: string;
  readonly value: string;
  readonly values?: readonly number[];
  readonly href?: string;
}) {
  const content = (
    <>
      <span class="tile-label">{label}</span>
      <span class="tile-value">{value}</span>
      {values && <Sparkline values={values} />}
    </>
  );
  return href === undefined ? (
    <div class="tile">{content}</div>
  ) : (
    <a class="tile" href={href}>
      {content}
    </a>
  );
}
