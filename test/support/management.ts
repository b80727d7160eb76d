import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Broker, type BrokerOptions, createBroker } from 'embermq';
import { type ManagementOptions, managementApi } from 'embermq/management';

/** The secret of the application that `startBroker` adds. */
export const SECRET = 'a secret';
/** The header with the credentials of the application that `startBroker` adds. */
export const AUTHORIZATION = `Basic ${Buffer.from(`app:${SECRET}`).toString('base64')}`;

/** Start a broker with an application that may use the management interface. */
export async function startBroker(options: BrokerOptions = {}): Promise<Broker> {
  const broker = createBroker({ passwordCost: 10, ...options });
  await broker.start();
  await broker.applications.create({ id: 'app', secret: SECRET });
  return broker;
}

/**
 * Serve a listener over HTTP on a free port. `call` sends the credentials of the application.
 * @param prepare receives the server before it has the listener
 */
export async function serve(listener: RequestListener, prepare: (server: Server) => void = () => {}) {
  const server = createServer();
  prepare(server);
  server.on('request', listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async call(
      method: string,
      path: string,
      body?: unknown,
      headers: Record<string, string> = { authorization: AUTHORIZATION }
    ) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers,
        body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
      });
      const text = await response.text();
      const isJson = /^application\/json\b/.test(response.headers.get('content-type') ?? '');
      return {
        status: response.status,
        headers: response.headers,
        text,
        body: isJson && text !== '' ? JSON.parse(text) : undefined
      };
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    }
  };
}

/** Serve the management interface of a broker below `/api`, for any revision. */
export function serveManagement(broker: Broker, options: ManagementOptions = {}) {
  return serve(managementApi(broker, { prefix: '/api', ...options }).node);
}
