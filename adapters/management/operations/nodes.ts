import { dateTimeText, SYSTEM_DESCRIPTION, uptimeText } from '../../../lib/adapter.ts';
import type { Broker } from '../../../lib/index.ts';
import { componentOf, integer, listOf, oneOf, optional, text } from '../../rest/kit/index.ts';
import { NODE as NODE_NAME, TIME } from '../examples.ts';
import { type Context, operation } from '../operation.ts';
import { RUNTIME_VERSION, readRuntime } from '../runtime.ts';
import { sizeText } from '../wire.ts';

const COMMON = {
  version: text('Version of the broker'),
  uptime: text('Time since the start: "1 hours, 0 minutes, 2 seconds"'),
  otp_release: text('Version of the runtime'),
  node_status: oneOf(['Running', 'Stopped'], 'Status of the node')
};
const BROKER = componentOf('Broker', 'The broker', {
  node: optional(text('Name of the node; absent when the earlier revision looks one up')),
  ...COMMON,
  sysdescr: text('Description of the broker'),
  datetime: text('Local time: "2026-01-31 23:59:59"')
});
const NODE = {
  name: text('Name of the node'),
  node: text('Name of the node'),
  ...COMMON,
  connections: integer('Number of clients that are connected'),
  load1: text('Average load of the machine over 1 minute'),
  load5: text('Average load of the machine over 5 minutes'),
  load15: text('Average load of the machine over 15 minutes'),
  max_fds: integer('Limit of file descriptors; 0: there is none, or it is unknown'),
  process_available: integer('Maximum number of sessions; 0: unlimited'),
  process_used: integer('Number of sessions')
};
const LISTED_NODE = componentOf('ListedNode', 'The node of the broker, in lists', {
  ...NODE,
  memory_total: text('Memory that the runtime has allocated: "512.00M"'),
  memory_used: text('Memory in use: "256.00M"')
});
const ONE_NODE = componentOf('Node', 'The node of the broker', {
  ...NODE,
  memory_total: integer('Bytes that the runtime has allocated'),
  memory_used: integer('Bytes in use')
});

const COMMON_EXAMPLE = {
  version: '0.3.0',
  uptime: '1 hours, 0 minutes, 2 seconds',
  otp_release: 'v24.11.0',
  node_status: 'Running'
};
const BROKER_EXAMPLE = { ...COMMON_EXAMPLE, sysdescr: SYSTEM_DESCRIPTION, datetime: TIME };
const NODE_EXAMPLE = {
  name: NODE_NAME,
  node: NODE_NAME,
  ...COMMON_EXAMPLE,
  connections: 2,
  load1: '0.20',
  load5: '0.15',
  load15: '0.10',
  max_fds: 20_000,
  process_available: 250_000,
  process_used: 3
};

/** Common fields of the records of brokers and nodes. */
function commonFacts({ startedAt, clock, version }: Broker): Record<string, unknown> {
  return {
    version,
    uptime: uptimeText(startedAt === undefined ? 0 : clock.now() - startedAt),
    otp_release: RUNTIME_VERSION,
    node_status: startedAt === undefined ? 'Stopped' : 'Running'
  };
}

function brokerFacts(broker: Broker): Record<string, unknown> {
  return { ...commonFacts(broker), sysdescr: SYSTEM_DESCRIPTION, datetime: dateTimeText(broker.clock.now()) };
}

/** @param writeSize formats a number of bytes: text in lists, a number when a node is looked up */
async function nodeFacts(
  { broker }: Context,
  writeSize: (bytes: number) => string | number
): Promise<Record<string, unknown>> {
  const { load, maxDescriptors, memoryTotal, memoryUsed, maxProcesses, processes } = await readRuntime(broker);
  const [load1, load5, load15] = load.map((value) => value.toFixed(2));
  const { node } = broker.settings;
  return {
    name: node,
    node,
    ...commonFacts(broker),
    connections: broker.metrics.gauge('connections'),
    load1,
    load5,
    load15,
    max_fds: maxDescriptors,
    memory_total: writeSize(memoryTotal),
    memory_used: writeSize(memoryUsed),
    process_available: maxProcesses,
    process_used: processes
  };
}

/** The brokers of the cluster. */
export const BROKERS = [
  operation({
    name: 'list_brokers',
    method: 'GET',
    path: '/brokers',
    descr: 'A list of brokers in the cluster',
    example: { data: [{ node: NODE_NAME, ...BROKER_EXAMPLE }] },
    data: listOf(BROKER),
    run: ({ broker }) => [{ node: broker.settings.node, ...brokerFacts(broker) }]
  }),
  operation({
    name: 'get_broker',
    method: 'GET',
    path: '/brokers/:node',
    descr: 'Get broker info of a node',
    example: ({ hasNodeOfBroker }) => ({
      params: { node: NODE_NAME },
      data: { ...(hasNodeOfBroker ? { node: NODE_NAME } : {}), ...BROKER_EXAMPLE }
    }),
    data: BROKER,
    run: (context, { params: { node } }) => {
      const facts = brokerFacts(context.broker);
      return context.revision.hasNodeOfBroker ? { node, ...facts } : facts;
    }
  })
];

/** Load and memory of the nodes of the cluster. */
export const NODES = [
  operation({
    name: 'list_nodes',
    method: 'GET',
    path: '/nodes',
    ctl: { nodes: 'node node_status version uptime connections memory_used load1' },
    descr: 'A list of nodes in the cluster',
    example: { data: [{ ...NODE_EXAMPLE, memory_total: '64.00M', memory_used: '26.50M' }] },
    data: listOf(LISTED_NODE),
    run: async (context) => [await nodeFacts(context, sizeText)]
  }),
  operation({
    name: 'get_node',
    method: 'GET',
    path: '/nodes/:node',
    descr: 'Lookup a node in the cluster',
    example: {
      params: { node: NODE_NAME },
      data: { ...NODE_EXAMPLE, memory_total: 67_108_864, memory_used: 27_787_264 }
    },
    data: ONE_NODE,
    run: (context) => nodeFacts(context, (bytes) => bytes)
  })
];
