import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bridge, bridges } from '../../adapters/bridge/index.ts';
import { metricsHandler } from '../../adapters/management/index.ts';
import type { Store } from '../../lib/adapter.ts';
import { createBroker, memoryStore } from '../../lib/index.ts';
import { serveManagement } from '../support/management.ts';
import { until } from '../support/until.ts';
import { connected, listener, server } from './pair.ts';

const OUT = [{ filter: 'out/#', qos: 1 }] as const;

async function startBroker(store: Store) {
  const broker = await createBroker({ store, passwordCost: 10, connectors: [bridges()] }).start();
  if (broker.applications.get('app') === undefined) await broker.applications.create({ id: 'app', secret: 'a secret' });
  return broker;
}

describe('Bridges over REST', () => {
  it('creates bridges, which forward messages, survive a restart, and can be stopped, changed and deleted', async (context) => {
    const { broker: far, url } = await server();
    context.after(() => far.stop());
    const there = await listener(far);
    const store = memoryStore();
    const made = { name: 'a', url, out: OUT, isPersisted: true, backOff: 5 };
    {
      await using near = await startBroker(store);
      await using api = await serveManagement(near);
      const isConnected = near.nextEvent('bridge.connected');
      const { status, body } = await api.call('POST', '/api/x/bridges', { ...made, password: 'secret' });
      assert.deepEqual([status, body.data.name, body.data.started], [200, 'a', true], JSON.stringify(body));
      assert.deepEqual(body.data.settings, { ...made, password: '******' });
      await isConnected;
      await near.publish('out/x', '1', { qos: 1 });
      assert.equal(String((await there.next()).payload), '1');
      const found = (await api.call('GET', '/api/x/bridges/a')).body.data;
      assert.equal(found.status, 'connected');
      assert.equal(found.figures.sent, 1);
      assert.equal((await api.call('POST', '/api/x/bridges/a/stop')).status, 200);
      await near.publish('out/x', '2', { qos: 1 });
      const waiting = (await api.call('GET', '/api/x/bridges')).body.data[0];
      assert.deepEqual([waiting.status, waiting.waiting], ['idle', 1]);
    }
    await using near = await startBroker(store);
    await using api = await serveManagement(near);
    const changed = { url, out: OUT, isPersisted: true, maxQueue: 5, password: '******' };
    assert.equal((await api.call('PUT', '/api/x/bridges/a', changed)).body.data.started, false);
    assert.equal((await api.call('POST', '/api/x/bridges/a/start')).status, 200);
    assert.equal(String((await there.next()).payload), '2');
    const plugins = (await api.call('GET', '/api/nodes/embermq@127.0.0.1/plugins')).body.data;
    assert.equal(plugins.find(({ name }: { name: string }) => name === 'bridge:a').active, true);
    await until(() => near.connectors.get('bridge', 'a')?.size === 0);
    const metrics = await (await metricsHandler(near).fetch(new Request('http://127.0.0.1/metrics'))).text();
    assert.match(metrics, /^embermq_connector_state\{.*kind="bridge",name="a",state="connected"\} 1$/m);
    assert.match(metrics, /^embermq_connector_waiting\{.*kind="bridge",name="a"\} 0$/m);
    assert.match(metrics, /^embermq_connector_messages_total\{.*kind="bridge",name="a",result="sent"\} 1$/m);
    assert.equal((await api.call('DELETE', '/api/x/bridges/a')).status, 200);
    assert.deepEqual((await api.call('GET', '/api/x/bridges')).body.data, []);
    assert.equal(near.sessions.has('$bridge/a'), false);
  });

  it('removes subscriptions at the server when a change removes them, and the session there with the bridge', async (context) => {
    const { broker: far, url } = await server();
    context.after(() => far.stop());
    await using near = await startBroker(memoryStore());
    await using api = await serveManagement(near);
    const settings = { url, clientId: 'site', backOff: 5, in: [{ filter: 'a/#' }, { filter: 'b/#' }] };
    const isConnected = near.nextEvent('bridge.connected');
    await api.call('POST', '/api/x/bridges', { name: 'a', ...settings });
    await isConnected;
    const filters = () => [...far.sessions.get('site').subscriptions()].map(({ filter }) => filter);
    assert.deepEqual(filters().sort(), ['a/#', 'b/#']);
    const isUnsubscribed = far.nextEvent('session.unsubscribed');
    await api.call('PUT', '/api/x/bridges/a', { ...settings, in: [{ filter: 'b/#' }] });
    assert.equal((await isUnsubscribed).filter, 'a/#');
    await until(() => near.connectors.get('bridge', 'a')?.state === 'connected');
    assert.deepEqual(filters(), ['b/#']);
    const isEnded = far.nextEvent('session.terminated');
    assert.equal((await api.call('DELETE', '/api/x/bridges/a')).status, 200);
    assert.equal((await isEnded).client.clientId, 'site');
  });

  it('names the wrong field of a refused bridge', async () => {
    await using near = await startBroker(memoryStore());
    await using api = await serveManagement(near);
    const url = 'mqtt://127.0.0.1:1';
    const cases: [body: object, field: RegExp][] = [
      [{ name: 'a', out: OUT }, /url/],
      [{ name: 'a', url }, /out/],
      [{ name: 'a', url: 'http://x', out: OUT }, /url/],
      [{ name: 'a', url: 'mqtt://user:password@127.0.0.1', out: OUT }, /without a password; use "password"$/],
      [{ name: 'a', url, out: [{ filter: 'a/#/b' }] }, /^the parameter "out\[0\]\.filter": [^[]*$/],
      [{ name: 'a', url, out: [...OUT, { filter: '#', localPrefix: 'out/' }] }, /out\[1\]\.filter.*no other entry/],
      [
        { name: 'a', url, in: [{ filter: '#' }, { filter: '#', localPrefix: 'x/' }] },
        /in\[1\]\.filter.*no other entry/
      ],
      [{ name: 'a', url, out: OUT, clientId: '' }, /clientId/],
      [{ name: 'a', url, out: OUT, start: true }, /start/],
      [
        { name: 'a', url, out: OUT, cert: './a.pem' },
        /cert.*TLS cannot use it: .*; expected the text of a PEM file, not its path$/
      ],
      [{ name: 'a', url, out: OUT, ca: 'not a certificate' }, /ca.*TLS cannot use it/],
      [{ name: 'a', url, out: OUT, password: '******' }, /password.*there is none/],
      [{ name: 'a b', url, out: OUT }, /name/]
    ];
    for (const [body, field] of cases) {
      const answer = await api.call('POST', '/api/x/bridges', body);
      assert.equal(answer.status, 400, answer.text);
      assert.match(answer.body.message, field);
      assert.doesNotMatch(answer.text, /user:password/);
    }
  });
});

describe('A persisted bridge that was created at run time', () => {
  it('keeps all messages of its session while it is stopped after a restart, regardless of maxMqueueLen', async (context) => {
    const { broker: far, url } = await server();
    context.after(() => far.stop());
    const store = memoryStore();
    const start = () => createBroker({ store, connectors: [bridges()], maxMqueueLen: 3 }).start();
    {
      await using near = await start();
      const isConnected = near.nextEvent('bridge.connected');
      await near.connectors.create('bridge', { name: 'a', url, out: OUT, isPersisted: true, backOff: 5 });
      await isConnected;
      await near.connectors.stop('bridge', 'a');
    }
    await using near = await start();
    for (let n = 0; n < 8; n++) await near.publish('out/x', `${n}`, { qos: 1 });
    assert.equal(near.sessions.get('$bridge/a').counters().mqueueLen, 8);
  });
});

describe('A persisted bridge that is not created again', () => {
  it('raises an alarm, and keeps its messages within the limits of the broker until it is created', async (context) => {
    const { broker: far, url } = await server();
    context.after(() => far.stop());
    const store = memoryStore();
    {
      await using near = await createBroker({ store }).start();
      const link = bridge(near, { url, out: OUT, isPersisted: true });
      await connected(near, link);
      const isOffline = near.nextEvent('client.disconnected');
      link.stop();
      await isOffline;
      for (let i = 0; i < 8; i++) await near.publish('out/x', `${i}`, { qos: 1 });
    }
    await using near = await createBroker({ store, maxMqueueLen: 10 }).start();
    assert.match(`${near.alarms.get('bridge_missing:default')?.summary}`, /create the bridge again/);
    for (let i = 8; i < 20; i++) await near.publish('out/x', `${i}`, { qos: 1 });
    await until(() => near.sessions.get('$bridge/default').counters().mqueueLen === 10);
    const there = await listener(far);
    const link = bridge(near, { url, out: OUT, isPersisted: true });
    assert.equal(near.alarms.get('bridge_missing:default'), undefined);
    for (let i = 10; i < 20; i++) assert.equal(String((await there.next()).payload), `${i}`);
    await until(() => link.size === 0);
  });
});
