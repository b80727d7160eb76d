// An example of an event for the test of a statement: the columns that the statement reads, with the members of the payload that it names. Where it
// compares one with a constant, the comparison is true. The statement may be incomplete, because it is read while a person types.

/** A column of an event, as the interface describes it. */
export interface EventColumn {
  readonly name: string;
  readonly example?: unknown;
}

type Step = string | number;
/** A column, and keys and indexes within it. */
type Path = readonly Step[];

const TOKEN =
  /--.*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^'\\]|\\[\s\S]?)*'?|"(?:[^"\\]|\\[\s\S]?)*"?|\d+(?:\.\d+)?|[\p{L}_$][\p{L}\d_$]*|<=|>=|!=|<>|\S/gu;
const COMMENT = /^(--|\/\*)/;
const WORD = /^[\p{L}_$]/u;
const QUOTED = /^['"]/;
/** The words after the list of FOREACH. */
const AFTER_LIST = /^(do|incase|from)$/i;
/** The name of an element in FOREACH without AS. */
const ELEMENT = 'item';
/** Elements of a list of which a statement reads one with a higher index. */
const MAX_ELEMENTS = 10;
/** Steps of a path; a longer one is left out. */
const MAX_STEPS = 16;
/** The names in examples. Those of the interface are historical. */
const NAMES: Readonly<Record<string, string>> = {
  clientid: 'client-1',
  username: 'user-1',
  from_clientid: 'client-2',
  from_username: 'user-2'
};
/** The value of a member that is compared with nothing. */
const ANY_VALUE = 1;

/** A topic that a topic filter matches. */
export function topicOf(filter: string): string {
  return filter === '#' ? 'a/1' : filter.replaceAll('+', '1').replace(/#$/, '1');
}

/**
 * An event for a test.
 * @param columns of the event
 * @param read the names of the columns that the statement reads, or `*`; empty: not known
 * @param filter the topic filter of messages; undefined: another event
 */
export function exampleEvent(
  statement: string,
  columns: readonly EventColumn[],
  read: readonly string[],
  filter?: string
): Readonly<Record<string, unknown>> {
  const isAll = read.length === 0 || read.includes('*');
  const found = valuesIn(statement, new Set(columns.map(({ name }) => name)));
  const event: Record<string, unknown> = {};
  for (const { name, example } of columns) {
    const isShown = isAll ? typeof example !== 'object' : read.includes(name);
    if (name === 'topic' && filter !== undefined) event.topic = found.topic ?? topicOf(filter);
    else if (isShown) event[name] = shownValue(name, found[name], NAMES[name] ?? example);
  }
  return event;
}

/** The value of a column. The payload is a string, as in a message. */
function shownValue(name: string, found: unknown, example: unknown): unknown {
  if (found === undefined) return example;
  if (name === 'payload') return typeof found === 'object' ? JSON.stringify(found) : `${found}`;
  return typeof found === 'object' && typeof example === 'object' ? { ...example, ...found } : found;
}

/** The values by column of what a statement compares, or reads as a member. */
function valuesIn(statement: string, columns: ReadonlySet<string>): Readonly<Record<string, unknown>> {
  const tokens = (statement.match(TOKEN) ?? []).filter((token) => !COMMENT.test(token));
  const aliases = new Map<string, Path>();
  let values: unknown = {};
  let isBeforeList = /^foreach$/i.test(tokens[0] ?? '');
  for (let at = 0; at < tokens.length; at++) {
    const before = tokens[at - 1]?.toLowerCase();
    if (!WORD.test(tokens[at]) || before === '.' || before === 'as') continue;
    if (AFTER_LIST.test(tokens[at])) isBeforeList = false;
    const [[name, ...steps], end] = pathAt(tokens, at);
    const aliased = aliases.get(name as string) ?? (columns.has(name as string) ? [name] : undefined);
    if (aliased === undefined) continue;
    const path = [...aliased, ...steps];
    const [alias, after] = aliasAfter(tokens, end);
    at = end - 1;
    if (path.length > MAX_STEPS) continue;
    // the last field of FOREACH is the list
    if (isBeforeList && AFTER_LIST.test(tokens[after] ?? '')) {
      aliases.set(alias ?? ELEMENT, [...path, 1]);
      values = withValue(values, [...path, 1], undefined);
    } else {
      if (alias !== undefined) aliases.set(alias, path);
      const value = comparedAt(tokens, end);
      if (path.length > 1 || value !== undefined) values = withValue(values, path, value);
    }
  }
  return values as Readonly<Record<string, unknown>>;
}

/** The path that begins at a token, and the place of the token after it. */
function pathAt(tokens: readonly string[], at: number): readonly [path: Path, end: number] {
  const path: Step[] = [tokens[at]];
  let end = at + 1;
  for (;;) {
    const [sign, next = '', close] = tokens.slice(end, end + 3);
    if (sign === '.' && (WORD.test(next) || QUOTED.test(next))) {
      path.push(QUOTED.test(next) ? next.slice(1, -1) : next);
      end += 2;
    } else if (sign === '[' && close === ']' && /^\d+$/.test(next)) {
      path.push(Number(next));
      end += 3;
    } else return [path, end];
  }
}

/** The alias of an expression that ends at a place, and the place after it: `json_decode(payload) AS p`. */
function aliasAfter(tokens: readonly string[], end: number): readonly [alias: string | undefined, after: number] {
  let at = end;
  while (tokens[at] === ')') at++;
  return tokens[at]?.toLowerCase() === 'as' ? [tokens[at + 1], at + 2] : [undefined, at];
}

/** A value for which the comparison at a place is true; undefined: there is no comparison with a constant. */
function comparedAt(tokens: readonly string[], at: number): unknown {
  const operator = tokens[at]?.toLowerCase() ?? '';
  const constant = constantAt(tokens, operator === 'in' ? at + 2 : at + 1);
  if (typeof constant === 'number') {
    const step = { '>': 1, '<': -1, '!=': 1, '<>': 1, '=': 0, '>=': 0, '<=': 0, in: 0, between: 0 }[operator];
    return step === undefined ? undefined : constant + step;
  }
  if (operator === 'like') return typeof constant === 'string' ? constant.replace(/[%_]/g, 'a') : undefined;
  if (operator === '!=' || operator === '<>') return typeof constant === 'boolean' ? !constant : undefined;
  return ['=', '>=', '<=', 'in', 'between'].includes(operator) ? constant : undefined;
}

function constantAt(tokens: readonly string[], at: number): string | number | boolean | undefined {
  const token = tokens[at] ?? '';
  if (token === '-' && /^\d/.test(tokens[at + 1] ?? '')) return -Number(tokens[at + 1]);
  if (/^\d/.test(token)) return Number(token);
  if (QUOTED.test(token)) return token.slice(1, -1);
  return /^(true|false)$/i.test(token) ? token.toLowerCase() === 'true' : undefined;
}

/** A value with another one at a path in it. @param value undefined: any one */
function withValue(all: unknown, [step, ...rest]: Path, value: unknown): unknown {
  if (step === undefined) return typeof all === 'object' ? all : (value ?? all ?? ANY_VALUE);
  if (typeof step === 'number') {
    const list: unknown[] = Array.isArray(all) ? all : [];
    const count = Math.max(list.length, Math.min(Math.max(step, 1), MAX_ELEMENTS));
    return Array.from({ length: count }, (_, at) => withValue(list[at], rest, value));
  }
  const object = typeof all === 'object' && !Array.isArray(all) ? (all as Readonly<Record<string, unknown>>) : {};
  const before = Object.hasOwn(object, step) ? object[step] : undefined;
  return { ...object, [step]: withValue(before, rest, value) };
}
