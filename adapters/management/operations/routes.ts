import Type from 'typebox';
import type { RouteRecord } from '../../../lib/index.ts';
import { Listing } from '../listing.ts';
import { operation } from '../operation.ts';

const DATA = Type.Array(
  Type.Object({
    topic: Type.String({ description: 'Topic filter, without a share prefix' }),
    node: Type.String({ description: 'Name of the node that has the subscribers' })
  })
);

function shape({ topic, node }: RouteRecord): object {
  return { topic, node };
}

/** The topic filters that have subscriptions. */
export const ROUTES = [
  operation({
    name: 'list_routes',
    method: 'GET',
    path: '/routes',
    descr: 'List routes',
    data: DATA,
    paged: 'max',
    run: async ({ broker, page: { skip, limit } }) => {
      const { entries, count } = await broker.directory.routes({ skip, limit });
      return new Listing(entries, { count }, shape);
    }
  }),
  operation({
    name: 'lookup_routes',
    method: 'GET',
    path: '/routes/:topic',
    descr: 'Lookup routes to a topic',
    data: DATA,
    run: async ({ broker }, { params: { topic } }) => {
      const route = await broker.directory.route(topic);
      return new Listing(route === undefined ? [] : [route], undefined, shape);
    }
  })
];
