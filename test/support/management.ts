import { once } from 'node:events';
import { Agent, createServer, type RequestListener, request, type Server } from 'node:http';
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
  const agent = new Agent({ keepAlive: true });
  return {
    port,
    async call(
      method: string,
      path: string,
      body?: unknown,
      headers: Record<string, string> = { authorization: AUTHORIZATION }
    ) {
      const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
      const answer = await send(agent, new URL(path, `http://127.0.0.1:${port}`), { method, headers, text });
      const isJson = /^application\/json\b/.test(answer.headers.get('content-type') ?? '');
      return { ...answer, body: isJson && answer.text !== '' ? JSON.parse(answer.text) : undefined };
    },
    async [Symbol.asyncDispose]() {
      agent.destroy();
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

interface Sent {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly text: string | undefined;
}

/**
 * Send a request, with the content type that `fetch` adds. The tests send thousands of requests, and `node:http` takes less CPU time for one
 * than `fetch`.
 */
function send(agent: Agent, url: URL, { method, headers, text }: Sent) {
  return new Promise<{ status: number; headers: Headers; text: string }>((resolve, reject) => {
    const ofBody =
      text === undefined
        ? {}
        : { 'content-type': 'text/plain;charset=UTF-8', 'content-length': `${Buffer.byteLength(text)}` };
    const outgoing = request(url, { agent, method, headers: { ...ofBody, ...headers } });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const { statusCode, rawHeaders } = incoming;
      const received = new Headers();
      for (let at = 0; at < rawHeaders.length; at += 2) received.append(rawHeaders[at], rawHeaders[at + 1]);
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () =>
        resolve({ status: statusCode as number, headers: received, text: Buffer.concat(chunks).toString() })
      );
    });
    outgoing.end(text);
  });
}
