import { checkTopicFilter, InvalidInput, matches } from '../../lib/index.ts';
import { BODIES, WEBHOOK_EVENTS, type WebhookEvent } from './bodies.ts';

/** A trigger rule: an event to send. */
export interface WebhookRule {
  /** The event, such as `message.publish`. The documented name of its action is accepted as well: `on_message_publish`. */
  readonly event: WebhookEvent;
  /** Only for topics, or topic filters of subscriptions, that match this topic filter. Default: all. */
  readonly topic?: string | undefined;
}

/** Prefix of the documented settings of webhooks. */
const PREFIX = /^(web\.)?hook\./;
const RULE = /^rule\.(.+)\.(\d+)$/;

/** Names of revision 3.x of the original, and their events. */
const EARLIER_NAMES: Readonly<Record<string, WebhookEvent>> = { 'message.deliver': 'message.delivered' };
/** An event of revision 3.x of the original that does not exist here. */
const WITHOUT_EVENT = /^(on_)?session[._]created$/;

/** Names of events in the documents: `message.publish`, `on_message_publish`, `message.deliver`. */
const EVENT_NAMES = new Map<string, WebhookEvent>(
  [...WEBHOOK_EVENTS.map((event) => [event, event] as const), ...Object.entries(EARLIER_NAMES)].flatMap(
    ([name, event]) => [
      [name, event],
      [`on_${name.replace('.', '_')}`, event],
      [name.replace('.', '_'), event]
    ]
  )
);

/** @throws InvalidInput OPTION_INVALID */
function eventOf(name: unknown, field: string): WebhookEvent {
  const event = typeof name === 'string' ? EVENT_NAMES.get(name) : undefined;
  if (event !== undefined) return event;
  const isGone = typeof name === 'string' && WITHOUT_EVENT.test(name);
  const message = `${field}: the event session.created does not exist: remove the rule, or use client.connected`;
  const expected = `one of ${WEBHOOK_EVENTS.join(', ')}`;
  throw new InvalidInput('OPTION_INVALID', field, expected, name, isGone ? message : undefined);
}

/** Check rules. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function checkRules(value: unknown, field: string): WebhookRule[] {
  if (!Array.isArray(value) || value.length === 0)
    throw new InvalidInput('OPTION_INVALID', field, 'a list with at least one rule', value);
  return value.map((rule: unknown, at) => checkRule(rule, `${field}[${at}]`));
}

function checkRule(rule: unknown, field: string): WebhookRule {
  if (typeof rule !== 'object' || rule === null)
    throw new InvalidInput('OPTION_INVALID', field, 'a rule such as { event: "message.publish", topic: "a/#" }', rule);
  const { event: name, topic, ...rest } = rule as Record<string, unknown>;
  for (const unknown in rest)
    throw new InvalidInput('OPTION_UNKNOWN', `${field}.${unknown}`, '"event" and "topic"', rest);
  const event = eventOf(name, `${field}.event`);
  if (topic === undefined) return { event };
  const isText = typeof topic === 'string';
  const fault = isText ? checkTopicFilter(topic) : undefined;
  if (!isText || fault !== undefined)
    throw new InvalidInput(
      'OPTION_INVALID',
      `${field}.topic`,
      'a topic filter',
      topic,
      fault && `${field}.topic: ${fault}`
    );
  if (/^\$(share|queue)\//.test(topic))
    throw new InvalidInput(
      'OPTION_INVALID',
      `${field}.topic`,
      'a topic filter without the group of a shared one',
      topic
    );
  // Events without a topic are not filtered, as in the original products.
  return BODIES[event].topic === undefined ? { event } : { event, topic };
}

/** Options of a webhook, after the documented settings have been translated. */
interface Translated {
  readonly options: Record<string, unknown>;
  /**
   * True if the URL is given as the documented setting and there is no rule. Nothing is sent then, as in the original
   * products.
   */
  readonly hasNoRules: boolean;
}

/**
 * Translate the documented settings `web.hook.rule.<Event>.<Number>`, `web.hook.api.url` and `web.hook.encode_payload` to options; other names stay.
 * @throws InvalidInput OPTION_INVALID for a rule that is not a JSON object with the action of its event
 */
export function translated(given: Readonly<Record<string, unknown>>): Translated {
  const options: Record<string, unknown> = {};
  const rules: { readonly number: number; readonly rule: unknown }[] = [];
  let isDocumented = false;
  for (const [name, value] of Object.entries(given)) {
    const short = name.replace(PREFIX, '');
    const rule = RULE.exec(short);
    if (rule !== null) rules.push({ number: Number(rule[2]), rule: documentedRule(name, rule[1], value) });
    else if (short === 'api.url') {
      options.url = value;
      isDocumented = true;
    } else if (short === 'encode_payload') options.encodePayload = value === 'undefined' ? undefined : value;
    else options[name] = value;
  }
  if (rules.length > 0) {
    rules.sort((a, b) => a.number - b.number);
    options.rules = [...((options.rules as unknown[]) ?? []), ...rules.map(({ rule }) => rule)];
  }
  return { options, hasNoRules: isDocumented && options.rules === undefined };
}

function documentedRule(field: string, name: string, value: unknown): object {
  const rule = typeof value === 'string' ? parsed(value) : value;
  if (typeof rule !== 'object' || rule === null || Array.isArray(rule))
    throw new InvalidInput(
      'OPTION_INVALID',
      field,
      'JSON such as {"action": "on_message_publish", "topic": "a/#"}',
      value
    );
  const { action, topic, ...rest } = rule as Record<string, unknown>;
  for (const unknown in rest)
    throw new InvalidInput('OPTION_UNKNOWN', `${field}: ${unknown}`, '"action" and "topic"', rest[unknown]);
  const event = eventOf(name, field);
  if (action !== undefined && eventOf(action, `${field}: action`) !== event) {
    const message = `${field}: the action ${JSON.stringify(action)} is not the one of ${event}: write "on_${event.replace('.', '_')}", or the event of the action in the name of the setting`;
    throw new InvalidInput('OPTION_INVALID', field, `the action of ${event}`, action, message);
  }
  return { event, ...(topic === undefined ? {} : { topic }) };
}

/** Parse a string as JSON; undefined if it is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Check whether a rule applies to a topic filter of a subscription: it is compared as a topic name, as in the original
 * products.
 */
export function appliesTo({ topic }: WebhookRule, filter: string): boolean {
  return topic === undefined || topic === filter || matches(topic, filter);
}
