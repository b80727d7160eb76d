import { useEffect, useRef, useState } from 'preact/hooks';
import { useWatch } from '../../app/live.ts';
import { choice, choose } from '../../app/place.ts';
import { getPage } from '../../app/requests.ts';
import { drawingOf, type PlacedTransition } from '../../model/chart-drawing.ts';
import { plainText, timeText } from '../../model/format.ts';
import { passedBy, type Step, stepsOf } from '../../model/state-chart.ts';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';

const C = T.client;
const RECORDS = 100;
/** Events within this time are followed by one request. */
const REFRESH_MS = 500;

type SessionChart = typeof import('./machine.ts');

/** The state chart of the session of a client: its current state, and its transitions one after the other. */
export function StateChart({ id }: { readonly id: string }) {
  const machine = useLoaded<SessionChart>('', () => import('./machine.ts'));
  const records = useLoaded(id, (signal, isBackground) =>
    getPage('/x/clients/{clientid}/history', {
      params: { clientid: id },
      query: { _limit: RECORDS },
      signal,
      isBackground
    })
  );
  const [state, setState] = useState<string>();
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => () => clearTimeout(timer.current), []);
  useWatch('session', { kind: 'client', clientId: id }, (data) => {
    setState(`${data.state ?? ''}`);
    if (data.event === undefined || timer.current !== undefined) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      records.refresh();
    }, REFRESH_MS);
  });
  const error = machine.error ?? records.error;
  if (error !== undefined) return <Problem error={error} onRetry={records.reload} />;
  if (machine.value === undefined || records.value === undefined || state === undefined)
    return <p class="loading">{T.shell.loading}</p>;
  const { SESSION_CHART, walk } = machine.value;
  return <Steps chart={SESSION_CHART} steps={stepsOf(records.value.data, state, walk)} state={state} />;
}

function Steps({
  chart,
  steps,
  state
}: {
  readonly chart: SessionChart['SESSION_CHART'];
  readonly steps: readonly Step[];
  readonly state: string;
}) {
  const key = choice('step');
  const chosen = steps.findIndex((step) => step.key === key);
  const step = steps[chosen];
  const last = steps.at(-1)?.path.at(-1) ?? state;
  const now = last.split('.')[0] === state ? last : state;
  /** Show a step; the one after the last is the current state. */
  const show = (index: number) => choose({ step: steps[Math.max(0, index)]?.key });
  const at = step === undefined ? steps.length : chosen;
  const onKeyDown = (event: KeyboardEvent) => {
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: steps.length }[event.key];
    if (to === undefined || steps.length === 0) return;
    event.preventDefault();
    show(to);
  };
  return (
    <>
      <div class="tail-bar">
        <button type="button" disabled={at === 0} onClick={() => show(at - 1)}>
          {C.earlier}
        </button>
        <button type="button" disabled={at === steps.length} onClick={() => show(at + 1)}>
          {C.later}
        </button>
        <button type="button" aria-pressed={step === undefined} onClick={() => show(steps.length)}>
          {C.current}
        </button>
        <span class="aside number" role="status">
          {step === undefined ? C.isNow(now) : C.stepOf(chosen + 1, steps.length, timeText(step.at, { ms: true }))}
        </span>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled and has keys */}
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for the fields of a form */}
      <div class="panel state-chart" role="group" tabIndex={0} aria-label={C.chartKeys} onKeyDown={onKeyDown}>
        <Drawing chart={chart} path={step?.path ?? []} now={now} />
      </div>
      <StepTable steps={steps} shown={step} />
    </>
  );
}

/** The steps, the latest first. */
function StepTable({ steps, shown }: { readonly steps: readonly Step[]; readonly shown: Step | undefined }) {
  return (
    <Table
      caption={C.chart}
      isStacked
      rows={steps.toReversed()}
      keyOf={({ key }) => key}
      empty={C.noSteps}
      rowClass={(one) => (one === shown ? 'chosen' : '')}
      columns={[
        {
          head: T.topics.time,
          cell: (one) => (
            <button
              type="button"
              class="row-button number"
              aria-pressed={one === shown}
              onClick={() => choose({ step: one.key })}
            >
              {timeText(one.at, { ms: true })}
            </button>
          )
        },
        { head: C.event, cell: ({ events }) => <span class="mono">{events.join(', ')}</span> },
        { head: C.states, isMinor: true, cell: ({ path }) => <span class="mono">{path.join(' → ')}</span> },
        {
          head: C.details,
          isWide: true,
          cell: ({ about, detail }) => (
            <>
              {about}{' '}
              {detail !== undefined && detail !== about && (
                <span class="aside">
                  <Name of={plainText(detail)} />
                </span>
              )}
            </>
          )
        }
      ]}
    />
  );
}

/** The chart. The states and transitions of a path are emphasized. */
function Drawing({
  chart,
  path,
  now
}: {
  readonly chart: SessionChart['SESSION_CHART'];
  readonly path: readonly string[];
  readonly now: string;
}) {
  const { width, height, states, transitions } = drawingOf(chart);
  const passed = passedBy(transitions, path);
  const isPart = (state: string) => path.includes(state);
  return (
    <svg width={width} height={height} role="img" aria-label={C.chartOf(now)}>
      {states.map((state) => (
        <g
          key={state.path}
          class={[
            state.isInner ? 'inner' : 'outer',
            state.path === now && 'now',
            isPart(state.path) && 'passed',
            state.path === path.at(-1) && 'reached'
          ]
            .filter(Boolean)
            .join(' ')}
        >
          <rect x={state.x} y={state.y} width={state.width} height={state.height} rx={state.isInner ? 6 : 10} />
          <text x={state.x + state.width / 2} y={state.y + (state.isInner ? state.height / 2 + 4 : 21)}>
            {state.name}
          </text>
        </g>
      ))}
      {transitions
        .toSorted((a, b) => Number(passed.includes(a)) - Number(passed.includes(b)))
        .map((one) => (
          <Arrow
            key={`${one.from} ${one.to}`}
            of={one}
            isPassed={passed.includes(one)}
            text={labelOf(one, transitions)}
          />
        ))}
    </svg>
  );
}

function Arrow({
  of: { points, label },
  isPassed,
  text
}: {
  readonly of: PlacedTransition;
  readonly isPassed: boolean;
  readonly text: string;
}) {
  const [[fromX, fromY], [x, y]] = points.slice(-2);
  const [dx, dy] = [Math.sign(x - fromX) * 8, Math.sign(y - fromY) * 8];
  const head = `M${x - dx - dy / 2},${y - dy - dx / 2}L${x},${y}L${x - dx + dy / 2},${y - dy + dx / 2}z`;
  return (
    <g class={isPassed ? 'arrow passed' : 'arrow'}>
      <path d={`M${points.map((point) => point.join(',')).join('L')}`} />
      <path class="head" d={head} />
      <text x={label.x} y={label.y} style={{ textAnchor: label.anchor }}>
        {text}
      </text>
    </g>
  );
}

function labelOf(one: PlacedTransition, all: readonly PlacedTransition[]): string {
  if (one.labels.length > 0) return one.isAlways ? `[${one.labels.join(', ')}]` : one.labels.join(', ');
  return all.some((other) => other !== one && other.isAlways && other.from === one.from) ? C.otherwise : C.atOnce;
}
