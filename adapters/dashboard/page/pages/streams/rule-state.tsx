import type { StreamRuleCode } from '../../../../../lib/streams/rule-states.ts';
import { Badge } from '../../parts/facts.tsx';
import { T } from '../../texts.ts';

const KINDS: Readonly<Partial<Record<StreamRuleCode, 'good' | 'bad'>>> = {
  running: 'good',
  failed: 'bad',
  service_stopped: 'bad',
  broker_stopped: 'bad'
};

/** The state of a stream rule. */
export function RuleState({ code }: { readonly code: StreamRuleCode }) {
  return <Badge kind={KINDS[code] ?? 'quiet'}>{T.streamRules.states[code]}</Badge>;
}
