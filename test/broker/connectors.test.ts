import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, type Connector, createBroker, memoryStore } from 'embermq';
import type { ConnectorKind, Store } from 'embermq/adapter';

/** A kind of connector that has no remote side. */
function kind(made: Connector[] = [], discarded: string[] = []): ConnectorKind<Broker> {
  return {
    name: 'line',
    secrets: ['password'],
    check({ url }) {
      if (typeof url !== 'string') throw new TypeError('url');
    },
    create(broker, { name, url }) {
      if (url === 'unusable') throw new Error('cannot be used');
      const connector = {
        name: `${name}`,
        isStarted: true,
        state: 'working',
        size: 0,
        lastError: undefined,
        start() {
          connector.isStarted = true;
        },
        stop() {
          connector.isStarted = false;
        },
        counters: { sent: 1, dropped: { expired: 2 } },
        close() {
          connector.isStarted = false;
          detach();
        },
        delete() {
          connector.close();
          discarded.push(connector.name);
        }
      };
      const detach = broker.connectors.attach('line', connector);
      made.push(connector);
      return connector;
    }
  };
}

function start(store: Store, made?: Connector[], discarded?: string[]): Promise<Broker> {
  return createBroker({ store, connectors: [kind(made, discarded)] }).start();
}

describe('Connectors', () => {
  it('creates, changes, stops, starts and deletes connectors at run time, and shows no secrets', async () => {
    const made: Connector[] = [];
    const discarded: string[] = [];
    await using broker = await start(memoryStore(), made, discarded);
    const { connectors } = broker;
    await connectors.create('line', { name: 'a', url: 'x:', password: 'p' });
    const counters = { sent: 1, dropped_expired: 2 };
    const state = {
      kind: 'line',
      name: 'a',
      isStarted: true,
      state: 'working',
      size: 0,
      lastError: undefined,
      counters
    };
    const settings = { name: 'a', url: 'x:', password: '******' };
    assert.deepEqual(connectors.list(), [{ ...state, settings }]);
    assert.deepEqual(connectors.list('other'), []);
    assert.equal(await connectors.stop('line', 'a'), true);
    assert.equal(await connectors.stop('line', 'a'), false);
    await assert.rejects(connectors.change('line', 'a', { url: 'y:', password: '******' }), {
      code: 'OPTION_INVALID',
      message:
        'line.password: ****** cannot be kept for another server, or without TLS: send the secret itself, or leave it out'
    });
    await connectors.change('line', 'a', { url: 'y:', password: 'p' });
    await assert.rejects(connectors.change('line', 'a', { name: 'b', url: 'y:' }), { field: 'name' });
    await assert.rejects(connectors.create('line', { name: 'b', url: 'y:', password: '******' }), {
      field: 'line.password'
    });
    assert.equal(made.length, 2);
    assert.deepEqual(connectors.get('line', 'a'), { ...state, isStarted: false, settings: { ...settings, url: 'y:' } });
    assert.equal(await connectors.start('line', 'a'), true);
    assert.deepEqual(discarded, []);
    await connectors.delete('line', 'a');
    assert.deepEqual(discarded, ['a']);
    assert.deepEqual(connectors.list(), []);
    assert.ok(made.every(({ isStarted }) => !isStarted));
  });

  it('shows no secrets in URLs, and keeps them in a change', async () => {
    await using broker = await start(memoryStore());
    const { connectors } = broker;
    await connectors.create('line', { name: 'a', url: 'https://u:p@host/?token=t&x=1' });
    const url = 'https://******@host/?token=******&x=******';
    assert.deepEqual(connectors.get('line', 'a')?.settings, { name: 'a', url });
    await connectors.change('line', 'a', { url: url.replace('/?', '/path?') });
    await assert.rejects(connectors.change('line', 'a', { url: `${url}&other=******` }), { field: 'line.url' });
    await assert.rejects(connectors.create('line', { name: 'b', url }), { field: 'line.url' });
  });

  it('hides settings whose name denotes a secret, except booleans, and keeps values for ******', async () => {
    await using broker = await start(memoryStore());
    const { connectors } = broker;
    const settings = { name: 'a', url: 'x:', apiToken: 't', useToken: true, text: 'old' };
    await connectors.create('line', settings);
    assert.deepEqual(connectors.get('line', 'a')?.settings, { ...settings, apiToken: '******' });
    const change = { ...settings, apiToken: '******', text: '******', more: '******' };
    const changed = await connectors.change('line', 'a', change);
    assert.deepEqual(changed.settings, { ...change, text: 'old' });
  });

  it('refuses settings with too many levels, and secrets that are not known, each with its reason', async () => {
    await using broker = await start(memoryStore());
    let deep: unknown = 'x';
    for (let level = 0; level < 70; level++) deep = { inner: deep };
    const cases = [
      [{ deep }, 'line.deep has more than 64 levels of objects and arrays'],
      [{ a: { password: '******' } }, 'line.a.password: ****** stands for the current value, but there is none']
    ] as const;
    for (const [settings, message] of cases)
      await assert.rejects(broker.connectors.create('line', { name: 'a', url: 'x:', ...settings }), { message });
  });

  it('creates stored connectors again at the next start with their secrets, and keeps stopped ones stopped', async () => {
    const store = memoryStore();
    {
      await using broker = await start(store);
      await broker.connectors.create('line', { name: 'a', url: 'x:', password: 'p' });
      await broker.connectors.create('line', { name: 'b', url: 'y:' });
      await broker.connectors.stop('line', 'b');
    }
    const given: unknown[] = [];
    const made = kind();
    const seen = {
      ...made,
      create: (...args: Parameters<NonNullable<typeof made.create>>) => {
        given.push(args[1]);
        return made.create?.(...args) as Connector;
      }
    };
    await using broker = await createBroker({ store, connectors: [seen] }).start();
    assert.deepEqual(given, [
      { name: 'a', url: 'x:', password: 'p' },
      { name: 'b', url: 'y:' }
    ]);
    assert.deepEqual(
      broker.connectors.list().map(({ isStarted }) => isStarted),
      [true, false]
    );
  });

  it('accepts a kind with make and a connector with discard, as in 0.2', async () => {
    const discarded: string[] = [];
    const { create, ...current } = kind();
    const former: ConnectorKind<Broker> = {
      ...current,
      make: (broker, settings) => {
        const connector = create?.(broker, settings) as Connector;
        const discard = () => void discarded.push(connector.name);
        return Object.assign(connector, { delete: undefined, discard });
      }
    };
    await using broker = await createBroker({ store: memoryStore(), connectors: [former] }).start();
    await broker.connectors.create('line', { name: 'a', url: 'x:' });
    assert.equal(broker.connectors.get('line', 'a')?.state, 'working');
    await broker.connectors.delete('line', 'a');
    assert.deepEqual(discarded, ['a']);
  });

  it('lists a connector of an unknown kind, or one that cannot be created, with the reason, and still starts', async () => {
    const store = memoryStore();
    {
      await using broker = await start(store);
      await broker.connectors.create('line', { name: 'a', url: 'x:', password: 'p' });
      const outbox = broker.outboxes.open({ name: 'line:a', send: () => new Promise(() => {}), isPersisted: true });
      outbox.add('a', 'waits');
      await broker.stop({ timeoutMs: 0 });
    }
    await using broker = createBroker({ store });
    const errors: string[] = [];
    broker.on('error', ({ error }) => errors.push((error as Error).message));
    await broker.start();
    const [found] = broker.connectors.list();
    assert.equal(found.state, 'missing');
    assert.match(`${found.lastError?.message}`, /cannot make a line/);
    assert.deepEqual(found.settings, { name: 'a', url: '******', password: '******' });
    assert.equal(errors.length, 1);
    assert.deepEqual(broker.outboxes.kept(), [{ name: 'line:a', size: 1 }]);
    await broker.connectors.delete('line', 'a');
    assert.deepEqual(broker.connectors.list(), []);
    assert.deepEqual(broker.outboxes.kept(), []);
  });

  it('lists, stops and starts connectors of the app, but does not change or delete them', async () => {
    await using broker = await start(memoryStore());
    kind().create?.(broker, { name: 'own', url: 'x:' });
    const { connectors } = broker;
    assert.equal(connectors.get('line', 'own')?.settings, undefined);
    assert.equal(await connectors.stop('line', 'own'), true);
    assert.equal(connectors.get('line', 'own')?.isStarted, false);
    await assert.rejects(connectors.change('line', 'own', { url: 'y:' }), { code: 'CONNECTOR_OF_APP' });
    await assert.rejects(connectors.delete('line', 'own'), { code: 'CONNECTOR_OF_APP' });
    await assert.rejects(connectors.create('line', { name: 'own', url: 'y:' }), { code: 'RECORD_EXISTS' });
  });

  it('hides and keeps every setting of a kind that does not say which are secret', async () => {
    const { secrets: _, ...others } = kind();
    const urls: unknown[] = [];
    const silent = {
      ...others,
      check: ({ url }) => void urls.push(url)
    } as ReturnType<typeof kind>;
    await using broker = await createBroker({ connectors: [silent] }).start();
    await broker.connectors.create('line', { name: 'a', url: 'x:', note: 'n' });
    await broker.connectors.change('line', 'a', { name: 'a', url: '******', note: 'm' });
    assert.equal(urls.at(-1), 'x:');
    assert.deepEqual(broker.connectors.get('line', 'a')?.settings, { name: 'a', url: '******', note: '******' });
  });

  it('refuses a connector with the reason, and changes nothing', async () => {
    const broker = createBroker({ connectors: [kind()] });
    const { connectors } = broker;
    await assert.rejects(connectors.create('line', { name: 'a', url: 'x:' }), { code: 'BROKER_NOT_STARTED' });
    await broker.start();
    await assert.rejects(connectors.create('line', { name: 'a b', url: 'x:' }), {
      code: 'OPTION_INVALID',
      field: 'name'
    });
    await assert.rejects(connectors.create('line', { name: 'a' }), TypeError);
    await assert.rejects(connectors.create('pipe', { name: 'a' }), { code: 'RECORD_NOT_FOUND' });
    await assert.rejects(connectors.start('line', 'a'), { code: 'RECORD_NOT_FOUND' });
    await assert.rejects(connectors.delete('line', 'a'), { code: 'RECORD_NOT_FOUND' });
    assert.deepEqual(connectors.list(), []);
    await broker.stop();
    for (const wrong of [{}, [1], [null]])
      assert.throws(() => createBroker({ connectors: wrong as never }), {
        code: 'OPTION_INVALID',
        field: 'connectors'
      });
  });
});
