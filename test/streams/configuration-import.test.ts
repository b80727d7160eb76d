import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SinkType, SourceType, StreamFormatType } from '../../lib/adapter.ts';
import { memoryStore, type StreamConfigEntry } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { until } from '../support/until.ts';

const CONNECTION = { kind: 'connection', type: 'probe', name: 'c' } as const;
const SQL = 'SELECT * FROM demo';
const DEMO = 'CREATE STREAM demo () WITH (DATASOURCE="a", FORMAT="json")';
const ACTION = { connectionSelector: 'c', topic: 't' };

/** A broker with a source and a sink of the type `probe`, and the servers with which they were opened. */
async function start(formats: readonly StreamFormatType[] = []) {
  const opened: unknown[] = [];
  const sent: string[] = [];
  const properties: SinkType['properties'] = {
    server: { type: 'string', about: 'The server.' },
    topic: { type: 'string', about: 'The topic.' },
    token: { type: 'string', isSecret: true, about: 'The token.' }
  };
  const sink: SinkType = {
    ...{ name: 'probe', about: 'A sink of a test.', properties },
    open: ({ properties: { server } }) => {
      if (server === 'none') throw new Error('there is no server');
      opened.push(server);
      return { send: ({ bytes }) => void sent.push(`${server} ${bytes}`), close: () => undefined };
    }
  };
  const source: SourceType = {
    ...{ name: 'probe', about: 'A source of a test.', properties },
    open: ({ properties: { server }, connected }) => {
      opened.push(`source ${server}`);
      connected();
      return { close: () => undefined };
    }
  };
  const kit = await createTestBroker({ streams: { sources: [source], sinks: [sink], formats } });
  const { streams, rules } = kit.broker;
  await streams.config.set({ ...CONNECTION, properties: { server: 'old' } });
  await streams.create(DEMO);
  const load = (config: readonly StreamConfigEntry[], others = {}) =>
    streams.import({ streams: {}, tables: {}, rules: {}, config, ...others });
  return { kit, streams, rules, opened, sent, load, [Symbol.asyncDispose]: () => kit[Symbol.asyncDispose]() };
}

describe('An import of the configuration of streams', () => {
  it('leaves the current configuration in use while an import is checked', async () => {
    let finish: () => void = () => undefined;
    let begun: () => void = () => undefined;
    const isBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const slow: StreamFormatType = {
      ...{ name: 'slow', about: 'A format of a test.' },
      checkSchema: () => {
        begun();
        return new Promise<void>((resolve) => {
          finish = resolve;
        });
      },
      make: () => ({ name: 'slow', encode: () => Buffer.alloc(0), decode: () => [] })
    };
    await using made = await start([slow]);
    const { streams, rules, opened, load } = made;
    const schema = { kind: 'schema', type: 'slow', name: 's', properties: { content: 'x' } } as const;
    const imported = assert.rejects(
      load([
        { ...CONNECTION, properties: { server: 'other' } },
        schema,
        { ...CONNECTION, type: 'none', name: 'd', properties: {} }
      ]),
      { code: 'RULESET_INVALID' }
    );
    await isBegun;
    assert.deepEqual((await streams.config.get(CONNECTION))?.properties, { server: 'old' });
    await rules.create({ id: 'r', sql: 'SELECT * FROM "a"', actions: [{ name: 'probe', params: ACTION }] });
    finish();
    await imported;
    assert.deepEqual([opened, (await streams.config.list('schema')).length], [['old'], 0]);
  });

  it('opens the sinks of running rules again whose connection has changed', async () => {
    await using made = await start();
    const { kit, streams, rules, opened, sent, load } = made;
    await streams.rules.create({ id: 's', sql: SQL, actions: [{ probe: ACTION }] });
    await streams.rules.create({ id: 'other', sql: SQL, actions: [{ probe: { server: 'own' } }] });
    await rules.create({ id: 'b', sql: 'SELECT payload FROM "b"', actions: [{ name: 'probe', params: ACTION }] });
    assert.deepEqual(opened.splice(0), ['old', 'own', 'old']);
    await load([{ ...CONNECTION, properties: { server: 'new' } }]);
    assert.deepEqual(opened.splice(0), ['new', 'new']);
    await load([{ ...CONNECTION, properties: { server: 'new' } }]);
    assert.deepEqual(opened, []);
    await kit.broker.publish('b', '1');
    await kit.clock.settle();
    assert.match(sent.join(), /^new /);
  });

  it('disconnects a broker rule whose sink cannot be opened with the new connection, until the next import', async () => {
    await using made = await start();
    const { rules, opened, load } = made;
    await rules.create({ id: 'b', sql: 'SELECT payload FROM "b"', actions: [{ name: 'probe', params: ACTION }] });
    await load([{ ...CONNECTION, properties: { server: 'none' } }]);
    const failed = await rules.get('b');
    assert.equal(failed?.state, 'disconnected');
    assert.match(`${failed?.reason}`, /there is no server/);
    await load([{ ...CONNECTION, properties: { server: 'new' } }]);
    assert.deepEqual([(await rules.get('b'))?.state, opened], ['connected', ['old', 'new']]);
  });

  it('closes a sink that it opens again if the rule was disconnected meanwhile', async () => {
    let finish: (() => void) | undefined;
    let isDisconnected = false;
    let [opened, closed] = [0, 0];
    const sink: SinkType = {
      ...{ name: 'app', about: 'A sink of a test.', properties: { server: { type: 'string', about: 'The server.' } } },
      open: async () => {
        opened++;
        if (opened === 3) throw new Error('not now');
        if (opened === 2)
          await new Promise<void>((resolve) => {
            finish = resolve;
          });
        return { send: () => undefined, close: () => void closed++ };
      }
    };
    await using kit = await createTestBroker({ store: memoryStore(), streams: { sinks: [sink] } });
    const { streams, rules } = kit.broker;
    const load = (server: string) => {
      const config = [{ kind: 'connection', type: 'app', name: 'c', properties: { server } } as const];
      return streams.import({ streams: {}, tables: {}, rules: {}, config });
    };
    await load('old');
    const actions = [{ name: 'app', params: { connectionSelector: 'c' } }];
    await rules.create({ id: 'b', sql: 'SELECT payload FROM "b"', actions });
    kit.broker.on('rule.disconnected', () => {
      isDisconnected = true;
    });
    const imported = load('new');
    await until(() => finish !== undefined);
    await kit.broker.stop();
    await kit.broker.start();
    await until(() => isDisconnected);
    finish?.();
    await imported;
    await kit.clock.settle();
    assert.deepEqual([opened, closed], [3, 2]);
  });

  it('accepts sections before the connections that they name', async () => {
    await using made = await start();
    const section = { kind: 'confKey', type: 'probe', name: 'a', properties: { connectionSelector: 'later' } } as const;
    const imported = await made.load([section, { ...CONNECTION, name: 'later', properties: { server: 'x' } }]);
    assert.equal(imported.config, 2);
  });

  it('starts a rule once that it creates together with its stream and its configuration', async () => {
    await using made = await start();
    const { opened, load } = made;
    const section = { kind: 'confKey', type: 'probe', name: 'a', properties: { connectionSelector: 'c' } } as const;
    await load([section, { ...CONNECTION, properties: { server: 'new' } }], {
      streams: { own: 'CREATE STREAM own () WITH (TYPE="probe", DATASOURCE="a", FORMAT="json", CONF_KEY="a")' },
      rules: { r: JSON.stringify({ sql: 'SELECT * FROM own', actions: [{ probe: ACTION }] }) }
    });
    assert.deepEqual(opened, ['new', 'source new']);
  });

  it('starts no rule whose schedule is over', async () => {
    await using it = await start();
    const { kit, streams, load } = it;
    await streams.rules.create({ id: 'r', sql: SQL, actions: [{ probe: ACTION }], options: { duration: '10m' } });
    await kit.clock.advance('11m');
    const over = 'Stopped: schedule terminated.';
    assert.equal((await streams.rules.status('r')).text, over);
    await load([{ ...CONNECTION, properties: { server: 'new' } }]);
    assert.equal((await streams.rules.status('r')).text, over);
    await streams.rules.start('r');
    assert.deepEqual(it.opened, ['old', 'new']);
  });

  it('counts the configuration that was imported if other items have failed', async () => {
    await using made = await start();
    const rules = { r: JSON.stringify({ sql: SQL, actions: [{ probe: { server: 'none' } }] }) };
    await assert.rejects(made.load([{ ...CONNECTION, properties: { server: 'new' } }], { rules }), {
      code: 'RULESET_INCOMPLETE',
      message:
        'imported 0 streams, 0 tables and 0 rules, and 1 sections, connections and schemas, but some items failed:\nrule "r": there is no server'
    });
  });

  it('starts a rule once whose definition and whose connection it changes', async () => {
    await using made = await start();
    const { streams, opened, load } = made;
    await streams.rules.create({ id: 's', sql: SQL, actions: [{ probe: ACTION }] });
    opened.length = 0;
    const rules = { s: JSON.stringify({ sql: SQL, actions: [{ probe: { ...ACTION, topic: 'u' } }] }) };
    await load([{ ...CONNECTION, properties: { server: 'new' } }], { rules });
    assert.deepEqual(opened, ['new']);
  });

  it('starts a rule that has failed when it changes its connection, but none that was stopped', async () => {
    await using made = await start();
    const { streams, opened, load } = made;
    for (const id of ['s', 'stopped']) await streams.rules.create({ id, sql: SQL, actions: [{ probe: ACTION }] });
    await streams.rules.stop('stopped');
    await load([{ ...CONNECTION, properties: { server: 'none' } }]);
    assert.equal((await streams.rules.status('s')).state, 'disconnected');
    opened.length = 0;
    await load([{ ...CONNECTION, properties: { server: 'new' } }]);
    assert.deepEqual([opened, (await streams.rules.status('s')).state], [['new'], 'connected']);
  });

  it('moves a connection if it brings the secrets of its users, or removes them, but not if current ones remain', async () => {
    await using made = await start();
    const { streams, load } = made;
    const secret = (token: string) => ({ ...ACTION, token });
    const section = (properties: object) =>
      ({ kind: 'confKey', type: 'probe', name: 'a', properties: { connectionSelector: 'c', ...properties } }) as const;
    const rule = (properties: object) => ({ s: JSON.stringify({ sql: SQL, actions: [{ probe: properties }] }) });
    const moved = { ...CONNECTION, properties: { server: 'new' } };
    await streams.config.set(section({ token: 'of the section' }));
    await streams.rules.create({ id: 's', sql: SQL, actions: [{ probe: secret('of the rule') }] });
    for (const [config, rules, user] of [
      [[moved], rule(ACTION), 'section a'],
      [[moved, section({ token: '******' })], rule(ACTION), 'section a'],
      [[moved, section({})], {}, 'rule s'],
      [[moved, section({})], rule(secret('******')), 'rule s']
    ] as const)
      await assert.rejects(load(config, { rules }), {
        code: 'RULESET_INVALID',
        message: new RegExp(`would get the secrets of ${user}: remove them there first`)
      });
    await load([moved, section({ token: 'another' })], { rules: rule(secret('another')) });
    await load([{ ...CONNECTION, properties: { server: 'newer' } }, section({})], { rules: rule(ACTION) });
    assert.deepEqual((await streams.config.get(CONNECTION))?.properties, { server: 'newer' });
  });

  it('lets other work run between the items', async () => {
    await using made = await start();
    const entries = Array.from({ length: 50 }, (_, at) => ({ ...CONNECTION, name: `c${at}`, properties: {} }));
    let turns = 0;
    let isOver = false;
    const imported = made.load(entries).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await new Promise(setImmediate);
      turns++;
    }
    assert.equal((await imported).config, 50);
    assert.ok(turns >= 100, `${turns} turns for the check and the import of 50 items`);
  });
});
