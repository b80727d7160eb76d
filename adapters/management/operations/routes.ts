import type { RouteRecord } from '../../../lib/index.ts';
import { componentOf, listOf, text } from '../../rest/kit/index.ts';
import { NODE } from '../examples.ts';
import { Listing } from '../listing.ts';
import { type Context, operation } from '../operation.ts';

const DATA = listOf(
  componentOf('Route', 'A topic filter with subscriptions', {
    topic: text('Topic filter, without a share prefix'),
    node: text('Name of the node that has the subscribers')
  })
);

function shape({ topic, node }: RouteRecord): object {
  return { topic, node };
}

function list(context: Context): Listing<RouteRecord> {
  return new Listing(context.positions.page(context, 'routes', {}), shape, ({ count }) => ({ count }));
}

/** Topic filters with subscriptions. */
export const ROUTES = [
  operation({
    name: 'list_routes',
    method: 'GET',
    path: '/routes',
    ctl: { routes: 'topic node' },
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
      return new Listing(route === undefined ? [] : [route], shape);
    }
  })
];
