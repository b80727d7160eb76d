/** Values of the examples of operations. They exist in the broker of `test/support/management-fixture.ts`. */

export const NODE = 'embermq@127.0.0.1';
export const TIME = '2026-01-01 00:00:00';

/** The client `sensor-1`: the fields of its records as they are shown, by their names in the library. */
const SENSOR: Readonly<Record<string, unknown>> = {
  node: NODE,
  clientId: 'sensor-1',
  username: 'sensors',
  cleanStart: true,
  mailboxLen: 0,
  heapSize: 0,
  reductions: 8,
  protocolName: 'MQTT',
  protocolVersion: 5,
  ipAddress: '192.0.2.10',
  port: 50123,
  transport: 'emqx_connection',
  certificate: 'nossl',
  isBridge: false,
  isConnected: true,
  connectedAt: TIME,
  zone: 'external',
  mountpoint: '',
  keepalive: 60,
  recvOct: 145,
  recvCnt: 4,
  recvPkt: 4,
  recvMsg: 2,
  sendOct: 28,
  sendCnt: 4,
  sendPkt: 4,
  sendMsg: 0,
  sendPend: 0,
  sessionExpiry: 7200,
  binding: 'local',
  createdAt: TIME,
  subscriptions: 1,
  maxSubscriptions: 100_000,
  inflight: 0,
  maxInflight: 128,
  mqueueLen: 0,
  maxMqueue: 10_000,
  mqueueDropped: 0,
  awaitingRel: 0,
  maxAwaitingRel: 0,
  deliverMsg: 0,
  enqueueMsg: 0
};

/** A record of `sensor-1`. @param names the names of its fields, from `recordNames` */
export function sensorAs(names: ReadonlyMap<string, string>): object {
  const fields = [...names].filter(([, field]) => field in SENSOR);
  return Object.fromEntries(fields.map(([name, field]) => [name, SENSOR[field]]));
}

const CREATED_AT = 1_767_225_600_000;

/** A resource of the rule engine, as sent in requests. */
export const GIVEN_RESOURCE = {
  type: 'web_hook',
  config: { url: 'http://127.0.0.1:1/alarms' },
  description: 'The server that calls people'
};

/** This resource, as shown in answers. */
export const RESOURCE = {
  id: 'resource:alarm-server',
  ...GIVEN_RESOURCE,
  created_at: CREATED_AT,
  is_alive: true,
  waiting: 0
};

/** A rule. */
export const RULE = {
  id: 'rule:hot-sensors',
  rawsql: 'SELECT clientid, payload FROM "sensors/+/temperature"',
  for: ['sensors/+/temperature'],
  enabled: true,
  on_action_failed: 'continue',
  description: 'Shows temperatures',
  created_at: CREATED_AT,
  state: 'connected',
  metrics: [
    {
      node: NODE,
      matched: 0,
      speed: 0,
      speed_max: 0,
      speed_last5m: 0,
      passed: 0,
      failed: 0,
      exception: 0,
      no_result: 0
    }
  ],
  actions: [
    {
      id: 'inspect_1767225600000000000',
      name: 'inspect',
      params: {},
      metrics: [{ node: NODE, success: 0, failed: 0, taken: 0 }],
      fallbacks: []
    }
  ]
};

/** An action that rules can have. */
export const RULE_ACTION = {
  name: 'inspect',
  app: 'emqx_rule_engine',
  for: '$any',
  types: [],
  category: 'debug',
  params: {},
  title: { en: 'Inspect (debug)', zh: '检查 (调试)' },
  description: {
    en: 'Print the output of the statement, the columns of the event and the parameters of the action.',
    zh: '打印 SQL 的输出结果、事件的字段以及动作的参数。'
  }
};
