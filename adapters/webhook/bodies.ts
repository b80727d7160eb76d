import { CONNECT_REFUSALS, plainAddress } from '../../lib/adapter.ts';
import {
  type BrokerEvents,
  type ClientInfo,
  EVENTS,
  type EventName,
  type Message,
  type QoS,
  type SubscriptionOptions
} from '../../lib/index.ts';
import { encodeBase62 } from './base62.ts';

/** The encoding of payloads in bodies; `text`: UTF-8. */
export type PayloadEncoding = 'text' | 'base64' | 'base62';

/** The context of a body, in addition to its event. */
interface BodyContext {
  readonly encoding: PayloadEncoding;
  /** Name of the node. */
  readonly node: string;
}

/** Name of an event that webhooks can send. */
export type WebhookEvent = {
  [E in EventName]: (typeof EVENTS)[E]['action'] extends string ? E : never;
}[EventName];

/** The names of the events that webhooks can send. */
export const WEBHOOK_EVENTS = (Object.keys(EVENTS) as EventName[]).filter(
  (name): name is WebhookEvent => EVENTS[name].action !== undefined
);

/** A row of `BODIES`. */
interface BodyEntry<E extends WebhookEvent> {
  /** The keys of the body, after `action`, in the documented order. */
  readonly fields: (event: BrokerEvents[E], context: BodyContext) => object;
  /** The client id by which events are ordered. */
  readonly key: (event: BrokerEvents[E]) => string;
  /** The topic or topic filter to compare with the filter of a rule. */
  readonly topic?: (event: BrokerEvents[E]) => string;
}

/** The names of the reasons of a refused CONNECT, by reason code. */
const CONN_ACKS = new Map<number, string>(
  Object.entries(CONNECT_REFUSALS).map(([name, { reasonCode }]) => [reasonCode, name])
);

const OF_CLIENT = {
  key: ({ client }: { readonly client: ClientInfo }) => client.clientId
};
const OF_FILTER = {
  ...OF_CLIENT,
  topic: ({ filter }: { readonly filter: string }) => withoutShare(filter).topic
};
const OF_MESSAGE = { topic: ({ message }: { readonly message: Message }) => message.topic };

/** The body of each event, in the spelling of the documented interface. */
export const BODIES: { readonly [E in WebhookEvent]: BodyEntry<E> } = {
  'client.connect': { ...OF_CLIENT, fields: ({ client }) => connecting(client) },
  'client.connack': {
    ...OF_CLIENT,
    fields: ({ client, reasonCode }) => ({
      ...connecting(client),
      conn_ack: reasonCode === 0 ? 'success' : (CONN_ACKS.get(reasonCode) ?? 'unspecified_error')
    })
  },
  'client.connected': {
    ...OF_CLIENT,
    fields: ({ client }) => ({ ...connecting(client), connected_at: seconds(client.connectedAt) })
  },
  'client.disconnected': { ...OF_CLIENT, fields: ({ client, reason }) => ({ ...named(client), reason }) },
  'client.subscribe': {
    ...OF_FILTER,
    fields: ({ client, filter, options }) => ({ ...named(client), ...subscription(filter, options) })
  },
  'client.unsubscribe': {
    ...OF_FILTER,
    fields: ({ client, filter }) => ({ ...named(client), ...unsubscribed(filter) })
  },
  'session.subscribed': {
    ...OF_FILTER,
    fields: ({ client, filter, options }) => ({ ...named(client), ...subscription(filter, options) })
  },
  'session.unsubscribed': {
    ...OF_FILTER,
    fields: ({ client, filter }) => ({ ...named(client), ...unsubscribed(filter) })
  },
  'session.terminated': { ...OF_CLIENT, fields: ({ client, reason }) => ({ ...named(client), reason }) },
  'message.publish': {
    ...OF_MESSAGE,
    key: ({ message }) => message.clientId,
    // a single literal for the most frequent event, because spreading objects costs more
    fields: ({ message: { clientId, username, topic, qos, retain, payload, timestamp } }, { encoding }) => ({
      from_client_id: clientId,
      from_username: orUndefined(username),
      topic,
      qos,
      retain,
      payload: encoded(payload, encoding),
      ts: seconds(timestamp)
    })
  },
  'message.delivered': {
    ...OF_CLIENT,
    ...OF_MESSAGE,
    fields: ({ message, client, qos, retain }, context) => ({
      ...named(client),
      ...publisher(message),
      ...content(message, { qos, retain }, context)
    })
  },
  'message.acked': {
    ...OF_CLIENT,
    ...OF_MESSAGE,
    fields: ({ message, client, qos, retain }, context) => ({
      clientid: client.clientId,
      ...publisher(message),
      ...content(message, { qos, retain }, context)
    })
  },
  'message.dropped': {
    ...OF_MESSAGE,
    key: ({ message, client }) => client?.clientId ?? message.clientId,
    fields: ({ message, reason, client }, context) => ({
      ...(client === undefined ? {} : named(client)),
      reason,
      ...publisher(message),
      ...content(message, message, context),
      node: context.node
    })
  }
};

/** The body of an event. */
export function bodyOf<E extends WebhookEvent>(name: E, event: BrokerEvents[E], context: BodyContext): object {
  return { action: EVENTS[name].action, ...BODIES[name].fields(event, context) };
}

function orUndefined(text: string | undefined): string {
  return text ?? 'undefined';
}

function seconds(ms: number | undefined): number {
  return Math.floor((ms ?? 0) / 1000);
}

function named({ clientId, username }: ClientInfo) {
  return { clientid: clientId, username: orUndefined(username) };
}

function connecting(client: ClientInfo) {
  const { transportInfo, keepalive, protocolVersion } = client;
  const ipaddress = orUndefined(plainAddress(transportInfo.remoteAddress));
  return { ...named(client), ipaddress, keepalive, proto_ver: protocolVersion };
}

/** A topic filter without the group of a shared subscription. */
function withoutShare(filter: string): { readonly topic: string; readonly share?: string } {
  if (filter.startsWith('$queue/')) return { topic: filter.slice('$queue/'.length), share: '$queue' };
  if (!filter.startsWith('$share/')) return { topic: filter };
  const end = filter.indexOf('/', '$share/'.length);
  return end === -1 ? { topic: filter } : { topic: filter.slice(end + 1), share: filter.slice('$share/'.length, end) };
}

function subscription(filter: string, { qos, noLocal, retainAsPublished, retainHandling, id }: SubscriptionOptions) {
  const { topic, share } = withoutShare(filter);
  const opts = { qos, nl: Number(noLocal), rap: Number(retainAsPublished), rh: retainHandling };
  return {
    topic,
    opts: { ...opts, ...(share === undefined ? {} : { share }), ...(id === undefined ? {} : { subid: id }) }
  };
}

function unsubscribed(filter: string) {
  return { topic: withoutShare(filter).topic };
}

function publisher({ clientId, username }: Message) {
  return { from_client_id: clientId, from_username: orUndefined(username) };
}

function content(
  { topic, payload, timestamp }: Message,
  { qos, retain }: { readonly qos: QoS; readonly retain: boolean },
  { encoding }: BodyContext
) {
  return { topic, qos, retain, payload: encoded(payload, encoding), ts: seconds(timestamp) };
}

function encoded(payload: Buffer, encoding: PayloadEncoding): string {
  if (encoding === 'base62') return encodeBase62(payload);
  return payload.toString(encoding === 'base64' ? 'base64' : 'utf8');
}
