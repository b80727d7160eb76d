import type { ManagementClient } from '../../management/client/index.ts';
import type { StreamsClient } from '../../streams-api/client/index.ts';
import { type FlagField, type FlagValues, flag, listFlag } from '../flags.ts';

/** The flags of single actions. */
export const ACTION_FLAGS = {
  qos: flag('integer', 0, 'QoS', { short: 'q', value: 'QOS', min: 0, max: 2 }),
  retain: flag('boolean', false, 'publish as the retained message of the topic', { short: 'r' }),
  as: flag(
    'choice',
    'clientid' as 'clientid' | 'username' | 'peerhost',
    'what WHO names: a client id, a user name or an address',
    {
      choices: ['clientid', 'username', 'peerhost'],
      value: 'clientid|username|peerhost'
    }
  ),
  disconnect: flag('boolean', undefined as boolean | undefined, 'disconnect the clients that are banned'),
  reason: flag('string', undefined as string | undefined, 'the reason', { value: 'TEXT' }),
  bytes: flag('integer', undefined as number | undefined, 'most bytes of a payload in a line', {
    value: 'N',
    min: 0,
    max: 65_536
  }),
  seconds: flag(
    'integer',
    undefined as number | undefined,
    'duration in seconds; default 300 for a ban, 600 for a trace',
    {
      value: 'N',
      min: 1
    }
  ),
  client: flag('string', undefined as string | undefined, 'this client id', { value: 'ID' }),
  user: flag('string', undefined as string | undefined, 'this user name', { value: 'NAME' }),
  address: flag('string', undefined as string | undefined, 'this IP address, or network', { value: 'ADDRESS' }),
  topic: flag(
    'string',
    undefined as string | undefined,
    'topics that this topic filter matches; of `why`, the topic name (required)',
    { value: 'FILTER' }
  ),
  each: flag('integer', undefined as number | undefined, 'find at most N of each kind; default: 10, at most 100', {
    value: 'N'
  }),
  publisher: flag('string', undefined as string | undefined, 'the client that published; empty: the app', {
    value: 'ID'
  }),
  rule: flag('string', undefined as string | undefined, 'the rule that should have received the message', {
    value: 'ID'
  }),
  at: flag('string', undefined as string | undefined, 'time of the message, such as 2026-01-31T12:00:00Z [now]', {
    value: 'TIME'
  }),
  where: flag('string', undefined as string | undefined, 'a condition in the SQL of rules', { value: 'CONDITION' }),
  names: flag('string', undefined as string | undefined, 'names of events, separated by commas', { value: 'NAMES' }),
  payload: flag('choice', undefined as 'none' | 'text' | 'hex' | 'base64' | undefined, 'form of payloads', {
    choices: ['none', 'text', 'hex', 'base64'],
    value: 'none|text|hex|base64'
  }),
  ask: flag(
    'boolean',
    undefined as boolean | undefined,
    'also ask hooks of the app, and sources that ask a server or database'
  ),
  records: flag('boolean', undefined as boolean | undefined, 'count the records by kind, which reads the whole store'),
  failed: flag('boolean', undefined as boolean | undefined, 'only refused and failed changes'),
  threshold: flag('integer', undefined as number | undefined, 'shorter latencies are not considered [500]', {
    value: 'MS',
    min: 1
  }),
  places: flag('integer', undefined as number | undefined, 'places of the ranking [10]', { value: 'N', min: 1 }),
  by: flag('choice', undefined as 'received' | 'sent' | undefined, 'messages from the clients, or to them [received]', {
    choices: ['received', 'sent'],
    value: 'received|sent'
  }),
  source: flag('choice', undefined as 'default' | 'option' | 'override' | undefined, 'values from there', {
    choices: ['default', 'option', 'override'],
    value: 'default|option|override'
  }),
  tags: flag('string', undefined as string | undefined, '"administrator", or others for who may only read', {
    value: 'TEXT'
  }),
  sql: flag('string', undefined as string | undefined, 'the statement', { value: 'SQL' }),
  action: listFlag('an action, with parameters in JSON: republish={"target_topic":"a"}; may be repeated', {
    value: 'NAME[=JSON]'
  }),
  id: flag('string', undefined as string | undefined, 'the id; default: a random one', { value: 'ID' }),
  description: flag('string', undefined as string | undefined, 'a description', { value: 'TEXT' }),
  ctx: flag('string', undefined as string | undefined, 'columns of the event: {"topic":"t/a","payload":"{}"}', {
    value: 'JSON'
  }),
  name: flag('string', undefined as string | undefined, 'the name for people', { value: 'TEXT' }),
  mode: flag(
    'choice',
    'merge' as 'merge' | 'replace',
    'add what is absent, or make the sections of the file equal to it',
    {
      choices: ['merge', 'replace'],
      value: 'merge|replace'
    }
  ),
  force: flag('boolean', false, 'replace FILE if it exists; of stream actions, see there')
};

/** Names of flags of actions. */
export type ActionFlag = keyof typeof ACTION_FLAGS;

/** The actions of stream rules are sinks. */
const STREAM_ACTION = {
  action: { about: 'a sink, with properties in JSON: mqtt={"topic":"a"}; may be repeated', value: 'NAME[=JSON]' }
};

/** Flags that mean something else for single actions. */
const SPECIFIC: Readonly<Record<string, { readonly [F in ActionFlag]?: Pick<FlagField, 'about' | 'value'> }>> = {
  why: { topic: { about: 'the topic name (required)', value: 'TOPIC' } },
  'stream add': STREAM_ACTION,
  'stream change': STREAM_ACTION,
  'stream validate': STREAM_ACTION
};

/** A flag as an action has it, for its help. @param action its name */
export function flagOf(action: string, name: ActionFlag): FlagField {
  return { ...ACTION_FLAGS[name], ...SPECIFIC[action]?.[name] };
}

/** The output of an action: rows, a single record, text, or nothing. */
export type Output =
  | AsyncIterable<object>
  | Iterable<object>
  | { readonly record: object }
  | { readonly lines: AsyncIterable<string> | Iterable<string>; readonly isWhole?: true }
  | undefined;

/** The form in which the rows of an action are printed on a terminal. */
export interface RowForm {
  /** The columns of the table. Default: all fields of the rows. */
  readonly columns?: readonly string[];
  /** Prints each row in a line, immediately, instead of in a table. */
  readonly line?: (row: object) => string;
  /** The unit of times since 1970, which are printed as ISO times. Default `ms`; `none`: no field is a time. */
  readonly times?: 'ms' | 's' | 'none';
}

/** The context of an action. */
export interface ActionContext {
  /** @throws InvalidInput OPTION_MISSING without `--app` */
  readonly client: ManagementClient<'later'>;
  /** A client of the interface of streams. */
  readonly streams: StreamsClient;
  readonly flags: FlagValues<typeof ACTION_FLAGS>;
  /**
   * Read a password from the terminal or standard input.
   * @param owner the name of its owner
   */
  password(owner: string): Promise<string>;
  /** Read a file, or standard input for `-`. */
  read(file: string): Promise<string>;
  /** Write a line to standard error. */
  note(line: string): void;
  /** A signal that aborts when the user interrupts the command. The process then no longer ends on its own. */
  interruption(): AbortSignal;
}

/** An operation, as the requests of an action need it. */
export interface ActionOperation {
  readonly method: string;
  /** The path behind the prefix, with parameters in braces. */
  readonly path: string;
  readonly hasBody?: true;
  /** Fields that are parameters of the query although the operation has a body. */
  readonly query?: readonly string[];
  /** Set for lists with pages. */
  readonly isList?: true;
}

/** The request of an action, made from the rows of the REST interfaces; see `ctl` of `Operation`. */
export interface ActionRequest {
  /**
   * The words of the command line: `clients show ID`. Words in capitals are arguments; those in brackets are optional.
   */
  readonly usage: string;
  readonly columns?: readonly string[];
  /** The fields that the arguments set, in their order. `FILE`: the body is the JSON in this file. */
  readonly args?: readonly string[];
  /** The flags that it takes in addition to those of all actions. */
  readonly flags?: readonly ActionFlag[];
  /** The fields that flags set, if they have other names. */
  readonly fields?: Readonly<Partial<Record<ActionFlag, string>>>;
  readonly constants?: Readonly<Record<string, unknown>>;
  /** Several, if the arguments decide which one is used, or if the output consists of several lists. */
  readonly operations: readonly ActionOperation[];
}

/** An action of `embermq ctl`. */
export interface Action extends ActionRequest {
  /** The fixed words: `clients show`. */
  readonly name: string;
  readonly about: string;
}
