import type { Server as HttpServer, IncomingMessage } from 'node:http';
import type { Http2SecureServer } from 'node:http2';
import type { Server as HttpsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { checkBroker } from '../../lib/adapter.ts';
import type { Broker } from '../../lib/index.ts';
import { type HttpMounts, mountsOf } from '../rest/index.ts';
import { upgradesOf } from '../upgrades/index.ts';
import { Console } from './console.ts';
import { type DashboardOptions, readDashboardOptions } from './options.ts';

/** The management console of a broker, ready to be mounted. */
export interface Dashboard extends HttpMounts {
  /**
   * Take an upgrade request of a server of node:http for the WebSocket client of the page, `<mount>/mqtt`, with the arguments of the event
   * `upgrade`. It needs the session of an administrator, and then CONNECT needs credentials as for any client. Bound; never throws.
   *
   * ```ts
   * server.on('upgrade', (request, socket, head) => {
   *   if (!console.handleUpgrade(request, socket, head)) socket.destroy(); // or another handler
   * });
   * ```
   * @returns false: the request is for another path, and nothing was done with it
   */
  readonly handleUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;
  /**
   * Take the upgrade requests of a server before its own `upgrade` listeners, as `attachWebSocket` does: packages for other
   * WebSocket paths refuse what they do not know. Requests for other paths are left to them.
   * @param server of node:http, node:https, or node:http2 with `allowHTTP1`
   * @returns a function that ends this
   */
  readonly attachUpgrades: (server: HttpServer | HttpsServer | Http2SecureServer) => () => void;
}

/**
 * Make the management console of a broker: a web page that shows what the broker does and lets people act.
 *
 * ```ts
 * const console = dashboard(broker, { prefix: '/console' });
 * app.use(console.node); // Express; the other routes of the app stay as they are
 * ```
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function dashboard(broker: Broker, options: DashboardOptions = {}): Dashboard {
  checkBroker(broker, 'dashboard');
  const settings = readDashboardOptions(options);
  const service = new Console(broker, settings, options);
  const handleUpgrade: Dashboard['handleUpgrade'] = (request, socket, head) =>
    service.upgrades.take(request, socket, head);
  return {
    ...mountsOf(broker, [service], 'answering a request of the console'),
    handleUpgrade,
    attachUpgrades: (server) => upgradesOf(server as HttpServer).take(handleUpgrade)
  };
}
