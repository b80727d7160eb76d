import { InvalidInput } from '../../base/errors.ts';
import { checkNames } from '../../base/options-table.ts';
import { checkTopicFilter, checkTopicName, matches, parseSharedFilter } from '../../topics/topic.ts';
import type { Feature } from './feature.ts';

/** A rule that rewrites the topics that match both `filter` and `pattern`. */
export interface RewriteRule {
  /** The topic filter that selects the rule for a topic. */
  readonly filter: string;
  /** A regular expression, which is applied to the whole topic. */
  readonly pattern: string | RegExp;
  /** The new topic. `$1` to `$99` are replaced by the captures of `pattern`. */
  readonly target: string;
  /** The packets to which the rule applies: PUBLISH, SUBSCRIBE and UNSUBSCRIBE, or all three (the default). */
  readonly on?: 'all' | RewriteKind;
}

/** The kind of packet that contains the topic. `subscribe` includes UNSUBSCRIBE. */
export type RewriteKind = 'publish' | 'subscribe';

/** Rewrites the topics of clients by the rules of the option `rewrite`. Subscriptions and wills keep the topic that they got. */
export class TopicRewrite implements Feature {
  readonly name = 'rewrite';
  readonly about = 'Rewrites the topics of PUBLISH, SUBSCRIBE and UNSUBSCRIBE by the rules of the option rewrite.';
  isStarted = false;
  /** Some topics are rewritten: the feature is started and there are rules. */
  hasRules = false;
  readonly #rules: Rewrite;
  readonly #onChange: () => void;

  /**
   * @param onChange called when the feature has been started or stopped
   * @throws InvalidInput REWRITE_INVALID, OPTION_UNKNOWN
   */
  constructor(rules: readonly (RewriteRule | string)[], onChange: () => void) {
    this.#rules = compileRewrite(rules);
    this.#onChange = onChange;
  }

  start(): void {
    this.isStarted = true;
    this.hasRules = !this.#rules.isEmpty;
    this.#onChange();
  }

  stop(): void {
    this.isStarted = this.hasRules = false;
    this.#onChange();
  }

  /** Rewrite a topic. See `Rewrite`. */
  apply(topic: string, kind: RewriteKind): string {
    return this.hasRules ? this.#rules.rewrite(topic, kind) : topic;
  }
}

/** Compiled rewrite rules. */
interface Rewrite {
  /** There are no rules. */
  readonly isEmpty: boolean;
  /**
   * Rewrite a topic. Of a shared subscription, only the topic filter after the group name is rewritten.
   * @returns the new topic; the topic itself if no rule applies or the result would not be a valid topic
   */
  rewrite(topic: string, kind: RewriteKind): string;
}

interface Compiled {
  readonly filter: string;
  readonly pattern: RegExp;
  /** Literal parts and numbers of captures, in order. */
  readonly target: readonly (string | number)[];
  readonly on: 'all' | RewriteKind;
}

/**
 * Compile rewrite rules.
 *
 * The last rule whose filter and packet kind match a topic is used. If its pattern does not match, the topic is not changed; no other rule is
 * tried.
 * @param rules objects, or lines `<filter> <pattern> <target>` such as `x/y/+ ^x/y/(\d+)$ z/y/$1`
 * @throws InvalidInput REWRITE_INVALID, OPTION_UNKNOWN
 */
export function compileRewrite(rules: readonly (RewriteRule | string)[]): Rewrite {
  if (!Array.isArray(rules)) throw invalid('rewrite', 'a list of rules', rules);
  const compiled = rules.map(compile).reverse();
  const apply = (topic: string, kind: RewriteKind): string => {
    const rule = compiled.find(({ filter, on }) => (on === 'all' || on === kind) && matches(filter, topic));
    const found = rule?.pattern.exec(topic);
    if (rule === undefined || found == null) return topic;
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

function compile(rule: RewriteRule | string, index: number): Compiled {
  const at = `rewrite.${index}`;
  const { filter, pattern, target, on = 'all' } = typeof rule === 'string' ? fromLine(rule, at) : asRule(rule, at);
  const fault = typeof filter === 'string' ? checkTopicFilter(filter) : 'expected a string';
  if (fault !== undefined) throw invalid(`${at}.filter`, 'a valid topic filter', filter, fault);
  if (!['all', 'publish', 'subscribe'].includes(on)) throw invalid(`${at}.on`, 'all, publish or subscribe', on);
  const expression = asPattern(pattern, `${at}.pattern`);
  // With an empty alternative the expression matches any string, and the length of the result is the number of captures.
  const captures = (new RegExp(`${expression.source}|`, expression.flags).exec('')?.length ?? 1) - 1;
  return { filter, pattern: expression, target: asTarget(target, captures, `${at}.target`), on };
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

function asPattern(pattern: unknown, field: string): RegExp {
  // With the flags "g" and "y" a match would depend on the previous one.
  if (pattern instanceof RegExp) return new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''));
  if (typeof pattern !== 'string') throw invalid(field, 'a regular expression', pattern);
  try {
    return new RegExp(pattern);
  } catch (error) {
    throw invalid(field, 'a regular expression', pattern, (error as Error).message);
  }
}

function asTarget(target: unknown, captures: number, field: string): (string | number)[] {
  if (typeof target !== 'string' || target === '') throw invalid(field, 'a topic', target);
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
