import * as Type from 'typebox';
import type { ListenerHandle } from '../../../lib/adapter.ts';
import { anyOf, componentOf, integer, listOf, recordOf, text } from '../../rest/kit/index.ts';
import { NODE } from '../examples.ts';
import { type Context, operation } from '../operation.ts';
import { addressText } from '../wire.ts';

const DATA = listOf(
  componentOf('Listener', 'A listener of the broker', {
    protocol: text(
      'Transport: "mqtt:tcp", "mqtt:ssl", "mqtt:ws", "mqtt:wss", "mqtt:unix", "http:management", "https:management"'
    ),
    listen_on: text('Address'),
    acceptors: integer('Number of accept loops'),
    max_conns: integer('Maximum number of connections; 0: unlimited'),
    current_conns: integer('Number of connections'),
    shutdown_count: anyOf(
      [recordOf(integer()), listOf(Type.Never())],
      'Number of connections that have ended, by reason; [] if there are none'
    )
  })
);

const EXAMPLE = {
  protocol: 'mqtt:tcp',
  listen_on: '127.0.0.1:1883',
  acceptors: 1,
  max_conns: 1000,
  current_conns: 0,
  shutdown_count: []
};

/** The listeners of the broker, with the HTTP servers of `listenHttp`. Listeners of the host app are not known. */
function showListeners({ broker, revision }: Context): Record<string, unknown>[] {
  return broker.listeners().map((listener) => {
    const { acceptors, maxConnections, currentConnections, shutdownCount } = listener.info();
    return {
      protocol: protocolOf(listener, revision.hasWebSocketPort),
      listen_on: addressText(listener.address),
      acceptors,
      max_conns: maxConnections,
      current_conns: currentConnections,
      // as in the original: a list if empty, otherwise an object
      shutdown_count: Object.keys(shutdownCount).length === 0 ? [] : shutdownCount
    };
  });
}

function protocolOf({ protocol, address }: ListenerHandle, hasPort: boolean): string {
  const isWebSocket = protocol === 'mqtt:ws' || protocol === 'mqtt:wss';
  return isWebSocket && hasPort && address?.port !== undefined ? `${protocol}:${address.port}` : protocol;
}

/** Listeners. */
export const LISTENERS = [
  operation({
    name: 'list_node_listeners',
    ofAllNodes: {
      field: 'listeners',
      name: 'list_listeners',
      ctl: { listeners: 'protocol listen_on current_conns max_conns' },
      descr: 'A list of listeners in the cluster'
    },
    method: 'GET',
    path: '/nodes/:node/listeners',
    descr: 'A list of listeners on the node',
    example: { params: { node: NODE }, data: [EXAMPLE] },
    data: DATA,
    run: (context) => showListeners(context)
  })
];
