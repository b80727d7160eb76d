import { LRUCache } from 'lru-cache';
import { BrokerError } from '../base/errors.ts';
import type { Pattern } from './functions/function.ts';
import { SqlFailure } from './sql-error.ts';

/** Number of compiled regular expressions that are cached. */
const MAX_REMEMBERED = 200;
/** Maximum length of a regular expression, in characters. */
const MAX_CHARACTERS = 10_000;
/**
 * Maximum number of parts of a regular expression with its repetitions written out: the package creates an instruction
 * for each.
 */
const MAX_PARTS = 50_000;

/**
 * Maximum matching work for an event, a row or a topic: the parts of the regular expressions times the characters of
 * their texts. 16 Mi, because the package takes up to 50 ns for each.
 */
export const MAX_MATCHED = 16_777_216;

/** The message for a function that would exceed the matching work of one event or row. @param name of the function */
export function matchesTooMuch(name: string, max = MAX_MATCHED): string {
  return `${name}(): the parts of regular expressions times the characters of their texts are more than ${max}: use a shorter expression, or a part of the text`;
}

/** Compiles regular expressions. @throws SqlFailure */
export type PatternCompiler = (text: string) => Pattern;

/**
 * Load the package for regular expressions, which matches in time proportional to the text for any expression.
 * @param user beginning of the message if the package is missing: subject and verb
 * @throws BrokerError PACKAGE_MISSING
 */
export async function loadPatterns(user = 'regular expressions in rules need'): Promise<PatternCompiler> {
  const { RE2JS } = await loadRe2(user);
  const known = new LRUCache<string, Pattern>({ max: MAX_REMEMBERED });
  return (text) => {
    const remembered = known.get(text);
    if (remembered !== undefined) return remembered;
    const pattern = compile(RE2JS, text);
    known.set(text, pattern);
    return pattern;
  };
}

/** `{3}`, `{3,}` or `{3,5}`. */
const REPETITION = /\{(\d+)(?:,(\d*))?\}/y;

/** Number of parts of a regular expression with its repetitions written out: 40 for `(ab?){20}`. At least 1. */
function expandedSize(text: string): number {
  const open: number[] = [];
  let [size, last] = [0, 0]; // of the current group, and of its last part
  for (let at = 0; at < text.length; at++) {
    REPETITION.lastIndex = at;
    const [whole, least, most] = (text[at] === '{' && REPETITION.exec(text)) || [];
    if (whole !== undefined) {
      const times = Math.max(1, Number(least), Number(most ?? 0));
      size += last * (times - 1);
      last *= times;
      at += whole.length - 1;
    } else if (text[at] === '(') {
      open.push(size);
      size = 0;
    } else if (text[at] === ')') {
      last = size;
      size += open.pop() ?? 0;
    } else {
      if (text[at] === '\\') at++;
      else if (text[at] === '[') at = endOfClass(text, at);
      last = 1;
      size++;
    }
  }
  for (const before of open) size += before;
  return Math.max(1, size);
}

/** The last character of a class such as `[^]a-z]`. */
function endOfClass(text: string, start: number): number {
  let at = start + 1;
  if (text[at] === '^') at++;
  if (text[at] === ']') at++;
  for (; at < text.length && text[at] !== ']'; at++)
    if (text[at] === '\\') at++;
    else if (text.startsWith('[:', at)) at = Math.max(at, text.indexOf(':]', at) + 1);
  return at;
}

type Re2 = typeof import('re2js');

async function loadRe2(user: string): Promise<Re2> {
  try {
    return await import('re2js');
  } catch (cause) {
    throw new BrokerError('PACKAGE_MISSING', `${user} the package re2js: npm install re2js`, { cause });
  }
}

/** The size of a regular expression, as defined by `expandedSize`. @throws SqlFailure if it is too large */
export function checkedSize(text: string): number {
  if (text.length > MAX_CHARACTERS)
    throw new SqlFailure(`the regular expression has more than ${MAX_CHARACTERS} characters`);
  const size = expandedSize(text);
  if (size > MAX_PARTS)
    throw new SqlFailure(`the regular expression has more than ${MAX_PARTS} parts, its repetitions included`);
  return size;
}

function compile(Compiler: Re2['RE2JS'], text: string): Pattern {
  const parts = checkedSize(text);
  let compiled: InstanceType<Re2['RE2JS']>;
  try {
    compiled = Compiler.compile(text);
  } catch (error) {
    throw new SqlFailure(`the regular expression is invalid: ${(error as Error).message}`);
  }
  return {
    parts,
    groupCount: compiled.groupCount(),
    test: (given) => compiled.test(given),
    groups(given) {
      const matcher = compiled.matcher(given);
      if (!matcher.find()) return [];
      return Array.from({ length: matcher.groupCount() }, (_, group) => matcher.group(group + 1) ?? '');
    },
    replace(given, replacement) {
      const matcher = compiled.matcher(given);
      const parts: string[] = [];
      let end = 0;
      while (matcher.find()) {
        const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, group) => matcher.group(group) ?? '');
        parts.push(given.slice(end, matcher.start()), replacement(groups));
        end = matcher.end();
      }
      parts.push(given.slice(end));
      return parts.join('');
    }
  };
}
