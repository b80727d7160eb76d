import type { Static } from 'typebox';
import type { BlockedClient, BusyClient } from '../../../../lib/index.ts';
import { flag, integer, listOf, number, objectOf, oneOf, optional, text } from '../../../rest/kit/index.ts';
import { Listing } from '../../listing.ts';
import { type Context, type Operation, operation } from '../../operation.ts';
import { CLIENT, CONDITIONS, queryOf, write as writeClient } from '../clients.ts';

const CLIENT_ID = text('The client id');
/** The settings. @param defaults of those that may be left out in a request */
const settings = (defaults: readonly [thresholdMs?: number, limit?: number, expirySec?: number]) => ({
  threshold_ms: optional(
    integer('Shorter latencies are not considered', { min: 1, max: 86_400_000, default: defaults[0] })
  ),
  limit: optional(integer('Number of places of the ranking', { min: 1, max: 1_000, default: defaults[1] })),
  expiry_s: optional(
    integer('An entry that was not slow for so many seconds is removed', { min: 1, max: 86_400, default: defaults[2] })
  )
});

const SETTINGS = objectOf({
  enabled: optional(flag('false: stop measuring latencies', { default: true })),
  ...settings([500, 10, 300])
});
const RANKING = objectOf({
  enabled: flag('True if latencies are measured'),
  ...settings([]),
  subscriptions: listOf(
    objectOf({
      clientid: CLIENT_ID,
      topic: text('The topic of the messages'),
      latency_ms: integer(
        'The greatest time from publication to acknowledgement, or with QoS 0 to the handover to the connection'
      ),
      count: integer('Number of slow messages'),
      at: integer('Time of the last one, in milliseconds since 1970')
    }),
    'The slowest first'
  )
});
const BLOCKED = objectOf({
  clientid: CLIENT_ID,
  stalled_since: integer('Time since which its connection has sent nothing, in milliseconds since 1970'),
  unsent_bytes: integer('Bytes that its connection has not sent'),
  queued_messages: integer('Messages that wait behind them in memory'),
  queued_bytes: integer('The size of these messages, in bytes')
});

const BUSY = objectOf({
  client: CLIENT,
  received_per_s: number('PUBLISH packets received from the client in a second'),
  sent_per_s: number('PUBLISH packets sent to the client in a second')
});

/** A rate with one decimal place. */
function rounded(perSec: number): number {
  return Math.round(perSec * 10) / 10;
}

function shownBusy({ client, receivedPerSec, sentPerSec }: BusyClient): string {
  return `{"client":${writeClient(client)},"received_per_s":${rounded(receivedPerSec)},"sent_per_s":${rounded(sentPerSec)}}`;
}

function readRanking({ broker }: Context): Static<typeof RANKING> {
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

/** Slow subscribers: a ranking by latency, and the connections whose output is currently blocked. And the clients with the most messages. */
export const SLOW: readonly Operation[] = [
  operation({
    name: 'list_slow_subscriptions',
    method: 'GET',
    path: '/x/slow_subscriptions',
    ctl: { 'slow subscriptions': 'clientid topic latency_ms count at' },
    descr: 'List the clients and topics with the longest latencies, the slowest first',
    data: RANKING,
    example: { data: { enabled: false, subscriptions: [] } },
    run: (context) => readRanking(context)
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
      return readRanking(context);
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
    data: listOf(BLOCKED),
    example: { data: [] },
    run: async ({ broker, page }) => {
      const { limit: most, skip, cursor } = page;
      const found = await broker.monitor.blockedClients.list({ limit: most, skip, cursor });
      return new Listing(found.entries, shown, { count: -1, cursor: found.cursor });
    }
  }),
  operation({
    name: 'list_busiest_clients',
    method: 'GET',
    path: '/x/busiest_clients',
    ctl: {
      'clients busiest [PART=_like_clientid] --by --places=limit':
        'client.clientid client.username client.ip_address received_per_s sent_per_s'
    },
    descr: 'List the connected clients with the most messages per second, the busiest first, measured over one second',
    query: objectOf({
      ...CONDITIONS.properties,
      by: optional(
        oneOf(['received', 'sent'], 'The messages that decide: received from the client, or sent to it', {
          default: 'received'
        })
      ),
      limit: optional(integer('Maximum number of clients', { default: 10, min: 1, max: 1_000 }))
    }),
    data: listOf(BUSY),
    example: { query: { by: 'received' }, data: [] },
    run: async (context, { query: { by, limit: most, ...conditions } }) => {
      const query = { ...queryOf(context, conditions), by, limit: most };
      return new Listing(await context.broker.monitor.busiestClients.list(query), shownBusy);
    }
  })
];
