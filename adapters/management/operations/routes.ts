import { LRUCache } from 'lru-cache';
import Type from 'typebox';
import type { Broker, RouteRecord } from '../../../lib/index.ts';
import { NODE } from '../examples.ts';
import { Listing } from '../listing.ts';
import { type Context, operation } from '../operation.ts';

const DATA = Type.Array(
  Type.Object(
    {
      topic: Type.String({ description: 'Topic filter, without a share prefix' }),
      node: Type.String({ description: 'Name of the node that has the subscribers' })
    },
    { title: 'Route' }
  )
);

function shape({ topic, node }: RouteRecord): object {
  return { topic, node };
}

/** How long a list may be read from page to page without a route that is repeated or left out. */
const WALK_MS = 60_000;
const MAX_WALKS = 1_000;

/** Where the next page of a list begins, by the limit and the number of that page. */
const walks = new WeakMap<Broker, LRUCache<string, { readonly cursor: string; readonly untilMs: number }>>();

/**
 * Routes are in the order of their topics, so a new one may move others to the next page. Therefore a page begins where the page before has
 * ended, if that was asked for a short time ago.
 */
async function list({ broker, page: { number, skip, limit } }: Context): Promise<Listing<RouteRecord>> {
  let known = walks.get(broker);
  if (known === undefined) walks.set(broker, (known = new LRUCache({ max: MAX_WALKS })));
  const now = broker.clock.monotonic();
  const walk = known.get(`${limit}/${number}`);
  const from = walk !== undefined && now < walk.untilMs ? { cursor: walk.cursor } : { skip };
  const { entries, cursor, count } = await broker.directory.routes({ ...from, limit });
  if (cursor !== undefined) known.set(`${limit}/${number + 1}`, { cursor, untilMs: now + WALK_MS });
  return new Listing(entries, { count }, shape);
}

/** The topic filters that have subscriptions. */
export const ROUTES = [
  operation({
    name: 'list_routes',
    method: 'GET',
    path: '/routes',
    descr: 'List routes',
    example: { data: [{ topic: 'alerts/#', node: NODE }] },
    data: DATA,
    paged: 'max',
    run: list
  }),
  operation({
    name: 'lookup_routes',
    method: 'GET',
    path: '/routes/:topic',
    descr: 'Lookup routes to a topic',
    example: { params: { topic: 'commands/sensor-1' }, data: [{ topic: 'commands/sensor-1', node: NODE }] },
    data: DATA,
    run: async ({ broker }, { params: { topic } }) => {
      const route = await broker.directory.route(topic);
      return new Listing(route === undefined ? [] : [route], undefined, shape);
    }
  })
];
