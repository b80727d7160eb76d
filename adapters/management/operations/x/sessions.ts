import type { InFlightMessage, QueuedMessage, SessionHandle, SubscriptionRecord } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { flag, integer, listOf, objectOf, oneOf, optional, text } from '../../../rest/kit/index.ts';
import { Listing } from '../../listing.ts';
import { type Context, type Operation, operation } from '../../operation.ts';
import { replyWithListings } from '../../reply.ts';
import { CLIENT, write as writeClient } from '../clients.ts';
import { ENCODING, MESSAGE_FIELDS, shownMessage } from './message.ts';

const { payload, encoding, ...FIELDS } = MESSAGE_FIELDS;
const QUEUED = objectOf({
  ...FIELDS,
  qos: integer('The QoS with which it is to be sent'),
  retain: flag('The RETAIN flag with which it is to be sent'),
  subscription_ids: optional(listOf(integer(), 'Subscription identifiers')),
  expires_at: optional(integer('When it expires, in milliseconds since 1970; absent: never')),
  payload: optional(payload),
  encoding: optional(encoding)
});
const SUBSCRIPTION = objectOf({
  topic: text('The topic filter'),
  qos: integer('The QoS'),
  no_local: flag('The client does not receive its own messages'),
  retain_as_published: flag('Messages keep the RETAIN flag with which they were published'),
  retain_handling: integer('When retained messages are sent: 0 always, 1 if it is new, 2 never'),
  subscription_id: optional(integer('The subscription identifier'))
});
const FLIGHT = objectOf({
  packet_id: integer('The packet id'),
  awaits: oneOf(['puback', 'pubrec', 'pubcomp'], 'The packet that the client has to send'),
  qos: integer('The QoS'),
  sent: flag('True if the PUBLISH has been sent'),
  topic: optional(text('The topic, if the message is in memory')),
  payload_size: optional(integer('Size of its payload in bytes'))
});

/** @throws Fault unknownClient */
function sessionOf({ broker }: Context, clientId: string): SessionHandle {
  if (!broker.sessions.has(clientId))
    throw new Fault('unknownClient', `the client "${clientId}" has no session`, 'not_found');
  return broker.sessions.get(clientId);
}

function shownSubscription({ filter, qos, noLocal, retainAsPublished, retainHandling, id }: SubscriptionRecord) {
  return {
    topic: filter,
    qos,
    no_local: noLocal,
    retain_as_published: retainAsPublished,
    retain_handling: retainHandling,
    subscription_id: id
  };
}

function shownFlight({ packetId, awaits, qos, isSent, message }: InFlightMessage) {
  const known = message && { topic: message.topic, payload_size: message.payload.length };
  return { packet_id: packetId, awaits, qos, sent: isSent, ...known };
}

function shownQueued({ message, qos, retain, ids }: QueuedMessage, hasPayload: boolean, wanted?: 'plain' | 'base64') {
  const { payload, encoding, ...rest } = shownMessage(message, wanted);
  const { expiryInterval, timestamp } = message;
  return {
    ...rest,
    qos,
    retain,
    subscription_ids: ids,
    expires_at: expiryInterval < 0 ? undefined : timestamp + expiryInterval * 1000,
    ...(hasPayload ? { payload, encoding } : {})
  };
}

/** Sessions with the messages queued for their clients. */
export const SESSION_QUEUES: readonly Operation[] = [
  operation({
    name: 'lookup_session_state',
    method: 'GET',
    path: '/x/sessions/:clientid',
    ctl: 'sessions show ID',
    descr: 'Look up a session: its client, subscriptions with their options, and what is in flight',
    data: objectOf({
      client: CLIENT,
      subscriptions: listOf(SUBSCRIPTION, 'Its subscriptions'),
      inflight: listOf(FLIGHT, 'Messages to the client, in the order in which they were first sent'),
      awaiting_rel: listOf(integer(), 'Packet ids of messages from the client that wait for PUBREL'),
      queued: integer('Number of queued messages')
    }),
    example: { params: { clientid: 'sensor-2' } },
    run: async (context, { params: { clientid } }) => {
      const session = sessionOf(context, clientid);
      const { inflight, awaitingRel } = session.flights();
      const client = await context.broker.directory.client(clientid);
      return replyWithListings({
        client: client && JSON.parse(writeClient(client)),
        subscriptions: new Listing(session.subscriptions(), shownSubscription),
        inflight: new Listing(inflight, shownFlight),
        awaiting_rel: awaitingRel,
        queued: client?.mqueueLen ?? 0
      });
    }
  }),
  operation({
    name: 'list_session_queue',
    method: 'GET',
    path: '/x/sessions/:clientid/queue',
    ctl: { 'sessions queue ID': 'at topic qos retain from_clientid expires_at payload_size payload' },
    descr: 'List the queued messages of a client, connected or not, in order of arrival',
    paged: 100,
    hasCursor: true,
    query: objectOf({
      encoding: ENCODING,
      payload: optional(flag('false: without the payloads', { default: true }))
    }),
    data: listOf(QUEUED),
    example: { params: { clientid: 'sensor-2' }, data: [] },
    run: async (context, { params: { clientid }, query: { encoding, payload = true } }) => {
      const { limit, skip, cursor } = context.page;
      const page = await sessionOf(context, clientid).queue({ limit, skip, cursor });
      const hasPayloads = payload && !context.hidesPayloads;
      return new Listing(page.entries, (queued) => shownQueued(queued, hasPayloads, encoding), page);
    }
  }),
  operation({
    name: 'clear_session_queue',
    method: 'DELETE',
    path: '/x/sessions/:clientid/queue',
    ctl: 'sessions clear ID',
    descr: 'Drop the queued messages of a client',
    data: objectOf({ dropped: integer('Number of messages that were dropped') }),
    example: { params: { clientid: 'sensor-2' }, data: { dropped: 0 } },
    run: async (context, { params: { clientid } }) => ({ dropped: await sessionOf(context, clientid).clearQueue() })
  })
];
