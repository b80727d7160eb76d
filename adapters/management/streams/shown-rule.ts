import type { RuleReference } from '../../../lib/adapter.ts';

/** The rule that has published a message, as a field of it. undefined: a client, the app or the broker has published it. */
export function shownRule(rule: RuleReference | undefined) {
  return rule && { from_rule: { kind: rule.kind === 'rule' ? 'rule' : 'stream_rule', id: rule.id } as const };
}
