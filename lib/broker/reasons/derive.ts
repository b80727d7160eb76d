// The causes that follow from the state of the broker when it is asked.

import { type DerivedCause, type DerivedCauses, derived } from '../../monitor/reasons/derived.ts';
import type { Routing } from '../../routing/routing.ts';
import type { SessionIndex } from '../sessions/session-index.ts';
import type { CheckedQuestion } from './arrival.ts';
import { nearFilters, nearFiltersOf } from './near-filters.ts';

/** Find the causes that follow from the state of the broker. */
export function deriveCauses(question: CheckedQuestion, sessions: SessionIndex, routing: Routing): DerivedCauses {
  const { clientId, publisher, topics, now } = question;
  const topic = topics[topics.length - 1];
  const publisherMount = sessions.get(publisher ?? '')?.outlet.mountpoint ?? '';
  const near = { topic, publisherMount, now };
  if (clientId === undefined) {
    const { targets, groups } = routing.of(topic);
    return targets.length + groups.length > 0 ? NONE : nearFilters(near, routing);
  }
  const session = sessions.get(clientId);
  if (session === undefined) {
    const causes: DerivedCause[] = [derived('offline_no_session', now, { clientId })];
    return { causes, isComplete: true };
  }
  return nearFiltersOf(near, session.subscriptions.values());
}

const NONE: DerivedCauses = { causes: [], isComplete: true };
