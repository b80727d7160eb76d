// `ctl` talks to a running broker over its REST interfaces only. The actions are the column `ctl` of the rows of these interfaces; this file
// reads the flags, makes the clients when an action uses them, and prints the output. A flag belongs to the actions
// that name it, and is refused for others. The secret of an application is better passed in the environment, since
// other users of the machine see flags.

import { BrokerError, InvalidInput } from '../../../lib/index.ts';
import { ManagementClient } from '../../management/client/index.ts';
import { RestClientError } from '../../rest-client/index.ts';
import { StreamsClient } from '../../streams-api/client/index.ts';
import { type Command, log, readFileFor, type Shell } from '../command.ts';
import { INTERRUPTED, interrupted } from '../dial.ts';
import {
  checkTime,
  describeFlags,
  type FlagValues,
  flag,
  gatherFlags,
  readAs,
  spelledAsFlag,
  timeFlag
} from '../flags.ts';
import { spelledAsVariable } from '../layers.ts';
import { readPassword } from '../passwd.ts';
import { ACTION_FLAGS, type Action, type ActionContext, type ActionFlag, flagOf } from './action.ts';
import { ACTION_GROUPS, actionOf, actionsOf, completedActions, helpWords } from './actions.ts';
import { connectionRemedy, fetchTrusting } from './fetch.ts';
import { print } from './output.ts';
import { formOf, perform } from './perform.ts';

/** The environment variable with the application, which also gives a broker its application. */
const APP_VARIABLE = spelledAsVariable('app');
const APP_FORM = 'ID:SECRET, an id without ":" and a secret';
/** Maximum size of files that are read. */
const MAX_FILE_BYTES = 256 * 1_048_576;

/** The flags of all actions. */
export const CONNECTION_FLAGS = {
  url: flag(
    'string',
    'http://127.0.0.1:8081/api/v4',
    'URL of the management interface (later or hosted revision); without a path, /api/v4 is appended',
    {
      value: 'URL'
    }
  ),
  rulesUrl: flag('string', 'http://127.0.0.1:9081', 'URL of the interface of stream rules, for stream actions', {
    value: 'URL'
  }),
  app: flag(
    'string',
    undefined as string | undefined,
    `id and secret of an application; default: ${APP_VARIABLE}, which other users of the machine do not see`,
    {
      value: 'ID:SECRET'
    }
  ),
  ca: flag(
    'string',
    undefined as string | undefined,
    'trust only certificates of this authority, or this self-signed certificate (PEM); default: those that Node knows',
    { value: 'FILE' }
  ),
  json: flag(
    'boolean',
    undefined as boolean | undefined,
    'print a line of JSON for each row; default unless standard output is a terminal'
  ),
  limit: flag('integer', Number.MAX_SAFE_INTEGER, 'print at most N rows', { value: 'N', min: 1 }),
  timeout: timeFlag(30_000, 'time for each request', { check: checkTimeout })
};
const CTL_FLAGS = { ...ACTION_FLAGS, ...CONNECTION_FLAGS };
type CtlFlags = FlagValues<typeof CTL_FLAGS>;

function checkTimeout(value: unknown, field: string): number {
  const ms = checkTime(value, field);
  if (ms === 0)
    throw new InvalidInput('DURATION_INVALID', field, 'a duration above 0, such as "250ms" or "90s"', value);
  return ms;
}

/** `embermq ctl`: inspect and change a running broker over its management interface. */
export const ctl: Command = {
  summary: 'inspect and change a running broker',
  completed: () => ({ ...completedActions(), flags: CONNECTION_FLAGS }),
  help,
  async run(args, shell) {
    const { given: givenFlags, words } = gatherFlags(CTL_FLAGS, args);
    const asked = helpWords(words);
    if (asked !== undefined) {
      shell.stdout.write(`${help(asked)}\n`);
      return 0;
    }
    const flags = readAs(CTL_FLAGS, givenFlags, spelledAsFlag) as CtlFlags;
    const { action, given } = actionOf(words);
    checkFlags(action, Object.keys(givenFlags));
    const isForStreams = action.usage.startsWith('stream ');
    const interruption: { signal?: AbortSignal } = {};
    try {
      const clients = await clientsOf(flags, shell, isForStreams);
      const output = await perform(action, contextOf(clients, flags, shell, interruption), given);
      const json = flags.json ?? shell.stdout.isTTY !== true;
      await print(shell, output, { json, limit: flags.limit, ...formOf(action) });
      return 0;
    } catch (error) {
      if (interruption.signal?.aborted) return INTERRUPTED;
      if (!(error instanceof RestClientError)) throw error;
      throw new BrokerError(
        'REQUEST_FAILED',
        error.message + connectionRemedy(error, isForStreams ? '--rules-url' : '--url'),
        { cause: error }
      );
    }
  }
};

function contextOf(
  clients: Clients,
  flags: CtlFlags,
  shell: Shell,
  interruption: { signal?: AbortSignal }
): ActionContext {
  return {
    get client() {
      return clients.management();
    },
    get streams() {
      return clients.streams();
    },
    flags,
    async password(owner) {
      const typed = await readPassword(owner, shell);
      if (typeof typed !== 'number') return typed.toString();
      interruption.signal = AbortSignal.abort();
      throw interruption.signal.reason;
    },
    async read(file) {
      if (file !== '-') return (await readFileFor(shell, file, MAX_FILE_BYTES)).toString();
      const chunks: Buffer[] = [];
      for await (const chunk of shell.stdin) chunks.push(Buffer.from(chunk));
      return Buffer.concat(chunks).toString();
    },
    note: (line) => log(shell, line),
    interruption() {
      interruption.signal ??= interrupted(shell);
      return interruption.signal;
    }
  };
}

/** Refuse flags of other actions. @throws InvalidInput FLAG_INVALID */
function checkFlags({ usage, flags = [] }: Action, given: readonly string[]): void {
  const wrong = given.find((name) => name in ACTION_FLAGS && !flags.includes(name as ActionFlag));
  if (wrong === undefined) return;
  const taken = flags.length === 0 ? 'it has no specific flags' : `it takes ${flags.map(spelledAsFlag).join(', ')}`;
  const message = `${spelledAsFlag(wrong)} is not a flag of "ctl ${usage}"; ${taken}`;
  throw new InvalidInput('FLAG_INVALID', spelledAsFlag(wrong), 'a flag of the action', undefined, message);
}

/**
 * @param args the words of an action; none: describe all
 * @throws InvalidInput COMMAND_UNKNOWN, FLAG_UNKNOWN
 */
function help(args: readonly string[]): string {
  const { words } = gatherFlags(
    { ...CTL_FLAGS, help: flag('boolean', false, 'describe an action', { short: 'h' }) },
    args
  );
  return words.length === 0 ? overview() : actionsOf(words).map(describe).join('\n\n');
}

function overview(): string {
  const groups = Object.entries(ACTION_GROUPS);
  const width = Math.max(...groups.flatMap(([, actions]) => actions.map(({ usage }) => usage.length))) + 2;
  const lists = groups.map(
    ([title, actions]) =>
      `${title}\n${actions.map(({ usage, about }) => `  ${usage.padEnd(width)}${about}`).join('\n')}`
  );
  return `usage: embermq ctl ACTION [flags]

${lists.join('\n\n')}

"list" may be left out. Actions have more flags: embermq ctl help ACTION, or embermq ctl ACTION -h

connection and output
${describeFlags(CONNECTION_FLAGS)}

Lists are tables on a terminal, without the columns that are empty, and otherwise one line of JSON for each row. In a
narrow terminal (COLUMNS, or its width), the last columns are cut or left out first, which an ellipsis shows:
  embermq ctl clients | jq -r .clientid

The exit code is 0, 1 if the broker refuses a request or cannot be reached, 2 if the command line is wrong, and 130 if a
transfer or the input of a password is interrupted.`;
}

function describe({ name: action, usage, about, flags = [] }: Action): string {
  const own = Object.fromEntries(flags.map((name) => [name, flagOf(action, name)]));
  const described = flags.length === 0 ? '' : `\n\n${describeFlags(own)}`;
  return `usage: embermq ctl ${usage}${flags.length === 0 ? '' : ' [flags]'}\n\n  ${about}${described}`;
}

/** Creates the clients that an action uses. */
interface Clients {
  management(): ManagementClient;
  streams(): StreamsClient;
}

/** @param isForStreams the action uses the interface of streams @throws InvalidInput OPTION_INVALID; BrokerError FILE_UNREADABLE */
async function clientsOf(
  { url, rulesUrl, app, ca, timeout }: CtlFlags,
  shell: Shell,
  isForStreams: boolean
): Promise<Clients> {
  const given = app ?? shell.env[APP_VARIABLE] ?? '';
  const [, id, secret] = /^([^:]+):(.+)$/s.exec(given) ?? [];
  if (given !== '' && id === undefined) {
    const place = app === undefined ? APP_VARIABLE : '--app'; // the value may be a secret
    throw new InvalidInput('OPTION_INVALID', place, APP_FORM, undefined, `${place}: expected ${APP_FORM}`);
  }
  const [flagName, target] = isForStreams ? ['--rules-url', rulesUrl] : ['--url', url];
  // checked before the file is read, because this error is more specific
  if (!isForStreams && id === undefined) {
    const message = `ctl needs --app ID:SECRET or ${APP_VARIABLE}=ID:SECRET, the id and the secret of an application`;
    throw new InvalidInput('OPTION_MISSING', '--app', 'ID:SECRET', undefined, message);
  }
  if (ca !== undefined && !/^https:/i.test(target)) {
    const message = `--ca is for a ${flagName} with https`;
    throw new InvalidInput('OPTION_INVALID', '--ca', 'a URL with https', target, message);
  }
  const fetch = ca === undefined ? undefined : fetchTrusting(await readFileFor(shell, ca, MAX_FILE_BYTES), ca);
  const made = <C>(make: () => C): C => {
    try {
      return make();
    } catch (error) {
      const message = `${flagName}: ${(error as Error).message.replace(/^url: /, '')}`;
      throw new InvalidInput('OPTION_INVALID', flagName, 'a URL', undefined, message);
    }
  };
  const common = { timeoutMs: timeout, ...(fetch && { fetch }) };
  return {
    management: () => made(() => new ManagementClient({ url: withPrefix(url), id: id ?? '', secret, ...common })),
    streams: () => made(() => new StreamsClient({ url: rulesUrl, id, secret, ...common }))
  };
}

/**
 * Append the default prefix to a URL that ends with the port. A trailing slash stands for an interface without a
 * prefix.
 */
function withPrefix(url: string): string {
  return /^https?:\/\/[^/?#]+$/i.test(url) ? `${url}/api/v4` : url;
}
