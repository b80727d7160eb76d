// Patterns that are strings are compiled by RE2, which takes linear time; it is an optional package, loaded before
// the broker starts (`load`), not in the constructor. Patterns that are a `RegExp` may take any time, so they are
// applied to short topics only. A topic that is too long for its pattern, and a result that is not a valid topic,
// leave the topic as it is. Starting or stopping the feature changes the fast path and the topics that connections
// remember, which the engine updates in `onChange`.

import { BrokerError, InvalidInput } from '../../base/errors.ts';
import { checkNames } from '../../base/fields.ts';
import { loadPatterns, MAX_MATCHED, type PatternCompiler } from '../../sql/patterns.ts';
import { checkTopicFilter, checkTopicName, matches, parseSharedFilter } from '../../topics/topic.ts';
import type { RewriteKind, RewriteRule } from '../configuration/options.ts';
import type { Services } from '../services.ts';
import type { Feature } from './feature.ts';

/** Rewrites the topics of clients by the rules of the option `rewrite`. Subscriptions and wills keep their rewritten topic. */
export class TopicRewrite implements Feature {
  readonly name = 'rewrite';
  readonly about = 'Rewrites the topics of PUBLISH, SUBSCRIBE and UNSUBSCRIBE by the rules of the option rewrite.';
  isStarted = false;
  /** True if some topics are rewritten: the feature is started and there are rules. */
  hasRules = false;
  readonly #input: readonly (RewriteRule | string)[];
  readonly #onChange: () => void;
  readonly #skipped: (error: BrokerError) => void;
  /** Undefined: patterns that are strings are not compiled yet. */
  #rules: Rewrite | undefined;

  /**
   * @param onChange called when the feature has been started or stopped
   * @throws InvalidInput REWRITE_INVALID, OPTION_UNKNOWN
   */
  constructor(services: Services, onChange: () => void) {
    const { rewrite } = services.settings;
    this.#input = rewrite;
    this.#onChange = onChange;
    this.#skipped = (error) => services.failed(error, 'rewriting topics');
    if (!checkRewrite(rewrite).some(({ pattern }) => typeof pattern === 'string'))
      this.#rules = compileRewrite(rewrite, undefined, this.#skipped);
  }

  /**
   * Compile the patterns that are strings.
   * @throws InvalidInput REWRITE_INVALID; BrokerError PACKAGE_MISSING: `re2js` is not installed
   */
  async load(): Promise<void> {
    if (this.#rules !== undefined) return;
    const at = checkRewrite(this.#input).findIndex(({ pattern }) => typeof pattern === 'string');
    const compiler = await loadPatterns(`option rewrite.${at}.pattern: patterns that are strings need`);
    this.#rules = compileRewrite(this.#input, compiler, this.#skipped);
    if (this.isStarted) this.start();
  }

  start(): void {
    this.isStarted = true;
    this.hasRules = this.#rules !== undefined && !this.#rules.isEmpty;
    this.#onChange();
  }

  stop(): void {
    this.isStarted = this.hasRules = false;
    this.#onChange();
  }

  /** Rewrite a topic. See `Rewrite`. */
  apply(topic: string, kind: RewriteKind): string {
    return this.hasRules && this.#rules !== undefined ? this.#rules.rewrite(topic, kind) : topic;
  }
}

/** Compiled rewrite rules. */
interface Rewrite {
  /** True if there are no rules. */
  readonly isEmpty: boolean;
  /**
   * Rewrite a topic. Of a shared subscription, only the topic filter after the group name is rewritten.
   * @returns the new topic; the topic itself if no rule applies or the result would not be a valid topic
   */
  rewrite(topic: string, kind: RewriteKind): string;
}

/** Finds the captures in a topic, by their numbers; undefined: the pattern does not match, or the topic is too long for it. */
type Match = (topic: string) => readonly (string | undefined)[] | undefined;

interface Compiled {
  readonly filter: string;
  readonly match: Match;
  /** Literal parts and numbers of captures, in order. */
  readonly target: readonly (string | number)[];
  readonly on: 'all' | RewriteKind;
}

/** Maximum size of a topic to which a `RegExp` is applied, in bytes. */
const MAX_REGEXP_BYTES = 512;

/** The rules as objects. Their patterns are not checked. @throws InvalidInput REWRITE_INVALID, OPTION_UNKNOWN */
function checkRewrite(rules: readonly (RewriteRule | string)[]): RewriteRule[] {
  if (!Array.isArray(rules)) throw invalid('rewrite', 'a list of rules', rules);
  return rules.map((rule, index) => {
    const at = `rewrite.${index}`;
    const read = typeof rule === 'string' ? fromLine(rule, at) : asRule(rule, at);
    const { filter, pattern, target, on = 'all' } = read;
    const fault = typeof filter === 'string' ? checkTopicFilter(filter) : 'expected a string';
    if (fault !== undefined) throw invalid(`${at}.filter`, 'a valid topic filter', filter, fault);
    if (!['all', 'publish', 'subscribe'].includes(on)) throw invalid(`${at}.on`, 'all, publish or subscribe', on);
    if (!(pattern instanceof RegExp) && typeof pattern !== 'string')
      throw invalid(`${at}.pattern`, 'a regular expression', pattern);
    if (typeof target !== 'string' || target === '') throw invalid(`${at}.target`, 'a topic', target);
    return read;
  });
}

/**
 * Compile rewrite rules.
 *
 * The last rule whose filter and packet kind match a topic is used. If its pattern does not match, the topic is not changed; no other rule is
 * tried.
 * @param rules objects, or lines `<filter> <pattern> <target>` such as `x/y/+ ^x/y/(\d+)$ z/y/$1`
 * @param compiler of patterns that are strings; undefined: there are none
 * @param skipped called once for each rule with the first topic that is too long for its pattern
 * @throws InvalidInput REWRITE_INVALID, OPTION_UNKNOWN
 */
export function compileRewrite(
  rules: readonly (RewriteRule | string)[],
  compiler?: PatternCompiler | undefined,
  skipped: (error: BrokerError) => void = () => undefined
): Rewrite {
  const compiled = checkRewrite(rules)
    .map((rule, index) => compile(rule, `rewrite.${index}`, compiler, skipped))
    .reverse();
  const apply = (topic: string, kind: RewriteKind): string => {
    const rule = compiled.find(({ filter, on }) => (on === 'all' || on === kind) && matches(filter, topic));
    const found = rule?.match(topic);
    if (rule === undefined || found === undefined) return topic;
    const outcome = rule.target.map((part) => (typeof part === 'string' ? part : (found[part] ?? ''))).join('');
    const fault = kind === 'publish' ? checkTopicName(outcome) : checkTopicFilter(outcome);
    return fault === undefined ? outcome : topic;
  };
  return {
    isEmpty: compiled.length === 0,
    rewrite(topic, kind) {
      const shared = kind === 'subscribe' ? parseSharedFilter(topic) : undefined;
      if (typeof shared !== 'object') return apply(topic, kind);
      const outcome = apply(shared.filter, kind);
      return topic.slice(0, topic.length - shared.filter.length) + outcome;
    }
  };
}

function compile(
  { filter, pattern, target, on = 'all' }: RewriteRule,
  at: string,
  compiler: PatternCompiler | undefined,
  skipped: (error: BrokerError) => void
): Compiled {
  const { match, captures } =
    typeof pattern === 'string' ? linear(pattern, at, { compiler, skipped }) : backtracking(pattern, at, skipped);
  return { filter, match, target: asTarget(target, captures, `${at}.target`), on };
}

interface Matching {
  readonly match: Match;
  /** Number of captures. */
  readonly captures: number;
}

/** A pattern that takes time in proportion to the topic and to its parts. @throws InvalidInput REWRITE_INVALID */
function linear(
  pattern: string,
  at: string,
  {
    compiler,
    skipped
  }: { readonly compiler: PatternCompiler | undefined; readonly skipped: (error: BrokerError) => void }
): Matching {
  if (compiler === undefined) throw new TypeError('the package for regular expressions is not loaded');
  try {
    const compiled = compiler(pattern);
    const mostCharacters = Math.floor(MAX_MATCHED / compiled.parts);
    const because = `a pattern of ${compiled.parts} parts is applied to at most ${mostCharacters} characters; use a shorter pattern`;
    const skip = skipper(at, because, skipped);
    return {
      match(topic) {
        if (topic.length > mostCharacters) return skip(topic);
        return compiled.test(topic) ? [topic, ...compiled.groups(topic)] : undefined;
      },
      captures: compiled.groupCount
    };
  } catch (error) {
    const advice = 'strings have the syntax of RE2, without lookaround and backreferences; a RegExp may have these';
    throw invalid(`${at}.pattern`, 'a regular expression', pattern, `${(error as Error).message}; ${advice}`);
  }
}

/** A pattern without a bound on its time, so topics must be short. */
function backtracking(given: RegExp, at: string, skipped: (error: BrokerError) => void): Matching {
  // With the flags "g" and "y" a match would depend on the previous one.
  const pattern = new RegExp(given.source, given.flags.replace(/[gy]/g, ''));
  const because = `a RegExp is applied to at most ${MAX_REGEXP_BYTES} bytes; use a string as the pattern`;
  const skip = skipper(at, because, skipped);
  const match: Match = (topic) =>
    Buffer.byteLength(topic) <= MAX_REGEXP_BYTES ? (pattern.exec(topic) ?? undefined) : skip(topic);
  // With an empty alternative the expression matches any string, and the length of the result is the number of captures.
  return { match, captures: (new RegExp(`${pattern.source}|`, pattern.flags).exec('')?.length ?? 1) - 1 };
}

/** Reports the first topic that is too long for a rule. */
function skipper(at: string, because: string, skipped: (error: BrokerError) => void): (topic: string) => undefined {
  let hasSkipped = false;
  return (topic) => {
    if (hasSkipped) return;
    hasSkipped = true;
    const text = `option ${at}: a topic of ${Buffer.byteLength(topic)} bytes is not rewritten, because ${because}`;
    skipped(new BrokerError('REWRITE_SKIPPED', text));
  };
}

function fromLine(line: string, at: string): RewriteRule {
  const [filter, pattern, target, ...more] = line.trim().split(/\s+/);
  if (target === undefined || more.length > 0) throw invalid(at, '"<filter> <pattern> <target>"', line);
  return { filter, pattern, target };
}

function asRule(rule: unknown, at: string): RewriteRule {
  if (typeof rule !== 'object' || rule === null)
    throw invalid(at, '{ filter, pattern, target } or a string "<filter> <pattern> <target>"', rule);
  checkNames(rule, ['filter', 'pattern', 'target', 'on'] satisfies (keyof RewriteRule)[], at);
  return rule as RewriteRule;
}

function asTarget(target: string, captures: number, field: string): (string | number)[] {
  return target.split(/(\$\d{1,2})/).map((part) => {
    if (!/^\$\d{1,2}$/.test(part)) return part;
    const capture = Number(part.slice(1));
    if (capture < 1 || capture > captures) {
      throw invalid(field, `captures up to $${captures}`, target, `the pattern has no capture ${part}`);
    }
    return capture;
  });
}

function invalid(field: string, expected: string, got: unknown, fault?: string): InvalidInput {
  return new InvalidInput('REWRITE_INVALID', field, expected, got, fault && `${field}: ${fault}`);
}
