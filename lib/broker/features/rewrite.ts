import { InvalidInput } from '../../base/errors.ts';
import { checkNames } from '../../base/options-table.ts';
import { checkTopicFilter, checkTopicName, matches, parseSharedFilter } from '../../topics/topic.ts';

/** Rewrites the topics that `filter` reaches and `pattern` matches. */
export interface RewriteRule {
  /** Topic filter; decides which rule is used. */
  readonly filter: string;
  /** Regular expression over the whole topic. */
  readonly pattern: string | RegExp;
  /** The new topic; `$1` to `$99` stand for the captures of `pattern`. */
  readonly target: string;
  /** Topics of PUBLISH, of SUBSCRIBE and UNSUBSCRIBE, or of all three (the default). */
  readonly on?: 'all' | RewriteKind;
}

/** Which packet's topic: `subscribe` stands for UNSUBSCRIBE, too. */
export type RewriteKind = 'publish' | 'subscribe';

/** Rewrite rules, ready for use. */
export interface Rewrite {
  /** Without rules there is nothing to ask. */
  readonly isEmpty: boolean;
  /**
   * The topic that takes the given one's place: itself where no rule fits, or where the outcome would not be a valid topic.
   * Of a shared filter, only the filter behind the group is looked at.
   */
  rewrite(topic: string, kind: RewriteKind): string;
}

interface Compiled {
  readonly filter: string;
  readonly pattern: RegExp;
  /** Texts and, between them, numbers of captures. */
  readonly target: readonly (string | number)[];
  readonly on: 'all' | RewriteKind;
}

/**
 * Prepare rewrite rules.
 *
 * They are tried from the last to the first, and the first whose filter and packet kind fit is used alone: where its pattern does not
 * match, the topic stays as it is.
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
  const fault = typeof filter === 'string' ? checkTopicFilter(filter) : 'not a text';
  if (fault !== undefined) throw invalid(`${at}.filter`, 'a valid topic filter', filter, fault);
  if (!['all', 'publish', 'subscribe'].includes(on)) throw invalid(`${at}.on`, 'all, publish or subscribe', on);
  const expression = asPattern(pattern, `${at}.pattern`);
  // With an empty alternative it matches anything, and its result counts the captures.
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
    throw invalid(at, '{ filter, pattern, target } or a line of the three', rule);
  checkNames(rule, ['filter', 'pattern', 'target', 'on'] satisfies (keyof RewriteRule)[], at);
  return rule as RewriteRule;
}

function asPattern(pattern: unknown, field: string): RegExp {
  // "g" and "y" make a match depend on the one before.
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
      throw invalid(
        field,
        `captures up to $${captures}, as the pattern has`,
        target,
        `the pattern has no capture ${part}`
      );
    }
    return capture;
  });
}

function invalid(field: string, expected: string, got: unknown, fault?: string): InvalidInput {
  return new InvalidInput('REWRITE_INVALID', field, expected, got, fault && `${field}: ${fault}`);
}
