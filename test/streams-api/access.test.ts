import assert from 'node:assert/strict';
import { request } from 'node:http';
import { describe, it } from 'node:test';
import { createBroker } from 'embermq';
import { type StreamsApiOptions, streamsApi } from 'embermq/streams-api';
import { Fault } from '../../adapters/rest/index.ts';
import { AUTHORIZATION, serve, startBroker } from '../support/management.ts';
import { FakePlugins } from './fake-plugins.ts';

const PLUGIN = { name: 'random', file: 'http://127.0.0.1/random.zip' };
/** Headers that proxies set; some set only one of the last ones. */
const FORWARDED = [
  ...['x-forwarded-for', 'forwarded', 'x-real-ip', 'via', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port'],
  ...['x-forwarded-server', 'x-client-ip', 'true-client-ip', 'cf-connecting-ip', 'x-envoy-external-address']
];
const PROXIED = { 'x-forwarded-for': '192.0.2.1' };

/** Serve the interface of a broker with the application `app` while `use` runs. */
async function serving(
  options: StreamsApiOptions,
  use: (server: Awaited<ReturnType<typeof serve>>) => Promise<unknown>
): Promise<void> {
  const broker = await startBroker();
  await using server = await serve(streamsApi(broker, { plugins: new FakePlugins(), ...options }).node);
  try {
    await use(server);
  } finally {
    await broker.stop();
  }
}

/** The status of a GET with a specific `Host` header, which `fetch` does not send. */
function statusAs(port: number, path: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ port, host: '127.0.0.1', path, headers: { host }, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

describe('The interface of streams without the option credentials', () => {
  it('asks everyone for credentials of an application, and names the way to do without', async () => {
    await serving({}, async ({ call }) => {
      const answer = await call('GET', '/rules', undefined, {});
      assert.equal(answer.status, 401);
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Basic /);
      assert.match(answer.text, /with --rules-credentials remote, or credentials: 'remote' in an app/);
      assert.equal((await call('GET', '/rules')).status, 200);
      assert.equal((await call('POST', '/plugins/sources', PLUGIN)).status, 201);
    });
  });
});

describe('The interface of streams with credentials: "remote"', () => {
  it('answers requests of this machine without credentials', async () => {
    await serving({ credentials: 'remote' }, async ({ call, port }) => {
      assert.equal((await call('GET', '/rules', undefined, {})).status, 200);
      assert.equal((await call('GET', '/rules', undefined, { authorization: 'Basic bogus' })).status, 200);
      assert.equal(await statusAs(port, '/rules', `localhost:${port}`), 200);
    });
  });

  it('asks for credentials if a proxy has forwarded the request, or if it was sent to another name', async () => {
    await serving({ credentials: 'remote' }, async ({ call, port }) => {
      for (const name of FORWARDED)
        assert.equal((await call('GET', '/rules', undefined, { [name]: '192.0.2.1' })).status, 401, name);
      const answer = await call('GET', '/rules', undefined, PROXIED);
      assert.equal(answer.status, 401);
      assert.match(answer.text, /: requests that are not from this machine to a loopback address need them\n$/);
      assert.equal((await call('GET', '/rules', undefined, { ...PROXIED, authorization: AUTHORIZATION })).status, 200);
      assert.equal(await statusAs(port, '/rules', 'rebound.example'), 401);
      assert.equal(await statusAs(port, '/rules', '192.168.0.1'), 401);
    });
  });

  it('lets no page of another origin or site change anything', async () => {
    await serving({ credentials: 'remote' }, async ({ call, port }) => {
      const status = async (method: string, headers: Record<string, string>) =>
        (await call(method, '/rules/r1/start', undefined, headers)).status;
      assert.equal(await status('POST', { origin: 'https://page.example' }), 403);
      assert.equal(await status('POST', { origin: `http://127.0.0.1:${port}` }), 404);
      assert.equal(await status('POST', { 'sec-fetch-site': 'cross-site' }), 403);
      assert.equal(await status('POST', { 'sec-fetch-site': 'same-origin' }), 404);
      assert.equal((await call('GET', '/rules', undefined, { 'sec-fetch-site': 'cross-site' })).status, 200);
    });
    await serving({ credentials: 'remote', origins: 'https://page.example' }, async ({ call }) => {
      const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://page.example' };
      assert.equal((await call('POST', '/rules/r1/start', undefined, headers)).status, 404);
    });
  });
});

/** The operations that load code. */
const CODE = [
  ['POST', '/plugins/sources', PLUGIN, 201],
  ['PUT', '/plugins/sources/random', PLUGIN, 200],
  ['POST', '/udf/javascript', { id: 'a', script: 'function a() {}' }, 201],
  ['PUT', '/udf/javascript/a', { script: 'function a() {}' }, 200]
] as const;

describe('Operations of the interface of streams that load code', () => {
  for (const credentials of ['remote', 'none'] as const)
    it(`requires an application or an administrator with credentials: "${credentials}", even from this machine`, async () => {
      await serving({ credentials }, async ({ call, port }) => {
        const own = { origin: `http://127.0.0.1:${port}` };
        for (const [method, path, body, status] of CODE) {
          const refused = await call(method, path, body, own);
          assert.equal(refused.status, 401, path);
          assert.match(refused.text, /this operation loads code, .*: add an application with --app ID:SECRET/);
          const wrong = { authorization: `Basic ${Buffer.from('app:wrong').toString('base64')}` };
          assert.equal((await call(method, path, body, wrong)).status, 401);
          assert.equal((await call(method, path, body, { ...own, authorization: AUTHORIZATION })).status, status, path);
        }
      });
    });

  it('refuses requests without credentials and names the way to add them, for any configured identities', async () => {
    for (const [credentials, remedy] of [
      [
        'applications',
        /of an application: add an application with --app ID:SECRET, or in the app that runs the broker$/
      ],
      ['users', /of an administrator: add a user with this role with embermq ctl users add, or in the app that runs/],
      [['applications', 'users'], /of an application or an administrator: add an application with --app ID:SECRET/],
      ['remote', /of an application or an administrator: add an application with --app ID:SECRET/]
    ] as const)
      await serving({ credentials }, async ({ call }) => {
        for (const [method, path, body] of CODE) {
          const { status, text } = await call(method, path, body, PROXIED);
          assert.equal(status, 401, path);
          assert.match(text.trimEnd(), remedy);
          assert.doesNotMatch(text, /need none|requests that are not from this machine/, path);
        }
      });
  });

  it('requires the scope administrator in the answer of a function; true is not enough', async () => {
    for (const [answer, status] of [
      [true, 401],
      ['viewer', 401],
      ['administrator', 201]
    ] as const)
      await serving({ credentials: () => answer }, async ({ call }) => {
        const headers = { authorization: 'Bearer x' };
        const { status: found } = await call('POST', '/plugins/sources', PLUGIN, headers);
        assert.equal(found, status, String(answer));
      });
  });

  it('requires the scope that the host app sets on the request with "host"', async () => {
    const broker = await startBroker();
    const { node } = streamsApi(broker, { credentials: 'host', plugins: new FakePlugins() });
    for (const [embermqScope, status] of [
      [undefined, 401],
      ['viewer', 401],
      ['administrator', 201]
    ] as const) {
      await using server = await serve((request, response) => {
        node(Object.assign(request, { embermqScope }), response);
      });
      assert.equal((await server.call('POST', '/plugins/sources', PLUGIN, {})).status, status);
      assert.equal((await server.call('GET', '/rules', undefined, {})).status, 200);
    }
    await broker.stop();
  });
});

describe('The interface of streams with credentials', () => {
  it('accepts credentials of a function, which gets bearer tokens as well', async () => {
    const seen: unknown[] = [];
    const credentials = (id: string, secret: string) => {
      seen.push([id, secret]);
      return secret === 'good' && 'viewer';
    };
    await serving({ credentials }, async ({ call }) => {
      const authorization = 'Bearer good';
      assert.equal((await call('GET', '/rules', undefined, { authorization })).status, 200);
      assert.equal((await call('GET', '/rules', undefined, { authorization: 'Bearer bad' })).status, 401);
      assert.deepEqual(seen[0], ['', 'good']);
      const body = { sql: 'SELECT * FROM demo', rows: [] };
      assert.equal((await call('POST', '/ruletest', body, { authorization })).status, 400, 'a viewer may test');
      assert.equal((await call('POST', '/rules/r1/stop', undefined, { authorization })).status, 403);
    });
  });

  it('requires no credentials with "none", and checks the Host header', async () => {
    await serving({ credentials: 'none' }, async ({ call, port }) => {
      assert.equal((await call('GET', '/rules', undefined, PROXIED)).status, 200);
      assert.equal(await statusAs(port, '/rules', 'rebound.example'), 403);
    });
  });
});

describe('The interface of streams in a browser', () => {
  it('sends no CORS headers by default', async () => {
    await serving({ credentials: 'remote' }, async ({ call }) => {
      const { headers } = await call('GET', '/rules', undefined, { origin: 'https://page.example' });
      assert.deepEqual(
        [...headers.keys()].filter((name) => name.startsWith('access-control')),
        []
      );
    });
  });

  it('lets pages of the option origins read and change, and answers their preflights', async () => {
    await serving({ credentials: 'remote', origins: 'https://page.example' }, async ({ call }) => {
      const origin = 'https://page.example';
      const read = await call('GET', '/rules', undefined, { origin });
      assert.equal(read.headers.get('access-control-allow-origin'), origin);
      assert.equal((await call('POST', '/rules/r1/start', undefined, { origin })).status, 404);
      const ask = { origin, 'access-control-request-method': 'DELETE' };
      const preflight = await call('OPTIONS', '/rules/r1', undefined, ask);
      assert.equal(preflight.status, 204);
      assert.equal(preflight.headers.get('access-control-allow-methods'), 'DELETE, GET, HEAD, PUT');
      assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /Content-Type/);
      const other = await call('GET', '/rules', undefined, { origin: 'https://other.example' });
      assert.equal(other.headers.get('access-control-allow-origin'), null);
    });
  });
});

describe('Requests that the interface of streams refuses', () => {
  it('refuses a body that is too large, or too deep', async () => {
    await serving({ credentials: 'remote', maxBodyBytes: 200, maxDepth: 5 }, async ({ call }) => {
      const large = await call('POST', '/rules', JSON.stringify({ id: 'x'.repeat(300) }), {});
      assert.equal(large.status, 413);
      assert.equal(large.text, 'the body is larger than 200 bytes (option maxBodyBytes)\n');
      const deep = await call('POST', '/rules', `{"a":${'['.repeat(20)}${']'.repeat(20)}}`, {});
      assert.equal(deep.status, 400);
      assert.match(deep.text, /it has more than 5 levels of objects and arrays \(option maxDepth\)/);
    });
  });

  it('refuses requests while the service is stopped', async () => {
    await using broker = createBroker();
    await broker.start();
    await broker.streams.stop();
    await using server = await serve(streamsApi(broker, { credentials: 'remote' }).node);
    const body = { id: 'r1', sql: 'SELECT * FROM demo', actions: [{ log: {} }] };
    const { status, text, headers } = await server.call('POST', '/rules', body, {});
    assert.deepEqual([status, text], [503, 'Create rule error: the stream service is stopped\n']);
    assert.equal(headers.get('retry-after'), '5');
  });

  it('reports an unexpected error, and does not show it in the answer', async () => {
    await using broker = createBroker();
    await broker.start();
    broker.streams.rules.list = async () => {
      throw new TypeError('a bug');
    };
    const errors: unknown[] = [];
    broker.on('error', ({ error }) => errors.push(error));
    await using server = await serve(streamsApi(broker, { credentials: 'remote' }).node);
    const { status, text } = await server.call('GET', '/rules', undefined, {});
    assert.equal(status, 500);
    assert.equal(text, 'an internal error has occurred; the broker has reported it\n');
    assert.equal((errors[0] as Error).message, 'a bug');
  });

  it('reports a fault of a kind that only the management interface has', async () => {
    await using broker = createBroker();
    await broker.start();
    broker.streams.rules.list = async () => {
      throw new Fault('exists', 'a bug');
    };
    const errors: unknown[] = [];
    broker.on('error', ({ error }) => errors.push(error));
    await using server = await serve(streamsApi(broker, { credentials: 'remote' }).node);
    assert.equal((await server.call('GET', '/rules', undefined, {})).status, 500);
    assert.equal((errors[0] as Error).message, 'a bug');
  });

  it('answers with JSON if the option or the header Accept requests it', async () => {
    await using broker = createBroker();
    await broker.start();
    const errorAs = async (options: StreamsApiOptions, accept: string) => {
      await using server = await serve(streamsApi(broker, { credentials: 'remote', ...options }).node);
      return (await server.call('GET', '/rules/x', undefined, { accept })).headers.get('content-type');
    };
    const [text, json] = ['text/plain; charset=utf-8', 'application/json'];
    assert.equal(await errorAs({}, '*/*'), text);
    assert.equal(await errorAs({ errors: 'json' }, '*/*'), json);
    assert.equal(await errorAs({}, 'application/json'), json);
    assert.equal(await errorAs({}, 'application/problem+json;q=0.5, application/json;q=0.4'), json);
    assert.equal(await errorAs({}, 'text/plain, application/json;q=0.5'), text);
    assert.equal(await errorAs({}, 'application/json;q=0'), text);
    assert.equal(await errorAs({}, 'text/html, */*;q=0.8'), text);
  });
});
