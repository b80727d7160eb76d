import { type Cascade, RulePublisher } from '../../packets/named-publisher.ts';

/**
 * The causes of a row or an output: the ids of the rules and actions that published because of each other, first one
 * first. Rows from clients and other sources have none.
 */
export type Cause = readonly string[];

/** The rules and actions that caused a message, from its origin. */
export function chainOf(origin: unknown): Cause | undefined {
  return origin instanceof RulePublisher ? origin.chain : undefined;
}

/** The counters of causes that have one. */
const cascades = new WeakMap<Cause, Cascade>();

/** A cause with the counter of the messages that its event has caused. */
export function withCascade(cause: Cause | undefined, cascade: Cascade | undefined): Cause | undefined {
  if (cascade === undefined) return cause;
  const counted = [...(cause ?? [])];
  cascades.set(counted, cascade);
  return counted;
}

/** The counter of a cause. */
export function cascadeOf(cause: Cause | undefined): Cascade | undefined {
  return cause && cascades.get(cause);
}

/** The cause with the longer chain. */
export function deeper(one: Cause | undefined, other: Cause | undefined): Cause | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return other.length > one.length ? other : one;
}
