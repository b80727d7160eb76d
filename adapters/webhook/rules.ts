import { checkTopicFilter, InvalidInput, matches } from '../../lib/index.ts';
import { BODIES, WEBHOOK_EVENTS, type WebhookEvent } from './bodies.ts';

/** A trigger rule: an event that is sent. */
export interface WebhookRule {
  /** The event, such as `message.publish`. The documented name of its action is accepted as well: `on_message_publish`. */
  readonly event: WebhookEvent;
  /** Only for topics, or topic filters of subscriptions, that match this topic filter. Default: all. */
  readonly topic?: string | undefined;
}

/** Prefix of the documented settings of webhooks. */
const PREFIX = /^(web\.)?hook\./;
const RULE = /^rule\.(.+)\.(\d+)$/;

/** Names that the documents give to events, by their names in lower case: `message.deliver`, `on_message_publish`. */
const EVENT_NAMES = new Map<string, WebhookEvent>(
  WEBHOOK_EVENTS.flatMap((event) => [
    [event, event],
    [`on_${event.replace('.', '_')}`, event],
    [event.replace('.', '_'), event]
  ])
);

/** @throws InvalidInput OPTION_INVALID */
function eventOf(name: unknown, field: string): WebhookEvent {
  const event = typeof name === 'string' ? EVENT_NAMES.get(name) : undefined;
  if (event === undefined) throw new InvalidInput('OPTION_INVALID', field, `one of ${WEBHOOK_EVENTS.join(', ')}`, name);
  return event;
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

/**
 * Translate the documented settings `web.hook.rule.<Event>.<Number>`, `web.hook.api.url` and `web.hook.encode_payload` to options; other names stay.
 * @throws InvalidInput OPTION_INVALID for a rule that is not a JSON object with an action
 */
export function translated(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  const rules: { readonly number: number; readonly rule: unknown }[] = [];
  for (const [name, value] of Object.entries(given)) {
    const short = name.replace(PREFIX, '');
    const rule = RULE.exec(short);
    if (rule !== null) rules.push({ number: Number(rule[2]), rule: documentedRule(name, rule[1], value) });
    else if (short === 'api.url') options.url = value;
    else if (short === 'encode_payload') options.encodePayload = value === 'undefined' ? undefined : value;
    else options[name] = value;
  }
  if (rules.length > 0) {
    rules.sort((a, b) => a.number - b.number);
    options.rules = [...((options.rules as unknown[]) ?? []), ...rules.map(({ rule }) => rule)];
  }
  return options;
}

function documentedRule(field: string, event: string, value: unknown): object {
  const fail = (): never => {
    throw new InvalidInput(
      'OPTION_INVALID',
      field,
      'JSON such as {"action": "on_message_publish", "topic": "a/#"}',
      value
    );
  };
  let rule: unknown = value;
  if (typeof value === 'string') {
    try {
      rule = JSON.parse(value);
    } catch {
      return fail();
    }
  }
  if (typeof rule !== 'object' || rule === null) return fail();
  const { action, topic } = rule as Record<string, unknown>;
  if (action !== undefined) eventOf(action, `${field}: action`);
  return { event: eventOf(event, field), ...(topic === undefined ? {} : { topic }) };
}

/** Whether a rule applies to a topic filter of a subscription: it is compared as a topic name, as in the original products. */
export function appliesTo({ topic }: WebhookRule, filter: string): boolean {
  return topic === undefined || topic === filter || matches(topic, filter);
}
