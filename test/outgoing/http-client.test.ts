import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { type HttpCall, HttpClient } from '../../adapters/outgoing/index.ts';

const INCOMPLETE = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok';
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** A server that answers the first request of each connection, and resets the connection at the next one. */
async function resettingServer() {
  const seen: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    let count = 0;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      seen.push(String(chunk).split(' ', 1)[0]);
      if (++count === 1) socket.write(ANSWER);
      else socket.resetAndDestroy();
    });
  });
  const { url, [Symbol.asyncDispose]: close } = await listening(server);
  return {
    seen,
    /** Number of connections that have been opened. */
    connections: () => sockets.size,
    url,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await close();
    }
  };
}

async function listening(server: Server) {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/in?secret=1`),
    async [Symbol.asyncDispose]() {
      server.close();
    }
  };
}

/** Send two requests, of which the second one is reset on the connection of the first. */
async function sendTwo(call: HttpCall) {
  await using server = await resettingServer();
  const client = new HttpClient(server.url, { maxSockets: 1, maxBodyBytes: 100 });
  const { signal } = new AbortController();
  try {
    await client.send({ method: 'GET', headers: {} }, signal);
    const outcome = await client.send(call, signal).then(
      ({ body }) => String(body),
      (error: Error & { code: string }) => `${error.code} ${error.message.replace(/:\d+/, '')}`
    );
    return { outcome, seen: server.seen };
  } finally {
    client.close();
  }
}

describe('the client for HTTP servers', () => {
  it('reports an incomplete response if the server ends the connection before the end of the body', async () => {
    await using server = await listening(createServer((socket) => socket.end(INCOMPLETE)));
    const client = new HttpClient(server.url, { maxSockets: 1, maxBodyBytes: 100 });
    const sent = client.send({ method: 'GET', headers: {} }, new AbortController().signal);
    await assert.rejects(sent, { code: 'HTTP_FAILED', message: /\/in failed: the response is incomplete$/ });
  });

  it('does not send a POST again when a reused connection is reset, because the server may have seen it', async () => {
    const { outcome, seen } = await sendTwo({ method: 'POST', headers: {}, body: Buffer.from('1') });
    assert.deepEqual(seen, ['GET', 'POST']);
    assert.match(outcome, /^HTTP_FAILED the request to http:\/\/127\.0\.0\.1\/in failed: /);
  });

  it('sends an idempotent request again when a reused connection is reset', async () => {
    const { outcome, seen } = await sendTwo({ method: 'PUT', headers: {}, body: Buffer.from('1') });
    assert.deepEqual(seen, ['GET', 'PUT', 'PUT']);
    assert.equal(outcome, 'ok');
  });

  it('sends a POST again that receivers recognize by its webhook-id, or that may arrive twice', async () => {
    const calls: HttpCall[] = [
      { method: 'POST', headers: { 'webhook-id': '1' } },
      { method: 'POST', headers: {}, mayRepeat: true }
    ];
    for (const call of calls) {
      const { outcome, seen } = await sendTwo(call);
      assert.deepEqual(seen, ['GET', 'POST', 'POST']);
      assert.equal(outcome, 'ok');
    }
  });

  it('refuses a response that is larger than the limit', async () => {
    await using server = await resettingServer();
    const client = new HttpClient(server.url, { maxSockets: 1, maxBodyBytes: 1 });
    const sent = client.send({ method: 'GET', headers: {} }, new AbortController().signal);
    await assert.rejects(sent, {
      code: 'HTTP_BODY_TOO_LARGE',
      message: /^the response of .*\/in is larger than 1 bytes/
    });
    client.close();
  });

  it('throws the reason of the signal that aborts a request', async () => {
    await using server = await resettingServer();
    const client = new HttpClient(server.url, { maxSockets: 1, maxBodyBytes: 100 });
    const reason = new Error('enough');
    await assert.rejects(client.send({ method: 'GET', headers: {} }, AbortSignal.abort(reason)), reason);
    const limit = new AbortController();
    const sent = client.send({ method: 'GET', headers: {} }, limit.signal);
    limit.abort(reason);
    await assert.rejects(sent, reason);
    client.close();
  });

  it('fails requests that wait for a connection, and those in progress, when it is closed', async () => {
    await using server = await resettingServer();
    const client = new HttpClient(server.url, { maxSockets: 1, maxBodyBytes: 100 });
    const { signal } = new AbortController();
    await client.send({ method: 'GET', headers: {} }, signal);
    const sent = Promise.allSettled([1, 2, 3].map(() => client.send({ method: 'PUT', headers: {} }, signal)));
    client.close();
    const closed = /^the request to http:\/\/127\.0\.0\.1:\d+\/in failed: the client is closed$/;
    for (const outcome of await sent)
      assert.match(String(outcome.status === 'rejected' && outcome.reason.message), closed);
    await assert.rejects(client.send({ method: 'GET', headers: {} }, signal), { code: 'HTTP_FAILED', message: closed });
    assert.deepEqual(server.seen, ['GET']);
    assert.equal(server.connections(), 1);
  });
});
