// For the question why a message did not arrive: the times at which the rules that the broker holds denied a topic to a
// client. Nothing is noted when a message is routed. A rule knows since when it is in use, and the last rules that were
// removed are kept; the rule that decided at each time is found when the question is asked.

import type { Receiver } from '../routing/receiving-rights.ts';
import type { ReadAccessRule, Subject } from './rule.ts';

/** Maximum number of removed rules that are kept, and of rules that are compared for one topic. */
const MAX_REMOVED = 256;
const MAX_COMPARED = 1_000;

/** A time at which a topic was denied, in milliseconds since 1970. */
export interface Denial {
  readonly since: number;
  /** `Infinity`: it still is. */
  readonly until: number;
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
  readonly rule: Pick<ReadAccessRule, 'isAllow' | 'order'>;
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
    rule.usedSince = this.#now();
  }

  /** Note that a rule is no longer in use. @param source undefined: it was one of the records of the broker */
  removed(rule: ReadAccessRule, source?: string): void {
    const until = this.#now();
    if (!rule.subscribe || rule.usedSince === until) return;
    const kept = this.#removed.slice(-(MAX_REMOVED - 1));
    if (kept.length < this.#removed.length) this.knownSince = this.#removed[0].until;
    this.#removed = [...kept, { rule, source, until }];
  }

  /** Note that a source has other rules. Those that both lists have stay in use. */
  replaced(source: string, before: readonly ReadAccessRule[], after: readonly ReadAccessRule[]): void {
    const left = new Map(before.map((rule) => [JSON.stringify(rule.content), rule]));
    for (const rule of after) {
      const key = JSON.stringify(rule.content);
      const same = left.get(key);
      if (same === undefined) this.added(rule);
      else rule.usedSince = same.usedSince;
      left.delete(key);
    }
    for (const rule of left.values()) this.removed(rule, source);
  }

  /** The removed rules that applied to the messages of a topic for a client. @param placeOf the place of the set of a source */
  used(client: Subject, topic: string, placeOf: (source: string | undefined) => number): UsedRule[] {
    return this.#removed
      .filter(({ rule }) => rule.appliesTo(client) && rule.matches(client, topic))
      .map(({ rule, source, until }) => ({ rule, place: placeOf(source), since: rule.usedSince, until }));
  }
}

/** The times at which the first of the rules that were in use denied. */
export function denialsOf(rules: readonly UsedRule[]): Denial[] {
  const ordered = rules
    .toSorted((a, b) => a.place - b.place || a.rule.order - b.rule.order)
    .slice(0, MAX_COMPARED);
  const times = [...new Set(ordered.flatMap(({ since, until }) => [since, until]))].sort((a, b) => a - b);
  const denials: Denial[] = [];
  for (const [index, since] of times.entries()) {
    const first = ordered.find((one) => one.since <= since && since < one.until);
    if (first === undefined || first.rule.isAllow) continue;
    const last = denials.at(-1);
    const isSame = last?.until === since;
    if (isSame) denials.pop();
    denials.push({ since: isSame ? last.since : since, until: times[index + 1] });
  }
  return denials;
}
