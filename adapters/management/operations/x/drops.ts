import type { Static } from 'typebox';
import { DROP_REASONS, type DropReason, type DropRecord } from '../../../../lib/index.ts';
import { integer, listOf, objectOf, oneOf, optional, text } from '../../../rest/kit/index.ts';
import { countUnder, Listing } from '../../listing.ts';
import { type Operation, operation } from '../../operation.ts';

const REASONS = Object.keys(DROP_REASONS) as DropReason[];

const CONDITIONS = objectOf({
  clientid: optional(text('Only drops of this client, as receiver or publisher')),
  topic: optional(text('Only drops whose topic matches this topic filter')),
  reason: optional(oneOf(REASONS, 'Only drops for this reason'))
});
const DROP = objectOf({
  at: integer('When the message was dropped, in milliseconds since 1970; of several the last one'),
  topic: text('The topic: its first 256 characters'),
  qos: integer('The QoS of the message'),
  clientid: optional(
    text('The receiver that does not get the message; absent: no receiver, or no member of a share group, gets it')
  ),
  from_clientid: text('The publisher; empty: the app that runs the broker'),
  reason: oneOf(REASONS, 'Why the message was dropped'),
  count: integer('Number of messages in a row to which all this applies')
});

function shown({ at, topic, qos, clientId, publisher, reason, count }: DropRecord): Static<typeof DROP> {
  // undefined fields are not written
  return { at, topic, qos, clientid: clientId, from_clientid: publisher, reason, count };
}

/** The last messages that were dropped. */
export const DROPS: readonly Operation[] = [
  operation({
    name: 'list_drops',
    method: 'GET',
    path: '/x/drops',
    ctl: { 'drops list --client=clientid --topic --reason': 'at topic qos from_clientid clientid reason count' },
    descr: 'List the last 1,000 dropped messages, the newest first',
    paged: 100,
    hasCursor: true,
    query: CONDITIONS,
    data: listOf(DROP),
    example: {
      query: { topic: 'sensors/#', reason: 'no_subscribers' },
      data: [
        {
          at: 1_767_225_600_000,
          topic: 'sensors/1/status',
          qos: 1,
          from_clientid: 'sensor-1',
          reason: 'no_subscribers',
          count: 1
        }
      ]
    },
    run: ({ broker, page: { limit, skip, cursor } }, { query }) => {
      const { clientid: clientId, topic: filter, reason } = query;
      const page = broker.monitor.drops.list({ clientId, filter, reason, limit, skip, cursor });
      return new Listing(page.entries, shown, { count: countUnder(query, page.count), cursor: page.cursor });
    }
  }),
  operation({
    name: 'clear_drops',
    method: 'DELETE',
    path: '/x/drops',
    ctl: 'drops clear',
    descr: 'Forget the dropped messages',
    example: {},
    run: ({ broker }) => broker.monitor.drops.clear()
  })
];
