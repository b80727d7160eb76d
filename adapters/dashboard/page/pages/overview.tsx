import { useState } from 'preact/hooks';
import { liveState, useWatch } from '../app/live.ts';
import { hrefOf } from '../app/place.ts';
import { get } from '../app/requests.ts';
import { session } from '../app/session.ts';
import { countText, durationText, rateText, shortCount, sizeText, timeText } from '../model/format.ts';
import { type History, withRates, withSamples } from '../model/history.ts';
import { Chart, Sparkline } from '../parts/chart.tsx';
import { Title } from '../parts/facts.tsx';
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
  'client.disconnected',
  'messages.queued',
  'process.memory',
  'process.loopDelay'
] as const;
type Name = (typeof NAMES)[number];

type Line = readonly [name: Name, label: string, color: number];
type ChartRow = readonly [title: string, format: (value: number) => string, ...lines: Line[]];

const CHARTS: readonly ChartRow[] = [
  [O.messagesChart, shortCount, ['messages.received', O.received, 1], ['messages.sent', O.sent, 2]],
  [O.bytesChart, sizeText, ['bytes.received', O.bytesIn, 1], ['bytes.sent', O.bytesOut, 2]],
  [O.droppedChart, shortCount, ['messages.dropped', O.noSubscribers, 4], ['delivery.dropped', O.byQueues, 5]],
  [O.queuedChart, shortCount, ['messages.queued', O.queued, 2]],
  [O.clientsChart, shortCount, ['connections.count', O.connections, 3], ['sessions.count', O.sessions, 4]],
  [O.joinsChart, shortCount, ['client.connected', O.connected, 3], ['client.disconnected', O.disconnected, 5]],
  [O.memoryChart, sizeText, ['process.memory', O.memory, 4]],
  [O.loopChart, durationText, ['process.loopDelay', O.longest, 1]]
];

/** The state of the broker now, as the live stream has it. */
interface Now {
  readonly at: number;
  readonly hasRates: boolean;
  readonly values: Readonly<Record<string, number>>;
  readonly alarms: number;
  readonly memory: { readonly rss: number; readonly heapUsed: number };
  readonly loopDelayMs: number;
}

/** The state with the values of the process under the names of `/x/figures`. */
function sampleOf(now: Now): Now {
  const ofProcess = { 'process.memory': now.memory.rss, 'process.loopDelay': now.loopDelayMs };
  return { ...now, values: { ...now.values, ...ofProcess } };
}

/** Samples that are kept until the history has them. */
const MAX_SAMPLES = 60;

/** The state of the broker at a glance. */
export function Page() {
  const { value, error, reload } = useLoaded<History>(
    'figures',
    (signal, isBackground) => get('/x/figures', { query: { names: NAMES.join(',') }, signal, isBackground }),
    { everyMs: EVERY_MS }
  );
  const [samples, setSamples] = useState<readonly Now[]>([]);
  useWatch('overview', { kind: 'overview' }, (data) =>
    setSamples((before) => [...before.slice(1 - MAX_SAMPLES), sampleOf(data as unknown as Now)])
  );
  const now = samples.at(-1);
  const startedAt = session.value?.startedAt;
  const isLost = liveState.value.is === 'lost';
  const history = withSamples(value ?? { at: [], series: {} }, withRates(samples), NAMES);
  return (
    <>
      <Title>{O.title}</Title>
      {error !== undefined && value === undefined && <Problem error={error} onRetry={reload} />}
      {isLost && now !== undefined && (
        <p class="warning" role="status">
          {O.lost(timeText(now.at))}
        </p>
      )}
      <Tiles history={history} now={now} isStale={isLost} />
      <div class="head">
        <h2>{O.hour}</h2>
        {startedAt !== undefined && <span class="aside">{T.why.begin(timeText(startedAt))}</span>}
      </div>
      {value !== undefined && history.at.length === 0 && <p class="empty">{O.noHistory}</p>}
      <section class="charts" aria-label={O.hour}>
        {CHARTS.map(([title, format, ...lines]) => (
          <Chart
            key={title}
            title={title}
            at={history.at}
            lines={lines.map(([name, label, color]) => ({ label, color, values: history.series[name] ?? [] }))}
            format={format}
            sync="overview"
          />
        ))}
      </section>
      {error !== undefined && value !== undefined && <Problem error={error} onRetry={reload} />}
    </>
  );
}

/** The size of the store changes slowly, and it is read from the disk. */
function useStoreTile(): TileRow {
  const { value } = useLoaded('store', (signal, isBackground) => get('/x/store', { signal, isBackground }), {
    everyMs: EVERY_MS
  });
  const { has_store, size_bytes, free_bytes, failed } = value ?? {};
  return {
    label: O.store,
    value: has_store === false ? O.inMemory : sizeText(size_bytes),
    note: failed === true ? O.storeFailed : free_bytes === undefined ? undefined : O.free(sizeText(free_bytes)),
    href: hrefOf('node'),
    isBad: failed === true
  };
}

function Tiles({
  history,
  now,
  isStale
}: {
  readonly history: History;
  readonly now: Now | undefined;
  /** The values are no longer current. */
  readonly isStale: boolean;
}) {
  const seriesOf = (name: Name) => history.series[name] ?? [];
  const latest = (name: Name) => seriesOf(name).at(-1) ?? now?.values[name];
  const tile = (label: string, name: Name, format: (value: number | undefined) => string, href?: string): TileRow => ({
    label,
    value: format(latest(name)),
    values: seriesOf(name),
    href
  });
  const store = useStoreTile();
  const rows: readonly TileRow[] = [
    tile(O.connections, 'connections.count', countText, hrefOf('clients', { conn_state: 'connected' })),
    tile(O.received, 'messages.received', rateText, hrefOf('tail')),
    tile(O.sent, 'messages.sent', rateText),
    {
      label: O.dropped,
      value: rateText(sum(latest('messages.dropped'), latest('delivery.dropped'))),
      values: added(seriesOf('messages.dropped'), seriesOf('delivery.dropped')),
      href: hrefOf('tail', { names: 'message.dropped' })
    },
    tile(O.sessions, 'sessions.count', countText, hrefOf('clients')),
    tile(O.subscriptions, 'subscriptions.count', countText),
    tile(O.retained, 'retained.count', countText, hrefOf('topics')),
    tile(O.queued, 'messages.queued', countText),
    tile(O.memory, 'process.memory', sizeText, hrefOf('node')),
    tile(O.eventLoop, 'process.loopDelay', durationText, hrefOf('node')),
    store,
    { label: O.alarms, value: countText(now?.alarms), href: hrefOf('alarms'), isBad: (now?.alarms ?? 0) > 0 }
  ];
  return (
    <section class={isStale ? 'tiles stale' : 'tiles'} aria-label={O.title}>
      {rows.map((row) => (
        <Tile key={row.label} row={row} />
      ))}
    </section>
  );
}

/** A value, with a line of its values in the last hour, or with a note. */
interface TileRow {
  readonly label: string;
  readonly value: string;
  readonly values?: readonly number[];
  readonly note?: string | undefined;
  readonly href?: string | undefined;
  /** True if an operator has to act. */
  readonly isBad?: boolean;
}

function Tile({ row: { label, value, values, note, href, isBad = false } }: { readonly row: TileRow }) {
  const content = (
    <>
      <span class="tile-label">{label}</span>
      <span class="tile-value">{value}</span>
      {values === undefined ? <span class="tile-note">{note}</span> : <Sparkline values={values} />}
    </>
  );
  const kind = isBad ? 'tile tile-bad' : 'tile';
  return href === undefined ? (
    <div class={kind}>{content}</div>
  ) : (
    <a class={kind} href={href}>
      {content}
    </a>
  );
}

function sum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
}

function added(a: readonly number[], b: readonly number[]): readonly number[] {
  return a.map((value, index) => value + (b[index] ?? 0));
}
