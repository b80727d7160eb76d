import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import type { Broker } from '../../lib/index.ts';
import { createBroker } from '../../lib/index.ts';

describe('Types of the app with a mistake', () => {
  let broker: Broker;
  afterEach(() => broker.stop());

  const started = async () => {
    broker = createBroker();
    await broker.start();
    return broker;
  };

  it('names the methods that what a sink opens must have', async () => {
    const { rules, streams } = await started();
    await streams.createSink({ name: 'lines', about: 'Lines.', open: () => ({ sned() {}, close() {} }) as never });
    await streams.create('CREATE STREAM demo () WITH (TYPE="app")');
    const expected = { code: 'SINK_INVALID', message: /lines\.open\(\).*an object with send\(\) and close\(\)/ };
    await assert.rejects(
      streams.rules.create({ id: 'a', sql: 'SELECT * FROM demo', actions: [{ lines: {} }] }),
      expected
    );
    await assert.rejects(rules.create({ sql: 'SELECT * FROM "t"', actions: ['lines'] }), /an object with send\(\)/);
  });

  it('names the method that what a source opens must have', async () => {
    const { streams } = await started();
    await streams.createSource({ name: 'ticks', about: 'Ticks.', open: () => ({}) as never });
    await streams.create('CREATE STREAM demo () WITH (TYPE="ticks")');
    await assert.rejects(streams.rules.create({ id: 'a', sql: 'SELECT * FROM demo', actions: [{ nop: {} }] }), {
      code: 'SOURCE_INVALID',
      message: /ticks\.open\(\).*an object with close\(\)/
    });
  });

  it('names the place of a property or parameter whose type does not exist, and a similar key', async () => {
    const { rules, streams } = await started();
    const about = 'Time between rows.';
    const open = () => ({ send() {}, close() {} });
    const table = (row: object) => ({ interval: row }) as never;
    await assert.rejects(
      streams.createSource({ name: 'ticks', about, properties: table({ type: 'nmber', about }), open }),
      { code: 'SOURCE_INVALID', message: /ticks\.properties\.interval\.type.*one of .*number.*"nmber"/ }
    );
    await assert.rejects(
      streams.createSink({ name: 'lines', about, properties: table({ type: 'number', defalt: 3, about }), open }),
      { code: 'SINK_INVALID', message: /lines\.properties\.interval.*"defalt".*"default"/ }
    );
    const text = { en: 'Page', zh: 'Page' };
    const create = () => ({ run() {} });
    const action = { name: 'page', title: text, description: text, create };
    await assert.rejects(
      rules.createAction({ ...action, params: table({ type: 'strin', title: text, description: text }) }),
      {
        code: 'ACTION_INVALID',
        message: /page\.params\.interval\.type/
      }
    );
    await rules.createAction({ ...action, params: { who: { type: 'float', title: text, description: text } } });
    await streams.createSink({
      name: 'other',
      about,
      properties: { at: { type: 'number', note: 'mine', about } as never },
      open
    });
  });

  it('names the types of parameters and of results, and that a function is async', async () => {
    const { rules, streams } = await started();
    const base = { name: 'f', family: 'app', about: 'One.' } as const;
    await assert.rejects(
      streams.createFunction({ ...base, kind: 'scalar', params: ['nuber' as never], run: () => 1 }),
      /f\.params\[0\].*one of any, bigint, .*struct.*"nuber"/
    );
    await assert.rejects(
      streams.createFunction({ ...base, kind: 'scalar', params: [], run: (async () => 1) as never }),
      /not async.*got an async function/
    );
    await assert.rejects(
      rules.createFunction({ ...base, params: [], returns: 'nmber' as never, run: () => 1 }),
      /f\.returns.*one of any, string, .*"nmber"/
    );
  });
});
