import { useEffect, useRef, useState } from 'preact/hooks';
import { choice, go, hrefOf } from '../app/place.ts';
import { streams } from '../app/streams.ts';
import { countText, rateText } from '../model/format.ts';
import { countsOf, placed, type Topology } from '../model/topology.ts';
import { Action, forAdministrators } from '../parts/confirm.tsx';
import { Editor } from '../parts/editor.tsx';
import { Head } from '../parts/facts.tsx';
import { Field } from '../parts/fields.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { notify } from '../parts/notices.tsx';
import { described, Problem } from '../parts/problem.tsx';
import { T } from '../texts.ts';

const S = T.streamRules;
const EVERY_MS = 2_000;
const EXAMPLE = 'SELECT avg(t) AS t FROM demo GROUP BY TUMBLINGWINDOW(ss, 10)';

interface StreamRule {
  readonly id: string;
  readonly sql: string;
  readonly actions: readonly object[];
  readonly [option: string]: unknown;
}

/** A rule over streams: its statement, its sinks, and its topology with the rates of records. Without an id, a new one. */
export function Page() {
  const id = choice('id');
  const path = `/rules/${encodeURIComponent(id)}`;
  const { value, error, reload } = useLoaded(`stream rule ${id}`, async (signal) =>
    id === '' ? undefined : ((await streams('GET', path, { signal })) as StreamRule)
  );
  const command = (name: 'start' | 'stop', label: string, text: string) => (
    <Action label={label} text={text} done={S.done} run={() => streams('POST', `${path}/${name}`, { body: {} })} />
  );
  return (
    <>
      <p class="crumbs">
        <a href={hrefOf('streams')}>{T.views.streams}</a>
      </p>
      <Head title={id === '' ? T.rules.create : <Name of={id} />}>
        {value && command('start', S.start, S.startText)}
        {value && command('stop', S.stop, S.stopText)}
        {value && (
          <Action
            label={T.rules.remove}
            text={T.rules.removeText}
            isDangerous
            done={T.rules.removed}
            run={async () => {
              await streams('DELETE', path);
              go('streams');
            }}
          />
        )}
      </Head>
      {error !== undefined && <Problem error={error} onRetry={reload} />}
      {id === '' ? (
        <Draft key="new" rule={undefined} onSaved={reload} />
      ) : (
        value && <Draft key={id} rule={value} onSaved={reload} />
      )}
      {value && <Flow path={path} />}
    </>
  );
}

function Draft({ rule, onSaved }: { readonly rule: StreamRule | undefined; readonly onSaved: () => void }) {
  const [id, setId] = useState('');
  const [sql, setSql] = useState(rule?.sql ?? EXAMPLE);
  const [actions, setActions] = useState(JSON.stringify(rule?.actions ?? [{ log: {} }], null, 2));
  const [problem, setProblem] = useState('');
  const save = async () => {
    setProblem('');
    try {
      const body = { ...rule, id: rule?.id ?? id, sql, actions: JSON.parse(actions) };
      if (rule === undefined) await streams('POST', '/rules', { body });
      else await streams('PUT', `/rules/${encodeURIComponent(rule.id)}`, { body });
      notify(T.rules.saved);
      if (rule === undefined) go('stream', { id });
      else onSaved();
    } catch (error) {
      setProblem(error instanceof SyntaxError ? T.rules.notJson(error.message) : described(error).message);
    }
  };
  return (
    <section class="panel">
      {rule === undefined && (
        <Field field={{ name: 'id', label: T.rules.id, isRequired: true }} value={id} onChange={setId} />
      )}
      <h2>{T.rules.statement}</h2>
      <Editor
        label={T.rules.statement}
        text={sql}
        words={[]}
        fault={undefined}
        onChange={setSql}
        onRun={() => void save()}
      />
      <Field field={{ name: 'actions', label: S.sinks, type: 'lines' }} value={actions} onChange={setActions} />
      {problem !== '' && (
        <pre class="problem problem-message" role="alert">
          {problem}
        </pre>
      )}
      <div class="form-buttons">
        <button
          type="button"
          class="primary"
          {...forAdministrators(rule !== undefined || id !== '')}
          onClick={() => void save()}
        >
          {rule === undefined ? T.rules.create : T.rules.save}
        </button>
      </div>
    </section>
  );
}

type Status = Readonly<Record<string, unknown>>;
const BOX = { width: 170, height: 58, gapX: 70, gapY: 24 };

/** The topology of a rule, with the rate of records on its edges. */
function Flow({ path }: { readonly path: string }) {
  const { value: topology, error } = useLoaded(
    `topo ${path}`,
    async (signal) => (await streams('GET', `${path}/topo`, { signal })) as Topology
  );
  const { value: status } = useLoaded(
    `status ${path}`,
    async (signal, isBackground) => ({
      at: Date.now(),
      status: (await streams('GET', `${path}/status`, { signal, isBackground })) as Status
    }),
    { everyMs: EVERY_MS }
  );
  const before = useRef<typeof status>();
  const [rates, setRates] = useState<(name: string) => number>(() => () => 0);
  useEffect(() => {
    const last = before.current;
    before.current = status;
    if (status === undefined || last === undefined) return;
    const seconds = Math.max(0.001, (status.at - last.at) / 1000);
    setRates(
      () => (name: string) =>
        Math.max(0, countsOf(status.status, name).outputs - countsOf(last.status, name).outputs) / seconds
    );
  }, [status]);
  if (error !== undefined || topology === undefined || topology.edges === undefined) return null;
  const nodes = placed(topology);
  const x = (layer: number) => 8 + layer * (BOX.width + BOX.gapX);
  const y = (row: number) => 8 + row * (BOX.height + BOX.gapY);
  const width = x(Math.max(...nodes.map(({ layer }) => layer)) + 1);
  const height = y(Math.max(...nodes.map(({ row }) => row)) + 1);
  const nodeOf = new Map(nodes.map((node) => [node.name, node]));
  return (
    <section class="panel">
      <h2>{S.topology}</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable with the keyboard */}
      <div class="scrolls" tabIndex={0}>
        <svg class="topology" width={width} height={height} role="img" aria-label={S.topology}>
          {Object.entries(topology.edges).flatMap(([from, targets]) =>
            targets.map((to) => {
              const [a, b] = [nodeOf.get(from), nodeOf.get(to)];
              if (a === undefined || b === undefined) return null;
              const [x1, y1, x2, y2] = [
                x(a.layer) + BOX.width,
                y(a.row) + BOX.height / 2,
                x(b.layer),
                y(b.row) + BOX.height / 2
              ];
              return (
                <g key={`${from} ${to}`}>
                  <path d={`M${x1} ${y1}C${x1 + 30} ${y1} ${x2 - 30} ${y2} ${x2} ${y2}`} />
                  <text class="rate" x={(x1 + x2) / 2} y={(y1 + y2) / 2 - 5} text-anchor="middle">
                    {rateText(rates(from))}
                  </text>
                </g>
              );
            })
          )}
          {nodes.map(({ name, layer, row }) => {
            const { inputs, outputs, exceptions, lastException } = countsOf(status?.status ?? {}, name);
            return (
              <g key={name} transform={`translate(${x(layer)} ${y(row)})`} class={exceptions > 0 ? 'failing' : ''}>
                <title>{lastException === '' ? name : `${name}: ${lastException}`}</title>
                <rect width={BOX.width} height={BOX.height} rx="6" />
                <text x="10" y="22">
                  {name.replace(/^op_\d+_/, '').slice(0, 22)}
                </text>
                <text class="quiet" x="10" y="42">
                  {S.counts(countText(inputs), countText(outputs), exceptions)}
                </text>
              </g>
            );
          })}
        </svg>
      </div>
    </section>
  );
}
