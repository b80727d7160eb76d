// The rows of the box that finds everything: pages, actions, and what the broker has found, in one list, the best first.
import type { ViewName } from './places.ts';

/** Something that the broker has found, as `/x/search` has it. */
export interface Found {
  readonly kind: 'client' | 'topic' | 'subscription' | 'rule' | 'stream_rule';
  readonly name: string;
  readonly detail: string;
}

/** An address: a view and the choices in it. */
export interface Address {
  readonly view: ViewName;
  readonly choices?: Readonly<Record<string, string>>;
}

/** An action on something that was found. The dialog that it opens asks before anything changes. */
interface VerbRow {
  readonly of: readonly Found['kind'][];
  readonly to: (name: string, kind: Found['kind']) => Address;
  readonly isChange: boolean;
}

function viewOfRule(kind: Found['kind']): ViewName {
  return kind === 'rule' ? 'rule' : 'stream';
}

const change = (of: readonly Found['kind'][], to: VerbRow['to']): VerbRow => ({ of, to, isChange: true });
const look = (of: readonly Found['kind'][], to: VerbRow['to']): VerbRow => ({ of, to, isChange: false });

/** The actions on things, by their names. */
export const VERBS = {
  why: look(['client'], (client) => ({ view: 'why', choices: { client } })),
  kick: change(['client'], (id) => ({ view: 'client', choices: { id, do: 'kick' } })),
  ban: change(['client'], (id) => ({ view: 'client', choices: { id, do: 'ban' } })),
  trace: change(['client'], (id) => ({ view: 'client', choices: { id, do: 'trace' } })),
  tail: look(['topic', 'subscription'], (filter) => ({ view: 'tail', choices: { filter } })),
  publish: change(['topic'], (topic) => ({ view: 'topics', choices: { topic, do: 'publish' } })),
  remove: change(['topic'], (topic) => ({ view: 'topics', choices: { topic, do: 'remove' } })),
  test: look(['rule', 'stream_rule'], (id, kind) => ({ view: viewOfRule(kind), choices: { id, do: 'test' } })),
  enable: change(['rule'], (id) => ({ view: 'rule', choices: { id, do: 'enable' } })),
  disable: change(['rule'], (id) => ({ view: 'rule', choices: { id, do: 'disable' } })),
  start: change(['stream_rule'], (id) => ({ view: 'stream', choices: { id, do: 'start' } })),
  stop: change(['stream_rule'], (id) => ({ view: 'stream', choices: { id, do: 'stop' } })),
  restart: change(['stream_rule'], (id) => ({ view: 'stream', choices: { id, do: 'restart' } }))
} as const satisfies Readonly<Record<string, VerbRow>>;

export type Verb = keyof typeof VERBS;
const VERB_NAMES = Object.keys(VERBS) as Verb[];

/** The actions on nothing that was found. `run`: the page does it, without an address. */
export const ACTIONS = {
  publish: { to: { view: 'topics', choices: { do: 'publish' } }, isChange: true },
  ban: { to: { view: 'access', choices: { tab: 'bans', do: 'ban' } }, isChange: true },
  rule: { to: { view: 'rule' }, isChange: true },
  stream: { to: { view: 'stream' }, isChange: true },
  definition: { to: { view: 'definition' }, isChange: true },
  schema: { to: { view: 'streams', choices: { tab: 'schemas', do: 'add' } }, isChange: true },
  webhook: { to: { view: 'webhooks', choices: { do: 'add' } }, isChange: true },
  bridge: { to: { view: 'bridges', choices: { do: 'add' } }, isChange: true },
  trace: { to: { view: 'traces', choices: { do: 'start' } }, isChange: true },
  application: { to: { view: 'access', choices: { tab: 'apps', do: 'add' } }, isChange: true },
  connect: { to: { view: 'websocket' }, isChange: true },
  busiest: { to: { view: 'clients', choices: { sort: 'received' } }, isChange: false },
  light: { run: true, isChange: false },
  dark: { run: true, isChange: false },
  system: { run: true, isChange: false },
  password: { run: true, isChange: false },
  logOut: { run: true, isChange: false }
} as const satisfies Readonly<
  Record<string, { readonly to?: Address; readonly run?: true; readonly isChange: boolean }>
>;

export type ActionName = keyof typeof ACTIONS;

/** The texts of the rows. */
export interface FinderTexts {
  /** The pages, and their parts with the choice `tab`. */
  readonly pages: readonly (readonly [view: ViewName, text: string, tab?: string])[];
  readonly actions: Readonly<Record<ActionName, string>>;
  readonly verbs: Readonly<Record<Verb, string>>;
}

export type RowKind = 'page' | 'action' | 'option' | Found['kind'] | 'guess';

/** An option of the broker. */
export interface FoundOption {
  readonly key: string;
  /** The name in the options of an app. */
  readonly name: string;
}

/** A row of the box. */
export interface FinderRow {
  readonly key: string;
  readonly kind: RowKind;
  /** A page, or an action; none: the name says all. */
  readonly text?: string;
  /** A name that a client has chosen. */
  readonly name?: string;
  readonly detail?: string;
  readonly to?: Address;
  readonly run?: ActionName;
  /** Only administrators may do it. */
  readonly isChange?: boolean;
}

/** The view that shows something that was found. */
export function addressOfFound({ kind, name }: Found): Address {
  if (kind === 'client') return { view: 'client', choices: { id: name } };
  if (kind === 'rule' || kind === 'stream_rule') return { view: viewOfRule(kind), choices: { id: name } };
  return { view: 'topics', choices: { topic: name } };
}

/** The action and the name in `kick meter-1`. @returns undefined if the first word is not an action */
export function verbIn(typed: string, verbs: FinderTexts['verbs']): { verb: Verb; name: string } | undefined {
  const [, word, name] = /^\s*(\S{3,})\s+(\S.*)$/s.exec(typed.toLowerCase()) ?? [];
  const verb = word === undefined ? undefined : VERB_NAMES.find((each) => verbs[each].toLowerCase().startsWith(word));
  return verb === undefined ? undefined : { verb, name: typed.trimEnd().slice(-name.trimEnd().length) };
}

/** The text that the broker searches. */
export function searchedText(typed: string, verbs: FinderTexts['verbs']): string {
  return (verbIn(typed, verbs)?.name ?? typed.trim()).slice(0, MAX_SEARCHED);
}

const MAX_SEARCHED = 256;
const MAX_ROWS = 40;
/** Things whose actions are listed without being asked for. */
const MAX_WITH_VERBS = 1;

/** Scores: a smaller one is better. */
const SCORE = { same: 0, begins: 1, word: 2, within: 3, verb: 4, guess: 9 };

function scoreOf(text: string, typed: string): number | undefined {
  const [own, wanted] = [text.toLowerCase(), typed.toLowerCase()];
  if (own === wanted) return SCORE.same;
  if (own.startsWith(wanted)) return SCORE.begins;
  if (own.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(wanted))) return SCORE.word;
  return own.includes(wanted) ? SCORE.within : undefined;
}

/** Maximum number of options in the list. */
const MAX_OPTIONS = 8;

/** The options whose key or name has the text, the best first. Blanks stand for the separators of keys. */
function optionRows(
  options: readonly FoundOption[],
  text: string
): readonly (readonly [score: number, row: FinderRow])[] {
  if (text.length < MIN_OPTION) return [];
  return options
    .flatMap(({ key, name }) => {
      const scores = [key, key.replace(/[._]/g, ' '), name].flatMap((one) => scoreOf(one, text) ?? []);
      const row = {
        key: `option ${key}`,
        kind: 'option',
        name: key,
        to: { view: 'options', choices: { q: key } }
      } as const;
      return scores.length === 0 ? [] : [[Math.min(...scores), row] as const];
    })
    .toSorted(([a], [b]) => a - b)
    .slice(0, MAX_OPTIONS);
}

/** Minimum number of characters for which options are found. */
export const MIN_OPTION = 2;

/** The rows for a text, the best first; pages come before actions, and actions before names with the same score. */
export function finderRows(
  typed: string,
  found: readonly Found[],
  texts: FinderTexts,
  options: readonly FoundOption[] = []
): readonly FinderRow[] {
  const text = typed.trim();
  const asked = verbIn(typed, texts.verbs);
  const scored: (readonly [score: number, row: FinderRow])[] = [];
  const add = (score: number | undefined, row: FinderRow) => {
    if (score !== undefined) scored.push([score, row]);
  };
  for (const [view, label, tab] of texts.pages) {
    const row = { kind: 'page', text: label } as const;
    if (tab === undefined) add(scoreOf(label, text), { ...row, key: `page ${view}`, to: { view } });
    else if (text !== '')
      add(scoreOf(label, text), { ...row, key: `page ${view} ${tab}`, to: { view, choices: { tab } } });
  }
  for (const [name, action] of Object.entries(ACTIONS) as [ActionName, { to?: Address; isChange: boolean }][]) {
    const { to, isChange } = action;
    const row = { key: `action ${name}`, kind: 'action', text: texts.actions[name], isChange } as const;
    add(scoreOf(row.text, text), to === undefined ? { ...row, run: name } : { ...row, to });
  }
  const withVerbs = new Map<string, number>();
  for (const one of found) {
    const { kind, name, detail } = one;
    const score = scoreOf(name, asked?.name ?? text) ?? SCORE.begins; // a pattern of the broker
    add(score, { key: `${kind} ${name}`, kind, name, detail, to: addressOfFound(one) });
    const seen = withVerbs.get(kind) ?? 0;
    withVerbs.set(kind, seen + 1);
    for (const verb of VERB_NAMES) {
      const { of, to, isChange }: VerbRow = VERBS[verb];
      if (!of.includes(kind) || (asked === undefined ? seen >= MAX_WITH_VERBS : verb !== asked.verb)) continue;
      const row = {
        key: `${verb} ${kind} ${name}`,
        kind: 'action',
        text: texts.verbs[verb],
        name,
        to: to(name, kind),
        isChange
      } as const;
      add(asked === undefined ? SCORE.verb : score - 0.5, row);
    }
  }
  for (const [score, row] of optionRows(options, text)) add(score, row);
  if (asked?.verb === 'ban' && !found.some(({ kind, name }) => kind === 'client' && name === asked.name))
    add(SCORE.verb, banOf(asked.name, texts)); // a client without a session
  if (text !== '') for (const row of guesses(text)) add(SCORE.guess, row);
  return scored
    .map((one, index) => [...one, index] as const)
    .toSorted(([a, , first], [b, , second]) => a - b || first - second)
    .slice(0, MAX_ROWS)
    .map(([, row]) => row);
}

/** The ban of a client that the broker does not find: it is not connected, and has no session. */
function banOf(name: string, texts: FinderTexts): FinderRow {
  const { to, isChange }: VerbRow = VERBS.ban;
  return { key: 'ban client', kind: 'action', text: texts.verbs.ban, name, to: to(name, 'client'), isChange };
}

/**
 * A text that may be a topic that the broker does not find, because it has neither a retained message nor subscriptions, or a level above such topics:
 * that is the topic filter of all topics below it.
 */
function guesses(topic: string): readonly FinderRow[] {
  const guess = (view: 'topics' | 'tail' | 'why', name: string): FinderRow => ({
    key: `guess ${view} ${name === topic ? '' : 'below'}`,
    kind: 'guess',
    name,
    to: { view, choices: { [view === 'tail' ? 'filter' : 'topic']: name } }
  });
  const isFilter = /[+#]/.test(topic);
  const below = isFilter ? [] : [guess('topics', `${topic.replace(/\/$/, '')}/#`)];
  return [guess('topics', topic), ...below, guess('tail', topic), ...(isFilter ? [] : [guess('why', topic)])];
}

/** The entries that still match, while the answer for a longer text is awaited. */
export function stillFound(found: readonly Found[], text: string): readonly Found[] {
  return found.filter(({ name }) => name.toLowerCase().startsWith(text.toLowerCase()));
}
