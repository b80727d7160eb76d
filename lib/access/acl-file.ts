// A file is read completely or refused, with the line of the first error. One rule of the file can become several
// access rules: alternatives (`or`) become one rule each, and conditions that must all hold (`and`) are combined with
// each other; those that no client can fulfil are left out. The depth of terms is limited, because the reader
// recurses.

import { BrokerError, show } from '../base/errors.ts';
import type { AccessRule } from '../records/access-rule.ts';
import { checkRule } from './rule.ts';

/** A term of the file: a word such as `allow`, a string, a tuple or a list. */
type Term =
  | { readonly kind: 'word' | 'string'; readonly text: string; readonly at: number }
  | { readonly kind: 'tuple' | 'list'; readonly items: readonly Term[]; readonly at: number };

/** The clients of a rule: all of these conditions must hold. */
type Who = Pick<AccessRule, 'clientId' | 'username' | 'hasUsername'> & { readonly address?: readonly string[] };

const CLOSING: Readonly<Record<string, string>> = { '{': '}', '[': ']' };
const WORD = /[a-z][\w@]*|'(?:[^'\\]|\\.)*'/y;
const STRING = /"((?:[^"\\]|\\.)*)"/y;
const BLANK = /(?:\s|%[^\n]*)*/y;
/** Terms nested more deeply are refused. */
const MAX_DEPTH = 16;

/**
 * Read the rules of an ACL file. Both documented forms are accepted.
 *
 * - Terms, each ended by a full stop; `%` begins a comment:
 *   `{allow|deny, all}.` or `{allow|deny, Who, subscribe|publish|pubsub, [Topic, ...]}.`
 *   Who is `all`, `{user, "name"}`, `{user, all}`, `{client, "id"}`, `{client, all}`, `{ipaddr, "10.0.0.0/8"}`, `{'and', [Who, ...]}` or
 *   `{'or', [Who, ...]}`; Topic is `"filter"` or `{eq, "topic"}`. `%u` and `%c` as whole levels are the user name and the client id.
 * - JSON: a list of access rules, as `acl` takes them.
 * @param lineOf the line of a rule of a JSON list, counted from 0, if the list was converted from another form. Default: its line in `text`
 * @throws BrokerError ACL_FILE_INVALID with the line; for terms with the column too
 */
export function parseAclFile(text: string, lineOf?: (rule: number) => number | undefined): AccessRule[] {
  if (!/^\s*\[/.test(text)) return new TermReader(text).all().flatMap((term, at) => ruleOf(text, term, at + 1));
  const rules = parseJson(text);
  const line = lineOf ?? ((at: number) => lineAt(text, startsOfItems(text)[at]));
  for (const [at, rule] of rules.entries()) check(rule, `rule ${at + 1}`, () => `line ${line(at)}`);
  return rules;
}

function parseJson(text: string): AccessRule[] {
  try {
    return JSON.parse(text) as AccessRule[];
  } catch (error) {
    const message = (error as Error).message.replace(/\s*\n\s*/g, ' '); // the message can quote several lines of the text
    throw new BrokerError('ACL_FILE_INVALID', `not valid JSON: ${message}`, { cause: error });
  }
}

/** The indices at which the items of a valid JSON list begin. */
function startsOfItems(text: string): number[] {
  const starts: number[] = [];
  let depth = 0;
  let isBehind = true; // after the bracket or a comma of the list
  for (const { index, 0: token } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},]|[^\s[\]{},":]+/g)) {
    if (depth === 1 && isBehind && token !== ']') starts.push(index);
    isBehind = depth === 1 ? token === ',' : depth === 0;
    if (token === '[' || token === '{') depth++;
    else if (token === ']' || token === '}') depth--;
  }
  return starts;
}

/** @param place position of the rule, for error messages @throws BrokerError ACL_FILE_INVALID */
function check(rule: AccessRule, name: string, place: () => string): void {
  try {
    checkRule(rule, name);
  } catch (cause) {
    throw new BrokerError('ACL_FILE_INVALID', `${place()}: ${(cause as Error).message}`, { cause });
  }
}

/** Reads terms. */
class TermReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** All terms of the text, each ended by a full stop. */
  all(): Term[] {
    const terms: Term[] = [];
    for (this.#skipBlank(); this.#at < this.#text.length; this.#skipBlank()) {
      terms.push(this.#term(0));
      this.#expect('.', 'a full stop after the rule');
    }
    return terms;
  }

  #term(depth: number): Term {
    this.#skipBlank();
    const at = this.#at;
    if (depth > MAX_DEPTH) throw faultAt(this.#text, at, `conditions are nested more than ${MAX_DEPTH} levels deep`);
    const opening = this.#text[at];
    if (opening === '{' || opening === '[') return this.#group(opening, depth);
    const string = this.#take(STRING);
    if (string !== undefined) return { kind: 'string', text: unescaped(string[1]), at };
    const word = this.#take(WORD);
    if (word !== undefined) return { kind: 'word', text: word[0].replace(/^'|'$/g, ''), at };
    if (opening === '"') throw faultAt(this.#text, at, 'the string has no closing quotation mark');
    throw faultAt(this.#text, at, 'expected a word, a string in quotation marks, "{" or "["');
  }

  #group(opening: string, depth: number): Term {
    const at = this.#at++;
    const closing = CLOSING[opening];
    const items: Term[] = [];
    this.#skipBlank();
    while (this.#text[this.#at] !== closing) {
      items.push(this.#term(depth + 1));
      this.#skipBlank();
      if (this.#text[this.#at] !== ',') break;
      this.#at++;
    }
    this.#expect(closing, `"," or "${closing}"`);
    return { kind: opening === '{' ? 'tuple' : 'list', items, at };
  }

  #expect(char: string, expected: string): void {
    this.#skipBlank();
    if (this.#text[this.#at] !== char) throw faultAt(this.#text, this.#at, `expected ${expected}`);
    this.#at++;
  }

  #skipBlank(): void {
    this.#take(BLANK);
  }

  #take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text) ?? undefined;
    if (found !== undefined) this.#at = pattern.lastIndex;
    return found;
  }
}

/** The rules of a term: one for each combination of clients and kind of topic. @param number of the term, from 1 on */
function ruleOf(text: string, term: Term, number: number): AccessRule[] {
  const fail = (what: Term, expected: string): never => {
    throw faultAt(text, what.at, `expected ${expected}`);
  };
  const items = term.kind === 'tuple' ? term.items : fail(term, 'a rule such as {allow, all}');
  const [first, whoTerm, actionTerm, topicTerm] = items;
  const access = first?.kind === 'word' && (first.text === 'allow' || first.text === 'deny') ? first.text : undefined;
  if (access === undefined) return fail(first ?? term, 'allow or deny');
  if (whoTerm === undefined || (items.length !== 2 && items.length !== 4))
    return fail(term, `{${access}, all} or {${access}, Who, Action, [Topic, ...]}`);
  const who = clientsOf(whoTerm, fail);
  const checked = (rule: AccessRule, { at }: Term): AccessRule => {
    check(rule, `rule ${number}`, () => placeAt(text, at));
    return rule;
  };
  if (actionTerm === undefined || topicTerm === undefined)
    return who.map((one) => checked({ access, ...one }, whoTerm));
  const action = actionTerm.kind === 'word' ? actionTerm.text : '';
  if (action !== 'subscribe' && action !== 'publish' && action !== 'pubsub')
    return fail(actionTerm, 'subscribe, publish or pubsub');
  const topics = topicTerm.kind === 'list' ? topicTerm.items : fail(topicTerm, 'a list of topics such as ["a/#"]');
  if (topics.length === 0) return fail(topicTerm, 'at least one topic');
  for (const one of who) checked({ access, ...one }, whoTerm); // so that the position is that of the clients, not of a topic
  return topics.flatMap((topic) => {
    const isString = topic.kind === 'string';
    const exact = isString ? undefined : argumentOf(topic, 'eq');
    if (!isString && exact?.kind !== 'string')
      return fail(topic, 'a topic filter in quotation marks, or {eq, "topic"}');
    const name = isString ? topic.text : (exact as { text: string }).text;
    return who.map((one) =>
      checked({ access, action, topic: name, ...(isString ? {} : { exact: true }), ...one }, topic)
    );
  });
}

/** The alternatives of a condition about clients. */
function clientsOf(term: Term, fail: (what: Term, expected: string) => never): Who[] {
  if (term.kind === 'word' && term.text === 'all') return [{}];
  for (const name of ['user', 'client', 'ipaddr'] as const) {
    const value = argumentOf(term, name);
    if (value === undefined) continue;
    if (value.kind === 'word' && value.text === 'all' && name !== 'ipaddr')
      return [name === 'user' ? { hasUsername: true } : {}];
    if (value.kind !== 'string') return fail(value, 'a string in quotation marks, or all');
    if (name === 'ipaddr') return [{ address: [value.text] }];
    return [name === 'user' ? { username: value.text } : { clientId: value.text }];
  }
  for (const name of ['and', 'or'] as const) {
    const value = argumentOf(term, name);
    if (value === undefined) continue;
    if (value.kind !== 'list' || value.items.length === 0) return fail(value, 'a list of conditions');
    const parts = value.items.map((item) => clientsOf(item, fail));
    if (name === 'or') return parts.flat();
    return parts.reduce((left, right) => left.flatMap((one) => right.flatMap((other) => both(one, other))));
  }
  return fail(term, "all, {user, ...}, {client, ...}, {ipaddr, ...}, {'and', [...]} or {'or', [...]}");
}

/** The conjunction of two conditions; none if no client can fulfil both. */
function both(one: Who, other: Who): Who[] {
  const differs = (a: string | undefined, b: string | undefined) => a !== undefined && b !== undefined && a !== b;
  if (differs(one.clientId, other.clientId) || differs(one.username, other.username)) return [];
  const address = [...(one.address ?? []), ...(other.address ?? [])];
  const { hasUsername, ...joined } = { ...one, ...other, ...(address.length > 0 ? { address } : {}) };
  return [joined.username === undefined && hasUsername ? { ...joined, hasUsername } : joined];
}

/** The argument of `{name, Argument}`. */
function argumentOf(term: Term, name: string): Term | undefined {
  if (term.kind !== 'tuple' || term.items.length !== 2) return undefined;
  const [first, argument] = term.items;
  return first.kind === 'word' && first.text === name ? argument : undefined;
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, '$1');
}

/** @param at index of the character where the text is wrong */
function faultAt(text: string, at: number, what: string): BrokerError {
  const found = at >= text.length ? 'the end of the file' : show(text.slice(at, at + 20).split('\n')[0]);
  return new BrokerError('ACL_FILE_INVALID', `${placeAt(text, at)}: ${what}, found ${found}`);
}

function placeAt(text: string, at: number): string {
  return `line ${lineAt(text, at)}, column ${at - text.lastIndexOf('\n', at - 1)}`;
}

/** The line number of a character. */
function lineAt(text: string, at: number): number {
  return text.slice(0, at).split('\n').length;
}
