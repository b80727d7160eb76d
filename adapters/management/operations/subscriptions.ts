import type { Static, TObject, TSchema } from 'typebox';
import { recordNames } from '../../../lib/adapter.ts';
import type { Broker, PageParts, QoS, SubscriptionQuery, SubscriptionRecord } from '../../../lib/index.ts';
import { integer, listOf, objectOf, optional, text } from '../../rest/kit/index.ts';
import { NODE } from '../examples.ts';
import { Listing, wholeOf } from '../listing.ts';
import { type Context, type Operation, operation } from '../operation.ts';
import { EARLIER, LATER, type Revision, type RevisionName } from '../revisions.ts';
import { listedFilter, writer } from '../wire.ts';

/** Subscriptions that are read at once for answers without pages. */
const AT_ONCE = 10_000;

/** The conditions on the subscriptions of a client. All given conditions must hold. */
const OF_CLIENT = objectOf({
  qos: optional(integer('The QoS', { min: 0, max: 2 })),
  share: optional(text('The name of the share group; "$queue" for topics that begin with "$queue/"')),
  _match_topic: optional(text('A topic filter that covers the topic filter of the subscription'))
});
/** The conditions of subscription lists. */
const OF_ALL = objectOf({
  clientid: optional(text('The client id')),
  topic: optional(text('The topic filter of the subscription, without a share prefix')),
  _matches: optional(text('A topic that the topic filter of the subscription matches')),
  ...OF_CLIENT.properties
});
const NONE = objectOf({});

type Conditions = Static<typeof OF_ALL>;

const WRITERS = {
  earlier: writer<SubscriptionRecord>(
    'Subscription',
    'A subscription of a client',
    recordNames('subscription', 'earlier')
  ),
  later: writer<SubscriptionRecord>('Subscription', 'A subscription of a client', recordNames('subscription', 'later'))
};

function writerOf({ dialect, hasSharePrefix }: Revision): (record: SubscriptionRecord) => string {
  const { write } = WRITERS[dialect];
  return (record) => write({ ...record, filter: listedFilter(record.filter, hasSharePrefix) });
}

function list(context: Context, given: Conditions): Listing<SubscriptionRecord> {
  const { broker, positions, revision, isOriginal } = context;
  const write = writerOf(revision);
  // the original products ignore other conditions and pages
  if (given.topic !== undefined && isOriginal) return new Listing(withFilter(broker, given.topic), write);
  const parts = positions.page(context, 'subscriptions', queryOf(given));
  return new Listing(parts, write, (end) => wholeOf(revision, given, end));
}

function listOfClient(context: Context, clientId: string, given: Conditions): Listing<SubscriptionRecord> {
  const parts = context.positions.page(context, 'subscriptions', { ...queryOf(given), clientId });
  return new Listing(parts, writerOf(context.revision));
}

function queryOf({ clientid, topic, qos, share, _match_topic, _matches }: Conditions): SubscriptionQuery {
  return {
    clientId: clientid,
    filter: topic,
    qos: qos as QoS | undefined,
    group: share,
    coveredBy: _match_topic,
    matchesTopic: _matches
  };
}

/** All subscriptions with a topic filter. */
async function* withFilter({ directory }: Broker, filter: string): PageParts<SubscriptionRecord> {
  for (let cursor: string | undefined; ; ) {
    for await (const part of directory.parts('subscriptions', { filter, cursor, limit: AT_ONCE })) {
      cursor = part.end?.cursor;
      yield { ...part, end: cursor === undefined ? part.end : undefined };
    }
    if (cursor === undefined) return;
  }
}

/** A subscription of the examples. */
function exampleOf(clientIdName: string): object {
  return { node: NODE, [clientIdName]: 'sensor-1', topic: 'commands/sensor-1', qos: 1 };
}

/**
 * The operations of some revisions.
 * @param ofAll the conditions of lists
 * @param one the conditions on the subscriptions of a client
 */
function operationsIn(revisions: readonly RevisionName[], data: TSchema, ofAll: TObject, one: TObject): Operation[] {
  return [
    operation({
      name: 'list_subscriptions',
      descr: 'A list of subscriptions in the cluster',
      onNode: ['list_node_subscriptions', 'A list of subscriptions on a node'],
      method: 'GET',
      path: '/subscriptions',
      ctl: { 'subs [ID=clientid]': 'clientid topic qos' },
      example: ({ clientIdName }) => ({ query: { _limit: 10 }, data: [exampleOf(clientIdName)] }),
      in: revisions,
      data,
      paged: 'max',
      query: ofAll,
      run: (context, { query }) => list(context, query as Conditions)
    }),
    operation({
      name: 'lookup_client_subscriptions',
      descr: 'A list of subscriptions of a client',
      onNode: ['lookup_client_subscriptions_with_node', 'A list of subscriptions of a client on the node'],
      method: 'GET',
      path: '/subscriptions/:clientid',
      example: ({ clientIdName }) => ({ params: { clientid: 'sensor-1' }, data: [exampleOf(clientIdName)] }),
      in: revisions,
      data,
      paged: 'max',
      query: one,
      run: (context, { params, query }) => listOfClient(context, params.clientid, query as Conditions)
    })
  ];
}

/** Subscriptions. The conditions are those of the later revisions. */
export const SUBSCRIPTIONS = [
  ...operationsIn(EARLIER, listOf(WRITERS.earlier.schema), NONE, NONE),
  ...operationsIn(LATER, listOf(WRITERS.later.schema), OF_ALL, OF_CLIENT)
];
