import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { type Webhook, type WebhookOptions, webhook } from '../../adapters/webhook/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { disposable, Receiver } from './receiver.ts';

let certificates: Certificates;
before(() => {
  certificates = makeCertificates();
});
after(() => certificates[Symbol.dispose]());

/** Runs a task with a broker whose publishes go to a URL. */
async function withHook(
  url: string,
  options: Partial<WebhookOptions>,
  run: (it: { kit: TestBroker; hook: Webhook }) => Promise<void>
): Promise<void> {
  await using kit = await createTestBroker({ leakCheck: false });
  const hook = webhook(kit.broker, { url, rules: [{ event: 'message.publish' }], ...options });
  using _hook = disposable(() => hook.close());
  await run({ kit, hook });
}

/** Runs a task with a server that handles the bytes of its connections itself. */
async function withServer(
  received: (socket: Socket, text: string) => void,
  run: (server: { url: string; sockets: ReadonlySet<Socket>; accepted(): number }) => Promise<void>
): Promise<void> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  const server = createServer((socket) => {
    accepted++;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (bytes) => received(socket, String(bytes)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  using _server = disposable(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  await run({ url: `http://127.0.0.1:${port}/`, sockets, accepted: () => accepted });
}

/** A server that asks for a certificate of the test authority. */
function secureReceiver(): Promise<Receiver> {
  const { server, ca } = certificates;
  return new Receiver({ cert: server.cert, key: server.key, ca: ca.cert, requestCert: true }).open();
}

describe('A webhook over TLS', () => {
  it('verifies the server and presents its client certificate', async () => {
    await using receiver = await secureReceiver();
    const names: unknown[] = [];
    receiver.answer = ({ socket }, response) => {
      names.push((socket as TLSSocket).getPeerCertificate().subject.CN, (socket as TLSSocket).servername);
      response.end();
    };
    const { ca, client } = certificates;
    const tls = { ca: ca.cert, cert: client.cert, key: client.key, servername: 'localhost' };
    await withHook(receiver.url, tls, async ({ kit, hook }) => {
      for (const topic of ['a', 'b']) await kit.broker.publish(topic, '');
      await hook.idle();
      assert.deepEqual([hook.counters.sent, hook.lastError], [2, undefined]);
      assert.deepEqual(names, ['device-1', 'localhost', 'device-1', 'localhost']);
      assert.equal(receiver.connections, 1);
      assert.equal(receiver.received[0].headers.host, `127.0.0.1:${receiver.port}`);
    });
  });

  it('accepts an address in the certificate of the server without the option servername', async () => {
    await using receiver = await secureReceiver();
    const { ca, client } = certificates;
    await withHook(receiver.url, { ca: ca.cert, cert: client.cert, key: client.key }, async ({ kit, hook }) => {
      await kit.broker.publish('a', '');
      await hook.idle();
      assert.deepEqual([hook.counters.sent, hook.lastError], [1, undefined]);
    });
  });

  it('sends nothing to a server that it does not trust or that refuses it, says why, and keeps the event', async () => {
    await using receiver = await secureReceiver();
    const { ca, client, stranger } = certificates;
    const own = { cert: client.cert, key: client.key };
    for (const [options, why] of [
      [own, /certificate/],
      [{ ...own, ca: stranger.cert }, /certificate/],
      [{ ...own, ca: ca.cert, servername: 'other.example' }, /other\.example/],
      [{ ca: ca.cert }, /certificate required|ECONNRESET|socket/],
      [{ ca: ca.cert, cert: stranger.cert, key: stranger.key }, /unknown ca|ECONNRESET|socket/]
    ] as const)
      await withHook(receiver.url, options, async ({ kit, hook }) => {
        await kit.broker.publish('a', '');
        await hook.idle();
        assert.equal((hook.lastError as { code?: string } | undefined)?.code, 'HTTP_FAILED');
        assert.match(hook.lastError?.message ?? '', why);
        assert.deepEqual([hook.size, hook.counters.sent, receiver.received.length], [1, 0, 0]);
      });
  });
});

/** An unrequested answer that changes the protocol. */
const UPGRADE = 'HTTP/1.1 101 Yes\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n';

describe('A webhook with a faulty server', () => {
  it('uses the connection again if the server sends its answers byte by byte', () =>
    withServer(
      async (socket) => {
        for (const byte of 'HTTP/1.1 500 No\r\ncontent-length: 4\r\n\r\nbody') {
          socket.write(byte);
          await setImmediate();
        }
      },
      ({ url, accepted }) =>
        withHook(url, {}, async ({ kit, hook }) => {
          for (let at = 0; at < 5; at++) {
            await kit.broker.publish('a', `${at}`);
            await hook.idle();
            for (let turns = 0; turns < 20; turns++) await setImmediate(); // the rest of the answer arrives
          }
          assert.deepEqual([hook.counters.sent, hook.counters.failed], [5, 0]);
          assert.ok(accepted() < 5, `${accepted()} connections`);
        })
    ));

  it('reads only the beginning of answers without an end', () =>
    withServer(
      (socket) => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${2 ** 30}\r\n\r\n`);
        const more = () => {
          while (!socket.destroyed && socket.write(Buffer.alloc(16 * 1024)));
        };
        socket.on('drain', more);
        more();
      },
      ({ url, sockets }) =>
        withHook(url, {}, async ({ kit, hook }) => {
          await kit.broker.publish('a', '');
          await hook.idle();
          assert.deepEqual([hook.counters.sent, hook.counters.failed], [1, 0]);
          const [socket] = sockets;
          if (socket !== undefined) await new Promise((resolve) => socket.on('close', resolve));
          assert.ok((socket?.bytesWritten ?? 0) < 2 ** 26);
        })
    ));

  it('does not keep the connection if the server answers without reading the request', { timeout: 30_000 }, () =>
    withServer(
      (socket) => {
        socket.pause();
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      },
      ({ url, accepted }) =>
        withHook(url, { concurrency: 1 }, async ({ kit, hook }) => {
          for (const topic of ['a', 'b', 'c']) await kit.broker.publish(topic, 'x'.repeat(9_000_000));
          await hook.idle();
          assert.deepEqual([hook.counters.sent, hook.counters.failed, accepted()], [3, 0, 3]);
        })
    )
  );

  it('treats headers without an end, and answers that are not HTTP, as not received', async () => {
    for (const answer of [`HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(10_000)}`, 'HELO\r\n', UPGRADE])
      await withServer(
        (socket) => socket.write(answer),
        ({ url }) =>
          withHook(url, {}, async ({ kit, hook }) => {
            await kit.broker.publish('a', '');
            for (let left = 20; hook.counters.failed === 0 && left > 0; left--) await kit.clock.advance('1s');
            assert.deepEqual([hook.counters.sent, hook.size], [0, 1], answer.slice(0, 20));
          })
      );
  });

  it('fails at once if the server changes the protocol, without waiting for the timeout', () =>
    withServer(
      (socket) => socket.write(UPGRADE),
      ({ url }) =>
        withHook(url, {}, async ({ kit, hook }) => {
          await kit.broker.publish('a', '');
          await hook.idle();
          assert.match(hook.lastError?.message ?? '', /the server sent an invalid response/);
        })
    ));

  it('keeps within its limits if the server hangs, has few connections, and delays no client', async () => {
    await using receiver = await new Receiver().open();
    receiver.answer = () => {};
    await withHook(receiver.url, { maxBytes: 100_000, concurrency: 4 }, async ({ kit, hook }) => {
      const clients = await Promise.all(Array.from({ length: 20 }, (_, n) => kit.connect({ clientId: `c${n}` })));
      const beganAt = kit.clock.now();
      for (let at = 0; at < 30; at++)
        await Promise.all(clients.map((client) => client.publish('a', 'x'.repeat(1000), { qos: 1 })));
      assert.ok(kit.clock.now() - beganAt < 1000, `${kit.clock.now() - beganAt} ms`);
      await receiver.until(4);
      const outbox = kit.broker.outboxes.get('webhook:default');
      assert.ok((outbox?.bytes ?? 0) <= 100_000 + 4 * 1500, `${outbox?.bytes} bytes`);
      assert.ok(hook.counters.dropped.overflow > 500);
      for (let at = 0; at < 10; at++) await kit.clock.advance('10s');
      assert.ok((outbox?.bytes ?? 0) <= 100_000);
      assert.ok(receiver.connections <= 20, `${receiver.connections} connections`);
      assert.equal(hook.state, 'down');
      const closed = kit.broker.outboxes.get('webhook:default');
      hook.close();
      assert.equal(closed?.state, 'stopped');
    });
  });
});
