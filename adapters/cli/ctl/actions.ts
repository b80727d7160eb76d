import { nearest } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { ACCESS_CONTROL } from './access.ts';
import type { Action } from './action.ts';
import { CLIENTS } from './clients.ts';
import { CONNECTORS } from './connectors.ts';
import { MONITORING } from './monitoring.ts';
import { RULES } from './rules.ts';
import { SETTINGS } from './settings.ts';
import { STREAMS } from './streams.ts';

/** The actions by subject, in the order of the help. */
export const ACTION_GROUPS: Readonly<Record<string, readonly Action[]>> = {
  'clients and messages': CLIENTS,
  'access control': ACCESS_CONTROL,
  monitoring: MONITORING,
  'webhooks and bridges': CONNECTORS,
  'rules and their resources': RULES,
  'stream rules, streams and plugins': STREAMS,
  'settings and data': SETTINGS
};
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
  if (action !== undefined) return { action, given: checked(action, words.slice(shapeOf(action).fixed.length)) };
  const group = groupOf(words[0]);
  // "clients" is "clients list"
  const list = group.find((one) => shapeOf(one).fixed[1] === 'list');
  if (list !== undefined && words.length === 1) return { action: list, given: [] };
  const given = words.slice(0, 2).join(' ');
  const near =
    words.length === 1
      ? undefined
      : nearest(
          words[1],
          group.map((one) => shapeOf(one).fixed[1] ?? '')
        );
  const hint =
    near === undefined || near === '' ? 'the actions are ' : `did you mean "${words[0]} ${near}"? The actions are `;
  const usages = group.map(({ usage }) => usage).join(', ');
  throw new InvalidInput(
    'COMMAND_UNKNOWN',
    'ACTION',
    'a known action',
    given,
    `unknown action "${given}"; ${hint}${usages}`
  );
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
 * The actions that a command line may mean: one, or all that begin with its first word.
 * @throws InvalidInput COMMAND_UNKNOWN
 */
export function actionsOf(words: readonly string[]): readonly Action[] {
  const action = matching(words);
  return action === undefined ? groupOf(words[0]) : [action];
}

function matching(words: readonly string[]): Action | undefined {
  return ACTIONS.find((action) => shapeOf(action).fixed.every((word, at) => word === words[at]));
}

/** The actions with a first word. @throws InvalidInput COMMAND_UNKNOWN if there are none */
function groupOf(first: string | undefined): readonly Action[] {
  const found = ACTIONS.filter(({ usage }) => usage.split(' ')[0] === first);
  if (found.length === 0) throw unknownAction(first);
  return found;
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
  const near =
    word === undefined ? undefined : Object.hasOwn(OTHER_NAMES, word) ? OTHER_NAMES[word] : nearest(word, names);
  const hint = near === undefined ? `one of ${names.join(', ')}` : `did you mean "${near}"?`;
  const message = word === undefined ? `ctl needs an action: ${hint}` : `unknown action "${word}"; ${hint}`;
  return new InvalidInput('COMMAND_UNKNOWN', 'ACTION', 'a known action', word, message);
}
