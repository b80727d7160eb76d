import {
  COUNTERS,
  type CounterName,
  GAUGES,
  type GaugeName,
  PLAIN_GAUGES,
  type PlainGaugeName
} from '../../../lib/index.ts';
import { integer, listOf, objectOf, optional, recordOf, text } from '../../rest/kit/index.ts';
import { NODE as NODE_NAME } from '../examples.ts';
import { type Context, operation } from '../operation.ts';
import { LATER, type Revision } from '../revisions.ts';

const NODE = text('Name of the node');
const METRICS_DATA = recordOf(integer(), 'Counters by name');
const STATS_ABOUT = 'Present values ("connections.count") and highest values ("connections.max") by name';
const STATS_DATA = recordOf(integer(), STATS_ABOUT);

const METRICS_EXAMPLE = { 'messages.received': 2, 'messages.sent': 1 };
const STATS_EXAMPLE = { 'connections.count': 2, 'connections.max': 3 };

/** The counters and gauges of a revision. */
interface MetricNames {
  /** Counters by their names in the interface. */
  readonly counters: readonly (readonly [name: string, counter: CounterName])[];
  /** Gauges that are listed among the counters. */
  readonly plainGauges: readonly PlainGaugeName[];
  /** Gauges with their high-water marks. */
  readonly gauges: readonly GaugeName[];
}

/** The counters that only the later revisions have. */
const ONLY_LATER =
  /\.inuse$|^packets\.publish\.dropped$|^messages\.(publish|delivered|acked|not_retained|dropped\..+)$|^(delivery|client|session|connections|overload|outbox|rules|actions)\./;
/** The gauges that only the later revisions have. */
const GAUGES_ONLY_LATER: readonly GaugeName[] = ['channels', 'rules', 'actions', 'resources'];

const same = (counter: CounterName) => [counter, counter] as const;

const METRIC_NAMES: Readonly<Record<Revision['dialect'], MetricNames>> = {
  earlier: {
    counters: [
      ...COUNTERS.filter((name) => !ONLY_LATER.test(name)).map(same),
      ['auth.mqtt.anonymous', 'client.auth.anonymous']
    ],
    plainGauges: ['messages.retained'],
    gauges: GAUGES.filter((name) => !GAUGES_ONLY_LATER.includes(name))
  },
  later: { counters: COUNTERS.map(same), plainGauges: PLAIN_GAUGES, gauges: GAUGES }
};

function metrics({ broker, revision }: Context): Record<string, number> {
  const { counters, plainGauges } = METRIC_NAMES[revision.dialect];
  const values = broker.metrics.counters();
  return Object.fromEntries([
    ...counters.map(([name, counter]) => [name, values[counter]]),
    ...plainGauges.map((name) => [name, broker.metrics.gauge(name)])
  ]);
}

function stats({ broker, revision }: Context): Record<string, number> {
  const values = broker.metrics.gauges();
  const names = METRIC_NAMES[revision.dialect].gauges.flatMap((name) => [`${name}.count`, `${name}.max`] as const);
  return Object.fromEntries(names.map((name) => [name, values[name]]));
}

/** Counters since the start. */
export const METRICS = [
  operation({
    name: 'list_node_metrics',
    ofAllNodes: {
      field: 'metrics',
      name: 'list_all_metrics',
      ctl: 'metrics',
      descr: 'A list of metrics of all nodes in the cluster'
    },
    method: 'GET',
    path: '/nodes/:node/metrics',
    descr: 'A list of metrics of a node',
    example: { params: { node: NODE_NAME }, data: METRICS_EXAMPLE },
    data: METRICS_DATA,
    run: (context) => metrics(context)
  })
];

/** Current values of gauges, and their maxima. */
export const STATS = [
  operation({
    name: 'list_stats',
    method: 'GET',
    path: '/stats',
    ctl: 'stats',
    descr: 'A list of stats of all nodes in the cluster',
    example: ({ hasFlatStats }) => ({
      data: [hasFlatStats ? { node: NODE_NAME, ...STATS_EXAMPLE } : { node: NODE_NAME, stats: STATS_EXAMPLE }]
    }),
    // in the earlier revision the values are beside the name of the node
    data: listOf(
      objectOf({
        node: NODE,
        stats: optional(recordOf(integer(), STATS_ABOUT, { documented: { in: LATER, isRequired: true } }))
      })
    ),
    run: (context) => {
      const { node } = context.broker.settings;
      return [context.revision.hasFlatStats ? { node, ...stats(context) } : { node, stats: stats(context) }];
    }
  }),
  operation({
    name: 'lookup_node_stats',
    method: 'GET',
    path: '/nodes/:node/stats',
    descr: 'A list of stats of a node',
    example: { params: { node: NODE_NAME }, data: STATS_EXAMPLE },
    data: STATS_DATA,
    run: (context) => stats(context)
  })
];
