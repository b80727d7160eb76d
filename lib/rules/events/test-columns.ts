import type { Value, ValueObject } from '../../sql/values.ts';
import type { RuleEventInfo } from '../types.ts';
import type { RuleEventEntry } from './row.ts';
import { RULE_EVENTS } from './rows.ts';

const USER_PROPERTIES = { 'User-Property': { foo: 'bar' }, 'User-Property-Pairs': [{ key: 'foo', value: 'bar' }] };

/** The values of columns in a test, unless the row of the event overrides them. */
const TEST_VALUES: Readonly<Record<string, Value>> = {
  id: '5A1B2C3D4E5F60718293A4B5C6D7',
  clientid: 'c_emqx',
  username: 'u_emqx',
  from_clientid: 'c_emqx_1',
  from_username: 'u_emqx_1',
  payload: '{"msg": "hello"}',
  peerhost: '192.168.0.10',
  topic: 't/a',
  qos: 1,
  flags: {},
  headers: {},
  pub_props: { 'Payload-Format-Indicator': 0, 'Message-Expiry-Interval': 30, ...USER_PROPERTIES },
  puback_props: { 'Reason-String': 'OK', ...USER_PROPERTIES },
  peername: '192.168.0.10:56431',
  sockname: '0.0.0.0:1883',
  proto_name: 'MQTT',
  proto_ver: 5,
  keepalive: 60,
  clean_start: true,
  expiry_interval: 3600,
  is_bridge: false,
  receive_maximum: 32,
  conn_props: { 'Session-Expiry-Interval': 3600, 'Receive-Maximum': 32, ...USER_PROPERTIES },
  disconn_props: { 'Session-Expiry-Interval': 3600, 'Reason-String': 'bye', ...USER_PROPERTIES },
  sub_props: USER_PROPERTIES,
  unsub_props: USER_PROPERTIES,
  reason_code: 'success',
  action: 'publish',
  is_cache: false,
  result: 'allow',
  name: 'high_memory_usage',
  severity: 'warning',
  title: 'Memory is short',
  message: 'The process uses 91 % of its memory'
};

/** The context for computing test columns. */
interface TestContext {
  /** Name of the node. */
  readonly node: string;
  /** The wall-clock time in milliseconds since 1970. */
  readonly now: number;
}

/**
 * The columns of a test of a statement, with their defaults.
 * @param topic a topic of FROM; one that begins with the topic of an event denotes this event, others a message
 */
export function testColumns(topic: string, context: TestContext): ValueObject {
  const row = Object.values(RULE_EVENTS).find((event) =>
    [event.topic, ...event.spellings].some((spelling) => topic.startsWith(spelling))
  );
  return columnsOf(row ?? RULE_EVENTS['message.publish'], context);
}

/** The columns of a row that have a value in a test; `mountpoint` has none. */
function columnsOf({ name, names, testValues }: RuleEventEntry, { node, now }: TestContext): ValueObject {
  const times = {
    publish_received_at: now,
    connected_at: now,
    disconnected_at: now,
    activated_at: now,
    deactivated_at: now,
    timestamp: now
  };
  const values: ValueObject = { ...TEST_VALUES, ...testValues, ...times, event: name, node };
  return Object.fromEntries(names.filter((column) => column in values).map((column) => [column, values[column]]));
}

/** The context of the examples of columns. */
const EXAMPLE: TestContext = { node: 'embermq@127.0.0.1', now: 1_767_225_600_000 };

/** The topics of events with their descriptions. */
export function ruleEventInfos(): RuleEventInfo[] {
  return Object.values(RULE_EVENTS).map((row) => {
    const { topic, title, description, names, testNames, testValues, example } = row;
    const values: ValueObject = { ...TEST_VALUES, ...testValues };
    return {
      event: topic,
      title,
      description,
      testColumns: Object.fromEntries(testNames.map((name) => [name, values[name]])),
      columns: names,
      examples: columnsOf(row, EXAMPLE),
      example
    };
  });
}
