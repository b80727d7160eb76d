// The states of a client, replayed from its records (column `change` of `RECORDED`): every answer that depends on what a
// client was at a time reads it here. A state lasts from its record to the next one.

import type { KeptRecord } from '../../monitor/reasons/kept-record.ts';
import { innerFilter, matches } from '../../topics/topic.ts';

/** A time, with the number of its record, because several may have the same time. */
export type Moment = Pick<KeptRecord, 'since' | 'number'>;

/** The state of a client. */
export interface ClientState {
  /** The record that began it; undefined: none is kept of an earlier time. */
  readonly by: KeptRecord | undefined;
  /** False: the client has no session. Undefined: its session may have begun before the first record. */
  readonly hasSession: boolean | undefined;
  /** The record by which the client went away; undefined: it is connected, or it is not known. */
  readonly awayBy: KeptRecord | undefined;
  /** The subscriptions by filter; of a session that has ended those that it had, until another one begins. */
  readonly subscriptions: ReadonlyMap<string, KeptRecord>;
  /** The filters of earlier subscriptions, which have ended. */
  readonly ended: ReadonlySet<string>;
}

const NOTHING: ClientState = {
  by: undefined,
  hasSession: undefined,
  awayBy: undefined,
  subscriptions: new Map(),
  ended: new Set()
};

/**
 * The states of a client, the oldest first. The first one is that before the records.
 * @param records those of the client itself, the latest first
 */
export function statesOf(records: readonly KeptRecord[]): readonly ClientState[] {
  const changes = records.filter(({ row }) => row.change !== undefined).reverse();
  // nothing is known before a session that is the first event
  let last = changes[0]?.row.change === 'connected' ? { ...NOTHING, hasSession: false } : NOTHING;
  const states = [last];
  for (const record of changes) states.push((last = changed(last, record)));
  return states;
}

/** The state at a time, after the events of this time. @param states the oldest first */
export function stateAt(states: readonly ClientState[], time: number): ClientState {
  return states.findLast(({ by }) => by === undefined || by.at <= time) ?? NOTHING;
}

/** The state before a record. */
export function stateBefore(states: readonly ClientState[], { number }: Moment): ClientState {
  return states.findLast(({ by }) => by === undefined || by.number < number) ?? NOTHING;
}

/** The states that a client had between two times. */
export function statesBetween(states: readonly ClientState[], from: number, until: number): readonly ClientState[] {
  return states.filter(({ by }, index) => {
    const next = states[index + 1]?.by;
    return (by?.at ?? -Infinity) <= until && (next === undefined || next.at >= from);
  });
}

/** The record of the subscription to a topic that the session has, or had when it ended: of several the one with the highest QoS. */
export function subscriptionTo({ subscriptions }: ClientState, topics: readonly string[]): KeptRecord | undefined {
  const found = [...subscriptions.values()].filter(({ topic }) => isOfTopic(topic, topics));
  return found.toSorted((a, b) => b.qos - a.qos)[0];
}

/** Tell whether a client has a subscription to a topic; undefined: it is not known, because its session may have begun before the first record. */
export function isSubscribed(state: ClientState, topics: readonly string[]): boolean | undefined {
  if (state.hasSession === false) return false;
  if (subscriptionTo(state, topics) !== undefined) return true;
  return state.hasSession === true ? false : undefined;
}

/** Tell whether a client had a subscription to a topic, which it has lost. */
export function hasLost({ hasSession, subscriptions, ended }: ClientState, topics: readonly string[]): boolean {
  return [...ended, ...(hasSession === false ? subscriptions.keys() : [])].some((filter) => isOfTopic(filter, topics));
}

/** Tell whether a filter, if there is one, matches a topic. */
export function isOfTopic(filter: string | undefined, topics: readonly string[]): boolean {
  return filter !== undefined && topics.some((topic) => matches(innerFilter(filter), topic));
}

function changed(state: ClientState, record: KeptRecord): ClientState {
  const { subscriptions, ended } = state;
  const { topic = '' } = record;
  switch (record.row.change) {
    case 'connected': {
      const lost = new Set([...ended, ...subscriptions.keys()]);
      return { by: record, awayBy: undefined, hasSession: true, subscriptions: new Map(), ended: lost };
    }
    case 'resumed':
      return { ...state, by: record, hasSession: state.hasSession || undefined, awayBy: undefined };
    case 'disconnected':
      return { ...state, by: record, awayBy: record };
    case 'session_ended':
      return { ...state, by: record, hasSession: false, awayBy: state.awayBy ?? record };
    case 'subscribed':
      return {
        ...state,
        by: record,
        subscriptions: new Map(subscriptions).set(topic, record),
        ended: new Set([...ended].filter((filter) => filter !== topic))
      };
    case 'unsubscribed':
      return {
        ...state,
        by: record,
        subscriptions: new Map([...subscriptions].filter(([filter]) => filter !== topic)),
        ended: new Set(ended).add(topic)
      };
    default:
      return state;
  }
}
