import { LRUCache } from 'lru-cache';
import { BrokerError } from '../base/errors.ts';
import type { Pattern } from './functions/function.ts';
import { SqlFailure } from './sql-error.ts';

/** Compiled regular expressions that are remembered. */
const MOST_REMEMBERED = 200;
/** Longest regular expression, in characters. */
const MOST_CHARACTERS = 10_000;

/** Compiles regular expressions. @throws SqlFailure */
export type PatternCompiler = (text: string) => Pattern;

/**
 * Load the package for regular expressions, which takes time in proportion to the text, whatever the expression.
 * @param user begins the message if the package is missing: subject and verb
 * @throws BrokerError PACKAGE_MISSING
 */
export async function loadPatterns(user = 'regular expressions in rules need'): Promise<PatternCompiler> {
  const { RE2JS } = await loadRe2(user);
  const known = new LRUCache<string, Pattern>({ max: MOST_REMEMBERED });
  return (text) => {
    const remembered = known.get(text);
    if (remembered !== undefined) return remembered;
    const pattern = compile(RE2JS, text);
    known.set(text, pattern);
    return pattern;
  };
}

type Re2 = typeof import('re2js');

async function loadRe2(user: string): Promise<Re2> {
  try {
    return await import('re2js');
  } catch (cause) {
    throw new BrokerError('PACKAGE_MISSING', `${user} the package re2js: npm install re2js`, { cause });
  }
}

function compile(Compiler: Re2['RE2JS'], text: string): Pattern {
  if (text.length > MOST_CHARACTERS)
    throw new SqlFailure(`the regular expression has more than ${MOST_CHARACTERS} characters`);
  let compiled: InstanceType<Re2['RE2JS']>;
  try {
    compiled = Compiler.compile(text);
  } catch (error) {
    throw new SqlFailure(`the regular expression is invalid: ${(error as Error).message}`);
  }
  return {
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
