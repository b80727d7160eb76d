import { useWatch } from '../app/live.ts';
import { choice, hrefOf } from '../app/place.ts';
import { get } from '../app/requests.ts';
import { serverTime } from '../app/session.ts';
import { causeOf } from '../model/alarms.ts';
import { durationText, timeText } from '../model/format.ts';
import { CopyAs } from '../parts/copy.tsx';
import { Badge, Head, Tabs } from '../parts/facts.tsx';
import { News, useHeld } from '../parts/held.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { T } from '../texts.ts';

const A = T.alarms;

interface Alarm {
  readonly id: string;
  readonly desc: {
    readonly severity: string;
    readonly title: string;
    readonly summary: string;
    readonly timestamp: string;
  };
  readonly clear_at?: string;
}

const KINDS: Readonly<Record<string, 'bad' | 'warn' | 'quiet'>> = {
  emergency: 'bad',
  critical: 'bad',
  error: 'bad',
  warning: 'warn'
};

const COLUMNS: readonly Column<Alarm>[] = [
  {
    head: A.alarm,
    cell: ({ id, desc: { title } }) => (
      <div class="alarm-name">
        <Name of={title} />
        <div class="aside mono">
          <Name of={id} max={80} />
        </div>
      </div>
    )
  },
  { head: A.summary, isWide: true, cell: ({ desc: { summary } }) => <Name of={summary} max={400} /> },
  { head: A.since, cell: ({ desc: { timestamp } }) => timeText(serverTime(timestamp) ?? timestamp) }
];
const SEVERITY: Column<Alarm> = {
  head: A.severity,
  cell: ({ desc: { severity } }) => (
    <span class="short-name">
      <Badge kind={KINDS[severity] ?? 'quiet'}>{severity}</Badge>
    </span>
  )
};
const CAUSE: Column<Alarm> = {
  head: A.cause,
  cell: ({ id }) => {
    const cause = causeOf(id);
    return cause && <a href={hrefOf(cause.view, cause.choices)}>{T.views[cause.view]}</a>;
  }
};
const PAST_COLUMNS: readonly Column<Alarm>[] = [
  SEVERITY,
  ...COLUMNS,
  { head: A.until, cell: ({ clear_at }) => timeText(serverTime(clear_at) ?? clear_at) },
  {
    head: A.lasted,
    isNumber: true,
    cell: ({ desc: { timestamp }, clear_at }) =>
      durationText((serverTime(clear_at) ?? Number.NaN) - (serverTime(timestamp) ?? Number.NaN))
  },
  CAUSE
];

/** The alarms that are raised now, and those that have ended. */
export function Page() {
  const tab = choice('tab') || 'present';
  return (
    <>
      <Head title={T.views.alarms}>
        <CopyAs
          request={{ path: tab === 'present' ? '/alarms/present' : '/alarms/history' }}
          ctl={tab === 'present' ? ['alarms'] : ['alarms', 'history']}
        />
      </Head>
      <Tabs
        label={A.parts}
        shown={tab}
        tabs={[
          ['present', A.present],
          ['past', A.past]
        ]}
      />
      <Alarms key={tab} isPast={tab === 'past'} />
      <p class="aside">{A.about}</p>
    </>
  );
}

/** The columns of the current alarms. One that has ended stays in its place, marked. */
function presentColumns(ended: ReadonlySet<string>): readonly Column<Alarm>[] {
  const severity: Column<Alarm> = {
    ...SEVERITY,
    cell: (alarm) =>
      ended.has(alarm.id) ? (
        <span class="short-name">
          <Badge kind="quiet">{A.ended}</Badge>
        </span>
      ) : (
        SEVERITY.cell(alarm)
      )
  };
  return [severity, ...COLUMNS, CAUSE];
}

function Alarms({ isPast }: { readonly isPast: boolean }) {
  const { value, error, reload, refresh } = useLoaded<readonly Alarm[]>(
    isPast ? 'past' : 'present',
    async (signal, isBackground) => {
      const input = { signal, isBackground };
      const nodes = isPast ? await get('/alarms/history', input) : await get('/alarms/present', input);
      return nodes.flatMap(({ alarms }) => alarms as readonly Alarm[]);
    }
  );
  useWatch('alarms', { kind: 'alarms' }, refresh);
  const { rows, ended = new Set<string>(), added, show } = useHeld(value, ({ id }) => id);
  return (
    <>
      <Table
        caption={isPast ? A.past : A.present}
        isStacked
        columns={isPast ? PAST_COLUMNS : presentColumns(ended)}
        rows={rows}
        error={error}
        onRetry={reload}
        keyOf={({ id }) => id}
        rowClass={({ id }) => (ended.has(id) ? 'ended' : '')}
        empty={isPast ? A.nonePast : A.none}
      />
      <News added={added} ended={ended.size} onShow={show} />
    </>
  );
}
