import assert from 'node:assert/strict';
import { fileSink, fileSource } from '../../adapters/streams/file/index.ts';
import { httpPullSource, httpPushSource, restSink } from '../../adapters/streams/http/index.ts';
import { influx2Sink, influxSink } from '../../adapters/streams/influx/index.ts';
import { kafkaSink, kafkaSource } from '../../adapters/streams/kafka/index.ts';
import { mqttSource } from '../../adapters/streams/mqtt/index.ts';
import { redisLookup, redisSink, redisSubSource } from '../../adapters/streams/redis/index.ts';
import { sqlSink, sqlSource } from '../../adapters/streams/sql/index.ts';
import { webSockets } from '../../adapters/streams/websocket/index.ts';
import { OPERATIONS } from '../../adapters/streams-api/operations/all.ts';
import {
  type Field,
  fieldsOf,
  type GivenTable,
  jsonTypeOf,
  type SinkType,
  type SourceType
} from '../../lib/adapter.ts';
import { ruleEvents, ruleFunctions } from '../../lib/rules/index.ts';
import { DDL_OPTIONS } from '../../lib/streams/ddl/options.ts';
import { streamFunctions } from '../../lib/streams/index.ts';
import { MemoryTopics } from '../../lib/streams/memory-topics.ts';
import { builtInSinks } from '../../lib/streams/sinks/built-in.ts';
import { COMMON_SINK_PROPERTIES } from '../../lib/streams/sinks/common-properties.ts';
import { builtInSources } from '../../lib/streams/sources/built-in.ts';
import { LOOKUP_PROPERTIES } from '../../lib/streams/sources/stream-settings.ts';
import { code, interfaceMembers, markdown } from './table-parts.ts';

const sql = { dialect: 'postgres', query: () => [] } as const;
const sockets = webSockets({ port: 'off' });
const never = () => assert.fail('a table opens nothing');
const builtIn = {
  sources: builtInSources({ watch: never }, new MemoryTopics(), []),
  sinks: builtInSinks({ publish: never, isOwn: never }, new MemoryTopics(), [])
};

/** The types of each entry point below `embermq/streams`. */
export const CONNECTORS: Readonly<Record<string, { readonly sources?: SourceType[]; readonly sinks?: SinkType[] }>> = {
  file: { sources: [fileSource()], sinks: [fileSink()] },
  http: { sources: [httpPullSource(), httpPushSource()], sinks: [restSink()] },
  influx: { sinks: [influxSink(), influx2Sink()] },
  kafka: { sources: [kafkaSource()], sinks: [kafkaSink()] },
  mqtt: { sources: [mqttSource()], sinks: [builtInSinkNamed('mqtt')] },
  redis: { sources: [redisLookup(), redisSubSource()], sinks: [redisSink()] },
  sql: { sources: [sqlSource(sql)], sinks: [sqlSink(sql)] },
  websocket: { sources: [sockets.source], sinks: [sockets.sink] }
};

/** The tables of the pages about rules and streams. */
export const STREAM_TABLES: Readonly<Record<string, () => string>> = {
  'rule events': ruleEventTable,
  'rule functions': () => functions(ruleFunctions()),
  'rules options': () => fields('lib/rules/types.ts', 'RulesOptions'),
  'stream functions': () => functions(streamFunctions()),
  'stream options': streamOptions,
  'streams options': () => fields('lib/streams/types.ts', 'StreamsOptions'),
  'stream rule options': () => fields('lib/streams/types.ts', 'RuleOptions'),
  'restart strategy': () => fields('lib/streams/types.ts', 'RestartStrategy'),
  'stream bounds': () => fields('lib/streams/types.ts', 'StreamBounds'),
  'compile options': () => fields('lib/streams/index.ts', 'StreamCompileOptions'),
  'lookup properties': () => properties(LOOKUP_PROPERTIES),
  'sink properties': () => properties(COMMON_SINK_PROPERTIES),
  'built-in sources': () => types(builtIn.sources),
  'built-in sinks': () => types(builtIn.sinks),
  'memory sink': () => properties(builtInSinkNamed('memory').properties),
  'simulator source': () => properties(builtIn.sources.find(({ name }) => name === 'simulator')?.properties),
  connectors,
  'streams api options': () =>
    fields('adapters/rest/guard-options.ts', 'MountOptions', 'adapters/streams-api/options.ts', 'StreamsApiOptions'),
  'streams api operations': operations,
  'websocket limits': () => fields('adapters/streams/websocket/options.ts', 'WebSocketLimits'),
  'plugin options': () => fields('adapters/streams-plugins/options.ts', 'PluginOptions'),
  ...Object.fromEntries(
    Object.values(CONNECTORS).flatMap(({ sources = [], sinks = [] }) => [
      ...sources.map((type) => [`${type.name} source`, () => properties(type.properties)] as const),
      ...sinks.map((type) => [`${type.name} sink`, () => properties(type.properties)] as const)
    ])
  )
};

function builtInSinkNamed(name: string): SinkType {
  return builtIn.sinks.find((type) => type.name === name) ?? assert.fail(`there is no sink ${name}`);
}

/** A row for each member of interfaces, given by file and name, with the text of its docstring: that of the last one that has it. */
function fields(...parts: readonly string[]): string {
  const members = parts.flatMap((name, at) => (at % 2 === 0 ? [] : interfaceMembers(parts[at - 1], name)));
  const rows = new Map(members.map(({ name, about }) => [name, [code(name), about]]));
  return markdown(['option', 'purpose'], [...rows.values()]);
}

function ruleEventTable(): string {
  const rows = ruleEvents().map(({ event, description, columns }) => [
    code(event),
    description.en,
    columns.map(code).join(', ')
  ]);
  return markdown(['event', 'what has happened', 'columns'], rows);
}

/** The functions of each family below a heading. */
function functions(
  list: readonly {
    readonly name: string;
    readonly family: string;
    readonly params: readonly string[];
    readonly about: string;
  }[]
): string {
  const families = [...new Set(list.map(({ family }) => family))];
  const parts = families.map((family) => {
    const rows = list
      .filter((row) => row.family === family)
      .map(({ name, params, about }) => [code(`${name}(${params.join(', ')})`), about]);
    return `#### ${family[0].toUpperCase()}${family.slice(1)}\n\n${markdown(['function', 'what it does'], rows)}`;
  });
  return parts.join('\n\n');
}

function streamOptions(): string {
  return markdown(
    ['option', 'purpose'],
    [...DDL_OPTIONS].map(([name, { about }]) => [code(name), about])
  );
}

function types(list: readonly { readonly name: string; readonly about: string }[]): string {
  return markdown(
    ['type', 'purpose'],
    list.map(({ name, about }) => [code(name), about])
  );
}

function connectors(): string {
  const rows = Object.entries(CONNECTORS).flatMap(([folder, { sources = [], sinks = [] }]) => {
    const page = `[\`embermq/streams/${folder}\`](${folder}/README.md)`;
    return [
      ...sources.map((type) => [code(type.name), usesOf(type), type.about, page]),
      ...sinks.map((type) => [code(type.name), 'sink', type.about, page])
    ];
  });
  return markdown(['type', 'for', 'what it is', 'page'], rows);
}

function usesOf({ for: uses = ['stream', 'table'] }: SourceType): string {
  return uses.map((use) => (use === 'lookup' ? 'lookup table' : use)).join(', ');
}

function properties(given?: GivenTable): string {
  const rows = Object.entries(fieldsOf(given)).map(([name, row]) => {
    const notes = [row.isTemplate && 'It may be a template.', row.isSecret && 'It is shown as `******`.'].filter(
      Boolean
    );
    return [code(name), valuesOf(row), defaultOf(row), [row.about, ...notes].join(' ')];
  });
  return markdown(['property', 'values', 'default', 'purpose'], rows);
}

function valuesOf(field: Field): string {
  const { type, choices, min, max } = field;
  if (choices !== undefined) return choices.map((choice) => code(JSON.stringify(choice))).join(', ');
  const shown = jsonTypeOf(field);
  if (shown !== 'number') return shown;
  const bounds = [min !== undefined && ` from ${min}`, max !== undefined && ` to ${max}`].filter(Boolean).join('');
  return type === 'duration' ? `milliseconds${bounds}, or a duration` : `number${bounds}`;
}

function defaultOf({ default: value, required, unit }: Field): string {
  if (required === true) return 'required';
  if (value === undefined) return '';
  return typeof value === 'number' && unit === 'ms' && value > 0 ? `${value} ms` : code(JSON.stringify(value));
}

function operations(): string {
  return markdown(
    ['request', 'what it does'],
    OPERATIONS.map(({ method, path, descr }) => [code(`${method} ${path.replace(/:(\w+)/g, '{$1}')}`), descr])
  );
}
