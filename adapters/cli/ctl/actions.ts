// The words and the purposes of the actions, in the order of the help. The rows of the operations have the rest: arguments, flags, paths and columns.
// `requests.ts` is written from them, because the rows would load all schemas.

import { nearest } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import type { Completed } from '../command.ts';
import type { FlagTable } from '../flags.ts';
import { type Action, type ActionRequest, flagOf } from './action.ts';
import { parametersOf } from './request.ts';
import { REQUESTS } from './requests.ts';

/** The actions by subject, with their purpose, in the order of the help. */
const ABOUT = {
  'clients and messages': {
    'clients list': 'list the clients; with PART, those whose client id contains it',
    'clients show': 'show everything that is known about a client',
    'clients kick': 'disconnect a client and end its session',
    'clients busiest':
      'list the clients with the most messages per second, measured over one second: those they send, or with --by sent those they receive',
    'sessions list': 'list the sessions and their queued messages; with PART, those whose client id contains it',
    'sessions show': 'show a session: its client, its subscriptions and what is in flight',
    'sessions queue': 'list the queued messages of a client',
    'sessions clear': 'drop the queued messages of a client',
    subs: 'list the subscriptions, or those of a client',
    sub: 'subscribe a client to a topic filter',
    unsub: 'unsubscribe a client from a topic filter',
    pub: 'publish a message',
    'retained list': 'list the retained messages, or those that a topic filter matches',
    'retained show': 'show a retained message',
    'retained remove': 'delete a retained message',
    topics: 'list one level of the topic tree: the names below PREFIX that are retained or subscribed to',
    search:
      'find clients, retained topics, subscriptions and rules whose names begin with TEXT, or match it if it has a *',
    routes: 'list the topic filters with subscriptions',
    rights: 'explain whether a client may publish (pub) or subscribe (sub) to a topic, and what decides'
  },
  'access control': {
    'ban list': 'list the bans',
    'ban add': 'ban a client id, user name, or IP address or network',
    'ban remove': 'remove a ban',
    'acl list': 'list the access rules set at run time',
    'acl add': 'allow or deny pub, sub or pubsub for a topic filter: to a client id, a user name, or to all',
    'acl remove': 'remove a rule',
    'users list': 'list the users of the management interface',
    'users add': 'add a user; the password is asked for, or read from standard input',
    'users password': 'set the password of a user; it is asked for, or read from standard input',
    'users remove': 'remove a user',
    'apps list': 'list the applications',
    'apps add': 'add an application, and print its secret, which cannot be read later',
    'apps remove': 'remove an application'
  },
  monitoring: {
    nodes: 'list the nodes',
    listeners: 'list the listeners',
    'alarms list': 'list the alarms that are raised now',
    'alarms history': 'list the alarms that have ended',
    stats: 'print the current and the highest numbers of clients, sessions, subscriptions and so on',
    metrics: 'print the counters',
    figures: 'list counters (per second) and gauges of the last hour, every ten seconds; NAMES are separated by commas',
    why: 'explain why a message to a topic did not arrive at a client or a rule',
    'clients history': 'list the last events of a client: connections, subscriptions, refusals and dropped messages',
    'drops list': 'list the last dropped messages, the newest first',
    'drops clear': 'delete the list of dropped messages',
    audit: 'list the last changes that were made over management interfaces, the newest first',
    events:
      'print events as they happen, until interrupted; NAMES are separated by commas. Default: all except client.ping and, without --topic, the events of messages',
    tail: 'print messages as they are published, or the events of --names, until interrupted: at most 500 a second, and a count of the rest; FILTER is a topic filter',
    'traces list': 'list the traces',
    'traces start': 'trace a client, an address, or the messages of a topic filter, and print the number of the trace',
    'traces show': 'show a trace',
    'traces lines': 'print the last lines of a trace, the oldest first',
    'traces end': 'stop a trace and keep its lines',
    'traces stop': 'stop a trace and delete its lines',
    'topic-figures list': 'list the topic filters whose messages are counted, with the counts',
    'topic-figures add': 'count the messages that a topic filter matches',
    'topic-figures show': 'show all counts of a topic filter',
    'topic-figures remove': 'stop counting messages for a topic filter',
    'slow subscriptions': 'list the clients and topics whose messages take longest, if that is measured',
    'slow start': 'start measuring how long messages take to subscribers',
    'slow stop': 'stop measuring how long messages take to subscribers, and delete the ranking',
    'slow consumers': 'list the clients that read more slowly than messages are sent to them',
    store: 'show the size of the store, the space that is left, and its commits'
  },
  'webhooks and bridges': {
    'webhooks list': 'list the webhooks',
    'webhooks show': 'show a webhook with its options',
    'webhooks add': 'create a webhook with the options in a JSON file; -: standard input',
    'webhooks change':
      'replace the options of a webhook by those in a JSON file (-: standard input); its queue is dropped unless isPersisted is true',
    'webhooks start': 'start a webhook',
    'webhooks stop': 'stop a webhook; queued events are still sent',
    'webhooks test': 'send one event that is marked as a test to the server of a webhook, and print the result',
    'webhooks remove': 'delete a webhook and its queue',
    'bridges list': 'list the bridges',
    'bridges show': 'show a bridge with its options',
    'bridges add': 'create a bridge with the options in a JSON file; -: standard input',
    'bridges change':
      'replace the options of a bridge by those in a JSON file (-: standard input); its queue is dropped unless isPersisted is true',
    'bridges start': 'start a bridge',
    'bridges stop': 'stop a bridge; its queue is kept',
    'bridges remove': 'delete a bridge and its queue'
  },
  'rules and their resources': {
    'rules list': 'list the rules; with PART, those whose id contains it',
    'rules show': 'show a rule with its actions and metrics',
    'rules add': 'create a rule from a JSON file with rawsql and actions (-: standard input), from flags, or from both',
    'rules change': 'change the parts of a rule that a JSON file (-: standard input) or flags name',
    'rules enable': 'enable a rule',
    'rules disable': 'disable a rule; it keeps its metrics',
    'rules test': 'evaluate a statement for an event, and print its output; without any action',
    'rules validate': 'check a statement, and print its errors with their places',
    'rules samples':
      'show the last inputs, outputs and errors of a rule, and the last events that its WHERE has excluded',
    'rules reset': 'set the metrics of a rule and its actions to 0',
    'rules remove': 'delete a rule',
    'rules events': 'list the topics of events with their columns',
    'rules functions': 'list the functions of statements',
    'actions list': 'list the actions that rules can have; with TYPE, those that can use resources of this type',
    'actions show': 'show an action with its parameters',
    'resources list': 'list the resources, or those of a type',
    'resources types': 'list the types of resources, or show one with its parameters',
    'resources show': 'show a resource, and whether its target can be reached',
    'resources add': 'create a resource from a JSON file with type and config (-: standard input)',
    'resources change':
      'replace the config or the description of a resource by those in a JSON file (-: standard input)',
    'resources test': 'check whether the target of a resource could be reached, without creating the resource',
    'resources start': 'connect to the target of a resource now',
    'resources remove': 'delete a resource that no rule uses, and its queue'
  },
  'stream rules, streams and plugins': {
    'stream list': 'list the stream rules with their status',
    'stream show': 'show a stream rule',
    'stream add':
      'create and start a stream rule, from a JSON file with sql and actions (-: standard input), from flags, or from both',
    'stream change': 'replace a stream rule, by a JSON file (-: standard input), flags, or both',
    'stream start': 'start a stream rule',
    'stream stop': 'stop a stream rule; it stays defined',
    'stream restart': 'stop a stream rule, and start it again',
    'stream remove': 'drop a stream rule',
    'stream status': 'show the state and the metrics of a stream rule',
    'stream topology': 'list the nodes of a stream rule and what follows each',
    'stream samples': 'show the last inputs, outputs and errors of a stream rule, and rows that it has excluded',
    'stream explain': 'show the plan of a stream rule',
    'stream validate': 'check a stream rule without creating it',
    'stream check': 'check a statement, and print its errors with their places',
    'stream sql-functions': 'list the functions of statements',
    'stream test':
      'run a query over sample rows: a JSON file with sql and rows: [{"stream": "demo", "values": {"a": 1}}]',
    'stream sql':
      'execute CREATE, SHOW, DESCRIBE, EXPLAIN or DROP of a stream or table, of a file (-: standard input) or of --sql',
    'stream streams': 'list the streams',
    'stream stream': 'show a stream',
    'stream replace-stream': 'replace a stream, by the CREATE STREAM of a file (-: standard input) or of --sql',
    'stream drop-stream': 'drop a stream; with --force also if rules use it',
    'stream tables': 'list the tables',
    'stream table': 'show a table',
    'stream replace-table': 'replace a table, by the CREATE TABLE of a file (-: standard input) or of --sql',
    'stream drop-table': 'drop a table; with --force also if rules use it',
    'stream export':
      'print all streams, tables and stream rules, with their connections, sections and schemas, as JSON',
    'stream import': 'create or replace what an export has (-: standard input)',
    'stream connections': 'list the connections with their state',
    'stream connection': 'show a connection with its properties and its state',
    'stream add-connection': 'create a connection from a JSON file with id, typ and props (-: standard input)',
    'stream change-connection': 'replace the props of a connection by those of a JSON file (-: standard input)',
    'stream drop-connection': 'drop a connection that nothing uses',
    'stream sections': 'list the sections of properties of a source type, with their properties',
    'stream section': 'show the properties of a section',
    'stream set-section':
      'create or replace a section by the properties in a JSON file (-: standard input); CONF_KEY of a stream selects it',
    'stream drop-section': 'drop a section that no stream uses',
    'stream schemas': 'list the schemas of the format protobuf',
    'stream schema': 'show a schema',
    'stream add-schema': 'create a schema from a .proto file (-: standard input)',
    'stream replace-schema': 'replace a schema by a .proto file (-: standard input), or create it',
    'stream drop-schema': 'drop a schema that nothing uses',
    'stream plugins': 'list the plugins of a type: sources, sinks or functions',
    'stream add-plugin': 'install a plugin from a zip archive (http, https or file); TYPE: sources, sinks or functions',
    'stream drop-plugin':
      'drop a plugin, which takes effect when the service restarts; with --force, the service stops now',
    'stream functions': 'list the functions of plugins',
    'stream register': 'register the functions that a plugin exports, separated by commas'
  },
  'settings and data': {
    'config list': 'list the options that can be read at run time, with their source',
    'config get':
      'show an option, by any of its spellings: zone.external.max_inflight, zones.external.maxInflight, max-inflight',
    'config set': 'set an option; it stays set when the broker starts again',
    'config reset': 'remove what was set for an option at run time',
    'plugins list': 'list the features and sources that can be started and stopped',
    'plugins load': 'start a feature or source',
    'plugins unload': 'stop a feature or source',
    'plugins reload': 'stop a feature or source, and start it again',
    backup: 'write a backup of the store to a new file, for "embermq store import"; - is standard output',
    export:
      'write what was set at run time (credentials, rules, bans, options, ...) to a new file, or to standard output',
    import: 'import a file that "ctl export" has written; - is standard input',
    call: 'send any request, and print the data of the answer: call GET /clients/a%2Fb'
  }
} as const;

/** The request of `call`, which sends any operation. */
const CALL: ActionRequest = { usage: 'call METHOD PATH [JSON]', operations: [] };

/** The actions by subject, in the order of the help. */
export const ACTION_GROUPS: Readonly<Record<string, readonly Action[]>> = Object.fromEntries(
  Object.entries(ABOUT).map(([title, group]) => [
    title,
    Object.entries(group).map(([name, about]) => ({ ...(name === 'call' ? CALL : REQUESTS[name]), name, about }))
  ])
);
const ACTIONS: readonly Action[] = Object.values(ACTION_GROUPS).flat();

/** Words for actions that have another name. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  banned: 'ban',
  bans: 'ban',
  kick: 'clients kick',
  rule: 'rules',
  resource: 'resources',
  streams: 'stream',
  tables: 'stream tables',
  plugins: 'stream plugins',
  queue: 'sessions queue',
  subscriptions: 'subs',
  subscribe: 'sub',
  unsubscribe: 'unsub',
  publish: 'pub',
  applications: 'apps',
  options: 'config',
  configs: 'config',
  'topic-metrics': 'topic-figures',
  restore: 'import'
};

/**
 * Find the action of a command line.
 * @returns the action and its arguments
 * @throws InvalidInput COMMAND_UNKNOWN, FLAG_INVALID
 */
export function actionOf(words: readonly string[]): { readonly action: Action; readonly given: readonly string[] } {
  const action = matching(words);
  if (action !== undefined) return { action, given: checked(action, words.slice(action.name.split(' ').length)) };
  const group = groupOf(words[0]);
  // "clients" is "clients list"
  const list = group.find(({ name }) => name === `${words[0]} list`);
  if (list !== undefined && words.length === 1) return { action: list, given: [] };
  throw unknownIn(group, words);
}

/**
 * The words that a command line asks for help about: `help clients` and `clients help`.
 * @returns undefined if it does not ask for help
 */
export function helpWords(words: readonly string[]): readonly string[] | undefined {
  if (words[0] === 'help') return words.slice(1);
  return words.length === 2 && words[1] === 'help' && matching(words) === undefined ? words.slice(0, 1) : undefined;
}

/**
 * The actions that a command line may mean: one, or for a single word all that begin with it.
 * @throws InvalidInput COMMAND_UNKNOWN
 */
export function actionsOf(words: readonly string[]): readonly Action[] {
  const action = matching(words);
  if (action !== undefined) return [action];
  const group = groupOf(words[0]);
  if (words.length > 1) throw unknownIn(group, words);
  return group;
}

/** The words of the actions with their flags, for the completion of a shell. */
export function completedActions(): Completed {
  const root: Tree = {};
  for (const action of ACTIONS) {
    let at = root;
    for (const word of action.name.split(' ')) {
      at.words ??= {};
      at = at.words[word] ??= {};
    }
    at.flags = Object.fromEntries((action.flags ?? []).map((name) => [name, flagOf(action.name, name)]));
    if (/\bFILE\b/.test(action.usage)) at.files = 'file';
  }
  return root;
}

/** `Completed` while it is being made. */
interface Tree {
  words?: Record<string, Tree>;
  flags?: FlagTable;
  files?: 'file';
}

function matching(words: readonly string[]): Action | undefined {
  return ACTIONS.find((action) => action.name.split(' ').every((word, at) => word === words[at]));
}

/** The actions with a first word. @throws InvalidInput COMMAND_UNKNOWN if there are none */
function groupOf(first: string | undefined): readonly Action[] {
  const found = ACTIONS.filter(({ name }) => name.split(' ')[0] === first);
  if (found.length === 0) throw unknownAction(first);
  return found;
}

/** The error for a second word that no action of a group has. */
function unknownIn(group: readonly Action[], words: readonly string[]): InvalidInput {
  const given = words.slice(0, 2).join(' ');
  const near =
    words.length === 1
      ? undefined
      : nearest(
          words[1],
          group.map((one) => one.name.split(' ')[1] ?? '')
        );
  const hint =
    near === undefined || near === '' ? 'the actions are ' : `did you mean "${words[0]} ${near}"? The actions are `;
  const usages = group.map(({ usage }) => usage).join(', ');
  return new InvalidInput(
    'COMMAND_UNKNOWN',
    'ACTION',
    'a known action',
    given,
    `unknown action "${given}"; ${hint}${usages}`
  );
}

function checked(action: Action, given: readonly string[]): readonly string[] {
  const parameters = parametersOf(action);
  const required = parameters.filter((name) => !name.startsWith('[')).length;
  if (given.length >= required && given.length <= parameters.length) return given;
  const message = `usage: embermq ctl ${action.usage}`;
  throw new InvalidInput('FLAG_INVALID', action.usage, `${required} arguments`, given.length, message);
}

function unknownAction(word: string | undefined): InvalidInput {
  const names = [...new Set(ACTIONS.map(({ name }) => name.split(' ')[0]))];
  const near =
    word === undefined ? undefined : Object.hasOwn(OTHER_NAMES, word) ? OTHER_NAMES[word] : nearest(word, names);
  const hint = near === undefined ? `one of ${names.join(', ')}` : `did you mean "${near}"?`;
  const message = word === undefined ? `ctl needs an action: ${hint}` : `unknown action "${word}"; ${hint}`;
  return new InvalidInput('COMMAND_UNKNOWN', 'ACTION', 'a known action', word, message);
}
