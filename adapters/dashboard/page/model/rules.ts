// Statements of rules: their topics, and the forms of their actions.
import { withoutSecrets } from './copy.ts';

/** The topics after FROM. The statement may be incomplete, because it is read while a person types. */
export function topicsIn(statement: string): readonly string[] {
  const from = /\bfrom\b([\s\S]*?)(?:\bwhere\b|$)/i.exec(statement)?.[1] ?? '';
  return [...from.matchAll(/"([^"]*)"|'([^']*)'/g)]
    .map(([, double, single]) => double ?? single)
    .filter((topic) => topic !== '');
}

/** The event whose columns messages have. */
export const MESSAGES = '$events/message_publish';

/** The event of a topic after FROM. Topics of events may also be written as `$events/client/connected` and `$events/client.connected`. */
export function eventOf(topic: string): string {
  const [, name] = /^\$events\/(?:sys\/)?(.+)$/s.exec(topic) ?? [];
  return name === undefined ? MESSAGES : `$events/${name.replace(/[./]/, '_')}`;
}

/** A parameter of an action, as the interface describes it. */
export interface ParamSpec {
  /** `any`: JSON, or a string that is not JSON. `password`: a string that is not shown. */
  readonly type?: string;
  readonly title?: { readonly en?: string };
  readonly description?: { readonly en?: string };
  readonly default?: unknown;
  readonly required?: boolean;
  readonly enum?: readonly unknown[];
  readonly input?: string;
  /** True if the broker shows `******` for the value. */
  readonly secret?: boolean;
  /** The parameters of an object. */
  readonly schema?: Readonly<Record<string, ParamSpec>>;
  readonly order?: number;
}

/** The names of the parameters that are secrets, also of those within others. */
export function secretsIn(specs: readonly (readonly [name: string, spec: ParamSpec])[]): ReadonlySet<string> {
  return new Set(
    specs.flatMap(([name, { type, secret, schema = {} }]) =>
      type === 'password' || secret === true ? [name] : [...secretsIn(Object.entries(schema))]
    )
  );
}

/** The form of an action in a request, with its fallbacks. */
interface GivenAction {
  readonly name: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly fallbacks: readonly object[];
}

/** The actions of a command that is copied, without the secrets of their types. @param types those that the broker knows */
export function copiedActions<A extends GivenAction>(
  actions: readonly A[],
  types: readonly { readonly name: string; readonly params: object }[]
): readonly GivenAction[] {
  return actions.map(({ name, params, fallbacks }) => {
    const type = types.find((one) => one.name === name);
    const secrets = secretsIn(Object.entries(type?.params ?? {}));
    return {
      name,
      params: withoutSecrets(params, secrets) as GivenAction['params'],
      fallbacks: copiedActions(fallbacks as readonly GivenAction[], types)
    };
  });
}

/** The value of a parameter from the text of its field. @returns undefined if it is left out @throws Error if it is not valid */
export function paramOf({ type, enum: values, required }: ParamSpec, text: string): unknown {
  if (values !== undefined) return values.find((value) => `${value}` === text);
  if (type === 'boolean') return text === '' ? undefined : text === 'true';
  if (text === '' && required !== true) return undefined;
  if (type === 'number') return Number(text);
  if (type === 'object' || type === 'array') return text === '' ? undefined : JSON.parse(text);
  return type === 'any' ? anyOf(text) : text;
}

/** A value of any type: JSON, or a string that is not JSON, such as `10s`. */
function anyOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The text of a field for the value of a parameter. */
export function textOfParam(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value, null, 1) : `${value}`;
}

/** An action as the live stream has it. */
interface LiveAction {
  readonly id: string;
  readonly counters: Readonly<Record<'taken' | 'success' | 'failed', number>>;
  readonly waiting?: number;
  readonly lastError?: string;
  readonly fallbacks: readonly LiveAction[];
}

/** The counters of a rule as the live stream has them. */
export interface LiveRule {
  /** `gone`: the rule was deleted. */
  readonly state: 'connected' | 'idle' | 'disconnected' | 'gone';
  readonly reason?: string;
  readonly counters: Readonly<Record<'matched' | 'passed' | 'exception' | 'noResult' | 'speed' | 'speedMax', number>>;
  readonly actions: readonly LiveAction[];
  /** The time of the last sample. */
  readonly sampledAt: number;
  readonly sql: string;
  readonly description: string;
}

/** A rule as the interface has it, as far as it changes while it runs. */
interface Running {
  readonly enabled: boolean;
  readonly state: string;
  readonly reason?: string | undefined;
  readonly metrics: readonly object[];
  readonly actions: readonly ActionLike[];
}

/** An action as the interface has it. Its fallbacks have the same form. */
interface ActionLike {
  readonly id: string;
  readonly metrics: readonly object[];
  readonly last_error?: string | undefined;
  readonly fallbacks: readonly object[];
}

/** An action of a rule or one of its fallbacks that has failed last. @returns undefined: none */
export function failingAction<Action extends ActionLike>(actions: readonly Action[]): Action | undefined {
  for (const action of actions) {
    const found = action.last_error === undefined ? failingAction(action.fallbacks as readonly Action[]) : action;
    if (found !== undefined) return found;
  }
  return undefined;
}

function withLiveActions<Action extends ActionLike>(
  actions: readonly Action[],
  live: readonly LiveAction[]
): readonly Action[] {
  const now = new Map(live.map((action) => [action.id, action]));
  return actions.map((action) => {
    const found = now.get(action.id);
    if (found === undefined) return action;
    return {
      ...action,
      metrics: [{ ...action.metrics[0], ...found.counters, waiting: found.waiting }],
      last_error: found.lastError,
      fallbacks: withLiveActions(action.fallbacks as readonly Action[], found.fallbacks)
    };
  });
}

/** The parts of a rule that a person can change, to notice that another person has changed them. @returns undefined: not known, or the rule is gone */
export function definitionOf(live: LiveRule | undefined): string | undefined {
  if (live === undefined || live.state === 'gone') return undefined;
  return JSON.stringify([live.sql, live.description, live.actions.map(({ id }) => id)]);
}

/** A rule with its present state and counters. @param live undefined: not known yet */
export function withLive<Rule extends Running>(rule: Rule, live: LiveRule | undefined): Rule {
  if (live === undefined || live.state === 'gone') return rule;
  const { state, reason, counters } = live;
  const { noResult, speedMax, ...same } = counters;
  const actions = withLiveActions(rule.actions, live.actions);
  const metrics = [{ ...rule.metrics[0], ...same, no_result: noResult, speed_max: speedMax }];
  return { ...rule, enabled: state !== 'idle', state, reason, metrics, actions };
}

/**
 * The names that the outputs of a statement have, for placeholders. The statement may be incomplete.
 * @returns undefined: any, as with `*` or FOREACH
 */
export function outputsOf(statement: string): ReadonlySet<string> | undefined {
  const list = /^\s*select\b([\s\S]*?)\bfrom\b/i.exec(statement)?.[1];
  if (list === undefined) return undefined;
  const items = itemsIn(list);
  if (items.some((item) => item === '*' || item === '')) return undefined;
  return new Set(items.map((item) => firstOf(/\bas\s+(\S+)$/i.exec(item)?.[1] ?? item)));
}

/** The items of a list, which commas separate outside of strings and brackets. */
function itemsIn(list: string): readonly string[] {
  const items = [''];
  let depth = 0;
  for (const [part] of list.matchAll(/'[^']*'|"[^"]*"|[^'"]/g)) {
    if (/^[([{]$/.test(part)) depth++;
    else if (/^[)\]}]$/.test(part)) depth--;
    if (part === ',' && depth === 0) items.push('');
    else items[items.length - 1] += part;
  }
  return items.map((item) => item.trim());
}

/** The first name of a path, without quotes. */
function firstOf(path: string): string {
  return path.replace(/['"`]/g, '').split(/[.[]/)[0];
}

/** The topic of an action that publishes, if it has a wildcard outside of its placeholders: each of its messages is refused. */
export function wildcardTopicIn({
  name,
  params
}: {
  readonly name: string;
  readonly params: object;
}): string | undefined {
  const { target_topic: topic } = params as { readonly target_topic?: unknown };
  if (name !== 'republish' || typeof topic !== 'string') return undefined;
  return /[+#]/.test(topic.replace(/\$\{[^{}]+\}/g, '')) ? topic : undefined;
}

/** The names in placeholders of parameters that the outputs of a statement do not have. */
export function missingIn(
  params: Readonly<Record<string, unknown>>,
  outputs: ReadonlySet<string> | undefined
): readonly string[] {
  if (outputs === undefined) return [];
  const names = [...JSON.stringify(params).matchAll(/\$\{([^}.[\s]+)/g)].map(([, name]) => name);
  return [...new Set(names)].filter((name) => !outputs.has(name));
}
