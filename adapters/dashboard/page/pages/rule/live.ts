import { useState } from 'preact/hooks';
import { useWatch } from '../../app/live.ts';
import type { LiveRule } from '../../model/rules.ts';

/** The state and the counters of a rule as they change. @param id empty: no rule @returns undefined: not known yet */
export function useLiveRule(id: string): LiveRule | undefined {
  const [live, setLive] = useState<LiveRule>();
  useWatch('rule', id === '' ? undefined : { kind: 'rule', of: 'events', id }, (data) => {
    if (data.failure === undefined) setLive(data as unknown as LiveRule);
  });
  return live;
}
