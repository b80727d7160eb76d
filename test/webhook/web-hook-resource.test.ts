// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are templates of rules
import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { webHook } from '../../adapters/webhook/index.ts';
import type { Params } from '../../lib/rules/types.ts';
import type { Value } from '../../lib/sql/values.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { hostOf, type ResourceHost } from '../support/resource-host.ts';
import { disposable, Receiver } from './receiver.ts';

/** Runs a task with a web server and a resource for it. */
async function withServer(
  given: { readonly config?: Params; readonly params?: Params; readonly path?: string },
  run: (it: ResourceHost & { receiver: Receiver }) => Promise<void>
): Promise<void> {
  await using receiver = await new Receiver().open();
  const { config, params, path = '/hook' } = given;
  const url = `http://127.0.0.1:${receiver.port}${path}`;
  await using host = await hostOf({ type: webHook(), config: { url, ...config }, params });
  await run({ ...host, receiver });
}

/** The request that an output causes. */
async function requestOf(output: Value, params: Params, given: { config?: Params; path?: string } = {}) {
  const requests: Receiver['received'] = [];
  await withServer({ params, ...given }, async ({ add, outbox, receiver }) => {
    add(output);
    await receiver.until(1).catch(() => undefined); // the body need not be JSON
    await outbox.idle();
    assert.equal(outbox.lastError, undefined);
    requests.push(...receiver.received);
  });
  assert.equal(requests.length, 1);
  return requests[0];
}

describe('The action data_to_webserver', () => {
  it('sends the whole output as JSON with POST if it has no template', async () => {
    const { method, url, headers, text } = await requestOf({ clientid: 'c', n: 2n ** 60n, absent: undefined }, {});
    assert.deepEqual([method, url, text], ['POST', '/hook', '{"clientid":"c","n":1152921504606846976}']);
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers['content-length'], `${text.length}`);
    assert.match(String(headers['webhook-id']), /./);
  });

  it('sends its template, and bytes of a payload unchanged', async () => {
    const { text } = await requestOf({ payload: '{"x": 1.5}', topic: 'ä' }, { payload_tmpl: '${topic}: ${payload.x}' });
    assert.equal(text, 'ä: 1.5');
    const { bytes } = await requestOf({ payload: Uint8Array.of(0xff, 0x0a, 0x00) }, { payload_tmpl: '${payload}' });
    assert.deepEqual([...bytes], [0xff, 0x0a, 0x00]);
    const lines = await requestOf({ payload: '\n{"a"}\n' }, { payload_tmpl: '${payload}', method: 'PUT' });
    assert.deepEqual([lines.method, lines.text], ['PUT', '\n{"a"}\n']);
  });

  it('sends no body with GET and DELETE', async () => {
    for (const method of ['GET', 'DELETE']) {
      const { headers, ...request } = await requestOf({ a: 1 }, {}, { config: { method, headers: { 'x-a': 'b' } } });
      assert.deepEqual([request.method, request.text, headers['x-a']], [method, '', 'b']);
      assert.deepEqual([headers['content-type'], headers['transfer-encoding']], [undefined, undefined]);
      const overridden = await requestOf({ a: 1 }, { method });
      assert.deepEqual([overridden.method, overridden.text], [method, '']);
    }
  });

  it('appends its path to the URL, with values that can only be parts of it', async () => {
    const output = { clientid: 'a b', topic: 't/ü', evil: 'x?y#z&q=%2f\r\nHost: other' };
    const cases: readonly (readonly [path: string, template: string, expected: string])[] = [
      ['/hook', '${clientid}', '/hook/a%20b'],
      ['/hook/', '/${topic}/x', '/hook/t/%C3%BC/x'],
      ['', '${topic}', '/t/%C3%BC'],
      ['/hook', '/${evil}', '/hook/x%3Fy%23z%26q%3D%252f%0D%0AHost%3A%20other'],
      ['/hook', '?t=${topic}&e=${evil}', '/hook?t=t%2F%C3%BC&e=x%3Fy%23z%26q%3D%252f%0D%0AHost%3A%20other'],
      ['/hook?key=1', 'a?b=${clientid}', '/hook/a?key=1&b=a%20b'],
      ['/hook?key=1', 'a', '/hook/a?key=1'],
      ['/hook', '${absent}', '/hook/undefined']
    ];
    for (const [path, template, expected] of cases) {
      const { url } = await requestOf(output, { path: template }, { path });
      assert.equal(url, expected, template);
    }
  });

  it('fails for a path that leads upwards, and for invalid characters of a request', () =>
    withServer(
      { params: { path: 'a/${x}/b', headers: { 'x-a': '${header}' } } },
      async ({ action, add, outbox, receiver }) => {
        for (const x of ['..', '.', '../..', 'c/../d', '\ud800'])
          assert.throws(() => add({ x, header: '' }), /segment|URI malformed/, x);
        for (const header of ['a\r\nb: c', 'a\0', 'a\x7f'])
          assert.throws(() => add({ x: 'x', header }), { code: 'HEADER_INVALID' });
        assert.throws(() => action.prepare({ x: 'x', header: '\n' }, undefined as never), { code: 'HEADER_INVALID' });
        add({ x: '...', header: 'tab\tand ü 温度' });
        await outbox.idle();
        assert.equal(receiver.received[0].url, '/hook/a/.../b');
        const header = Buffer.from(String(receiver.received[0].headers['x-a']), 'latin1').toString();
        assert.equal(header, 'tab\tand ü 温度');
      }
    ));

  it('adds headers to those of the resource, and preserves any characters of a body', async () => {
    const { headers, text } = await requestOf(
      { clientid: 'ü', id: 7 },
      { headers: { 'X-Client': '${clientid}', 'x-both': 'action ${id}' } },
      { config: { content_type: 'text/plain', headers: { 'X-Both': 'resource', 'x-number': 5 } } }
    );
    assert.deepEqual(
      [headers['x-both'], headers['x-number'], headers['content-type']],
      ['action 7', '5', 'text/plain']
    );
    assert.equal(text, '{"clientid":"ü","id":7}');
    const own = await requestOf({}, {}, { config: { headers: { 'Content-Type': 'application/cbor' } } });
    assert.equal(own.headers['content-type'], 'application/cbor');
  });

  it('rejects parameters that no request can have', async () => {
    const cases: readonly (readonly [Params, string])[] = [
      [{ path: 'a b' }, 'path'],
      [{ path: 'ä' }, 'path'],
      [{ path: 'a#b' }, 'path'],
      [{ headers: { 'x y': '' } }, 'headers.x y'],
      [{ headers: { 'x-y': 'a\nb' } }, 'headers.x-y'],
      [{ headers: { 'Content-Length': '1' } }, 'headers.Content-Length'],
      [{ headers: { x: {} } }, 'headers.x'],
      [{ method: 'PATCH' }, 'method']
    ];
    for (const [params, field] of cases)
      await assert.rejects(requestOf({}, params), { code: 'PARAM_INVALID', field }, JSON.stringify(params));
  });
});

describe('The resource web_hook', () => {
  it('rejects an unusable configuration without showing a secret', async () => {
    const url = 'http://127.0.0.1/';
    const cases: readonly (readonly [Params, string])[] = [
      [{ url: 'http://user:secret@127.0.0.1/' }, 'url'],
      [{ url: 'http://127.0.0.1/${clientid}' }, 'url'],
      [{ url, pool_size: 2.5 }, 'pool_size'],
      [{ url, pool_size: 0 }, 'pool_size'],
      [{ url, headers: { Host: 'secret' } }, 'headers.Host'],
      [{ url, headers: { 'x-a': 'secret\n' } }, 'headers.x-a'],
      [{ url, ca: 'secret' }, 'ca'],
      [{ url, key: 'secret' }, 'key'],
      [{ url, fail_on_status: 'true' }, 'fail_on_status']
    ];
    for (const [config, field] of cases)
      await assert.rejects(hostOf({ type: webHook(), config }), (error: Error & { code: string; field: string }) => {
        assert.deepEqual([error.code, error.field], ['PARAM_INVALID', field]);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      });
    assert.throws(() => webHook({ publiconly: true } as never), { code: 'OPTION_UNKNOWN' });
  });

  it('applies the outbox limits of its configuration', async () => {
    const config = { url: 'http://127.0.0.1/', request_timeout: 2, pool_size: 3, persisted: true, ca: '' };
    await using host = await hostOf({ type: webHook(), config });
    assert.deepEqual(host.resource.outbox, { isPersisted: true, concurrency: 3, timeout: 2000 });
  });

  it('sends the requests of a rule in order, and no more than its pool concurrently', () =>
    withServer({ config: { pool_size: 2 } }, async ({ add, outbox, receiver }) => {
      for (let at = 0; at < 20; at++) for (const rule of ['a', 'b', 'c', 'd']) add({ rule, at }, undefined, rule);
      await outbox.idle();
      for (const rule of ['a', 'b', 'c', 'd']) {
        const seen = receiver.bodies.filter((body) => body.rule === rule).map(({ at }) => at);
        assert.deepEqual(seen, [...Array(20).keys()]);
      }
      assert.ok(receiver.connections <= 2, `${receiver.connections} connections`);
    }));

  it('counts each answer as success if fail_on_status is false', () =>
    withServer({ config: { fail_on_status: false } }, async ({ add, outbox, outcomes, receiver }) => {
      for (const status of [200, 302, 404, 429, 503]) {
        receiver.answer = (_request, response) => response.writeHead(status, { 'retry-after': '9' }).end();
        add({ status });
        await outbox.idle();
      }
      assert.deepEqual(outcomes, ['sent', 'sent', 'sent', 'sent', 'sent']);
    }));

  it('sends requests again that did not reach the server, with the same id', async () => {
    const first = await new Receiver().open();
    const { url, port } = first;
    first.answer = ({ socket }) => socket.destroy();
    await using host = await hostOf({ type: webHook(), config: { url } });
    const { kit, add, outbox } = host;
    add({ n: 1 });
    await outbox.idle();
    await first.close();
    add({ n: 2 });
    await kit.clock.advance('2s');
    await outbox.idle();
    assert.match(outbox.lastError?.message ?? '', /ECONNREFUSED/);
    await assert.rejects(host.check(), { code: 'HTTP_FAILED', message: /ECONNREFUSED/ });
    await using again = await new Receiver().open(port);
    await host.check();
    await kit.clock.advance('2m');
    await again.until(2);
    assert.deepEqual(
      again.bodies.map(({ n }) => n),
      [1, 2]
    );
    assert.equal(again.received[0].headers['webhook-id'], first.received[0].headers['webhook-id']);
  });

  it('stops waiting for a server that hangs', () =>
    withServer({ config: { request_timeout: 1 } }, async ({ kit, add, outbox, receiver }) => {
      receiver.answer = () => {};
      add({ n: 1 });
      await receiver.until(1);
      await kit.clock.advance('1100ms');
      assert.equal((outbox.lastError as { code?: string } | undefined)?.code, 'SEND_TIMEOUT');
      receiver.answer = (_request, response) => response.end();
      await kit.clock.advance('1s');
      await receiver.until(2);
      await outbox.idle();
      assert.equal(outbox.size, 0);
    }));
});

/** Runs a task with a resource whose server answers with a status. */
function withStatus(
  status: number,
  headers: Readonly<Record<string, string>>,
  run: (it: ResourceHost & { receiver: Receiver }) => Promise<void>
): Promise<void> {
  return withServer({}, async (host) => {
    host.receiver.answer = (_request, response) => response.writeHead(status, headers).end('body');
    host.add({ n: 1 });
    host.add({ n: 2 });
    await host.outbox.idle();
    await run(host);
  });
}

describe('The answers that the resource web_hook gets', () => {
  it('counts requests with a status below 300 as sent', () =>
    withStatus(204, {}, async ({ outcomes }) => assert.deepEqual(outcomes, ['sent', 'sent'])));

  it('names the path of the action, without its query, in the reason', () =>
    withServer({ params: { path: 'events?key=secret' } }, async ({ receiver, add, outbox }) => {
      receiver.answer = (_request, response) => response.writeHead(403).end();
      add({ n: 1 });
      await outbox.idle();
      assert.match(outbox.lastError?.message ?? '', /\/hook\/events has answered with the status 403$/);
    }));

  it('names the template of the path in the reason, so that it is the same for all messages', () =>
    withServer({ params: { path: 'of/${n}?key=${n}' } }, async ({ receiver, add, outbox }) => {
      receiver.answer = (_request, response) => response.writeHead(403).end();
      for (const n of [1, 2]) {
        add({ n });
        await outbox.idle();
        assert.match(outbox.lastError?.message ?? '', /\/hook\/of\/\$\{n\} has answered with the status 403$/);
      }
      assert.deepEqual(
        receiver.received.map(({ url }) => url),
        ['/hook/of/1?key=1', '/hook/of/2?key=2']
      );
    }));

  it('drops requests that the server refuses or redirects, with the reason', async () => {
    for (const status of [300, 302, 304, 400, 401, 404, 413])
      await withStatus(status, { 'retry-after': '9' }, async ({ outbox, outcomes }) => {
        assert.deepEqual(outcomes, ['refused', 'refused'], `${status}`);
        const redirected = status < 400 ? '; redirects are not followed' : '';
        assert.match(
          outbox.lastError?.message ?? '',
          new RegExp(`/hook has answered with the status ${status}${redirected}$`)
        );
      });
  });

  it('sends temporarily failed requests again, in order', async () => {
    for (const status of [408, 425, 429, 500, 501, 503])
      await withStatus(status, {}, async ({ kit, outbox, outcomes, receiver }) => {
        assert.deepEqual([receiver.received.length, outcomes.length, outbox.size], [1, 0, 2]);
        receiver.answer = (_request, response) => response.end();
        await kit.clock.advance('1s');
        await receiver.until(3);
        await outbox.idle();
        assert.deepEqual(
          receiver.bodies.map(({ n }) => n),
          [1, 1, 2]
        );
        assert.deepEqual(outcomes, ['sent', 'sent']);
      });
  });

  it('waits as long as Retry-After requires, but never longer than an hour', async () => {
    const inSeconds = (seconds: number, now: number) => new Date(now + seconds * 1000).toUTCString();
    for (const [status, header, seconds] of [
      [429, () => '100', 100],
      [408, () => '100', 100],
      [500, (now: number) => inSeconds(100, now), 100],
      [503, (now: number) => inSeconds(100, now), 100],
      [503, () => '999999999999', 3600],
      [503, () => 'Fri, 31 Dec 9999 23:59:59 GMT', 3600]
    ] as const)
      await withServer({}, async ({ kit, add, outbox, receiver }) => {
        receiver.answer = (_request, response) =>
          response.writeHead(status, { 'retry-after': header(kit.clock.now()) }).end();
        add({ n: 1 });
        await outbox.idle();
        assert.equal(outbox.state, 'paused');
        receiver.answer = (_request, response) => response.end();
        await kit.clock.advance(`${seconds - 3}s`);
        assert.equal(receiver.received.length, 1, `${status} ${seconds}`);
        await kit.clock.advance('6s');
        await receiver.until(2);
      });
  });

  it('ignores an invalid Retry-After', async () => {
    for (const header of ['soon', '-5', 'Thu, 01 Jan 1970 00:00:00 GMT', ''])
      await withStatus(503, { 'retry-after': header }, async ({ kit, receiver }) => {
        receiver.answer = (_request, response) => response.end();
        await kit.clock.advance('1s');
        await receiver.until(3);
      });
  });
});

let certificates: Certificates;
before(() => {
  certificates = makeCertificates();
});
after(() => certificates[Symbol.dispose]());

describe('The resource web_hook over TLS', () => {
  it('verifies the server, and presents its client certificate', async () => {
    const { server, ca, client, stranger } = certificates;
    await using receiver = await new Receiver({ ...server, ca: ca.cert, requestCert: true }).open();
    const { url } = receiver;
    const tls = { ca: ca.cert, cert: client.cert, key: client.key };
    for (const config of [tls, { ...tls, servername: 'localhost' }]) {
      await using host = await hostOf({ type: webHook(), config: { url, ...config } });
      await host.check();
      host.add({ a: 1 });
      await host.outbox.idle();
      assert.deepEqual([host.outcomes, host.outbox.lastError], [['sent'], undefined]);
    }
    for (const config of [{}, { ...tls, ca: stranger.cert }, { ...tls, servername: 'other.example' }]) {
      await using host = await hostOf({ type: webHook(), config: { url, ...config } });
      await assert.rejects(host.check(), { code: 'HTTP_FAILED', message: /certificate|other\.example/ });
      host.add({ a: 1 });
      await host.outbox.idle();
      assert.match(host.outbox.lastError?.message ?? '', /certificate|other\.example/);
    }
  });

  it('stops connecting to a server that does not answer the handshake', async () => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    using _server = disposable(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const { port } = server.address() as { port: number };
    const config = { url: `https://127.0.0.1:${port}/`, connect_timeout: 2, request_timeout: 60 };
    await using host = await hostOf({ type: webHook(), config });
    const { kit } = host;
    const accepted = () => new Promise<void>((resolve) => server.once('connection', () => resolve()));

    const connected = accepted();
    const refused = assert.rejects(host.check(), { message: /no connection to https:.* within 3000 ms/ });
    await connected;
    await kit.clock.advance('3100ms');
    await refused;

    const again = accepted();
    host.add({ a: 1 });
    await again;
    await kit.clock.advance('2100ms');
    await host.outbox.idle();
    assert.match(host.outbox.lastError?.message ?? '', /no connection within 2000 ms/);

    const giveUp = new AbortController();
    const third = accepted();
    const aborted = assert.rejects(async () => host.resource.check(giveUp.signal), /stop/);
    await third;
    giveUp.abort(new Error('stop'));
    await aborted;
  });
});

describe('The resource web_hook for public addresses only', () => {
  it('does not connect to private addresses', async () => {
    await using receiver = await new Receiver().open();
    for (const name of ['127.0.0.1', 'localhost', '[::1]'])
      for (const [type, more] of [
        [webHook(), { public_only: true }],
        [webHook({ publicOnly: true }), { public_only: false }]
      ] as const) {
        const config = { url: `http://${name}:${receiver.port}/`, ...more };
        await using host = await hostOf({ type, config });
        await assert.rejects(host.check(), { code: 'ADDRESS_PRIVATE' });
        host.add({ a: 1 });
        await host.outbox.idle();
        assert.equal((host.outbox.lastError as { code?: string } | undefined)?.code, 'ADDRESS_PRIVATE');
      }
    assert.equal(receiver.connections, 0);
  });
});
