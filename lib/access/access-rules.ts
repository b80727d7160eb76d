// Rules are evaluated in the order of their sets: the records, those of the client, those of each source. Only questions
// about earlier messages read the history of rules (`denials`).

import type { AccessRule, ClientRules, DecidingAccessRule, RuleAction } from '../records/access-rule.ts';
import type { ClientInfo } from '../records/client.ts';
import { type ReadAccessRule, rulesOf } from './rule.ts';
import { type Denials, denialsOf, RuleHistory, RuleSet, type UsedRule } from './rule-set.ts';

/** A client, with the rules that its authentication has given to it. */
export interface RuledClient extends ClientInfo {
  readonly rules: ClientRules | undefined;
}

/** A rule that decides, with its origin: set at run time, given to the client by its authentication, or from a source. */
export interface FoundAccessRule {
  readonly by: 'records' | 'client' | 'source';
  /** Name of the source. */
  readonly source?: string | undefined;
  readonly rule: DecidingAccessRule;
}

/**
 * The access rules that the broker holds, by source. The first set with a matching rule decides; the rules that a client got with its
 * authentication come before those of the sources and after the records. The rules of sources with `hasLastRules` come last, after the
 * answers of sources and hooks.
 */
export class AccessRules {
  /** The rules that are set at run time. */
  readonly records: RuleSet;
  readonly #sets = new Map<string, RuleSet>();
  /** The rules of the sources that come after all others. */
  readonly #lastSets = new Map<string, RuleSet>();
  /** The rules of the sources, in the order in which they are given. */
  readonly #lists = new Map<string, readonly ReadAccessRule[]>();
  readonly #history: RuleHistory;
  readonly #changed: () => void;
  /** True once a client has rules from its authentication. */
  #hasRuled = false;
  #hasRecords = false;

  /** @param changed called when the rules of a source have changed @param now the wall-clock time in milliseconds */
  constructor(changed: () => void, now: () => number) {
    this.#changed = changed;
    this.#history = new RuleHistory(now);
    this.records = new RuleSet([], this.#history);
  }

  /** True if no rules are held, so that nothing has to be evaluated. */
  get isEmpty(): boolean {
    return !this.hasFirst && !this.hasLast;
  }

  /** True if there are rules that are evaluated before sources and hooks are asked. */
  get hasFirst(): boolean {
    return this.#sets.size > 0 || this.#hasRuled || this.#hasRecords;
  }

  /** True if there are rules that are evaluated after sources and hooks were asked. */
  get hasLast(): boolean {
    return this.#lastSets.size > 0;
  }

  /**
   * Replace the rules of a source; an empty list removes them.
   * @param isLast evaluate them after the others
   * @throws InvalidInput as `rulesOf`
   */
  set(source: string, list: readonly AccessRule[], isLast = false): void {
    const rules = rulesOf(list, `rules of ${source}`);
    const sets = isLast ? this.#lastSets : this.#sets;
    this.#history.replaced(source, this.#lists.get(source) ?? [], rules);
    if (rules.length === 0) this.#lists.delete(source);
    else this.#lists.set(source, rules);
    if (rules.length === 0) sets.delete(source);
    else sets.set(source, new RuleSet(rules));
    this.#changed();
  }

  /** Move a source behind the others, because it was loaded again. */
  moveLast(source: string): void {
    for (const sets of [this.#sets, this.#lastSets]) {
      const set = sets.get(source);
      if (set === undefined) continue;
      sets.delete(source);
      sets.set(source, set);
      this.#changed();
    }
  }

  /** Note that the records have changed. @param hasRecords whether there are any */
  recordsChanged(hasRecords: boolean): void {
    this.#hasRecords = hasRecords;
    this.#changed();
  }

  /** Create the rules of a client from those that its authentication has returned. @throws InvalidInput as `rulesOf` */
  rulesFor(list: readonly AccessRule[]): RuleSet {
    const rules = new RuleSet(rulesOf(list, 'rules of the client'));
    if (!this.#hasRuled) {
      this.#hasRuled = true;
      this.#changed();
    }
    return rules;
  }

  /** Decide about a topic name by all rules. @returns undefined if no rule applies */
  decide(client: RuledClient, action: RuleAction, topic: string): boolean | undefined {
    return this.decideFirst(client, action, topic) ?? this.decideLast(client, action, topic);
  }

  /** Decide about a topic filter of a subscription by all rules. @returns undefined if no rule applies */
  decideFilter(client: RuledClient, filter: string): boolean | undefined {
    return this.decideFilterFirst(client, filter) ?? this.decideFilterLast(client, filter);
  }

  /** As `decide`, by the rules that are evaluated before sources and hooks are asked. */
  decideFirst(client: RuledClient, action: RuleAction, topic: string): boolean | undefined {
    let answer = this.records.decide(client, action, topic) ?? client.rules?.decide(client, action, topic);
    if (answer !== undefined) return answer;
    for (const set of this.#sets.values()) {
      answer = set.decide(client, action, topic);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  /** As `decide`, by the rules that are evaluated after sources and hooks were asked. */
  decideLast(client: RuledClient, action: RuleAction, topic: string): boolean | undefined {
    for (const set of this.#lastSets.values()) {
      const answer = set.decide(client, action, topic);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  /** As `decideFilter`, by the rules that are evaluated before sources and hooks are asked. */
  decideFilterFirst(client: RuledClient, filter: string): boolean | undefined {
    let answer = this.records.decideFilter(client, filter) ?? client.rules?.decideFilter(client, filter);
    if (answer !== undefined) return answer;
    for (const set of this.#sets.values()) {
      answer = set.decideFilter(client, filter);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  /** As `decideFilter`, by the rules that are evaluated after sources and hooks were asked. */
  decideFilterLast(client: RuledClient, filter: string): boolean | undefined {
    for (const set of this.#lastSets.values()) {
      const answer = set.decideFilter(client, filter);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  /**
   * Find the rule that decides.
   * @param place whether the rule is searched before or after sources and hooks are asked
   * @param isFilter `topic` is a topic filter of a subscription
   * @returns undefined if no rule applies
   */
  find(
    place: 'first' | 'last',
    client: RuledClient,
    { action, topic, isFilter }: { readonly action: RuleAction; readonly topic: string; readonly isFilter: boolean }
  ): FoundAccessRule | undefined {
    if (place === 'first') {
      const record = this.records.find(client, action, topic, isFilter);
      if (record !== undefined) return { by: 'records', rule: record };
      const own = client.rules?.find(client, action, topic, isFilter);
      if (own !== undefined) return { by: 'client', rule: own };
    }
    for (const [source, set] of place === 'first' ? this.#sets : this.#lastSets) {
      const rule = set.find(client, action, topic, isFilter);
      if (rule !== undefined) return { by: 'source', source, rule };
    }
    return undefined;
  }

  /** Tell whether a rule may deny the messages of a topic to a subscriber with a matching subscription. */
  mayDeny(topic: string): boolean {
    if (this.#hasRuled || this.records.mayDeny(topic)) return true;
    for (const set of this.#sets.values()) if (set.mayDeny(topic)) return true;
    for (const set of this.#lastSets.values()) if (set.mayDeny(topic)) return true;
    return false;
  }
  /**
   * The times at which these rules denied the messages of a topic to a client, as far as removed ones are kept. Rules of a source that has
   * none now count after those of other sources, and the rules of the client as always in use.
   * @param textOf describes a rule
   */
  denials(client: RuledClient, topic: string, textOf: (rule: UsedRule) => string): Denials {
    const names = [...this.#sets.keys(), ...this.#lastSets.keys()];
    const placeOf = (source: string) => 2 + (names.includes(source) ? names.indexOf(source) : names.length);
    const used = (rules: readonly ReadAccessRule[], place: number, source?: string): UsedRule[] => {
      const by = source === undefined ? 'records' : 'source';
      return rules.map((rule) => ({ rule, by, source, place, since: rule.usedSince, until: Infinity }));
    };
    const ofSources = [...this.#sets, ...this.#lastSets].flatMap(([source, set]) =>
      used(set.matching(client, topic), placeOf(source), source)
    );
    const own = client.rules?.find(client, 'subscribe', topic, false);
    const rules = [
      ...used(this.records.matching(client, topic), 0),
      ...(own === undefined ? [] : [{ rule: own, by: 'client', place: 1, since: -Infinity, until: Infinity } as const]),
      ...ofSources,
      ...this.#history.used(client, topic, (source) => (source === undefined ? 0 : placeOf(source)))
    ];
    return { times: denialsOf(rules, textOf), knownSince: this.#history.knownSince };
  }
}
