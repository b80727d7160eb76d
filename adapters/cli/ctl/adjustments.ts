// Steps of some actions in addition to sending the values of the command line and printing the data of the answer. They only form requests and
// output; what is allowed is checked by the broker.

import { BrokerError, InvalidInput } from '../../../lib/index.ts';
import { isStream, ManagementError } from '../../management/client/index.ts';
import type { Action, ActionContext, Output, RowForm } from './action.ts';
import { writeWhole } from './file.ts';
import { shownFields } from './output.ts';
import { type Fields, jsonOf, send, type Values, valuesOf } from './request.ts';
import { REQUESTS } from './requests.ts';
import { decoded } from './trace-lines.ts';

/** A deviation of an action. */
export interface Adjustment extends Pick<RowForm, 'line' | 'times'> {
  /** Change or check the values before they are sent. */
  input?(values: Values, context: ActionContext, action: Action): Values | Promise<Values>;
  /** Make the output from the data of the answer; of a list with pages, from its rows. */
  output?(data: never, context: ActionContext, given: readonly string[]): Output;
  /** Replaces all steps. */
  run?(context: ActionContext, given: readonly string[], action: Action): Output | Promise<Output>;
}

/** The file name of standard input and standard output. */
const STANDARD = '-';

/** Make an adjustment of some fields. */
export function changing(change: (fields: Fields, context: ActionContext) => Fields | Promise<Fields>): Adjustment {
  return {
    input: async ({ fields, body }, context) => ({ fields: { ...fields, ...(await change(fields, context)) }, body })
  };
}

const QUIET: Adjustment = { output: () => undefined };

/**
 * Check that a string is one of several words.
 * @throws InvalidInput OPTION_INVALID
 */
export function choice(text: unknown, choices: readonly string[], field: string): string {
  const found = choices.find((candidate) => candidate === text);
  if (found === undefined) throw new InvalidInput('OPTION_INVALID', field, choices.join(', '), text);
  return found;
}

/** @throws InvalidInput FLAG_INVALID for `--client` and `--user` */
function checkSubject({ clientid, username }: Fields): void {
  if (clientid !== undefined && username !== undefined)
    throw new InvalidInput('FLAG_INVALID', '--client', 'one of --client and --user', clientid);
}

/** The lists in the entries of a list, one after the other. */
function listsIn(name: string): Adjustment {
  return { output: (data: readonly Readonly<Record<string, readonly object[]>>[]) => data.flatMap((one) => one[name]) };
}

/** The record in the first entry of a list. */
function recordIn(name: string): Adjustment {
  return { output: (data: readonly Readonly<Record<string, object>>[]) => ({ record: data[0][name] }) };
}

/** The output for a value whose type is not known. */
function anything(data: unknown): Output {
  if (data === undefined) return undefined;
  return Array.isArray(data) ? data.map(asRecord) : { record: asRecord(data) };
}

function asRecord(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : { value };
}

/** The error for an action without a file and without the flags instead of it. @param needs the remedy: `FILE or --sql` */
export function incomplete({ usage }: Action, needs: string): InvalidInput {
  const message = `"ctl ${usage.replace(' [FILE]', '')}" needs ${needs}`;
  return new InvalidInput('OPTION_MISSING', 'FILE', needs, undefined, message);
}

/** The fields of a rule, with the action in each flag `--action`. */
function rule(needs: string): Adjustment {
  return {
    input({ fields: { id, actions, ...fields }, body }, _, action) {
      const others = { ...fields, actions: actionsIn(actions, (name, params) => ({ name, params })) };
      const given = Object.values({ ...others, ...Object(body) });
      if (given.every((value) => value === undefined) && (id === undefined || action.args?.includes('id')))
        throw incomplete(action, needs);
      if (body === undefined && others.actions === undefined && !action.args?.includes('id'))
        throw incomplete(action, '--action');
      return { fields: { id, ...others }, body };
    }
  };
}

/** The error for an action in the form of REST, which has its name inside of the JSON. */
function unnamed(text: string): InvalidInput {
  const expected = 'NAME or NAME=JSON, with the name of the action before the JSON';
  return new InvalidInput('FLAG_INVALID', 'action', expected, text, `--action: expected ${expected}, got ${text}`);
}

/** The actions in the flags `--action`: a name, or `NAME={"a":1}` with parameters. Undefined: there are none */
export function actionsIn(given: unknown, make: (name: string, params: unknown) => Fields): Fields[] | undefined {
  const actions = (given as readonly string[]).map((text) => {
    if (text.trimStart().startsWith('{')) throw unnamed(text);
    const [, name, , json] = /^([^=]*)(=(.*))?$/s.exec(text) as RegExpExecArray;
    return make(name, json === undefined ? undefined : jsonOf(json, `what follows "--action ${name}="`));
  });
  return actions.length === 0 ? undefined : actions;
}

/** The name of an option in the spelling of the interface: flags (`max-inflight`) have hyphens. */
function keyOf(given: string): string {
  const [, path, name] = /^(.*\.)?([^.]*)$/s.exec(given.replace(/^--/, '')) as RegExpExecArray;
  return (path ?? '') + name.replaceAll('-', '_');
}

const OPTION = changing(({ key }) => ({ key: keyOf(key as string) }));

/** Plugins belong to the node. */
const OF_NODE = changing(async (_, context) => {
  const [{ node }] = (await send(REQUESTS.nodes, context, { fields: {} }, REQUESTS.nodes.operations[0])) as Fields[];
  return { node };
});

async function* asLine(text: string): AsyncGenerator<string> {
  yield text;
}

/** Write text to a file, or to standard output. */
async function deliver(
  { flags, note }: ActionContext,
  file: string,
  lines: AsyncIterable<string>
): Promise<{ readonly lines: AsyncIterable<string>; readonly isWhole: true } | undefined> {
  if (file === STANDARD) return { lines, isWhole: true };
  let count = 0;
  const counted = async function* () {
    for await (const line of lines) {
      count++;
      yield `${line}\n`;
    }
  };
  await writeWhole(file, counted(), flags.force);
  note(`${file}: ${count === 1 ? 'written' : `${count} lines`}`);
  return undefined;
}

/** The lines of a backup. @throws ManagementError if its last line is missing */
async function* backupLines({ client, interruption }: ActionContext, { operations }: Action): AsyncGenerator<string> {
  let last = '';
  let count = 0;
  for await (const line of client.lines(operations[0].method, operations[0].path, { signal: interruption() })) {
    last = line;
    count++;
    yield line;
  }
  // a proxy may hide that the connection was lost
  if (!last.startsWith('{') || recordsIn(last) !== count)
    throw new ManagementError('the backup has ended early: its last line is missing');
}

/** The number of lines given by the last line of a backup; undefined: not a last line. */
function recordsIn(line: string): number | undefined {
  try {
    return (JSON.parse(line) as { readonly records?: number }).records;
  } catch {
    return undefined; // truncated
  }
}

/** Write what was set at run time. */
async function exported(context: ActionContext, [file = STANDARD]: readonly string[], { operations }: Action) {
  const [{ method, path }] = operations;
  const { data } = await context.client.request(method, path, { signal: context.interruption() });
  return deliver(context, file, asLine(JSON.stringify(data, null, 2)));
}

/** The result of an import. */
interface Imported {
  readonly sections: Readonly<Record<string, object>>;
  readonly errors: readonly { readonly section: string; readonly entry: string; readonly message: string }[];
}

/** The result of an import, section by section. @throws BrokerError IMPORT_FAILED after the rows, if entries were not imported */
function* imported({ sections, errors }: Imported): Generator<object> {
  for (const [section, counts] of Object.entries(sections)) yield { section, ...counts };
  if (errors.length === 0) return;
  const faults = errors.map(({ section, entry, message }) => `${section}: ${entry}: ${message}`);
  throw new BrokerError('IMPORT_FAILED', `some entries were not imported: ${faults.join('; ')}`);
}

/** Send any request. */
async function call({ client }: ActionContext, [method, path, json]: readonly string[]): Promise<Output> {
  const body = json === undefined ? {} : { body: jsonOf(json, 'the body') };
  const mark = path.indexOf('?');
  const [target, query] = mark < 0 ? [path, ''] : [path.slice(0, mark), path.slice(mark + 1)];
  const request = { ...body, query: Object.fromEntries(new URLSearchParams(query)) };
  const verb = method.toUpperCase();
  const place = target.startsWith('/') ? target : `/${target}`;
  if (isStream(verb, place)) return { lines: client.lines(verb, place, request) };
  return anything((await client.request(verb, place, request)).data);
}

/** The server-sent events of the broker. */
async function* events(context: ActionContext, given: readonly string[], action: Action): AsyncGenerator<object, void> {
  const signal = context.interruption();
  const { fields } = await valuesOf(action, context, given);
  const [{ method, path }] = action.operations;
  let event = '';
  try {
    for await (const line of context.client.lines(method, path, { query: fields as Record<string, string>, signal })) {
      const [, field, value] = /^(event|data): (.*)$/.exec(line) ?? [];
      if (field === 'event') event = value;
      else if (field === 'data') yield { event, ...(JSON.parse(value) as object) };
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function eventLine(row: object): string {
  const { at, event, ...fields } = row as { readonly at?: number; readonly event: string };
  const time = at === undefined ? '' : `${new Date(at).toISOString()} `;
  return `${time}${event} ${shownFields(fields)}`;
}

/** A message begins with its topic and its payload. */
function tailLine(row: object): string {
  const { event, topic, payload, node, publish_received_at, payload_bytes, ...rest } = row as Record<string, unknown>;
  if (event !== 'message.publish') return eventLine({ event, topic, ...rest, payload } as object);
  return eventLine({ event: `${topic}`, payload, ...rest });
}

/** Counters and gauges by time. */
interface History {
  readonly at: readonly number[];
  readonly series: Readonly<Record<string, readonly unknown[]>>;
}

function historyRows({ at, series }: History): Output {
  const counters = Object.entries(series);
  return at.map((time, i) => ({
    at: time,
    ...Object.fromEntries(counters.map(([name, values]) => [name, values[i]]))
  }));
}

/** The rules, with the metrics of the node beside their other fields. */
async function* withMetrics(
  rules: AsyncIterable<{ readonly metrics: readonly { readonly [name: string]: unknown }[] }>
): AsyncGenerator<object> {
  for await (const rule of rules) {
    const [{ matched, passed, failed }] = rule.metrics;
    yield { ...rule, matched, passed, failed };
  }
}

/** The answer to the question why a message did not arrive. */
interface Explained {
  readonly is_complete: boolean;
  readonly known_since?: number;
  readonly causes: readonly object[];
}

/** The answer to a search. */
interface Search {
  readonly is_complete: boolean;
  readonly entries: readonly object[];
}

/** A time in milliseconds since 1970. @throws InvalidInput FLAG_INVALID */
function timeOf(text: string): number {
  const time = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isNaN(time)) throw new InvalidInput('FLAG_INVALID', '--at', 'a time such as 2026-01-31T12:00:00Z', text);
  return time;
}

function causeLine(row: object): string {
  const { at, code, count, text, remedy } = row as Readonly<Record<string, string | number>>;
  const times = count === 1 ? '' : `, ${count} times`;
  return `${new Date(at).toISOString()} ${code}${times}: ${text} ${remedy}`;
}

/** A check of a statement: its errors, or what it reads. */
export const CHECKED: Adjustment = {
  output: ({ valid, errors, ...record }: { readonly valid: boolean; readonly errors: object[] }) =>
    valid ? { record } : errors
};

/** Samples by kind, and `excluded`, the number of events that WHERE has excluded. */
type Samples = Readonly<Record<string, readonly { readonly at: number }[] | number>>;

/** Examples of a rule as rows, in the order of their times. */
export const SAMPLES: Adjustment = {
  output: (data: Samples) =>
    Object.entries(data)
      .flatMap(([kind, samples]) =>
        typeof samples === 'number' ? [] : samples.map((sample) => ({ kind: kind.replace(/s$/, ''), ...sample }))
      )
      .sort((a, b) => a.at - b.at),
  line: (row) => {
    const { at, kind, cut, ...fields } = row as Readonly<Record<string, unknown>>;
    return `${new Date(at as number).toISOString()} ${kind} ${shownFields(fields)}${cut === true ? ' (cut)' : ''}`;
  }
};

/** The words of `rights` and their values in the interface, which are also taken. */
const RIGHTS: Readonly<Record<string, string>> = { pub: 'publish', sub: 'subscribe' };

/** The adjustments of the actions for the management interface, by their fixed words. */
export const ADJUSTMENTS: Readonly<Record<string, Adjustment>> = {
  'clients show': {
    output([client]: readonly object[], _, [id]) {
      if (client === undefined) throw new BrokerError('NOT_FOUND', `there is no client "${id}"`);
      return { record: client };
    }
  },
  rights: changing(({ action }) => ({
    action:
      action === 'publish' || action === 'subscribe' ? action : RIGHTS[choice(action, Object.keys(RIGHTS), 'ACTION')]
  })),
  why: {
    ...changing(({ at }) => ({ at: at === undefined ? undefined : timeOf(at as string) })),
    output({ is_complete: isComplete, known_since: since, causes }: Explained, { note }) {
      if (causes.length === 0) note('no cause was found');
      if (!isComplete)
        note('there may be other causes: records of that time are no longer kept, or not everything was searched');
      if (since !== undefined) note(`all records about this question are kept since ${new Date(since).toISOString()}`);
      return causes;
    },
    line: causeLine
  },
  search: {
    output({ is_complete: isComplete, entries }: Search, { note }) {
      if (!isComplete) note('there are more: give more of the name, or a higher --each');
      return entries;
    }
  },
  'ban list': { times: 's' },
  'ban add': {
    ...changing(({ until }) => ({ until: until && Math.floor(Date.now() / 1000) + (until as number) })),
    ...QUIET
  },
  'acl add': {
    ...changing((fields) => {
      checkSubject(fields);
      const action = { publish: 'pub', subscribe: 'sub' }[fields.action as string] ?? fields.action;
      return {
        access: choice(fields.access, ['allow', 'deny'], 'ACCESS'),
        action: choice(action, ['pub', 'sub', 'pubsub'], 'ACTION')
      };
    }),
    ...QUIET
  },
  'acl remove': changing((fields) => {
    checkSubject(fields);
    return fields;
  }),
  'users add': changing(async ({ username }, context) => ({ password: await context.password(username as string) })),
  'apps list': { times: 's' },
  'users password': changing(async ({ name }, context) => ({ password: await context.password(name as string) })),
  listeners: listsIn('listeners'),
  'alarms list': listsIn('alarms'),
  'alarms history': listsIn('alarms'),
  stats: recordIn('stats'),
  metrics: recordIn('metrics'),
  figures: { output: historyRows },
  events: { run: events, line: eventLine },
  tail: { run: events, line: tailLine },
  'traces lines': {
    output: decoded,
    line: (row) => JSON.stringify((row as { readonly record: object }).record)
  },
  'webhooks test': {
    output(data: { readonly error?: { readonly code: string; readonly message: string } }) {
      if (data.error === undefined) return { record: data };
      throw new BrokerError(data.error.code, data.error.message);
    }
  },
  'slow subscriptions': {
    output({ enabled, subscriptions }: { readonly enabled: boolean; readonly subscriptions: object[] }, { note }) {
      if (!enabled) note('latencies are not measured; start with embermq ctl slow start');
      return subscriptions;
    }
  },
  'slow start': QUIET,
  'rules list': { output: withMetrics },
  'rules add': rule('FILE or --sql and --action'),
  'rules change': rule('FILE or --sql, --action or --description'),
  'rules test': {
    ...changing(({ ctx }) => ({ ctx: ctx === undefined ? undefined : jsonOf(ctx as string, '--ctx') })),
    output: anything,
    times: 'none'
  },
  'rules functions': { output: ({ functions }: { readonly functions: object[] }) => functions },
  'rules validate': CHECKED,
  'rules samples': SAMPLES,
  'resources test': QUIET,
  'config get': OPTION,
  'config set': { ...OPTION, ...QUIET },
  'config reset': OPTION,
  'plugins list': OF_NODE,
  'plugins load': { ...OF_NODE, ...QUIET },
  'plugins unload': { ...OF_NODE, ...QUIET },
  'plugins reload': { ...OF_NODE, ...QUIET },
  backup: { run: (context, [file], action) => deliver(context, file, backupLines(context, action)) },
  export: { run: exported },
  import: { output: imported },
  call: { run: call, times: 'none' }
};
