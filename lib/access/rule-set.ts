// The rules in use, and for the question why a message did not arrive the times at which they denied a topic to a client.
// Nothing is noted for that when a message is routed: a rule knows since when it is in use, the last removed rules are
// kept, and the rule that decided at each time is found when the question is asked.

import type { DecidingAccessRule, RuleAction } from '../records/access-rule.ts';
import type { Receiver } from '../routing/receiving-rights.ts';
import { FilterIndex } from '../topics/trie.ts';
import type { ReadAccessRule, Subject } from './rule.ts';

/** Maximum number of rules in a list that is scanned. Longer lists have an index by topic. */
const MAX_SCANNED = 16;

/** Maximum number of removed rules that are kept, and of rules that are compared for one topic. */
const MAX_REMOVED = 256;
const MAX_COMPARED = 1_000;
/** Maximum number of rules of a source that are compared when it is loaded again (about 20 ms). */
const MAX_MATCHED = 20_000;

/**
 * Rules in their order. Lists of more than a few rules use an index to find the rules of a topic, so the time does not grow with their
 * number.
 */
class RuleList {
  readonly #rules: ReadAccessRule[] = [];
  #index: FilterIndex<ReadAccessRule> | undefined = undefined;
  /** The rules for all topics, if there is an index. */
  #everywhere: readonly ReadAccessRule[] = [];
  /** Number of rules that deny a subscription. */
  #denying = 0;

  get isEmpty(): boolean {
    return this.#rules.length === 0;
  }

  /** The rules in their order. */
  get rules(): readonly ReadAccessRule[] {
    return this.#rules;
  }

  /** True if a rule denies a subscription. */
  get isDenying(): boolean {
    return this.#denying > 0;
  }

  add(rule: ReadAccessRule): void {
    let at = this.#placeOf(rule.order);
    while (this.#rules[at]?.order === rule.order) at++;
    this.#rules.splice(at, 0, rule);
    if (!rule.isAllow && rule.subscribe) this.#denying++;
    if (this.#index !== undefined) this.#put(this.#index, rule);
    else if (this.#rules.length > MAX_SCANNED) this.#buildIndex();
  }

  /** @returns whether the list contained the rule */
  remove(rule: ReadAccessRule): boolean {
    const at = this.#rules.indexOf(rule, this.#placeOf(rule.order));
    if (at < 0) return false;
    this.#rules.splice(at, 1);
    if (!rule.isAllow && rule.subscribe) this.#denying--;
    if (rule.indexed === undefined) this.#everywhere = this.#everywhere.filter((other) => other !== rule);
    else this.#index?.delete(rule.indexed, rule);
    return true;
  }

  /**
   * Find the first rule that applies to an action on a topic.
   * @param isFilter `topic` is a topic filter, and the rule must cover it
   */
  first(client: Subject, action: RuleAction, topic: string, isFilter: boolean): ReadAccessRule | undefined {
    let found: ReadAccessRule | undefined;
    for (const rule of this.#candidates(topic)) {
      if (found !== undefined && rule.order >= found.order) continue;
      if (!rule[action] || !rule.appliesTo(client)) continue;
      if (isFilter ? rule.covers(client, topic) : rule.matches(client, topic)) found = rule;
    }
    return found;
  }

  /** The rules that apply to the messages of a topic for a subscriber. */
  matching(client: Subject, topic: string): ReadAccessRule[] {
    return this.#candidates(topic).filter(
      (rule) => rule.subscribe && rule.appliesTo(client) && rule.matches(client, topic)
    );
  }

  /** Tell whether a rule may deny the messages of a topic to some subscriber. */
  mayDeny(topic: string): boolean {
    return this.isDenying && this.#candidates(topic).some((rule) => !rule.isAllow && rule.subscribe);
  }

  /** A superset of the rules that match a topic name or cover a topic filter. */
  #candidates(topic: string): readonly ReadAccessRule[] {
    if (this.#index === undefined) return this.#rules;
    const found: ReadAccessRule[] = [];
    this.#index.match(topic, found);
    return this.#everywhere.length === 0 ? found : found.concat(this.#everywhere);
  }

  /** The index of the first rule with at least this order. */
  #placeOf(order: number): number {
    let [from, end] = [0, this.#rules.length];
    while (from < end) {
      const middle = (from + end) >>> 1;
      if (this.#rules[middle].order < order) from = middle + 1;
      else end = middle;
    }
    return from;
  }

  #buildIndex(): void {
    this.#index = new FilterIndex();
    for (const rule of this.#rules) this.#put(this.#index, rule);
  }

  #put(index: FilterIndex<ReadAccessRule>, rule: ReadAccessRule): void {
    const { indexed } = rule;
    if (indexed === undefined) this.#everywhere = [...this.#everywhere, rule];
    else index.add(indexed, rule);
  }
}

/**
 * A set of access rules. Of the rules that apply to a client, an action and a topic, the one with the lowest order decides.
 *
 * Rules for one client id or one user name are found by that name, the others by topic.
 */
export class RuleSet {
  readonly #byClientId = new Map<string, RuleList>();
  readonly #byUsername = new Map<string, RuleList>();
  readonly #general = new RuleList();
  /** Number of rules for one client id or user name that deny a subscription. */
  #denying = 0;
  readonly #history: Pick<RuleHistory, 'added' | 'removed'> | undefined;

  /** @param history notes later changes */
  constructor(rules: Iterable<ReadAccessRule> = [], history?: Pick<RuleHistory, 'added' | 'removed'>) {
    this.#history = history;
    for (const rule of rules) this.add(rule);
  }

  add(rule: ReadAccessRule): void {
    this.#listOf(rule).add(rule);
    if (isKeyed(rule) && !rule.isAllow && rule.subscribe) this.#denying++;
    this.#history?.added(rule);
  }

  /** Remove a rule. A rule that the set does not contain is ignored. */
  remove(rule: ReadAccessRule): void {
    const { clientId, username } = rule;
    const isRemoved = this.#listOf(rule).remove(rule);
    if (isRemoved) this.#history?.removed(rule);
    if (!isKeyed(rule)) return;
    if (isRemoved && !rule.isAllow && rule.subscribe) this.#denying--;
    if (clientId !== undefined && this.#byClientId.get(clientId)?.isEmpty) this.#byClientId.delete(clientId);
    if (username !== undefined && this.#byUsername.get(username)?.isEmpty) this.#byUsername.delete(username);
  }

  /** The rules for one client id, for one user name, or, without both, for others, in their order. */
  of(clientId: string | undefined, username: string | undefined): readonly ReadAccessRule[] {
    if (clientId !== undefined) return this.#byClientId.get(clientId)?.rules ?? [];
    return username === undefined ? this.#general.rules : (this.#byUsername.get(username)?.rules ?? []);
  }

  /**
   * Decide whether a client may publish to a topic name, or receive its messages.
   * @returns undefined if no rule applies
   */
  decide(client: Subject, action: RuleAction, topic: string): boolean | undefined {
    return this.find(client, action, topic, false)?.isAllow;
  }

  /**
   * Decide whether a client may subscribe to a topic filter. A rule applies to the filter if it covers all topics that the filter matches.
   * @param filter without a share prefix
   * @returns undefined if no rule applies
   */
  decideFilter(client: Subject, filter: string): boolean | undefined {
    return this.find(client, 'subscribe', filter, true)?.isAllow;
  }

  /** Tell whether a rule may deny the messages of a topic to a subscriber with a matching subscription. */
  mayDeny(topic: string): boolean {
    return this.#denying > 0 || this.#general.mayDeny(topic);
  }

  /**
   * Find the rule that decides.
   * @param isFilter `topic` is a topic filter, and the rule must cover it
   */
  find(client: Subject, action: RuleAction, topic: string, isFilter: boolean): ReadAccessRule | undefined {
    const { clientId, username } = client;
    let found = this.#byClientId.get(clientId)?.first(client, action, topic, isFilter);
    if (username !== undefined)
      found = earlier(found, this.#byUsername.get(username)?.first(client, action, topic, isFilter));
    return earlier(found, this.#general.first(client, action, topic, isFilter));
  }

  /** All rules that apply to the messages of a topic for a subscriber, in no particular order. */
  matching(client: Subject, topic: string): ReadAccessRule[] {
    const { clientId, username = '' } = client;
    const lists = [this.#byClientId.get(clientId), this.#byUsername.get(username), this.#general];
    return lists.flatMap((list) => list?.matching(client, topic) ?? []);
  }

  #listOf({ clientId, username }: ReadAccessRule): RuleList {
    if (clientId === undefined && username === undefined) return this.#general;
    const lists = clientId === undefined ? this.#byUsername : this.#byClientId;
    const name = (clientId ?? username) as string;
    let list = lists.get(name);
    if (list === undefined) lists.set(name, (list = new RuleList()));
    return list;
  }
}

function isKeyed({ clientId, username }: ReadAccessRule): boolean {
  return clientId !== undefined || username !== undefined;
}

function earlier(a: ReadAccessRule | undefined, b: ReadAccessRule | undefined): ReadAccessRule | undefined {
  return a === undefined || (b !== undefined && b.order < a.order) ? b : a;
}

/** A time at which a topic was denied, in milliseconds since 1970. */
interface Denial {
  readonly since: number;
  /** `Infinity`: it still is. */
  readonly until: number;
  /** The rule that denied it, for operators. */
  readonly detail: string;
}

/** The times at which a topic was denied to a client. */
export interface Denials {
  /** The earliest first. */
  readonly times: readonly Denial[];
  /** The time before which further ones are possible, because not all removed rules are kept. */
  readonly knownSince: number;
}

/** Tells at which times receivers were not allowed to receive a topic; access control implements it. */
export interface PastRights {
  /** The times at which the rules that the broker holds denied the messages of a topic to a client. @param topic with its mount point */
  denials(client: Receiver, topic: string): Denials;
}

/** A rule in the time in which it was in use. */
export interface UsedRule {
  readonly rule: DecidingAccessRule;
  /** Origin of the rule, with the name of its source if there is one. */
  readonly by: 'records' | 'client' | 'source';
  readonly source?: string | undefined;
  /** The set that contains it, or did: sets are evaluated in the order of these numbers. */
  readonly place: number;
  readonly since: number;
  /** `Infinity`: it is in use. */
  readonly until: number;
}

/** A rule that was removed. */
interface RemovedRule {
  readonly rule: ReadAccessRule;
  /** The source of its set; undefined: the records of the broker. */
  readonly source: string | undefined;
  readonly until: number;
}

/** The last access rules about subscriptions that were removed. */
export class RuleHistory {
  readonly #now: () => number;
  #removed: readonly RemovedRule[] = [];
  /** When the last one that is no longer kept was removed. */
  knownSince = -Infinity;

  /** @param now the wall-clock time in milliseconds */
  constructor(now: () => number) {
    this.#now = () => Math.round(now());
  }

  /** Note that a rule is in use from now on. */
  added(rule: ReadAccessRule): void {
    rule.use(this.#now());
  }

  /** Note that a rule is no longer in use. @param source undefined: it was one of the records of the broker */
  removed(rule: ReadAccessRule, source?: string): void {
    const until = this.#now();
    if (!rule.subscribe || rule.usedSince === until) return;
    const kept = this.#removed.slice(-(MAX_REMOVED - 1));
    if (kept.length < this.#removed.length) this.knownSince = this.#removed[0].until;
    this.#removed = [...kept, { rule, source, until }];
  }

  /** Note that a source has other rules. Those that both lists have stay in use, unless the lists are very long. */
  replaced(source: string, before: readonly ReadAccessRule[], after: readonly ReadAccessRule[]): void {
    const isCompared = before.length > 0 && before.length + after.length <= MAX_MATCHED;
    const keyOf = (rule: ReadAccessRule) => (isCompared ? JSON.stringify(rule.content) : rule);
    const left = new Map(before.map((rule) => [keyOf(rule), rule]));
    for (const rule of after) {
      const key = keyOf(rule);
      const same = left.get(key);
      if (same === undefined) this.added(rule);
      else rule.use(same.usedSince);
      left.delete(key);
    }
    for (const rule of left.values()) this.removed(rule, source);
  }

  /** The removed rules that applied to the messages of a topic for a client. @param placeOf the place of the set of a source */
  used(client: Subject, topic: string, placeOf: (source: string | undefined) => number): UsedRule[] {
    return this.#removed
      .filter(({ rule }) => rule.appliesTo(client) && rule.matches(client, topic))
      .map(({ rule, source, until }) => {
        const by = source === undefined ? 'records' : 'source';
        return { rule, by, source, place: placeOf(source), since: rule.usedSince, until };
      });
  }
}

/** The times at which the first of the rules that were in use denied. @param textOf describes a rule */
export function denialsOf(rules: readonly UsedRule[], textOf: (rule: UsedRule) => string): Denial[] {
  const ordered = rules.toSorted((a, b) => a.place - b.place || a.rule.order - b.rule.order).slice(0, MAX_COMPARED);
  const times = [...new Set(ordered.flatMap(({ since, until }) => [since, until]))].sort((a, b) => a - b);
  const denials: Denial[] = [];
  for (const [index, since] of times.entries()) {
    const first = ordered.find((one) => one.since <= since && since < one.until);
    if (first === undefined || first.rule.isAllow) continue;
    const last = denials.at(-1);
    const detail = textOf(first);
    const isSame = last?.until === since && last.detail === detail;
    if (isSame) denials.pop();
    denials.push({ since: isSame ? last.since : since, until: times[index + 1], detail });
  }
  return denials;
}
