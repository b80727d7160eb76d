import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, type BrokerOptions, createBroker } from 'embermq';
import type { ManagementOptions } from 'embermq/management';
import { listen } from 'embermq/net';
import { serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;
const NODE = '/api/nodes/embermq@127.0.0.1';

/** An entry of a list. */
type Entry = Record<string, unknown>;

/** Run a test with the interface of each revision, each with a new broker. */
async function inEach(
  run: (call: Awaited<ReturnType<typeof serveManagement>>['call'], broker: Broker) => Promise<void>,
  options: ManagementOptions = {}
): Promise<void> {
  for (const revision of REVISIONS) {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision, ...options });
    await run(server.call, broker);
  }
}

const answer = ({ status, body }: { status: number; body: { code: number; message?: string } }) =>
  [status, body.code, body.message] as const;

describe('Configurations over REST', () => {
  it('lists every option with its value, kind and application, for all nodes and for one', async () => {
    await inEach(async (call, broker) => {
      const { body } = await call('GET', '/api/configs');
      const [{ node, config }] = body.data;
      assert.equal(node, 'embermq@127.0.0.1');
      const of = (key: string) => config.find((one: Entry) => one.key === key);
      assert.deepEqual(of('zone.external.max_inflight'), {
        key: 'zone.external.max_inflight',
        value: 128,
        datatpye: 'integer',
        datatype: 'integer',
        app: 'emqx'
      });
      assert.deepEqual([of('broker.sys_interval').value, of('broker.sys_interval').datatype], ['1m', 'duration']);
      assert.deepEqual(of('zone.external.session_expiry_interval').value, '2h');
      assert.deepEqual(of('zone.external.publish_limit').value, '');
      assert.deepEqual(of('retainer.max_payload_size').app, 'emqx_retainer');
      assert.deepEqual((await call('GET', `${NODE}/configs`)).body.data, config);
      assert.equal(config.length, broker.configuration.list().length);
      assert.deepEqual(answer(await call('GET', '/api/nodes/other@host/configs')).slice(0, 2), [404, 102]);
    });
  });

  it('lists values that can be sent back', async () => {
    await inEach(async (call, broker) => {
      const { configuration } = broker;
      const { body } = await call('GET', `${NODE}/configs`);
      const sentBack: string[] = [];
      for (const { key, value } of body.data) {
        const before = configuration.get(key);
        if (before.takesEffect === 'restart') continue;
        sentBack.push(key);
        const { status, text } = await call('PUT', '/api/configs/emqx', { key, value: `${value}` });
        assert.equal(status, 200, `${key} = ${value}: ${text}`);
        assert.deepEqual(configuration.get(key).value, before.value, key);
        await configuration.reset(key);
      }
      assert.ok(sentBack.length >= 50, `${sentBack.length} options`);
    });
  });

  it('changes options at run time and lists the new values', async () => {
    await inEach(async (call, broker) => {
      for (const [path, body, value] of [
        ['/api/configs/emqx', { key: 'zone.external.max_inflight', value: '64' }, 64],
        ['/api/configs/embermq', { key: 'maxPacketSize', value: '64KB' }, 65_536],
        [`${NODE}/configs/emqx`, { key: 'broker.sys_interval', value: '90s' }, 90_000],
        [`${NODE}/configs/emqx_retainer`, { key: 'retainer.max_payload_size', value: 7 }, 7],
        ['/api/configs/emqx', { key: 'zone.external.publish_limit', value: '10,1s' }, { amount: 10, perMs: 1000 }],
        ['/api/configs/emqx', { key: 'zone.external.publish_limit', value: '' }, undefined],
        ['/api/configs/emqx', { key: 'zone.external.protocol_versions', value: '[4,5]' }, [4, 5]]
      ] as const) {
        assert.deepEqual((await call('PUT', path, body)).body, { code: 0 });
        assert.deepEqual(broker.configuration.get(body.key).value, value);
      }
      assert.equal(broker.zone().maxInflight, 64);
      const { body } = await call('GET', '/api/configs');
      const listed = body.data[0].config.find(({ key }: Entry) => key === 'zone.external.max_inflight');
      assert.equal(listed.value, 64);
    });
  });

  it('refuses a wrong key, value or application, and fixed options, with the reason', async () => {
    const faults: [path: string, body: unknown, expected: [number, number, RegExp]][] = [
      ['configs/emqx', { key: 'zone.external.max_inflght', value: 1 }, [400, 108, /mean "zone.external.max_inflight"/]],
      ['configs/emqx', { key: 'zone.externl.max_inflight', value: 1 }, [400, 108, /did you mean "external"/]],
      ['configs/emqx', { key: 'max_inflight', value: 'many' }, [400, 108, /max_inflight: expected a whole number/]],
      ['configs/emqx', { key: 'node.name', value: 'x' }, [400, 108, /only when the broker is created, because it is/]],
      [
        'configs/emqx_retainer',
        { key: 'max_inflight', value: 1 },
        [400, 108, /belong to "emqx_retainer", but to "emqx"/]
      ],
      ['configs/nothing', { key: 'max_inflight', value: 1 }, [404, 105, /there is no plugin "nothing"/]],
      ['configs/emqx', { value: 1 }, [400, 107, /"key" is missing/]],
      ['configs/emqx', { key: 'max_inflight' }, [400, 107, /"value" is missing/]],
      ['configs/emqx', '{', [400, 109, /not JSON/]],
      ['nodes/other/configs/emqx', { key: 'max_inflight', value: 1 }, [404, 102, /other/]]
    ];
    await inEach(async (call, broker) => {
      for (const [path, body, [status, code, message]] of faults) {
        const found = answer(await call('PUT', `/api/${path}`, body));
        assert.deepEqual(found.slice(0, 2), [status, code], `${path}: ${found[2]}`);
        assert.match(`${found[2]}`, message);
      }
      assert.deepEqual(broker.configuration.overrides(), []);
    });
  });

  it('refuses changes with code 102 as the original products do', async () => {
    await inEach(
      async (call) => {
        const { status, body } = await call('PUT', '/api/configs/emqx', { key: 'nothing_like_it', value: '1' });
        assert.deepEqual([status, body.code], [200, 102]);
        const path = `${NODE}/plugin_configs/emqx_retainer`;
        assert.deepEqual((await call('PUT', path, { nothing_like_it: '1' })).body, {
          code: 102,
          message: 'unknown_error'
        });
      },
      { errors: 'original' }
    );
  });
});

describe('Options that let anyone connect', () => {
  const key = 'zone.external.allow_anonymous';

  /** The statuses of requests that change these options, for a broker with a listener on an address. */
  async function statuses(host: string, options: BrokerOptions = {}): Promise<Record<string, number>> {
    await using broker = await startBroker({ zones: { lab: {} }, ...options });
    await listen(broker, { port: 0, host });
    await using server = await serveManagement(broker);
    const put = (value: unknown, name = key, path = 'configs/emqx') =>
      server.call('PUT', `/api/${path}`, { key: name, value });
    const document = { format: 'embermq-configuration', version: 1, sections: { settings: [{ key, value: true }] } };
    const node = `nodes/${encodeURIComponent(broker.settings.node)}/configs/emqx`;
    const requests: Readonly<Record<string, () => ReturnType<typeof put>>> = {
      on: () => put(true),
      text: () => put('on'),
      none: () => put(''),
      everywhere: () => put(true, 'allow_anonymous'),
      'on a node': () => put(true, key, node),
      bypass: () => put(true, 'bypass_auth_plugins'),
      import: () => server.call('POST', '/api/x/import', document),
      off: () => put(false),
      'another zone': () => put(true, 'zone.lab.allow_anonymous')
    };
    const found: Record<string, number> = {};
    for (const [name, send] of Object.entries(requests)) {
      const { status, body } = await send();
      found[name] = status;
      if (status !== 200) assert.match(body.message, /other machines can reach 0\.0\.0\.0 .*--allow-anonymous/);
      if (status !== 200) assert.equal(body.code, 108);
    }
    return found;
  }

  const all = (status: number) =>
    Object.fromEntries(
      ['on', 'text', 'none', 'everywhere', 'on a node', 'bypass', 'import'].map((name) => [name, status])
    );

  it('refuses these options if other machines can reach the broker, unless its options allow it', async () => {
    const others = { off: 200, 'another zone': 200 };
    assert.deepEqual(await statuses('0.0.0.0'), { ...all(400), ...others });
    assert.deepEqual(await statuses('0.0.0.0', { allowAnonymous: false }), { ...all(400), ...others });
    assert.deepEqual(await statuses('0.0.0.0', { allowAnonymous: true }), { ...all(200), ...others });
    assert.deepEqual(await statuses('127.0.0.1'), { ...all(200), ...others });
  });
});

describe('Configurations of plugins over REST', () => {
  it('lists and changes configurations of plugins as a whole, also by the names of the original products', async () => {
    await inEach(async (call, broker) => {
      const path = `${NODE}/plugin_configs/emqx_retainer`;
      const listed = async () =>
        (await call('GET', path)).body.data.map(({ key, value, required }: Entry) => [key, value, required]);
      const byDefault = [
        ['retainer.max_retained_messages', '1000000', false],
        ['max_retained_bytes', '1073741824', false],
        ['retainer.max_payload_size', '1048576', false],
        ['retainer.expiry_interval', '0s', false]
      ];
      assert.deepEqual(await listed(), byDefault);
      assert.ok((await call('GET', path)).body.data.every(({ desc }: Entry) => typeof desc === 'string'));
      const body = { 'retainer.max_retained_messages': '5', 'retainer.expiry_interval': '1h' };
      assert.deepEqual((await call('PUT', path, body)).body, { code: 0 });
      assert.deepEqual([broker.settings.maxRetainedMessages, broker.settings.retainedExpiryInterval], [5, 3600]);
      assert.deepEqual((await listed())[0], ['retainer.max_retained_messages', '5', true]);
      // omitted options return to the value in the options of the broker
      await call('PUT', path, { 'retainer.max_payload_size': '7' });
      assert.deepEqual([broker.settings.maxRetainedMessages, broker.settings.maxRetainedPayloadSize], [1_000_000, 7]);
      await call('PUT', path, {});
      assert.deepEqual(await listed(), byDefault);
      assert.deepEqual(broker.configuration.overrides(), []);
    });
  });

  it('restores the previous options if the plugin cannot be restarted', async (t) => {
    await inEach(async (call, broker) => {
      await broker.configuration.setAll([
        ['retainer.max_retained_messages', 5],
        ['retainer.expiry_interval', '1h']
      ]);
      const values = () => broker.configuration.overrides().map(({ key, value }) => [key, value]);
      const before = values();
      const restart = t.mock.method(broker.features, 'restart', () => Promise.reject(new Error('not now')));
      const path = `${NODE}/plugin_configs/emqx_retainer`;
      const { status } = await call('PUT', path, {
        'retainer.max_payload_size': '7',
        'retainer.expiry_interval': '2h'
      });
      restart.mock.restore();
      assert.notEqual(status, 200);
      assert.deepEqual(values(), before);
      for (const [key] of before) await broker.configuration.reset(key as string);
    });
  });

  it('refuses the whole configuration if a key or value is wrong, or if it is part of the app', async () => {
    await inEach(async (call, broker) => {
      await broker.access.create({ name: 'jwt', authenticate: () => true });
      const faults: [plugin: string, body: unknown, expected: [number, number, RegExp]][] = [
        ['retainer', { 'retainer.max_payload_size': '7', 'retainer.max_payload': '7' }, [400, 108, /did you mean/]],
        ['retainer', { 'retainer.max_payload_size': '7', 'retainer.expiry_interval': 'x' }, [400, 108, /duration/]],
        ['retainer', { 'broker.sys_interval': '7' }, [400, 108, /not an option of the plugin "retainer"; they are/]],
        ['emqx_auth_jwt', { secret: 'x' }, [400, 108, /options of "jwt" are given where it is made/]],
        ['records', { 'broker.sys_interval': '7' }, [400, 108, /it has none/]],
        ['nothing', {}, [404, 105, /there is no plugin/]],
        ['retainer', [], [400, 108, /body/]],
        ['retainer', { 'retainer.max_payload_size': null }, [400, 108, /retainer.max_payload_size/]]
      ];
      for (const [plugin, body, [status, code, message]] of faults) {
        const found = answer(await call('PUT', `${NODE}/plugin_configs/${plugin}`, body));
        assert.deepEqual(found.slice(0, 2), [status, code], `${plugin}: ${found[2]}`);
        assert.match(`${found[2]}`, message);
      }
      assert.deepEqual(broker.configuration.overrides(), []);
      assert.deepEqual((await call('GET', `${NODE}/plugin_configs/jwt`)).body, { code: 0, data: [] });
      assert.deepEqual(answer(await call('GET', `${NODE}/plugin_configs/nothing`)).slice(0, 2), [404, 105]);
      assert.deepEqual(answer(await call('GET', '/api/nodes/other/plugin_configs/jwt')).slice(0, 2), [404, 102]);
    });
  });
});

describe('Options with their sources over REST', () => {
  it('lists options by key, page by page, with their source in the app', async () => {
    for (const revision of REVISIONS) {
      await using broker = createBroker({ maxPacketSize: '2MB', zones: { external: { maxInflight: 7 } } });
      await broker.start();
      await broker.configuration.set('zone.internal.max_inflight', 9);
      const optionSource = (name: string, zone?: string) => `--${name} ${zone ?? 'everywhere'}`;
      await using server = await serveManagement(broker, { revision, credentials: 'none', optionSource });
      const list = async (query: string) => (await server.call('GET', `/api/x/options${query}`)).body;
      const options = await list('?source=option');
      assert.deepEqual(
        options.data.map(({ key, value, origin }: Entry) => [key, value, origin]),
        [
          ['mqtt.max_packet_size', 2_097_152, '--maxPacketSize everywhere'],
          ['zone.external.max_inflight', 7, '--maxInflight external'],
          ['zone.external.max_packet_size', 2_097_152, '--maxPacketSize external'],
          ['zone.internal.max_packet_size', 2_097_152, '--maxPacketSize internal']
        ]
      );
      const [override] = (await list('?source=override')).data;
      const { about, ...rest } = override;
      assert.match(about, /in flight/);
      assert.deepEqual(rest, {
        key: 'zone.internal.max_inflight',
        name: 'maxInflight',
        zone: 'internal',
        value: 9,
        default: 128,
        kind: 'integer',
        source: 'override',
        takes_effect: 'next connection'
      });
      const strategy = (await server.call('GET', '/api/x/options/sharedSubscriptionStrategy')).body.data;
      assert.ok(strategy.choices.includes('round_robin'), strategy.choices);
      const keys: string[] = [];
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const { data, meta } = await list(`?_limit=50${cursor && `&cursor=${cursor}`}`);
        keys.push(...data.map(({ key }: Entry) => key));
        cursor = meta.cursor;
      }
      assert.deepEqual(
        keys,
        broker.configuration
          .list()
          .map(({ key }) => key)
          .toSorted()
      );
    }
  });

  it('resets an option to the value in the options of the broker', async () => {
    await inEach(async (call, broker) => {
      await broker.configuration.set('sysInterval', '5s');
      assert.deepEqual((await call('DELETE', '/api/x/options/broker.sys_interval')).body, { code: 0 });
      assert.equal(broker.settings.sysInterval, 60_000);
      assert.deepEqual(answer(await call('DELETE', '/api/x/options/sysInterval')), [
        404,
        105,
        'sysInterval was not set at run time'
      ]);
      assert.deepEqual(answer(await call('DELETE', '/api/x/options/nothing_like_it')).slice(0, 2), [404, 105]);
    });
  });
});
