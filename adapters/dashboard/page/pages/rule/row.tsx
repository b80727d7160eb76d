import type { DataOf } from '../../../../management/client/index.ts';
import { Badge } from '../../parts/facts.tsx';
import { T } from '../../texts.ts';

/** A rule as the interface lists it. */
export type RuleRow = DataOf<'hosted', 'GET', '/rules'>[number];

/** The state of a rule, with the reason if it does not work. */
export function RuleState({ rule: { state, reason } }: { readonly rule: Pick<RuleRow, 'state' | 'reason'> }) {
  const kind = state === 'connected' ? 'good' : state === 'idle' ? 'quiet' : 'bad';
  return (
    <span title={reason}>
      <Badge kind={kind}>{T.rules.states[state]}</Badge>
      {state === 'disconnected' && reason !== undefined && <span class="aside"> {reason}</span>}
    </span>
  );
}
