import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type StreamsSqlOptions, sqlSink, sqlSource } from '../../adapters/streams/sql/index.ts';
import type { StreamValue } from '../../lib/index.ts';
import { openSink } from './sink-bench.ts';
import { ALL, Kept, makeHub, settled, stream } from './source-fixture.ts';
import { DATABASES, HOSTILE, type OpenDatabase } from './sql-kit.ts';

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await settled();
}

function openLookup(options: StreamsSqlOptions, more: Record<string, string> = {}) {
  const { hub } = makeHub([sqlSource(options)]);
  return hub.openLookup(stream({ TYPE: 'sql', KIND: 'lookup', DATASOURCE: 'items', ...more }, undefined, 'table'), []);
}

function attach(options: StreamsSqlOptions, properties: object, more: Record<string, string> = {}) {
  const fixture = makeHub([sqlSource(options)], { sourceConfig: { sql: { default: { ...properties } } } });
  const kept = new Kept();
  const attachment = fixture.hub.attach(stream({ TYPE: 'sql', ...more }), ALL, kept);
  /** Trigger a query, and wait for its rows or its error. */
  const pull = async (ms = 10_000) => {
    const seen = () => kept.rows.length + kept.errors.length;
    const before = seen();
    fixture.clock.advance(ms);
    await until(() => seen() > before);
  };
  return { ...fixture, kept, attachment, pull };
}

for (const { name, skip, open } of DATABASES) {
  describe(`${name} for stream rules`, { skip }, () => {
    let db: OpenDatabase;

    before(async () => {
      db = await open();
    });
    beforeEach(async () => {
      db.texts.length = 0;
      await db.run('DROP TABLE IF EXISTS items');
      await db.run('CREATE TABLE items (id BIGINT PRIMARY KEY, name VARCHAR(200), "a b" FLOAT, at TIMESTAMP NULL)');
    });
    after(() => db?.close());

    const sent = async (properties: object, ...emissions: (readonly Record<string, unknown>[])[]) => {
      const { emitter } = await openSink(sqlSink(db.options), { table: 'items', ...properties });
      try {
        for (const rows of emissions) await emitter.push(rows);
      } finally {
        await emitter.close();
      }
    };
    const rows = async (columns = 'id, name') => {
      const found = await db.run(`SELECT ${columns} FROM items ORDER BY id`);
      return found.map((row) =>
        Object.values(row).map((value) => (/^\d+$/.test(String(value)) ? Number(value) : value))
      );
    };

    it('finds the rows of a lookup table by its columns', async () => {
      await db.run(`INSERT INTO items (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'b')`);
      const { open: lookup } = await openLookup(db.options);
      const found = async (keys: string[], ...values: StreamValue[]) =>
        [...(await lookup.find(keys, values))].map(({ id }) => Number(id)).sort();
      assert.deepEqual(await found(['id'], 1), [1]);
      assert.deepEqual(await found(['name'], 'b'), [2, 3]);
      assert.deepEqual(await found(['name', 'id'], 'b', 3n), [3]);
      assert.deepEqual(await found(['name'], null), []);
      await assert.rejects(found(['none'], 1), /none/);
      await lookup.close();
    });

    it('treats hostile values as values, and hostile names as names', async () => {
      const { open: lookup } = await openLookup(db.options);
      for (const text of HOSTILE) {
        await sent({}, [{ id: HOSTILE.indexOf(text), name: text }]);
        const [row] = await lookup.find(['name'], [text]);
        assert.equal(row.name, text);
        await assert.rejects(async () => lookup.find([text], [1]));
        await assert.rejects(sent({}, [{ id: 99, [text]: 1 }]));
        await assert.rejects(sent({ table: text }, [{ id: 99 }]));
      }
      assert.equal((await rows()).length, HOSTILE.length);
      await lookup.close();
    });

    it('emits the rows of a table in each interval, limited to those after the greatest index', async () => {
      await db.run(`INSERT INTO items (id, name) VALUES (1, 'a'), (3, 'c'), (2, 'b')`);
      const internalSqlQueryCfg = { table: 'items', limit: 2, indexField: 'id', indexValue: 0 };
      const { kept, attachment, pull, clock } = attach(db.options, { internalSqlQueryCfg });
      const names = () => kept.values.map((row) => (row as { name: string }).name).join('');
      await pull();
      assert.equal(names(), 'ab');
      assert.equal(attachment.connection.status, 1);
      await pull();
      assert.equal(names(), 'abc');
      clock.advance(10_000);
      await until(() => db.texts.length === 3);
      await db.run(`INSERT INTO items (id, name) VALUES (9007199254740993, 'd')`);
      await until(() => clock.pending > 0);
      await pull();
      assert.equal(names(), 'abcd');
      assert.deepEqual(kept.errors, []);
      await attachment.detach();
    });

    it('emits the rows of a query with a template, whose value is a parameter', async () => {
      await db.run(
        `INSERT INTO items (id, name, at) VALUES (1, 'a', '2022-04-21 10:00:00'), (2, 'b', '2022-04-21 12:00:00')`
      );
      const TemplateSql = `SELECT id, name, at FROM items WHERE at > '{{.at}}' ORDER BY at LIMIT 1`;
      const index = { indexField: 'at', indexValue: '2022-04-21 09:00:00', indexFieldType: 'DATETIME' };
      const { kept, attachment, pull } = attach(db.options, { templateSqlQueryCfg: { TemplateSql, ...index } });
      await pull();
      await pull();
      const seen = kept.values as { name: string; at: Date }[];
      assert.deepEqual(
        seen.map(({ name, at }) => [name, at.getHours()]),
        [
          ['a', 10],
          ['b', 12]
        ]
      );
      assert.match(db.texts[0], /WHERE at > (\$1|\?) ORDER/);
      await attachment.detach();
    });

    it('inserts the rows of an output, those with the same columns with one statement', async () => {
      await sent({}, [
        { id: 1, name: 'a' },
        { id: 2n, name: 'b' },
        { id: 3, 'a b': 1.5 },
        { id: 9007199254740993n, name: null }
      ]);
      assert.equal(db.texts.length, 3);
      assert.deepEqual(await rows('id, name, "a b"'), [
        [1, 'a', null],
        [2, 'b', null],
        [3, null, 1.5],
        [Number(9007199254740993n), null, null]
      ]);
    });

    it('writes only the columns of fields, and structs as JSON', async () => {
      await sent({ fields: ['id', 'name'] }, [{ id: 1, name: { x: [1n] }, other: 1 }, { id: 2 }]);
      assert.deepEqual(await rows(), [
        [1, '{"x":[1]}'],
        [2, null]
      ]);
    });

    it('writes the objects in tableDataField', async () => {
      const telemetry = [
        { id: 1, name: 'a' },
        { id: 2, name: 'b' }
      ];
      await sent({ tableDataField: 't', fields: ['id', 'name'] }, [{ t: telemetry }, { t: { id: 3, name: 'c' } }]);
      assert.deepEqual((await rows()).flat(), [1, 'a', 2, 'b', 3, 'c']);
      await assert.rejects(
        sent({ tableDataField: 't' }, [{ t: 5 }]),
        /column t: the output must be a row or a list of rows/
      );
    });

    it('inserts, updates, upserts and deletes by rowkindField', async () => {
      const properties = { rowkindField: 'action', keyField: 'id' };
      await sent(properties, [
        { id: 1, name: 'a' },
        { action: 'insert', id: 2, name: 'b' },
        { action: 'update', id: 1, name: 'A' },
        { action: 'upsert', id: 2, name: 'B' },
        { action: 'upsert', id: 3, name: 'C' },
        { action: 'upsert', id: 3 },
        { action: 'insert', id: 4, name: 'd' },
        { action: 'delete', id: 4 }
      ]);
      assert.deepEqual((await rows()).flat(), [1, 'A', 2, 'B', 3, 'C']);
      const fails = (row: Record<string, unknown>, text: RegExp) => assert.rejects(sent(properties, [row]), text);
      await fails({ action: 'merge', id: 1 }, /the column action must be one of/);
      await fails({ action: 'update', name: 'x' }, /the row has no value in the keyField id/);
      await fails({ action: 'update', id: 1 }, /an update needs columns/);
    });

    it('drops a statement that the database refuses permanently, and counts it as answered', async () => {
      const { emitter } = await openSink(sqlSink(db.options), { table: 'items' });
      await emitter.push([{ id: 1 }]);
      for (const row of [{ id: 1 }, { id: 'x' }, { none: 1 }])
        await assert.rejects(async () => emitter.push([row]), { code: 'SEND_FAILED', isFinal: true });
      assert.equal(emitter.connection?.status, 1);
      await emitter.close();
    });
  });
}

describe('The types sql', () => {
  const asked: { text: string; parameters: unknown[]; url: string | undefined }[] = [];
  let answer: () => unknown = () => [];
  const options = (dialect: StreamsSqlOptions['dialect']): StreamsSqlOptions => ({
    dialect,
    query(text, parameters, url) {
      asked.push({ text, parameters, url });
      return answer();
    }
  });
  beforeEach(() => {
    asked.length = 0;
    answer = () => [];
  });

  it('writes the SQL of each dialect', async () => {
    const seen = async (dialect: StreamsSqlOptions['dialect']) => {
      asked.length = 0;
      const { open } = await openLookup(options(dialect), { DATASOURCE: 's.t' });
      await open.find(['a', 'b]"`'], ['x', 1]);
      const { emitter } = await openSink(sqlSink(options(dialect)), { table: 't' });
      await emitter.push([{ a: 1 }, { a: 2 }]);
      await emitter.close();
      return asked.map(({ text }) => text);
    };
    assert.deepEqual(await seen('postgres'), [
      'SELECT * FROM "s"."t" WHERE "a" = $1 AND "b]""`" = $2 LIMIT 10001',
      'INSERT INTO "t" ("a") VALUES ($1), ($2)'
    ]);
    assert.deepEqual(await seen('mysql'), [
      'SELECT * FROM `s`.`t` WHERE `a` = ? AND `b]"``` = ? LIMIT 10001',
      'INSERT INTO `t` (`a`) VALUES (?), (?)'
    ]);
    assert.deepEqual(await seen('sqlserver'), [
      'SELECT TOP (10001) * FROM [s].[t] WHERE [a] = @p1 AND [b]]"`] = @p2',
      'INSERT INTO [t] ([a]) VALUES (@p1), (@p2)'
    ]);
    assert.deepEqual(await seen('oracle'), [
      'SELECT * FROM "s"."t" WHERE "a" = :1 AND "b]""`" = :2 FETCH FIRST 10001 ROWS ONLY',
      'INSERT INTO "t" ("a") VALUES (:1)',
      'INSERT INTO "t" ("a") VALUES (:1)'
    ]);
  });

  it('passes the property url to the function, and converts the values of drivers', async () => {
    const at = new Date(0);
    answer = () => [{ a: 1, b: 2n, c: at, d: Buffer.from('x'), e: { f: [null] }, g: undefined }];
    const { kept, attachment, pull } = attach(options('sqlite'), { url: 'sqlite:/a' }, { DATASOURCE: 't' });
    await pull();
    assert.deepEqual(kept.values, [{ a: 1, b: 2n, c: at, d: Buffer.from('x'), e: { f: [null] }, g: undefined }]);
    assert.deepEqual(asked[0], { text: 'SELECT * FROM "t" LIMIT 100001', parameters: [], url: 'sqlite:/a' });
    await attachment.detach();
  });

  it('gives up a query without an answer, and refuses a result that is not a list of rows', async () => {
    answer = () => new Promise(() => {});
    const { kept, attachment, pull, clock } = attach(options('sqlite'), { timeout: 50 }, { DATASOURCE: 't' });
    clock.advance(10_000);
    await pull(50);
    answer = () => ({ rows: [] });
    await pull(1100);
    answer = () => Array.from({ length: 100_001 }, () => ({}));
    await pull(2200);
    assert.match(
      kept.errors.join(),
      /not answered within 50 ms,.*must return a list of rows.*,.*more than 100000 rows/
    );
    await attachment.detach();
  });

  it('names invalid options and properties', async () => {
    assert.throws(() => sqlSource({ query: 1, dialect: 'mysql' } as never), { code: 'OPTION_INVALID', field: 'query' });
    assert.throws(() => sqlSink({ query: () => [], dialect: 'x' } as never), { field: 'dialect' });
    await assert.rejects(openLookup(options('mysql'), { DATASOURCE: '' }), /DATASOURCE must be the name of a table/);
    const fails = (text: RegExp, properties: object) =>
      assert.rejects(attach(options('mysql'), properties).attachment.opened, (error: Error) =>
        text.test(error.message)
      );
    await fails(/internalSqlQueryCfg.table: expected the name of a table/, {});
    await fails(/limit: expected an integer from 1 to 100000/, { internalSqlQueryCfg: { table: 't', limit: 0 } });
    await fails(/indexValue: expected a number or a string/, {
      internalSqlQueryCfg: { table: 't', indexField: 'a', indexValue: {} }
    });
    const template = (more: object) => ({ templateSqlQueryCfg: { TemplateSql: 'SELECT {{.a}}', ...more } });
    await fails(/TemplateSql: expected a query, in which/, template({}));
    await fails(/indexValue: expected the first value/, template({ indexField: 'a' }));
    await fails(/TemplateSql: expected/, template({ indexField: 'a', indexValue: 1, TemplateSql: '{{if .a}}' }));
    const sinkFails = (text: RegExp, properties: object) =>
      assert.rejects(openSink(sqlSink(options('mysql')), properties), (error: Error) => text.test(error.message));
    await sinkFails(/sql sink is missing property table/, {});
    await sinkFails(/property keyField must be the column of the primary key/, { table: 't', rowkindField: 'a' });
    await sinkFails(/property fields must be a list of names/, { table: 't', fields: [1] });
  });
});
