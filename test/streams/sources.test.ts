import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Message, type MessageInput } from '../../lib/packets/message.ts';
import { Watchers } from '../../lib/routing/watchers.ts';
import { MemoryTopics } from '../../lib/streams/memory-topics.ts';
import { builtInSources } from '../../lib/streams/sources/built-in.ts';
import type { SourceType } from '../../lib/streams/types.ts';
import { ALL, Kept, makeHub, stream, TestSource } from './source-fixture.ts';

/** The built-in sources over a broker that only routes. */
function open(config: Record<string, Record<string, Record<string, unknown>>> = {}, own: readonly SourceType[] = []) {
  const watchers = new Watchers();
  const topics = new MemoryTopics();
  const fixture = makeHub(
    builtInSources({ watch: ([filter], watcher) => watchers.add(filter, watcher) }, topics, own),
    {
      sourceConfig: config
    }
  );
  const publish = (input: MessageInput, clientId?: string) => {
    const origin = clientId === undefined ? undefined : { clientId, username: 'user' };
    const message = Message.from(input, origin, 1, 77);
    const shared = { value: undefined };
    for (const watcher of watchers.of(input.topic) ?? []) watcher.watched(message, shared);
    return message;
  };
  return { ...fixture, publish, topics };
}

describe('the source mqtt', () => {
  it('emits the messages of the broker whose topics match DATASOURCE', async () => {
    const { hub, publish } = open();
    const kept = new Kept();
    const attachment = hub.attach(stream({ TYPE: '', DATASOURCE: 'a/+' }), ALL, kept);
    assert.equal(attachment.connection.status, 1);
    publish({ topic: 'a/1', payload: '{"n":1}' }, 'device');
    publish({ topic: 'b/1', payload: '{"n":2}' });
    assert.deepEqual(kept.values, [{ n: 1 }]);
    assert.equal(kept.rows[0].timestamp, 77);
    await attachment.detach();
    publish({ topic: 'a/1', payload: '{"n":3}' });
    assert.equal(kept.rows.length, 1);
  });

  it('tells who has published a message, and how', () => {
    const { hub, publish } = open();
    const kept = new Kept();
    hub.attach(stream({ TYPE: 'mqtt', DATASOURCE: 'a' }), ALL, kept);
    publish({ topic: 'a', payload: '{}', qos: 1, retain: true }, 'device');
    const userProperties = [['unit', 'C']] as [string, string][];
    publish({ topic: 'a', payload: '{}', properties: { contentType: 'json', userProperties } });
    assert.deepEqual(kept.rows[0].metadata(), {
      topic: 'a',
      messageid: kept.rows[0].meta('messageid'),
      qos: 1,
      retain: false, // as for a client, true only for retained messages
      clientid: 'device',
      username: 'user'
    });
    assert.equal(typeof kept.rows[0].meta('messageid'), 'string');
    assert.deepEqual(kept.rows[1].metadata(), {
      topic: 'a',
      messageid: '0',
      qos: 0,
      retain: false,
      clientid: undefined,
      username: undefined,
      properties: { contentType: 'json', unit: 'C' }
    });
  });

  it('creates the metadata of a message once for all streams that receive it', () => {
    const { hub, publish } = open();
    const [one, two] = [new Kept(), new Kept()];
    hub.attach(stream({ TYPE: 'mqtt', DATASOURCE: 'a' }), ALL, one);
    hub.attach(stream({ TYPE: 'mqtt', DATASOURCE: '#' }), ALL, two);
    publish({ topic: 'a', payload: '{}' });
    assert.equal(one.rows[0].source, two.rows[0].source);
  });

  it('refuses a DATASOURCE that is not a topic filter, or a shared one', async () => {
    const { hub } = open();
    const cases: [datasource: string, message: string][] = [
      ['', 'stream demo: the option DATASOURCE is missing: set it to a topic filter'],
      ['a/#/b', 'stream demo: DATASOURCE: topic filter "a/#/b": "#" may only be the last level'],
      [
        '$share/g/a/+',
        'stream demo: DATASOURCE "$share/g/a/+": a stream receives all messages of this broker and shares none with clients; use "a/+"'
      ]
    ];
    for (const [DATASOURCE, message] of cases)
      await assert.rejects(hub.attach(stream({ TYPE: 'mqtt', DATASOURCE }), ALL, new Kept()).opened, {
        code: 'STREAM_INVALID',
        message
      });
  });

  it('needs the adapter for another server, and leaves the stream to it', async () => {
    const config = { mqtt: { default: { server: 'tcp://host:1883' } } };
    const definition = stream({ TYPE: 'mqtt', DATASOURCE: 'a' });
    await assert.rejects(open(config).hub.attach(definition, ALL, new Kept()).opened, {
      code: 'PROPERTY_INVALID',
      message:
        'stream demo: messages of another server need the source of embermq/streams/mqtt among the sources of the app'
    });
    const remote = Object.assign(new TestSource(), { name: 'mqtt' });
    open(config, [remote]).hub.attach(definition, ALL, new Kept());
    assert.deepEqual(remote.setup.properties, { server: 'tcp://host:1883' });
    open({}, [remote]).hub.attach(definition, ALL, new Kept());
    assert.equal(remote.setups.length, 1);
  });
});

describe('the source simulator', () => {
  const definition = stream({ TYPE: 'simulator' });
  const data = [{ n: 1 }, { n: 2 }];

  it('emits a row of its list in each interval, repeatedly', async () => {
    const { hub, clock } = open({ simulator: { default: { data, interval: '10ms' } } });
    const kept = new Kept();
    const attachment = hub.attach(definition, ALL, kept);
    clock.advance(9);
    assert.deepEqual(kept.values, []);
    clock.advance(21);
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }, { n: 1 }]);
    await attachment.detach();
    assert.equal(clock.pending, 0);
  });

  it('ends after the last row without loop', () => {
    const { hub, clock } = open({ simulator: { default: { data, loop: false } } });
    const kept = new Kept();
    hub.attach(definition, ALL, kept);
    clock.advance(10_000);
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }]);
    assert.equal(clock.pending, 0);
  });

  it('refuses a list without rows', async () => {
    for (const wrong of [[], [3]]) {
      const { hub } = open({ simulator: { default: { data: wrong } } });
      await assert.rejects(hub.attach(definition, ALL, new Kept()).opened, { code: 'PROPERTY_INVALID' });
    }
  });
});

describe('the sources app and push', () => {
  it('emits the rows that the app pushes', () => {
    const { hub } = open();
    for (const TYPE of ['app', 'push', 'APP']) {
      const kept = new Kept();
      const attachment = hub.attach(stream({ TYPE }), ALL, kept);
      assert.equal(attachment.connection.status, 1);
      hub.push('demo', { n: 1 });
      assert.deepEqual(kept.values, [{ n: 1 }]);
    }
  });
});

describe('the source memory', () => {
  it('emits the rows that rules send to topics matching DATASOURCE, with their metadata', async () => {
    const { hub, topics } = open();
    const kept = new Kept();
    const attachment = hub.attach(stream({ TYPE: 'memory', DATASOURCE: 'a/+' }), ALL, kept);
    topics.publish('a/1', [{ n: 1n }, { n: 2n }], { who: 'rule' });
    topics.publish('b/1', [{ n: 3n }], {});
    assert.deepEqual(kept.values, [{ n: 1n }, { n: 2n }]);
    assert.deepEqual(kept.rows[1].metadata(), { who: 'rule', topic: 'a/1' });
    await attachment.detach();
    topics.publish('a/1', [{}], {});
    assert.equal(kept.rows.length, 2);
  });

  it('refuses a value that is not a topic filter', async () => {
    const { hub } = open();
    const { opened } = hub.attach(stream({ TYPE: 'memory', DATASOURCE: '$share/g/a' }), ALL, new Kept());
    await assert.rejects(opened, { code: 'TOPIC_FILTER_INVALID' });
  });

  it('keeps the last row for each key in a lookup table, which rules share', async () => {
    const { hub, topics } = open();
    const table = stream({ TYPE: 'memory', DATASOURCE: 'a', KEY: 'id', KIND: 'lookup' }, undefined, 'table');
    const [{ open: one }, { open: two }] = [await hub.openLookup(table, ['id']), await hub.openLookup(table, ['id'])];
    const more = { rowkindField: 'what' };
    topics.publish(
      'a',
      [
        { id: 1n, n: 1 },
        { id: 2, n: 2 },
        { id: '1', n: 3 }
      ],
      {}
    );
    topics.publish(
      'a',
      [
        { id: 1, n: 4 },
        { id: 2, what: 'delete' }
      ],
      {},
      more
    );
    assert.deepEqual(await one.find(['id'], [1n]), [{ id: 1, n: 4 }]);
    assert.deepEqual(await one.find(['id'], [2]), []);
    await one.close();
    await one.close();
    assert.deepEqual(await two.find(['n', 'id'], [3, '1']), [{ id: '1', n: 3 }]);
    await two.close();
    assert.deepEqual(await (await hub.openLookup(table, [])).open.find(['id'], [1]), []);
  });

  it('remains the only built-in source for lookup tables', async () => {
    const table = stream({ TYPE: 'simulator' }, undefined, 'table');
    await assert.rejects(open().hub.openLookup(table, []), {
      code: 'STREAM_INVALID',
      message: 'table demo: a source of the type simulator cannot be used for a lookup table'
    });
  });
});
