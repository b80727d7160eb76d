import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Redis } from 'ioredis';
import { redisLookup, redisSink, redisSubSource } from '../../adapters/streams/redis/index.ts';
import type { StreamValue } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { service } from '../support/services.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { openSink } from './sink-bench.ts';
import { ALL, Kept, makeHub, settled, stream } from './source-fixture.ts';

const { url, skip } = service('redis');
/** The number of a database that only this file uses. */
const DATABASE = 7;
const { host, password } = skip === false ? new URL(url) : { host: '', password: '' };
const CONNECTION = { addr: host, password };

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await settled();
}

describe('Redis', { skip }, () => {
  let client: Redis;

  before(() => {
    client = new Redis(url, { db: DATABASE });
  });
  beforeEach(() => client.flushdb());
  after(() => client?.quit());

  describe('as a lookup table', () => {
    const open = (more: object = {}, options: object = {}) => {
      const properties = { ...CONNECTION, ...more };
      const { hub } = makeHub([redisLookup()], { sourceConfig: { redis: { default: properties } } });
      const all = { TYPE: 'redis', KIND: 'lookup', DATASOURCE: String(DATABASE), ...options };
      return hub.openLookup(stream(all, undefined, 'table'), []);
    };

    it('finds the row at a key, by strings and by numbers', async () => {
      await client.set('1', '{"id":1,"name":"John"}');
      await client.set('a', '[{"id":2},{"id":3}]');
      const { open: lookup } = await open();
      const found = (value: StreamValue) => lookup.find(['id'], [value]);
      assert.deepEqual(await found(1), [{ id: 1, name: 'John' }]);
      assert.deepEqual(await found(1n), [{ id: 1, name: 'John' }]);
      assert.deepEqual(await found('a'), [{ id: 2 }, { id: 3 }]);
      for (const none of ['b', null, undefined]) assert.deepEqual(await found(none), []);
      await lookup.close();
    });

    it('returns a row for each element of a list', async () => {
      await client.rpush('group', '{"id":1}', '{"id":2}');
      const { open: lookup } = await open({ datatype: 'list' });
      assert.deepEqual(await lookup.find(['id'], ['group']), [{ id: 1 }, { id: 2 }]);
      assert.deepEqual(await lookup.find(['id'], ['none']), []);
      await client.rpush('long', ...Array.from({ length: 10_001 }, () => '{}'));
      await assert.rejects(async () => lookup.find(['id'], ['long']), /more than 10000 elements/);
      await lookup.close();
    });

    it('reports an invalid lookup', async () => {
      await client.set('text', 'x');
      await client.rpush('list', '{}');
      const { open: lookup } = await open();
      const find = async (keys: string[], ...values: StreamValue[]) => lookup.find(keys, values);
      await assert.rejects(find(['a', 'b'], 1, 2), /finds rows by one key, and ON compares a, b/);
      await assert.rejects(find(['a'], 'text'), /the key "text" has no JSON of an object/);
      await assert.rejects(find(['a'], { x: 1 }), /a key must be a string/);
      await assert.rejects(find(['a'], 'list'), /WRONGTYPE/);
      await lookup.close();
    });

    it('names invalid properties of a lookup table', async () => {
      const fails = async (text: RegExp, more: object, options: object = {}) => {
        await assert.rejects(open(more, options), (error: Error) => text.test(error.message));
      };
      await fails(/lookup table demo: property addr must be host and port/, { addr: 'a:b:c' });
      await fails(/property addr must be host and port without credentials/, { addr: 'redis://u:secret@host' });
      await fails(/the database must be the number of a database, from 0, got "x"/, {}, { DATASOURCE: 'x' });
      await fails(/property datatype must be one of/, { datatype: 'hash' });
    });

    it('joins the rows of a rule, and caches the rows found', async () => {
      await client.set('1', '{"name":"one"}');
      const sourceConfig = { redis: { default: { ...CONNECTION, lookup: { cache: true, cacheTtl: 10 } } } };
      await using kit = await createTestBroker({ streams: { sources: [redisLookup()], sourceConfig } });
      const { streams } = kit.broker;
      await streams.create('CREATE STREAM demo () WITH (DATASOURCE="a")');
      await streams.create(`CREATE TABLE names () WITH (TYPE="redis", KIND="lookup", DATASOURCE="${DATABASE}")`);
      const rows: unknown[] = [];
      const sql = 'SELECT demo.id, names.name FROM demo INNER JOIN names ON demo.id = names.id';
      await streams.rules.create({ id: 'r', sql, actions: [(emission) => void rows.push(...emission)] });
      const push = async () => {
        const { length } = rows;
        await streams.push('demo', { id: 1 });
        await until(() => rows.length > length);
      };
      await push();
      await client.set('1', '{"name":"changed"}');
      await push();
      await kit.clock.advance('11s');
      await push();
      const names = rows.map((row) => (row as { name: string }).name);
      assert.deepEqual(names, ['one', 'one', 'changed']);
    });
  });

  describe('as a source of messages', () => {
    const attach = (more: object, options: Record<string, string> = {}) => {
      const properties = { address: host, password, ...more };
      const fixture = makeHub([{ ...redisSubSource(), name: 'redissub' }], {
        sourceConfig: { redissub: { default: properties } }
      });
      const kept = new Kept();
      const attachment = fixture.hub.attach(stream({ TYPE: 'redisSub', ...options }), ALL, kept);
      return { ...fixture, kept, attachment };
    };

    it('emits the messages of channels, with the name of the channel', async () => {
      const { kept, attachment } = attach({ channels: ['k1-a', 'k1-b'] });
      await until(() => attachment.connection.status === 1);
      await client.publish('k1-a', '{"n":1}');
      await client.publish('k1-b', '[{"n":2},{"n":3}]');
      await client.publish('k1-c', '{"n":4}');
      await client.publish('k1-a', 'no JSON');
      await until(() => kept.errors.length === 1);
      assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }, { n: 3 }]);
      assert.deepEqual(
        kept.rows.map((row) => row.metadata().channel),
        ['k1-a', 'k1-b', 'k1-b']
      );
      await attachment.detach();
    });

    it('decodes by FORMAT, after decompression, in order of arrival', async () => {
      const properties = { decompression: 'gzip' };
      const { kept, attachment } = attach(properties, { DATASOURCE: 'k1-d', FORMAT: 'binary' });
      await until(() => attachment.connection.status === 1);
      await client.publish('k1-d', gzipSync(Buffer.alloc(100_000, 1)));
      await client.publish('k1-d', 'not compressed');
      await client.publish('k1-d', gzipSync(Buffer.from([0xff])));
      await until(() => kept.rows.length === 2);
      assert.deepEqual(kept.values[1], { self: Buffer.from([0xff]) });
      assert.match(kept.errors[0], /incorrect header check/);
      await attachment.detach();
    });

    it('reports a wrong password without showing it, and requires a channel', async () => {
      const { attachment } = attach({ password: 'a-secret', channels: ['a'] });
      await until(() => attachment.connection.status === -1);
      assert.match(attachment.connection.disconnectedMessage, /WRONGPASS/);
      assert.doesNotMatch(attachment.connection.disconnectedMessage, /a-secret/);
      await attachment.detach();
      await assert.rejects(attach({}).attachment.opened, /property channels must be a list of names of channels/);
      await assert.rejects(attach({ channels: [1] }).attachment.opened, { code: 'PROPERTY_INVALID' });
    });
  });

  describe('as a sink', () => {
    const sent = async (properties: object, ...emissions: (readonly Record<string, unknown>[])[]) => {
      const bench = await openSink(redisSink(), { ...CONNECTION, db: DATABASE, ...properties });
      try {
        for (const rows of emissions) await bench.emitter.push(rows);
      } finally {
        await bench.emitter.close();
      }
    };

    it('writes rows as JSON to a key, or to the key in a column', async () => {
      await sent({ key: 'k' }, [{ id: 1n, bytes: new Uint8Array([1]) }]);
      await sent({ key: 'k-{{.id}}', sendSingle: true }, [{ id: 1 }, { id: 2 }]);
      await sent({ field: 'id' }, [
        { id: 3, name: 'Bob' },
        { id: 'x', name: 'Ann' },
        { id: 3, name: 'John' }
      ]);
      assert.equal(await client.get('k'), '{"id":1,"bytes":"AQ=="}');
      assert.equal(await client.get('k-2'), '{"id":2}');
      assert.equal(await client.get('3'), '{"id":3,"name":"John"}');
      assert.equal(await client.get('x'), '{"id":"x","name":"Ann"}');
    });

    it('writes the output of a template or a format', async () => {
      await sent({ key: 'text', dataTemplate: 'v={{.a}}', sendSingle: true }, [{ a: 1 }]);
      await sent({ key: 'csv', format: 'delimited', dataTemplate: 'a;b', sendSingle: true }, [{ a: 1 }]);
      await sent({ field: 'id', dataTemplate: '{"id":"t{{.a}}"}', sendSingle: true }, [{ a: 1 }]);
      assert.deepEqual(await client.mget('text', 'csv', 't1'), ['v=1', 'a;b', '{"id":"t1"}']);
    });

    it('prepends elements to a list', async () => {
      await sent(
        { field: 'id', dataType: 'list' },
        [{ id: 'l', n: 1 }],
        [
          { id: 'l', n: 2 },
          { id: 'l', n: 3 }
        ]
      );
      assert.deepEqual(await client.lrange('l', 0, -1), ['{"id":"l","n":3}', '{"id":"l","n":2}', '{"id":"l","n":1}']);
    });

    it('writes each column to a separate key with the keyType multiple', async () => {
      await sent({ keyType: 'multiple', rowkindField: 'action' }, [{ t: 40.9, s: 'x', o: { a: 1n } }]);
      assert.deepEqual(await client.mget('t', 's', 'o'), ['40.9', 'x', '{"a":1}']);
      await sent({ keyType: 'multiple', rowkindField: 'action' }, [{ t: 0, action: 'delete' }]);
      assert.deepEqual(await client.mget('t', 's', 'action'), [null, 'x', null]);
    });

    it('lets strings expire', async () => {
      await sent({ key: 'k', expiration: 100 }, [{ a: 1 }]);
      await sent({ key: 'forever' }, [{ a: 1 }]);
      const left = await client.pttl('k');
      assert.ok(left > 90_000 && left <= 100_000, String(left));
      assert.equal(await client.pttl('forever'), -1);
    });

    it('applies the operation in the column rowkindField, in the order of the rows', async () => {
      const strings = { field: 'id', rowkindField: 'action' };
      await sent(strings, [{ id: 'a', n: 1 }], [{ action: 'update', id: 'a', n: 2 }]);
      assert.equal(await client.get('a'), '{"action":"update","id":"a","n":2}');
      await sent(strings, [{ action: 'delete', id: 'a' }]);
      assert.equal(await client.get('a'), null);
      await sent(strings, [
        { action: 'delete', id: 'a' },
        { action: 'upsert', id: 'a', n: 3 }
      ]);
      assert.equal(await client.get('a'), '{"action":"upsert","id":"a","n":3}');
      const lists = { ...strings, dataType: 'list' };
      await sent(
        lists,
        [
          { id: 'l', n: 1 },
          { action: 'insert', id: 'l', n: 2 }
        ],
        [{ action: 'delete', id: 'l' }]
      );
      assert.deepEqual(await client.lrange('l', 0, -1), ['{"id":"l","n":1}']);
      await assert.rejects(sent(strings, [{ action: 'merge', id: 'a' }]), /action must be one of insert, update/);
    });

    it('fails for a row without a key, and for a key of another type', async () => {
      await client.rpush('list', 'x');
      await assert.rejects(sent({ field: 'id' }, [{ a: 1 }]), /redis sink: id has no value that is a key/);
      await assert.rejects(sent({ field: 'id' }, [{ id: {} }]), { code: 'STREAM_FAILED' });
      await assert.rejects(
        sent({ key: 'list', dataType: 'list', field: 'id', dataTemplate: 'x' }, [{}]),
        /must be a row/
      );
      await client.set('string', 'x');
      await assert.rejects(sent({ key: 'string', dataType: 'list' }, [{}]), {
        code: 'SEND_FAILED',
        message: /WRONGTYPE/
      });
    });

    it('fails while there is no server, shows this, and continues when it is available again', async () => {
      await using proxy = await new TcpProxy(url).start();
      const clock = new ManualClock();
      const properties = { ...CONNECTION, addr: `127.0.0.1:${proxy.port}`, db: DATABASE, field: 'id' };
      const { emitter } = await openSink(redisSink(), properties, { clock });
      await emitter.push([{ id: 'a' }]);
      assert.equal(emitter.connection?.status, 1);
      await proxy.stop();
      await until(() => emitter.connection?.status === -1);
      await assert.rejects(async () => emitter.push([{ id: 'b' }]), { code: 'REDIS_DOWN' });
      await proxy.start();
      clock.advance(1100);
      await emitter.push([{ id: 'c' }]);
      assert.equal(emitter.connection?.status, 1);
      await emitter.close();
      assert.deepEqual(await client.mget('a', 'b', 'c'), ['{"id":"a"}', null, '{"id":"c"}']);
    });

    it('names invalid properties of a sink', async () => {
      const fails = (text: RegExp, properties: object) =>
        assert.rejects(openSink(redisSink(), properties), (error: Error) => text.test(error.message));
      await fails(/redis sink is missing property addr/, { key: 'a' });
      await fails(/property key or field is missing/, CONNECTION);
      await fails(/property keyType must be one of "single", "multiple"/, { ...CONNECTION, keyType: 'x' });
      await fails(/property dataType must be one of "string", "list"/, { ...CONNECTION, key: 'a', datatype: 'hash' });
      await fails(/property db must be a number/, { ...CONNECTION, key: 'a', db: -1 });
      await fails(/the database must be the number of a database/, { ...CONNECTION, key: 'a', db: 1.5 });
    });
  });
});
