import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryStore } from '../../lib/index.ts';
import { ruleKit } from './support.ts';

const SQL = 'SELECT payload.n as n FROM "a"';

describe('the causes of messages that sinks of broker rules publish', () => {
  it('tells a broker rule from a stream rule with the same id, which may publish because of it', async () => {
    for (const sink of ['mqtt', 'memory']) {
      await using kit = await ruleKit();
      const { rules, streams } = kit.broker;
      const source = sink === 'mqtt' ? 'TYPE="mqtt", DATASOURCE="b"' : 'TYPE="memory", DATASOURCE="b"';
      await streams.create(`CREATE STREAM s () WITH (${source}, FORMAT="json")`);
      await streams.rules.create({ id: 'r', sql: 'SELECT n FROM s', actions: [{ mqtt: { topic: 'c' } }] });
      await rules.create({ id: 'r', sql: SQL, actions: [{ name: sink, params: { topic: 'b' } }] });
      const received: string[] = [];
      kit.broker.subscribe('c', ({ payload }) => void received.push(String(payload)));
      await kit.broker.publish('a', '{"n":1}');
      await kit.clock.settle();
      assert.deepEqual(received, ['[{"n":1}]'], sink);
    }
  });

  it('publishes at once, although a stream rule with the same id holds its messages until its checkpoint', async () => {
    await using kit = await ruleKit({ store: memoryStore() });
    const { rules, streams } = kit.broker;
    await streams.create('CREATE STREAM s () WITH (TYPE="mqtt", DATASOURCE="x", FORMAT="json")');
    const actions = [{ mqtt: { topic: 'y' } }];
    await streams.rules.create({ id: 'r', sql: 'SELECT n FROM s', actions, options: { qos: 2 } });
    await rules.create({ id: 'r', sql: SQL, actions: [{ name: 'mqtt', params: { topic: 'b' } }] });
    const received: unknown[] = [];
    const take = (output: unknown) => received.push(output);
    await rules.create({ sql: 'SELECT clientid, payload FROM "b"', actions: [take] });
    await kit.broker.publish('a', '{"n":1}');
    await kit.clock.settle();
    assert.deepEqual(received, [{ clientid: 'r', payload: '{"n":1}' }]);
  });
});
