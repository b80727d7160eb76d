import { nearest } from '../../base/fields.ts';
import { matches } from '../../topics/topic.ts';
import type { RuleEventName } from './event-name.ts';
import { RULE_EVENTS } from './rows.ts';

const EVENTS = '$events/';
const PUBLISH = RULE_EVENTS['message.publish'].topic;

const ROWS = Object.values(RULE_EVENTS);

/** The events by each spelling of their topics. */
const BY_TOPIC: ReadonlyMap<string, RuleEventName> = new Map(
  ROWS.flatMap(({ topic, spellings, name }) => [topic, ...spellings].map((spelling) => [spelling, name]))
);

/**
 * The event of a topic such as `$events/client_connected` or `$events/client/connected`; undefined for all other
 * topics.
 */
export function ruleEventOfTopic(topic: string): RuleEventName | undefined {
  return BY_TOPIC.get(topic);
}

/**
 * The events from which a topic filter of FROM selects.
 *
 * A filter below `$events/` selects from the events whose topics it matches; a wildcard does not include
 * `$events/message_publish`. Any
 * other filter selects from messages: see `messageFilterOf`.
 */
export function eventsOfFilter(filter: string): readonly RuleEventName[] {
  if (messageFilterOf(filter) !== undefined) return ['message.publish'];
  return ROWS.filter(
    ({ topic, spellings }) => topic !== PUBLISH && [topic, ...spellings].some((spelling) => matches(filter, spelling))
  ).map(({ name }) => name);
}

/**
 * The topic filter of the messages from which a filter of FROM selects: the filter itself, or `#` for
 * `$events/message_publish`.
 * @returns undefined for a filter below `$events/`. A message that a client publishes there is not treated as an event
 */
export function messageFilterOf(filter: string): string | undefined {
  if (ruleEventOfTopic(filter) === 'message.publish') return '#';
  return filter.startsWith(EVENTS) ? undefined : filter;
}

/** The message for a filter below `$events/` that matches no event, with a suggestion. */
export function unknownEvent(filter: string): string {
  const names = ROWS.map(({ topic }) => topic.slice(EVENTS.length));
  const near = nearest(filter.slice(EVENTS.length), names);
  const hint = near === undefined ? `the events are ${names.join(', ')}` : `did you mean "${EVENTS}${near}"?`;
  return `"${filter}" does not match any event; ${hint}`;
}
