// The rows of the broker. Prometheus, OpenMetrics and, except histograms, OpenTelemetry read the same ones.

import { COUNTER_ABOUT, GAUGE_ABOUT, PLAIN_GAUGE_ABOUT } from '../../../lib/adapter.ts';
import {
  type Broker,
  COUNTERS,
  type CounterName,
  type DeliveryTimeHistogram,
  GAUGES,
  type GaugeName,
  PLAIN_GAUGES,
  type PlainGaugeName
} from '../../../lib/index.ts';
import type { MetricEntry, Sample } from './metric-row.ts';
import { RULE_ROWS, type RuleReading, ruleReadingOf } from './rule-rows.ts';

/** The metrics of a broker at one moment. */
interface Reading extends RuleReading {
  readonly broker: Broker;
  readonly counters: Readonly<Record<CounterName, number>>;
  readonly gauges: ReturnType<Broker['metrics']['gauges']>;
}

/** Read the metrics of a broker. */
export async function readingOf(broker: Broker): Promise<Reading> {
  const rules = await ruleReadingOf(broker);
  return { broker, counters: broker.metrics.counters(), gauges: broker.metrics.gauges(), ...rules };
}

/** The units of counters and gauges, by the first part of their names. */
const UNITS: Readonly<Record<string, string>> = {
  bytes: 'By',
  packets: '{packet}',
  messages: '{message}',
  delivery: '{delivery}',
  client: '{event}',
  session: '{session}',
  sessions: '{session}',
  connections: '{connection}',
  channels: '{session}',
  overload: '{event}',
  topics: '{filter}',
  routes: '{filter}',
  suboptions: '{subscription}',
  subscriptions: '{subscription}',
  subscribers: '{session}',
  retained: '{message}',
  outbox: '{entry}',
  rules: '{event}',
  actions: '{run}',
  resources: '{resource}'
};

/** The units of gauges, where they differ from those of counters. */
const UNITS_OF_GAUGES: Readonly<Record<string, string>> = { rules: '{rule}', actions: '{action}' };

function broker(
  kind: MetricEntry<Reading>['kind'],
  name: string,
  about: string,
  read: (reading: Reading) => number
): MetricEntry<Reading> {
  const parts = name.split('.');
  // names end with the base unit: received_bytes
  const ordered = parts[0] === 'bytes' ? [...parts.slice(1), 'bytes'] : parts;
  return {
    name: `embermq_${ordered.join('_')}`,
    dottedName: `embermq.${name}`,
    kind,
    unit: (kind === 'gauge' ? UNITS_OF_GAUGES[parts[0]] : undefined) ?? UNITS[parts[0]],
    about,
    samples: (reading) => [{ value: read(reading) }]
  };
}

const counterRow = (name: CounterName) =>
  broker('counter', name, COUNTER_ABOUT[name], ({ counters }) => counters[name]);
const gaugeRows = (name: GaugeName) => [
  broker('gauge', name, GAUGE_ABOUT[name], ({ gauges }) => gauges[`${name}.count`]),
  broker('gauge', `${name}.max`, `${GAUGE_ABOUT[name]}: the highest value since the start`, ({ gauges }) => {
    return gauges[`${name}.max`];
  })
];
const plainGaugeRow = (name: PlainGaugeName) =>
  broker('gauge', name, PLAIN_GAUGE_ABOUT[name], ({ gauges }) => gauges[name]);

const QOS = [0, 1, 2] as const;

/** The series of a histogram. */
function bucketsOf(qos: string, { bounds, counts, sum, count }: DeliveryTimeHistogram): Sample[] {
  let below = 0;
  const buckets = bounds.map((le, at): Sample => {
    below += counts[at];
    return { suffix: '_bucket', labels: { qos, le: `${le}` }, value: below };
  });
  return [
    ...buckets,
    { suffix: '_bucket', labels: { qos, le: '+Inf' }, value: count },
    { suffix: '_sum', labels: { qos }, value: sum },
    { suffix: '_count', labels: { qos }, value: count }
  ];
}

const SEVERITIES = ['notice', 'warning', 'error', 'critical'] as const;

/** All metrics of a broker. */
export const BROKER_ROWS: readonly MetricEntry<Reading>[] = [
  {
    name: 'embermq_info',
    dottedName: 'embermq.info',
    kind: 'gauge',
    unit: '1',
    about: 'The version of the broker, as a label of the value 1',
    samples: ({ broker }) => [{ labels: { version: broker.version }, value: 1 }]
  },
  {
    name: 'embermq_start_time_seconds',
    dottedName: 'embermq.start_time',
    kind: 'gauge',
    unit: 's',
    about: 'Time of the start of the broker, in seconds since 1970; absent while it is stopped',
    samples: ({ broker: { startedAt } }) => (startedAt === undefined ? [] : [{ value: startedAt / 1000 }])
  },
  {
    name: 'embermq_alarms',
    dottedName: 'embermq.alarms',
    kind: 'gauge',
    unit: '{alarm}',
    about: 'Alarms that are present, by severity',
    samples: ({ broker: { alarms } }) => {
      const present = alarms.present();
      return SEVERITIES.map((severity) => ({
        labels: { severity },
        value: present.filter((alarm) => alarm.severity === severity).length
      }));
    }
  },
  {
    name: 'embermq_connector_waiting',
    dottedName: 'embermq.connector.waiting',
    kind: 'gauge',
    unit: '{message}',
    about: 'Events or messages of a webhook or bridge that are queued',
    samples: ({ broker }) =>
      broker.connectors.list().map(({ kind, name, size }) => ({ labels: { kind, name }, value: size }))
  },
  {
    name: 'embermq_connector_state',
    dottedName: 'embermq.connector.state',
    kind: 'gauge',
    unit: '1',
    about: 'The state of a webhook or bridge, as a label of the value 1',
    samples: ({ broker }) =>
      broker.connectors.list().map(({ kind, name, state }) => ({ labels: { kind, name, state }, value: 1 }))
  },
  {
    name: 'embermq_connector_messages',
    dottedName: 'embermq.connector.messages',
    kind: 'counter',
    unit: '{message}',
    about: 'Events or messages of a webhook or bridge since it was created, by outcome',
    samples: ({ broker }) =>
      broker.connectors
        .list()
        .flatMap(({ kind, name, counters }) =>
          Object.entries(counters).map(([result, value]) => ({ labels: { kind, name, result }, value }))
        )
  },
  {
    name: 'embermq_listener_connections',
    dottedName: 'embermq.listener.connections',
    kind: 'gauge',
    unit: '{connection}',
    about: 'Connections of a listener',
    samples: ({ broker }) =>
      broker.listeners().map((listener) => ({
        labels: { listener: listener.name, protocol: listener.protocol },
        value: listener.info().currentConnections
      }))
  },
  {
    name: 'embermq_listener_closed',
    dottedName: 'embermq.listener.closed',
    kind: 'counter',
    unit: '{connection}',
    about: 'Connections of a listener that have ended, by reason',
    samples: ({ broker }) =>
      broker.listeners().flatMap((listener) =>
        Object.entries(listener.info().shutdownCount).map(([reason, value]) => ({
          labels: { listener: listener.name, protocol: listener.protocol, reason },
          value
        }))
      )
  },
  {
    name: 'embermq_delivery_duration_seconds',
    dottedName: 'embermq.delivery.duration',
    kind: 'histogram',
    unit: 's',
    about:
      'Time from the receipt of a message to the write with QoS 0, or to the acknowledgement with QoS 1 and 2; of 1 message in 64',
    samples: ({ broker }) => QOS.flatMap((qos) => bucketsOf(`${qos}`, broker.metrics.deliveryTimes.histogram(qos)))
  },
  ...RULE_ROWS,
  ...COUNTERS.map(counterRow),
  ...GAUGES.flatMap(gaugeRows),
  ...PLAIN_GAUGES.map(plainGaugeRow)
];
