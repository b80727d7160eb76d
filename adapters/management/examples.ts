/** Values of the examples of operations. They exist in the broker of `test/support/management-fixture.ts`. */

export const NODE = 'embermq@127.0.0.1';
export const TIME = '2026-01-01 00:00:00';

/** The client `sensor-1`, as the later revisions show it. */
export const CLIENT = {
  node: NODE,
  clientid: 'sensor-1',
  username: 'sensors',
  clean_start: true,
  mailbox_len: 0,
  heap_size: 0,
  reductions: 8,
  proto_name: 'MQTT',
  proto_ver: 5,
  ip_address: '192.0.2.10',
  port: 50123,
  is_bridge: false,
  connected: true,
  connected_at: TIME,
  zone: 'external',
  mountpoint: '',
  keepalive: 60,
  recv_oct: 145,
  recv_cnt: 4,
  recv_pkt: 4,
  recv_msg: 2,
  send_oct: 28,
  send_cnt: 4,
  send_pkt: 4,
  send_msg: 0,
  expiry_interval: 7200,
  created_at: TIME,
  subscriptions_cnt: 1,
  max_subscriptions: 100_000,
  inflight: 0,
  max_inflight: 128,
  mqueue_len: 0,
  max_mqueue: 10_000,
  mqueue_dropped: 0,
  awaiting_rel: 0,
  max_awaiting_rel: 0
};

/** The connection of `sensor-1`, as the earlier revision shows it. */
export const CONNECTION = {
  node: NODE,
  client_id: 'sensor-1',
  username: 'sensors',
  clean_start: true,
  mailbox_len: 0,
  heap_size: 0,
  reductions: 8,
  proto_name: 'MQTT',
  proto_ver: 5,
  ipaddress: '192.0.2.10',
  port: 50123,
  conn_mod: 'emqx_connection',
  peercert: 'nossl',
  is_bridge: false,
  connected_at: TIME,
  zone: 'external',
  keepalive: 60,
  recv_oct: 145,
  recv_cnt: 4,
  recv_pkt: 4,
  recv_msg: 2,
  send_oct: 28,
  send_cnt: 4,
  send_pkt: 4,
  send_msg: 0,
  send_pend: 0
};

/** The session of `sensor-1`, as the earlier revision shows it. */
export const SESSION = {
  node: NODE,
  client_id: 'sensor-1',
  username: 'sensors',
  clean_start: true,
  mailbox_len: 0,
  heap_size: 0,
  reductions: 8,
  expiry_interval: 7200,
  binding: 'local',
  created_at: TIME,
  subscriptions_count: 1,
  max_subscriptions: 100_000,
  inflight_len: 0,
  max_inflight: 128,
  mqueue_len: 0,
  max_mqueue: 10_000,
  mqueue_dropped: 0,
  awaiting_rel_len: 0,
  max_awaiting_rel: 0,
  deliver_msg: 0,
  enqueue_msg: 0
};

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
