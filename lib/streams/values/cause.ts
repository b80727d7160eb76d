import { BrokerError } from '../../base/errors.ts';

/**
 * What has led to a row or an output: the ids of the rules and actions that have published because of each other, the first one first. Rows of
 * clients and of other sources have none.
 */
export type Cause = readonly string[];

/** Most rules that publish because of each other, one after the other. */
const MOST_HOPS = 16;

/** The longer one of two causes. */
export function deeper(one: Cause | undefined, other: Cause | undefined): Cause | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return other.length > one.length ? other : one;
}

/**
 * The cause of what a rule publishes.
 * @param cause that of the output
 * @throws BrokerError RULE_LOOP if the rule itself has led to the output, or more than 16 rules
 */
export function causedBy(ruleId: string, cause: Cause | undefined): Cause {
  if (cause === undefined) return [ruleId];
  const fail = (why: string) => new BrokerError('RULE_LOOP', `rules publish because of each other: ${why}`);
  if (cause.includes(ruleId)) throw fail(`the stream rule ${ruleId} has led to this message already`);
  if (cause.length >= MOST_HOPS) throw fail(`more than ${MOST_HOPS} rules have led to this message`);
  return [...cause, ruleId];
}
