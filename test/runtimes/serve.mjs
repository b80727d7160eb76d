// The HTTP server of each runtime, for a handler in the form of the Fetch API.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const LOCAL = { port: 0, hostname: '127.0.0.1' };

/** Serve a handler on a free port. Its second parameter is what the runtime has beside the request. */
export const serveOn = {
  bun: async (handler) => {
    const server = globalThis.Bun.serve({ ...LOCAL, fetch: handler });
    return { port: server.port, close: () => server.stop(true) };
  },
  deno: async (handler) => {
    const server = globalThis.Deno.serve({ ...LOCAL, onListen: () => {} }, handler);
    return { port: server.addr.port, close: () => server.shutdown() };
  },
  node: async (handler) => {
    const server = createServer((incoming, outgoing) => answerOnNode(handler, incoming, outgoing));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return { port: server.address().port, close: () => server.closeAllConnections() ?? server.close() };
  }
};

/** IP address of the client, from what the runtime has beside the request. */
export const remoteAddressOn = {
  bun: (request, server) => server.requestIP(request)?.address,
  deno: (_request, { remoteAddr }) => remoteAddr.hostname,
  node: (_request, { socket }) => socket.remoteAddress
};

async function answerOnNode(handler, incoming, outgoing) {
  const { method, headers, url } = incoming;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const request = new Request(`http://${headers.host}${url}`, {
    method,
    headers,
    ...(hasBody ? { body: Readable.toWeb(incoming), duplex: 'half' } : {})
  });
  const response = await handler(request, { socket: incoming.socket });
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) outgoing.end();
  else await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => {}); // the client has gone
}
