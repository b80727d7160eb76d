import * as Type from 'typebox';
import type { BlockedClient } from '../../../../lib/index.ts';
import { Listing } from '../../listing.ts';
import { type Context, type Operation, operation } from '../../operation.ts';

const CLIENT_ID = Type.String({ description: 'The client id' });
const threshold = { minimum: 1, maximum: 86_400_000, description: 'Shorter latencies are not considered' };
const limit = { minimum: 1, maximum: 1_000, description: 'Number of places of the ranking' };
const expiry = {
  minimum: 1,
  maximum: 86_400,
  description: 'An entry that was not slow for so many seconds is removed'
};

const SETTINGS = Type.Object({
  enabled: Type.Optional(Type.Boolean({ default: true, description: 'false: stop measuring latencies' })),
  threshold_ms: Type.Optional(Type.Integer({ ...threshold, default: 500 })),
  limit: Type.Optional(Type.Integer({ ...limit, default: 10 })),
  expiry_s: Type.Optional(Type.Integer({ ...expiry, default: 300 }))
});
const RANKING = Type.Object({
  enabled: Type.Boolean({ description: 'True if latencies are measured' }),
  threshold_ms: Type.Optional(Type.Integer(threshold)),
  limit: Type.Optional(Type.Integer(limit)),
  expiry_s: Type.Optional(Type.Integer(expiry)),
  subscriptions: Type.Array(
    Type.Object({
      clientid: CLIENT_ID,
      topic: Type.String({ description: 'The topic of the messages' }),
      latency_ms: Type.Integer({
        description:
          'The greatest time from publication to acknowledgement, or with QoS 0 to the handover to the connection'
      }),
      count: Type.Integer({ description: 'Number of slow messages' }),
      at: Type.Integer({ description: 'Time of the last one, in milliseconds since 1970' })
    }),
    { description: 'The slowest first' }
  )
});
const BLOCKED = Type.Object({
  clientid: CLIENT_ID,
  stalled_since: Type.Integer({
    description: 'Time since which its connection has sent nothing, in milliseconds since 1970'
  }),
  unsent_bytes: Type.Integer({ description: 'Bytes that its connection has not sent' }),
  queued_messages: Type.Integer({ description: 'Messages that wait behind them in memory' }),
  queued_bytes: Type.Integer({ description: 'The size of these messages, in bytes' })
});

function ranking({ broker }: Context): Type.Static<typeof RANKING> {
  const { slowSubscriptions } = broker.monitor;
  const { settings } = slowSubscriptions;
  const subscriptions = slowSubscriptions.list().map(({ clientId, topic, latencyMs, count, at }) => ({
    clientid: clientId,
    topic,
    latency_ms: latencyMs,
    count,
    at
  }));
  if (settings === undefined) return { enabled: false, subscriptions };
  const { thresholdMs, limit: places, expiryMs } = settings;
  return {
    enabled: true,
    threshold_ms: thresholdMs,
    limit: places,
    expiry_s: Math.round(expiryMs / 1_000),
    subscriptions
  };
}

function shown({ clientId, stalledSince, unsentBytes, queuedMessages, queuedBytes }: BlockedClient) {
  return {
    clientid: clientId,
    stalled_since: stalledSince,
    unsent_bytes: unsentBytes,
    queued_messages: queuedMessages,
    queued_bytes: queuedBytes
  };
}

/** Slow subscribers: a ranking by latency, and the connections whose output is currently blocked. */
export const SLOW: readonly Operation[] = [
  operation({
    name: 'list_slow_subscriptions',
    method: 'GET',
    path: '/x/slow_subscriptions',
    ctl: { 'slow subscriptions': 'clientid topic latency_ms count at' },
    descr: 'List the clients and topics with the longest latencies, the slowest first',
    data: RANKING,
    example: { data: { enabled: false, subscriptions: [] } },
    run: (context) => ranking(context)
  }),
  operation({
    name: 'measure_slow_subscriptions',
    method: 'PUT',
    path: '/x/slow_subscriptions',
    ctl: 'slow start --threshold=threshold_ms --places=limit',
    descr: 'Start measuring latencies, or change the limits',
    body: SETTINGS,
    data: RANKING,
    example: {
      body: { threshold_ms: 200 },
      data: { enabled: true, threshold_ms: 200, limit: 10, expiry_s: 300, subscriptions: [] }
    },
    run: (context, { body: { enabled = true, threshold_ms: thresholdMs, limit: places, expiry_s } }) => {
      const { slowSubscriptions } = context.broker.monitor;
      const expiryMs = expiry_s === undefined ? undefined : expiry_s * 1_000;
      if (enabled) slowSubscriptions.start({ thresholdMs, limit: places, expiryMs });
      else slowSubscriptions.stop();
      return ranking(context);
    }
  }),
  operation({
    name: 'stop_slow_subscriptions',
    method: 'DELETE',
    path: '/x/slow_subscriptions',
    ctl: 'slow stop',
    descr: 'Stop measuring latencies, and delete the ranking',
    example: {},
    run: ({ broker }) => broker.monitor.slowSubscriptions.stop()
  }),
  operation({
    name: 'list_slow_consumers',
    method: 'GET',
    path: '/x/slow_consumers',
    ctl: { 'slow consumers': 'clientid stalled_since unsent_bytes queued_messages queued_bytes' },
    descr: 'List the clients that currently read more slowly than messages are sent to them',
    paged: 100,
    hasCursor: true,
    data: Type.Array(BLOCKED),
    example: { data: [] },
    run: async ({ broker, page }) => {
      const { limit: most, skip, cursor } = page;
      const found = await broker.monitor.blockedClients.list({ limit: most, skip, cursor });
      return new Listing(found.entries, { count: -1, cursor: found.cursor }, shown);
    }
  })
];
