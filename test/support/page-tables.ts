import assert from 'node:assert/strict';
import { BRIDGE_OPTIONS } from '../../adapters/bridge/index.ts';
import { BRIDGE_MQTT_PARAMS, DATA_TO_MQTT_BROKER_PARAMS } from '../../adapters/bridge/mqtt-params.ts';
import { bodyOf, WEBHOOK_EVENTS } from '../../adapters/webhook/bodies.ts';
import { WEBHOOK_OPTIONS } from '../../adapters/webhook/index.ts';
import { DATA_TO_WEBSERVER_PARAMS, WEB_HOOK_PARAMS } from '../../adapters/webhook/web-hook-params.ts';
import {
  BROKER_OPTIONS,
  COUNTER_ABOUT,
  EVENT_ABOUT,
  GAUGE_ABOUT,
  LOG_ROWS,
  PLAIN_GAUGE_ABOUT,
  ZONE_OPTIONS
} from '../../lib/adapter.ts';
import {
  createBroker,
  DISCONNECT_REASONS,
  DROP_REASONS,
  type DropReasonEntry,
  EVENTS,
  type EventEntry,
  type EventName,
  LOG_LEVELS,
  reasonName
} from '../../lib/index.ts';
import { ACCESS_TABLES } from './access-tables.ts';
import { COMMAND_TABLES } from './command-tables.ts';
import { causes, errorCodes, hooks, sysFigures } from './core-tables.ts';
import { EXAMPLE_TABLES, programParts } from './example-tables.ts';
import { MANAGEMENT_TABLES } from './management-tables.ts';
import { STREAM_TABLES } from './stream-tables.ts';
import { code, markdown, options, params } from './table-parts.ts';

/** The tables of the pages, each generated from its rows, by the names in the marks around them. */
export const PAGE_TABLES: Readonly<Record<string, () => string>> = {
  ...EXAMPLE_TABLES,
  ...programParts(),
  events,
  features,
  hooks,
  'error codes': errorCodes,
  causes,
  'sys statistics': sysFigures,
  'disconnect reasons': disconnectReasons,
  'drop reasons': dropReasons,
  counters: () => abouts('counter', COUNTER_ABOUT),
  gauges: () => abouts('gauge', { ...GAUGE_ABOUT, ...PLAIN_GAUGE_ABOUT }),
  log: logLines,
  'webhook bodies': bodies,
  'webhook options': () => options(WEBHOOK_OPTIONS),
  'web_hook parameters': () => params(WEB_HOOK_PARAMS),
  'data_to_webserver parameters': () => params(DATA_TO_WEBSERVER_PARAMS),
  'bridge_mqtt parameters': () => params(BRIDGE_MQTT_PARAMS, false),
  'data_to_mqtt_broker parameters': () => params(DATA_TO_MQTT_BROKER_PARAMS, false),
  'bridge options': () => options(BRIDGE_OPTIONS),
  'zone options': () => options(ZONE_OPTIONS),
  'broker options': () => options(BROKER_OPTIONS),
  ...ACCESS_TABLES,
  ...COMMAND_TABLES,
  ...MANAGEMENT_TABLES,
  ...STREAM_TABLES
};

/** The keys of the body of each event. */
function bodies(): string {
  const clientId = 'sensor-1';
  const client = {
    clientId,
    username: undefined,
    transportInfo: {},
    keepalive: 60,
    protocolVersion: 5,
    connectedAt: 0
  };
  const message = {
    clientId,
    username: undefined,
    topic: 'a',
    qos: 0,
    retain: false,
    payload: Buffer.alloc(0),
    timestamp: 0
  };
  const options = { qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 };
  const event = { client, message, options, filter: 'a', reason: 'normal', reasonCode: 0, qos: 0, retain: false };
  const rows = WEBHOOK_EVENTS.map((name) => {
    const { action, ...others } = bodyOf(name, event as never, { encoding: 'text', node: '' }) as { action: string };
    return [code(name), code(action), Object.keys(others).map(code).join(', ')];
  });
  return markdown(['event', '`action`', 'the other keys'], rows);
}

function events(): string {
  const rows = Object.entries<EventEntry>(EVENTS).map(([name, { fields, notice }]) => {
    const values = Object.entries(fields).map(([field, type]) => code(`${field}: ${type}`));
    const topic = notice?.replace(/[{}]/g, (brace) => (brace === '{' ? '<' : '>'));
    const also = topic === undefined ? '' : ` Also published to ${code(`$SYS/brokers/<node>/${topic}`)}.`;
    return [code(name), EVENT_ABOUT[name as EventName] + also, values.join(', ')];
  });
  return markdown(['event', 'what has happened', 'value'], rows);
}

function features(): string {
  const { features } = createBroker();
  return markdown(
    ['feature', 'what it does'],
    features.list().map(({ name, about }) => [code(name), about])
  );
}

function abouts(head: string, table: Readonly<Record<string, string>>): string {
  return markdown(
    [head, 'what it counts'],
    Object.entries(table).map(([name, about]) => [code(name), about])
  );
}

/** Levels and messages that depend on the event are listed by hand. */
const LOG_IN_WORDS: Readonly<Record<string, [level?: string, message?: string]>> = {
  'client.disconnected': ['`info`; `warn` if the cause is not the client'],
  'client.rejected': [
    '`warn` for the first rejection of a client for a reason in a minute, `debug` for the others',
    'client rejected: why'
  ],
  'connection.closed': ['`debug`, unless its client was accepted'],
  'client.suback': ['`info` for the first refused subscription of a client in a minute, `debug` for the others'],
  'message.dropped': ['`info` for the first refused message of a client in a minute, `debug` for the others'],
  'listener.exposed': [undefined, 'anyone can connect from other machines'],
  'access.unguarded': [undefined, 'unknown clients still get in although there are records'],
  'source.reloaded': ['`info`; `error` if it has failed', 'source of authentication reloaded, or not'],
  'store.upgraded': [undefined, 'an earlier release has written the store: which definitions behave differently'],
  'streamRule.stopped': ['`warn` for the first failure of a rule for a reason in a minute, `debug` for the others'],
  'alarm.raised': ['`info`, `warn` or `error`, by its severity', 'alarm raised: its title'],
  'alarm.cleared': [undefined, 'alarm cleared: its title'],
  error: [
    '`error`; `info` for a protocol error of a client, `warn` for a library of plugins that is not loaded',
    'what failed, and the message of the error'
  ]
};

function logLines(): string {
  const rows = Object.entries(LOG_ROWS).map(([name, { level, message }]) => {
    const [levels = code(level as string), text = message as string] = LOG_IN_WORDS[name] ?? [];
    assert.ok(typeof level === 'function' || LOG_LEVELS.includes(level));
    return [code(name), levels, text];
  });
  return markdown(['event', 'level', 'message'], rows);
}

function disconnectReasons(): string {
  const rows = Object.entries(DISCONNECT_REASONS).map(([name, { about, reasonCode }]) => [
    code(name),
    about,
    shownCode(reasonCode)
  ]);
  return markdown(['reason', 'what has happened', 'reason code'], rows);
}

function dropReasons(): string {
  const rows = Object.entries<DropReasonEntry>(DROP_REASONS).map(([name, { about, reasonCode }]) => [
    code(name),
    about,
    reasonCode === undefined ? '' : shownCode(reasonCode)
  ]);
  return markdown(['reason', 'why', 'reason code for the publisher'], rows);
}

function shownCode(reasonCode: number): string {
  return `0x${reasonCode.toString(16).toUpperCase().padStart(2, '0')} ${reasonName(reasonCode)}`;
}
