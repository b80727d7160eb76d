import { BrokerError, InvalidInput, nearest } from '../../lib/index.ts';
import { ManagementClient, ManagementError } from '../management/client/index.ts';
import type { Command, Shell } from './command.ts';
import { ACTION_FLAGS, ACTIONS, type Action } from './ctl-actions.ts';
import { print } from './ctl-output.ts';
import { INTERRUPTED } from './dial.ts';
import { describeFlags, flag, readFlags, timeFlag } from './flags.ts';
import { spelledAsVariable } from './layers.ts';
import { readPassword } from './passwd.ts';

/** The same variable gives a broker its application. */
const APP_VARIABLE = spelledAsVariable('app');

const CONNECTION_FLAGS = {
  url: flag(
    'text',
    'http://127.0.0.1:8081/api/v4',
    'where the management interface is mounted (later or hosted revision)',
    {
      value: 'URL'
    }
  ),
  app: flag('text', undefined as string | undefined, `id and secret of an application; default: ${APP_VARIABLE}`, {
    value: 'ID:SECRET'
  }),
  json: flag(
    'boolean',
    undefined as boolean | undefined,
    'print a line of JSON for each row; default unless standard output is a terminal'
  ),
  limit: flag('integer', Number.MAX_SAFE_INTEGER, 'print at most N rows', { value: 'N', min: 1 }),
  timeout: timeFlag(30_000, 'time for each request')
};
const CTL_FLAGS = { ...ACTION_FLAGS, ...CONNECTION_FLAGS };

/** `embermq ctl`: inspect and change a running broker over its management interface. */
export const ctl: Command = {
  summary: 'inspect and change a running broker',
  help,
  async run(args, shell) {
    const { values: flags, words } = readFlags(CTL_FLAGS, args);
    const { action, given } = actionOf(words);
    const client = clientOf(flags, shell);
    let isInterrupted = false;
    const password = async (owner: string) => {
      const typed = await readPassword(owner, shell);
      if (typeof typed !== 'number') return typed.toString();
      isInterrupted = true;
      throw new BrokerError('INTERRUPTED', 'interrupted');
    };
    try {
      const output = await action.run({ client, flags, password }, given);
      const json = flags.json ?? shell.stdout.isTTY !== true;
      await print(shell, output, { json, columns: action.columns, limit: flags.limit });
      return 0;
    } catch (error) {
      if (isInterrupted) return INTERRUPTED;
      if (error instanceof ManagementError) throw new BrokerError('REQUEST_FAILED', error.message, { cause: error });
      throw error;
    }
  }
};

function help(): string {
  const width = Math.max(...ACTIONS.map(({ usage }) => usage.length)) + 2;
  return `usage: embermq ctl ACTION [flags]

${ACTIONS.map(({ usage, about }) => `  ${usage.padEnd(width)}${about}`).join('\n')}

"list" may be left out.

${describeFlags(ACTION_FLAGS)}

connection and output
${describeFlags(CONNECTION_FLAGS)}

Lists are tables on a terminal, and otherwise one line of JSON for each row:
  embermq ctl clients | jq -r .clientid`;
}

function clientOf(
  { url, app, timeout }: { readonly url: string; readonly app: string | undefined; readonly timeout: number },
  { env }: Shell
) {
  const [, id, secret] = /^([^:]+):(.+)$/s.exec(app ?? env[APP_VARIABLE] ?? '') ?? [];
  if (id === undefined) {
    const message = `ctl needs --app ID:SECRET or ${APP_VARIABLE}=ID:SECRET, the id and the secret of an application`;
    throw new InvalidInput('OPTION_MISSING', '--app', 'ID:SECRET', undefined, message);
  }
  try {
    return new ManagementClient({ url, id, secret, timeoutMs: timeout });
  } catch (error) {
    throw new InvalidInput('OPTION_INVALID', '--url', 'a URL', undefined, `--${(error as Error).message}`);
  }
}

/** Find the action of a command line. @returns it and its arguments */
function actionOf(words: readonly string[]): { readonly action: Action; readonly given: readonly string[] } {
  const candidates = ACTIONS.filter(({ usage }) => usage.split(' ')[0] === words[0]);
  if (candidates.length === 0) throw unknownAction(words[0]);
  for (const action of candidates) {
    const { fixed } = shapeOf(action);
    if (fixed.every((word, at) => word === words[at]))
      return { action, given: checked(action, words.slice(fixed.length)) };
  }
  // "clients" is "clients list"
  const list = candidates.find((action) => shapeOf(action).fixed[1] === 'list');
  if (list !== undefined && words.length === 1) return { action: list, given: [] };
  const usages = candidates.map(({ usage }) => usage).join(', ');
  throw new InvalidInput(
    'COMMAND_UNKNOWN',
    'ACTION',
    usages,
    words.join(' '),
    `ctl ${words.join(' ')}: expected ${usages}`
  );
}

/** The fixed words of an action, and its arguments. */
function shapeOf({ usage }: Action): { readonly fixed: readonly string[]; readonly parameters: readonly string[] } {
  const words = usage.split(' ');
  const first = words.findIndex((word) => /^\[?[A-Z]/.test(word));
  const end = first === -1 ? words.length : first;
  return { fixed: words.slice(0, end), parameters: words.slice(end) };
}

function checked(action: Action, given: readonly string[]): readonly string[] {
  const { parameters } = shapeOf(action);
  const required = parameters.filter((name) => !name.startsWith('[')).length;
  if (given.length >= required && given.length <= parameters.length) return given;
  const message = `usage: embermq ctl ${action.usage}`;
  throw new InvalidInput('FLAG_INVALID', action.usage, `${required} arguments`, given.length, message);
}

function unknownAction(word: string | undefined): InvalidInput {
  const names = [...new Set(ACTIONS.map(({ usage }) => usage.split(' ')[0]))];
  const near = word === undefined ? undefined : nearest(word, names);
  const hint = near === undefined ? `one of ${names.join(', ')}` : `did you mean "${near}"?`;
  const message = word === undefined ? `ctl needs an action: ${hint}` : `unknown action "${word}"; ${hint}`;
  return new InvalidInput('COMMAND_UNKNOWN', 'ACTION', 'a known action', word, message);
}
