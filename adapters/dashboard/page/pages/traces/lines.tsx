import { useRef, useState } from 'preact/hooks';
import { useWatch } from '../../app/live.ts';
import { hrefOf } from '../../app/place.ts';
import { timeText } from '../../model/format.ts';
import { isRefusal, MAX_LINES, NO_LINES, restOf, resumedLines, type TraceLine, withLines } from '../../model/traces.ts';
import { CopyAs } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icons.tsx';
import { Name } from '../../parts/name.tsx';
import { Result } from '../../parts/result.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';

const R = T.traces;
const L = T.tail;
/** Maximum number of lines that are drawn, the newest ones. A file has all. */
const DRAWN = 200;
const ARROWS = { in: '→', out: '←' } as const;

/** The lines of a trace as they come, the newest first. A line that is opened pauses the view. */
export function Lines({ id, isOfApp }: { readonly id: number; readonly isOfApp: boolean }) {
  const [state, setState] = useState(NO_LINES);
  const [failure, setFailure] = useState<string>();
  const [isPaused, setPaused] = useState(false);
  const [opened, setOpened] = useState<number>();
  const paused = useRef(false);
  paused.current = isPaused;
  useWatch('trace', isOfApp ? undefined : { kind: 'trace', id }, (data) => {
    setFailure((data.failure as { readonly message: string } | undefined)?.message);
    setState((before) => withLines(before, (data.lines as readonly TraceLine[]) ?? [], paused.current));
  });
  const pause = (isWanted: boolean) => {
    setPaused(isWanted);
    if (!isWanted) setState(resumedLines);
  };
  const open = (number: number) => {
    setOpened(number === opened ? undefined : number);
    if (number !== opened) pause(true);
  };
  const { lines, held, missed } = state;
  return (
    <section class="trace-lines" aria-label={R.open(id)}>
      <div class="head">
        <h2>{R.open(id)}</h2>
        <CopyAs request={{ path: `/x/traces/${id}/lines` }} ctl={['traces', 'lines', `${id}`]} />
      </div>
      {isOfApp && <p class="warning">{R.ofApp}</p>}
      {failure !== undefined && (
        <p class="problem problem-message" role="alert">
          {failure}
        </p>
      )}
      {(failure === undefined || lines.length > 0) && (
        <>
          <div class="tail-bar">
            <button type="button" aria-pressed={isPaused} onClick={() => pause(!isPaused)}>
              <Icon name={isPaused ? 'play' : 'pause'} /> {isPaused ? R.resume : R.pause}
            </button>
            <button type="button" disabled={lines.length === 0} onClick={() => save(id, [...lines, ...held])}>
              {R.save}
            </button>
            <span class="aside number">{isPaused ? L.pausedAt(held.length) : L.shown(lines.length, MAX_LINES)}</span>
            <span class="aside">{lines.length > DRAWN ? R.drawn(DRAWN) : R.newest}</span>
            {missed > 0 && <span class="aside">{R.missed(missed)}</span>}
          </div>
          <div class="tail">
            <Table
              caption={R.open(id)}
              columns={columnsFor(opened, open)}
              rows={lines.slice(-DRAWN).toReversed()}
              keyOf={({ number }) => number}
              rowClass={({ record }) => (isRefusal(record) ? 'mqtt-bad' : '')}
              below={({ number, record }) =>
                number === opened && (
                  <Result dir="ltr">
                    <bdi>{JSON.stringify(record, null, 2)}</bdi>
                  </Result>
                )
              }
              empty={R.waiting}
            />
          </div>
        </>
      )}
    </section>
  );
}

function columnsFor(opened: number | undefined, open: (number: number) => void): readonly Column<TraceLine>[] {
  return [
    {
      head: T.topics.time,
      cell: ({ record }) => <span class="tabular">{timeText(`${record.time}`, { ms: true }).slice(11)}</span>
    },
    {
      head: R.event,
      cell: ({ number, record: { event, packet, direction } }) => (
        <button type="button" class="row-button" aria-expanded={number === opened} onClick={() => open(number)}>
          {(direction === 'in' || direction === 'out') && (
            <>
              <span class={direction === 'in' ? 'mqtt-received' : 'mqtt-sent'} aria-hidden="true">
                {ARROWS[direction]}
              </span>{' '}
              <span class="visually-hidden">{R.directions[direction]}</span>
            </>
          )}
          {event === undefined ? `${packet}`.toUpperCase() : `${event}`}
        </button>
      )
    },
    {
      head: T.views.client,
      isMinor: true,
      cell: ({ record: { clientId } }) =>
        typeof clientId === 'string' && (
          <a href={hrefOf('client', { id: clientId })}>
            <Name of={clientId} max={40} />
          </a>
        )
    },
    {
      head: T.topics.topic,
      cell: ({ record: { topic, filter } }) =>
        (topic ?? filter) !== undefined && <Name of={`${topic ?? filter}`} max={60} />
    },
    {
      head: T.client.details,
      isWide: true,
      isMinor: true,
      cell: ({ record }) => restOf(record) !== '' && <Name of={restOf(record)} max={160} />
    },
    {
      head: T.topics.payload,
      isMinor: true,
      cell: ({ record: { payload } }) =>
        typeof payload === 'string' &&
        payload !== '' && (
          <span class="mono">
            <Name of={payload} max={60} />
          </span>
        )
    }
  ];
}

/** Save lines as a file with one JSON object in each line. */
function save(id: number, lines: readonly TraceLine[]): void {
  const text = lines.map(({ record }) => `${JSON.stringify(record)}\n`).join('');
  const url = URL.createObjectURL(new Blob([text], { type: 'application/x-ndjson' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `trace-${id}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
