import type { DataOf } from '../../../../management/client/index.ts';
import { failingAction } from '../../model/rules.ts';
import { Badge } from '../../parts/facts.tsx';
import { T } from '../../texts.ts';

/** A rule as the interface lists it. */
export type RuleRow = DataOf<'hosted', 'GET', '/rules'>[number];

/** The state of a rule, with the reason if it does not work. */
export function RuleState({
  rule: { state, reason, actions }
}: {
  readonly rule: Pick<RuleRow, 'state' | 'reason' | 'actions'>;
}) {
  const failing = state === 'connected' ? failingAction(actions) : undefined;
  if (failing !== undefined)
    return (
      <span title={`${failing.name}: ${failing.last_error}`}>
        <Badge kind="warn">{T.rules.runningBadly}</Badge>
      </span>
    );
  const kind = state === 'connected' ? 'good' : state === 'idle' ? 'quiet' : 'bad';
  return (
    <span title={reason}>
      <Badge kind={kind}>{T.rules.states[state]}</Badge>
      {state === 'disconnected' && reason !== undefined && <span class="aside"> {reason}</span>}
    </span>
  );
}
