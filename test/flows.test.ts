import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Writer } from '../lib/connection/writer.ts';
import { createTestBroker } from '../lib/testing/index.ts';

/** The calls of the library on the stack, the innermost first, up to the first one whose name ends with this text. */
function callsSince(outermost: string): string[] {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 100;
  const { stack = '' } = new Error('the stack of a call');
  Error.stackTraceLimit = stackTraceLimit;
  const calls = stack.split('\n').filter((line) => /[/\\]lib[/\\].*\.ts:/.test(line));
  const end = calls.findIndex((line) => line.includes(`${outermost} (`));
  assert.notEqual(end, -1, `${outermost} is not among\n${calls.join('\n')}`);
  return calls.slice(0, end + 1);
}

/**
 * The number of calls that a reader follows, both ends included, measured for the last of several items, since the first ones are sampled. If it is smaller now,
 * lower it here.
 */
function assertCalls(calls: readonly string[], count: number): void {
  assert.equal(calls.length, count, `the calls are\n${calls.join('\n')}`);
}

describe('The path of an item', () => {
  it('takes 8 calls for a PUBLISH, from the packet to the frame for a subscriber', async (test) => {
    await using kit = await createTestBroker();
    const subscriber = await kit.connect();
    await subscriber.subscribe('t', { qos: 1 });
    const publisher = await kit.connect();
    const { sendMessage } = Writer.prototype;
    let calls: string[] = [];
    test.mock.method(
      Writer.prototype,
      'sendMessage',
      function (this: Writer<never>, ...args: Parameters<typeof sendMessage>) {
        calls = callsSince('Reader.receive');
        return sendMessage.apply(this, args);
      }
    );
    for (const payload of ['first', 'second']) await publisher.publish('t', payload, { qos: 1 });
    assertCalls([...calls, 'Writer.sendMessage'], 8);
  });

  it('takes 7 calls for an event of a rule, from the route of a message to the function of an action', async () => {
    await using kit = await createTestBroker();
    let calls: string[] = [];
    const action = () => {
      calls = callsSince('Publishing.route');
    };
    await kit.broker.rules.create({ id: 'r', sql: 'SELECT * FROM "t" WHERE qos = 0', actions: [action] });
    for (const payload of ['first', 'second']) await kit.broker.publish('t', payload);
    assertCalls([...calls, 'action'], 7);
  });

  for (const { where, count } of [
    { where: '', count: 15 },
    { where: 'WHERE a > 1', count: 16 }
  ])
    it(`takes ${count} calls for a row of a stream ${where || 'without WHERE'}, from the watcher of its topic to the send of a sink`, async () => {
      let calls: string[] = [];
      const send = () => {
        calls = callsSince('Publishing.route');
      };
      const sink = { name: 'traced', about: 'Keeps the calls.', open: () => ({ send, close: () => undefined }) };
      await using kit = await createTestBroker({ streams: { sinks: [sink] } });
      const { streams } = kit.broker;
      await streams.create('CREATE STREAM demo () WITH (DATASOURCE="t", FORMAT="json")');
      await streams.rules.create({ id: 'r', sql: `SELECT a FROM demo ${where}`, actions: [{ traced: {} }] });
      await kit.clock.settle(); // the rule has its first rows: there are none
      for (const a of [2, 3, 4]) await kit.broker.publish('t', JSON.stringify({ a }));
      assertCalls([...calls.slice(0, -1), 'send'], count);
    });
});
