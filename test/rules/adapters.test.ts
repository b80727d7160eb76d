// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are templates of rules
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mqttBridge, rpcBridge } from '../../adapters/bridge/index.ts';
import { webHook } from '../../adapters/webhook/index.ts';
import { memoryStore } from '../../lib/index.ts';
import { listener, server } from '../bridge/pair.ts';
import { Receiver } from '../webhook/receiver.ts';
import { ruleKit } from './support.ts';

const TYPES = [webHook(), mqttBridge(), rpcBridge()];

describe('The resource types of the adapters', () => {
  it('lists the resource types of the adapters with their actions, which name their resource', async () => {
    await using kit = await ruleKit({ rules: { resources: TYPES } });
    const { rules } = kit.broker;
    assert.deepEqual(
      (await rules.resourceTypes()).map(({ name, provider }) => [name, provider]),
      [
        ['bridge_rpc', 'emqx_bridge_mqtt'],
        ['bridge_mqtt', 'emqx_bridge_mqtt'],
        ['web_hook', 'emqx_web_hook']
      ]
    );
    const actions = (await rules.actions()).filter(({ types }) => types.length > 0);
    assert.deepEqual(
      actions.map(({ name, types, category, params }) => [name, types, category, params.$resource.required]),
      [
        ['data_to_webserver', ['web_hook'], 'data_forward', true],
        ['data_to_mqtt_broker', ['bridge_mqtt', 'bridge_rpc'], 'data_forward', true]
      ]
    );
  });

  it('sends selected outputs to a web server', async () => {
    await using receiver = await new Receiver().open();
    await using kit = await ruleKit({ rules: { resources: TYPES } });
    const { rules } = kit.broker;
    const config = { url: receiver.url, headers: { authorization: 'Bearer x' } };
    const made = await rules.resources.create({ id: 'web', type: 'web_hook', config });
    assert.deepEqual([made.isAlive, made.config.headers], [true, { authorization: '******' }]);
    const params = { $resource: 'web', path: '${topic}', payload_tmpl: '{"t": ${payload.t}}' };
    const sql = 'SELECT topic, payload FROM "a/#"';
    await rules.create({ id: 'r', sql, actions: [{ name: 'data_to_webserver', params }] });
    await kit.broker.publish('a/b c', '{"t": 20.0}');
    await kit.broker.outboxes.get('resource:web')?.idle();
    await rules.resources.update('web', { config: { ...made.config, method: 'PUT' } });
    await kit.broker.publish('a/d', '{"t": 1}');
    await receiver.until(2);
    assert.deepEqual(
      receiver.received.map(({ method, url, headers, text }) => [method, url, headers.authorization, text]),
      [
        ['POST', '/hook/a/b%20c', 'Bearer x', '{"t": 20.0}'],
        ['PUT', '/hook/a/d', 'Bearer x', '{"t": 1}']
      ]
    );
    await kit.broker.outboxes.get('resource:web')?.idle();
    const [{ counters }] = (await rules.get('r'))?.actions ?? [];
    assert.deepEqual(counters, { taken: 2, success: 2, failed: 0 });
  });

  it('accepts addresses of MQTT servers with any path and query, but without credentials', async () => {
    await using kit = await ruleKit({ rules: { resources: TYPES } });
    const { resources } = kit.broker.rules;
    const create = (address: string) =>
      resources.create({ type: 'bridge_mqtt', config: { address, pool_size: 1, keepalive: '60s', ssl: 'off' } });
    const accepted = [
      'ws://127.0.0.1:1//mqtt',
      'ws://127.0.0.1:1/a@b',
      'ws://127.0.0.1:1/?a=b@c',
      'mqtt://127.0.0.1:1\n'
    ];
    for (const address of accepted) await create(address);
    for (const address of ['ws://u:p@host', 'node@host', 'ws://u\\@host', 'mqtt://u\n@host', '/path'])
      await assert.rejects(async () => create(address), { code: 'PARAM_INVALID' });
  });

  it('sends selected outputs to another broker', async () => {
    const far = await server();
    try {
      await using kit = await ruleKit({ rules: { resources: TYPES } });
      const { rules } = kit.broker;
      const address = `127.0.0.1:${far.port}`;
      const config = { address, pool_size: 1, keepalive: '60s', ssl: 'off', proto_ver: 'mqttv5', mountpoint: 'm/' };
      await rules.resources.create({ id: 'mqtt', type: 'bridge_mqtt', config });
      const there = await listener(far.broker);
      const params = { $resource: 'mqtt', payload_tmpl: '${payload}' };
      const actions = [{ name: 'data_to_mqtt_broker', params }];
      await rules.create({ id: 'r', sql: 'SELECT payload FROM "a/#"', actions });
      await rules.create({ id: 's', sql: 'SELECT * FROM "$events/client_connected"', actions });
      const userProperties = [['k', 'v']] as const;
      await kit.broker.publish('a/b', Buffer.of(0xff), { qos: 2, retain: true, properties: { userProperties } });
      const message = await there.next();
      assert.deepEqual(
        [message.topic, [...message.payload], message.qos, message.retain, message.properties.userProperties],
        ['m/a/b', [0xff], 1, true, [['k', 'v']]]
      );
      await kit.connect();
      await kit.clock.settle();
      const [{ counters }] = (await rules.get('s'))?.actions ?? [];
      assert.deepEqual(counters, { taken: 1, success: 0, failed: 1 });
    } finally {
      await far.broker.stop();
    }
  });

  it('sends persisted outputs after a restart', async () => {
    const closed = await new Receiver().open();
    const { port, url } = closed;
    await closed.close();
    const far = await server();
    await far.broker.stop();
    const options = { store: memoryStore(), rules: { resources: TYPES } };
    const payload = Buffer.of(0xff, 0x0a, 0);
    {
      await using kit = await ruleKit(options);
      const { rules } = kit.broker;
      await rules.resources.create({ id: 'web', type: 'web_hook', config: { url, persisted: true } });
      const mqtt = { pool_size: 1, keepalive: '60s', ssl: 'off', disk_cache: 'on' };
      const config = { address: `127.0.0.1:${far.port}`, ...mqtt };
      await rules.resources.create({ id: 'mqtt', type: 'bridge_mqtt', config });
      const params = { payload_tmpl: '${payload}' };
      const actions = [
        { name: 'data_to_webserver', params: { ...params, $resource: 'web' } },
        { name: 'data_to_mqtt_broker', params: { ...params, $resource: 'mqtt' } }
      ];
      await rules.create({ id: 'r', sql: 'SELECT payload FROM "a/#"', actions });
      await kit.broker.publish('a/b', payload, { qos: 1 });
    }
    await using receiver = await new Receiver().open(port);
    const back = await server({}, far.port);
    try {
      const there = await listener(back.broker);
      await using kit = await ruleKit(options);
      const message = await there.next();
      assert.deepEqual([message.topic, message.payload], ['a/b', payload]);
      await kit.broker.outboxes.get('resource:web')?.idle();
      assert.deepEqual(receiver.received[0].bytes, payload);
    } finally {
      await back.broker.stop();
    }
  });

  it('never reaches a node of the original product, but allows creating a resource for it', async () => {
    await using kit = await ruleKit({ rules: { resources: TYPES } });
    const { resources } = kit.broker.rules;
    const config = { address: 'emqx@127.0.0.1', pool_size: 8 };
    const { isAlive, lastError } = await resources.create({ id: 'rpc', type: 'bridge_rpc', config });
    assert.equal(isAlive, false);
    assert.match(lastError?.message ?? '', /use a resource of type bridge_mqtt/);
  });
});
