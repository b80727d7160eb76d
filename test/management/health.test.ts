import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { type Broker, createBroker } from 'embermq';
import { healthHandler } from 'embermq/management';
import { listen, upgradeHandler } from 'embermq/net';
import { createTestBroker, type TestBroker } from 'embermq/testing';
import { FaultyStore } from '../store/faulty-store.ts';
import { LimitedStore } from '../store/limited-store.ts';
import { AUTHORIZATION, serve, startBroker } from '../support/management.ts';

describe('healthHandler', () => {
  let broker: Broker;
  let server: Awaited<ReturnType<typeof serve>>;

  beforeEach(async () => {
    broker = createBroker();
    listen(broker, 0);
    await broker.start();
    server = await serve(healthHandler(broker).node);
  });

  afterEach(async () => {
    await server[Symbol.asyncDispose]();
    await broker.stop();
  });

  const get = (path: string, headers = {}) => server.call('GET', path, undefined, headers);

  it('answers 200 with "ok" on both pages while the broker serves clients', async () => {
    for (const path of ['/livez', '/readyz', '/readyz/']) {
      const { status, text, headers } = await get(path);
      assert.deepEqual([status, text], [200, 'ok'], path);
      assert.equal(headers.get('content-type'), 'text/plain; charset=utf-8');
      assert.equal(headers.get('cache-control'), 'no-store');
    }
    assert.equal((await server.call('HEAD', '/readyz')).status, 200);
  });

  it('lists each check with its state on request', async () => {
    assert.equal((await get('/livez?verbose')).text, '[+]ping ok\nlivez check passed\n');
    assert.equal(
      (await get('/readyz?verbose')).text,
      '[+]ping ok\n[+]broker ok\n[+]listeners ok\n[+]store ok\n[+]store-space ok\n[+]memory ok\nreadyz check passed\n'
    );
    const { body, headers } = await get('/readyz', { accept: 'application/json' });
    assert.equal(headers.get('content-type'), 'application/json');
    assert.deepEqual(body.checks[1], { name: 'broker', status: 'ok' });
  });

  it('counts a listener as open if the app has its server and its address is unknown', async () => {
    await broker.stop();
    upgradeHandler(broker);
    await broker.start();
    assert.equal((await get('/readyz')).text, 'ok');
  });

  it('reports not ready, but alive, while the broker is stopped or has not started', async () => {
    await broker.stop();
    const { status, text } = await get('/readyz');
    assert.equal(status, 503);
    assert.match(text, /^\[-\]broker failed: the broker has stopped\n\[-\]listeners failed: not open: tcp:0$/m);
    assert.match(text, /\nreadyz check failed\n$/);
    assert.equal((await get('/livez')).status, 200);
    await using other = await serve(healthHandler(createBroker()).node);
    assert.match((await other.call('GET', '/readyz')).text, /^\[-\]broker failed: the broker is not started$/m);
  });

  for (const [alarm, check] of [
    ['store_failed', 'store'],
    ['store_space_low', 'store-space'],
    ['memory_high_watermark', 'memory']
  ])
    it(`reports not ready while the broker has the alarm ${alarm}, unless its check is excluded`, async () => {
      broker.alarms.raise({ id: alarm, title: 'something is wrong', summary: 'with details' });
      const { status, text } = await get('/readyz');
      assert.equal(status, 503);
      assert.match(text, new RegExp(`^\\[-\\]${check} failed: something is wrong$`, 'm'));
      assert.equal((await get(`/readyz?exclude=memory&exclude=${check}`)).status, 200);
      const { body } = await get(`/readyz`, { accept: 'application/json' });
      assert.equal(body.status, 'failed');
      assert.deepEqual(
        body.checks.find(({ name }: { name: string }) => name === check),
        { name: check, status: 'failed', message: 'something is wrong' }
      );
      broker.alarms.clear(alarm);
      assert.equal((await get('/readyz')).status, 200);
    });

  it('reports not ready while memory is short, the store has no space, or it cannot be written', async () => {
    const failing = async (kit: TestBroker) => {
      const response = await healthHandler(kit.broker).fetch(new Request('http://a/readyz?verbose'));
      return [...(await response.text()).matchAll(/^\[-\](\S+) /gm)].map(([, name]) => name);
    };
    let used = 50;
    await using small = await createTestBroker({ memoryHighWatermark: 100, memoryUsage: () => used });
    small.broker.on('error', () => {});
    assert.deepEqual(await failing(small), []);
    used = 100;
    await small.clock.advance('3s');
    assert.deepEqual(await failing(small), ['memory']);
    const disk = new LimitedStore(8_000_000, 1_000_000);
    await using full = await createTestBroker({ store: disk });
    full.broker.on('error', () => {});
    disk.others = 8_000_000;
    await full.broker.publish('a', 'x', { retain: true }).catch(() => {});
    await full.clock.advance('2s');
    assert.deepEqual(await failing(full), ['store-space']);
    disk.others = 0;
    await full.clock.advance('2s');
    const store = new FaultyStore();
    await using broken = await createTestBroker({ store });
    broken.broker.on('error', () => {});
    store.fault = 'rejects';
    await broken.broker.publish('a', 'x', { retain: true }).catch(() => {});
    assert.deepEqual(await failing(broken), ['store']);
    store.fault = undefined;
    await broken.clock.advance('10s');
    assert.deepEqual(await failing(broken), []);
  });

  it('leaves other paths and methods to the app', async () => {
    for (const path of ['/', '/livez/ping', '/health']) assert.equal((await get(path)).status, 404, path);
    assert.equal((await server.call('POST', '/readyz')).status, 404);
  });

  it('supports a prefix and credentials', async () => {
    const guarded = await startBroker();
    await using other = await serve(healthHandler(guarded, { prefix: '/health', credentials: 'applications' }).node);
    assert.equal((await other.call('GET', '/livez')).status, 404);
    assert.equal((await other.call('GET', '/health/livez', undefined, {})).status, 401);
    assert.equal((await other.call('GET', '/health/livez', undefined, { authorization: AUTHORIZATION })).status, 200);
    await guarded.stop();
    assert.throws(() => healthHandler(guarded, { prefix: 'health' }), { code: 'OPTION_INVALID' });
  });
});
