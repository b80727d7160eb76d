import { useEffect, useRef, useState } from 'preact/hooks';
import type { StreamRuleCode } from '../../../../../lib/streams/rule-states.ts';
import { useWatch } from '../../app/live.ts';
import { streams } from '../../app/streams.ts';
import { countText, durationText, rateText } from '../../model/format.ts';
import { countsOf, type Metrics, type MetricsAt, type NodeCounts, nodesOf, outputRate } from '../../model/streams.ts';
import { placed, type Topology } from '../../model/topology.ts';
import { Badge } from '../../parts/facts.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';

const S = T.streamRules;
const BOX = { width: 160, height: 54, gapX: 58, gapY: 24 };
/** Metrics come in each second in which they change: after this time without any, nothing flows. */
const STILL_MS = 3_000;

/** The state of a rule as it changes. */
export interface LiveRule {
  /** Undefined: not known yet. */
  readonly state: string | undefined;
  /** Undefined: not known, or the rule is gone. */
  readonly code: StreamRuleCode | undefined;
  readonly text: string;
  /** Changes with the definition of the rule. Undefined: not known, or the rule is gone. */
  readonly definition: string | undefined;
  readonly metrics: Metrics;
  readonly sampledAt: number;
  /** The rows per second that a node sends. */
  rateOf(name: string): number;
}

/** Watch a rule. @param id empty: no rule */
export function useLiveRule(id: string): LiveRule {
  const [found, setFound] = useState<Partial<Pick<LiveRule, 'state' | 'code' | 'text' | 'definition' | 'sampledAt'>>>(
    {}
  );
  const [[before, now], setMetrics] = useState<readonly [MetricsAt | undefined, MetricsAt | undefined]>([
    undefined,
    undefined
  ]);
  const [isStill, setStill] = useState(true);
  useWatch('stream rule', id === '' ? undefined : { kind: 'rule', of: 'streams', id }, (data) => {
    if (data.failure !== undefined) return;
    setFound(data);
    const metrics = (data.metrics ?? {}) as Metrics;
    setMetrics(([, last]) => [last, { at: data.at as number, metrics }]);
    setStill(false);
  });
  useEffect(() => {
    const timer = setTimeout(() => setStill(true), STILL_MS);
    return () => clearTimeout(timer);
  }, [now]);
  return {
    state: found.state,
    code: found.code,
    text: found.text ?? '',
    definition: found.definition,
    sampledAt: found.sampledAt ?? 0,
    metrics: now?.metrics ?? {},
    rateOf: (name) => (isStill || now === undefined ? 0 : outputRate(before, now, name))
  };
}

/** The counters of the sources, operators and sinks of a rule. */
export function Nodes({ live }: { readonly live: LiveRule }) {
  const nodes = nodesOf(live.metrics);
  if (nodes.length === 0) return null;
  return (
    <section class="panel">
      <h2>{S.nodes}</h2>
      <Table
        caption={S.nodes}
        rows={nodes}
        keyOf={({ name }) => name}
        empty=""
        columns={[
          { head: S.node, isWide: true, cell: (node) => <NodeName node={node} /> },
          { head: S.rowsIn, isNumber: true, isMinor: true, cell: ({ inputs }) => countText(inputs) },
          { head: S.rowsOut, isNumber: true, cell: ({ outputs }) => countText(outputs) },
          { head: T.rules.speed, isNumber: true, cell: ({ name }) => rateText(live.rateOf(name)) },
          { head: T.rules.exceptions, isNumber: true, cell: ({ exceptions }) => countText(exceptions) },
          {
            head: T.rules.waits,
            about: S.waitsAbout,
            isNumber: true,
            isMinor: true,
            cell: ({ waiting }) => countText(waiting)
          },
          {
            head: S.latency,
            about: S.latencyAbout,
            isNumber: true,
            isMinor: true,
            cell: ({ latencyUs }) =>
              latencyUs < 1_000 ? `${countText(latencyUs)} µs` : durationText(latencyUs / 1_000)
          }
        ]}
      />
    </section>
  );
}

function NodeName({ node: { name, kind, connection, lastException } }: { readonly node: NodeCounts }) {
  return (
    <>
      <span class="aside">{S.kinds[kind]}</span> {shortName(name)}{' '}
      {connection !== undefined && connection !== 1 && (
        <Badge kind={connection === 0 ? 'warn' : 'bad'}>{connection === 0 ? S.connecting : S.notConnected}</Badge>
      )}
      {lastException !== '' && <p class="problem-message">{lastException}</p>}
    </>
  );
}

/** The name of a node without its kind and number. */
function shortName(name: string): string {
  return name.replace(/^(source|sink)_|^op_\d+_/, '').replace(/_(\d+)$/, ' $1');
}

/** The topology of a rule, with the rate of rows on its edges. */
export function Flow({ path, live }: { readonly path: string; readonly live: LiveRule }) {
  const { value: topology, refresh } = useLoaded(
    `topo ${path}`,
    async (signal, isBackground) => (await streams('GET', `${path}/topo`, { signal, isBackground })) as Topology
  );
  const { state } = live;
  const before = useRef(state);
  useEffect(() => {
    if (before.current !== undefined && before.current !== state) refresh();
    before.current = state;
  }, [state]);
  if (topology?.edges === undefined) return null;
  const nodes = placed(topology);
  const x = (layer: number) => 8 + layer * (BOX.width + BOX.gapX);
  const y = (row: number) => 8 + row * (BOX.height + BOX.gapY);
  const width = x(Math.max(...nodes.map(({ layer }) => layer)) + 1) - BOX.gapX + 8;
  const height = y(Math.max(...nodes.map(({ row }) => row)) + 1) - BOX.gapY + 8;
  const nodeOf = new Map(nodes.map((node) => [node.name, node]));
  const countsBy = new Map(nodesOf(live.metrics).map((counts) => [counts.name, counts]));
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
              const [x1, y1] = [x(a.layer) + BOX.width, y(a.row) + BOX.height / 2];
              const [x2, y2] = [x(b.layer), y(b.row) + BOX.height / 2];
              return (
                <g key={`${from} ${to}`}>
                  <path d={`M${x1} ${y1}C${x1 + 30} ${y1} ${x2 - 30} ${y2} ${x2} ${y2}`} />
                  <text class="rate" x={(x1 + x2) / 2} y={(y1 + y2) / 2 - 5} text-anchor="middle">
                    {rateText(live.rateOf(from))}
                  </text>
                </g>
              );
            })
          )}
          {nodes.map(({ name, layer, row }) => (
            <Box key={name} counts={countsBy.get(name) ?? countsOf({}, name)} x={x(layer)} y={y(row)} />
          ))}
        </svg>
      </div>
    </section>
  );
}

function Box({
  counts: { name, inputs, outputs, exceptions, lastException },
  x,
  y
}: {
  readonly counts: NodeCounts;
  readonly x: number;
  readonly y: number;
}) {
  return (
    <g transform={`translate(${x} ${y})`} class={lastException === '' ? '' : 'failing'}>
      <title>{lastException === '' ? name : `${name}: ${lastException}`}</title>
      <rect width={BOX.width} height={BOX.height} rx="6" />
      <text x="10" y="22">
        {shortName(name).slice(0, 22)}
      </text>
      <text class="quiet" x="10" y="42">
        {S.counts(countText(inputs), countText(outputs), lastException === '' ? 0 : exceptions)}
      </text>
    </g>
  );
}
