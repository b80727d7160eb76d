import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TimeReading } from '../../lib/base/time-reading.ts';
import { Drops } from '../../lib/monitor/drops.ts';
import { ReasonLog } from '../../lib/monitor/reasons/reason-log.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { rawClient } from '../support/raw-client.ts';

/** A list of drops that is not filled by a broker. */
function drops() {
  const clock = new ManualClock();
  const time = new TimeReading(clock);
  const log = new ReasonLog(16_777_216, time);
  const add = (...drop: Parameters<ReasonLog['drop']>) => {
    clock.advance(1);
    time.read();
    log.drop(...drop);
  };
  return { all: new Drops('n', log), add };
}

function codeOf(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}

describe('Drops', () => {
  it('records drops for one receiver and for all, with time, client, topic and reason', async () => {
    await using kit = await createTestBroker({ maxMqueueLen: 1 });
    const { broker } = kit;
    const away = await broker.connect({ clientId: 'away', sessionExpiry: 60 });
    await away.subscribe('a/#', { qos: 1 });
    const gone = broker.nextEvent('client.disconnected');
    await away.disconnect();
    await gone;
    const device = await broker.connect({ clientId: 'device' });
    await device.publish('a/1', 'x', { qos: 1 });
    await kit.clock.advance(1_000);
    await device.publish('a/2', 'x', { qos: 1 });
    await broker.publish('nobody', 'x');
    const { entries, count, cursor, node } = broker.monitor.drops.list();
    const now = kit.clock.now();
    assert.deepEqual([count, cursor, node], [2, undefined, broker.settings.node]);
    assert.ok(entries[0].number > entries[1].number);
    assert.deepEqual(
      entries.map(({ number, ...rest }) => rest),
      [
        {
          at: now,
          topic: 'nobody',
          qos: 0,
          clientId: undefined,
          publisher: '',
          reason: 'no_subscribers',
          count: 1
        },
        {
          at: now,
          topic: 'a/1',
          qos: 1,
          clientId: 'away',
          publisher: 'device',
          reason: 'queue_full',
          count: 1
        }
      ]
    );
  });

  it('records the drops of the fast path, and writes consecutive equal ones as one record', async () => {
    await using kit = await createTestBroker();
    const device = await rawClient(kit.broker, { clientId: 'device' });
    const publish = { cmd: 'publish', topic: 'nobody', payload: Buffer.from('x'), qos: 0 } as never;
    device.send(...Array.from({ length: 100 }, () => publish));
    device.send({ cmd: 'pingreq' } as never);
    await device.next('pingresp');
    const { entries } = kit.broker.monitor.drops.list();
    assert.deepEqual(
      entries.map(({ topic, publisher, reason, count }) => [topic, publisher, reason, count]),
      [['nobody', 'device', 'no_subscribers', 100]]
    );
    assert.equal(kit.broker.metrics.counter('messages.dropped'), 100);
  });

  it('does not record drops of messages of the broker', async () => {
    await using kit = await createTestBroker({ sysInterval: 1_000 });
    await kit.clock.advance(3_000);
    assert.equal(kit.broker.monitor.drops.size, 0);
  });

  it('lists them from the newest in pages, and starts again when it is cleared', () => {
    const { all, add } = drops();
    for (let number = 1; number <= 2_500; number++)
      add(`t/${number}`, 0, 'p', number % 2 === 0 ? 'expired' : 'no_local', `c${number % 4}`, 1);
    assert.equal(all.size, 2_500);
    const seen: number[] = [];
    let cursor: string | undefined;
    do {
      const page = all.list({ limit: 300, ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...page.entries.map(({ number }) => number));
      ({ cursor } = page);
    } while (cursor !== undefined);
    assert.deepEqual(
      seen,
      Array.from({ length: 2_500 }, (_, at) => 2_500 - at)
    );
    const numbers = (query: object) => all.list({ limit: 2, ...query }).entries.map(({ number }) => number);
    assert.deepEqual(numbers({ skip: 3 }), [2_497, 2_496]);
    assert.deepEqual(numbers({ reason: 'no_local' }), [2_499, 2_497]);
    assert.deepEqual(numbers({ clientId: 'c3' }), [2_499, 2_495]);
    assert.deepEqual(numbers({ clientId: 'p' }), [2_500, 2_499]);
    assert.deepEqual(numbers({ filter: 't/2000' }), [2_000]);
    all.clear();
    assert.deepEqual([all.size, all.list().entries], [0, []]);
    add('t', 0, 'p', 'expired', 'c', 1);
    assert.deepEqual([all.size, numbers({})], [1, [2_501]]);
  });

  it('moves a record to the front when an equal drop is counted', () => {
    const { all, add } = drops();
    for (let round = 0; round < 3; round++)
      for (const topic of ['a', 'b', 'c']) add(topic, 0, 'p', 'no_subscribers', undefined, 1);
    add('a', 0, 'p', 'no_subscribers', undefined, 1);
    assert.deepEqual(
      all.list().entries.map(({ topic, count }) => [topic, count]),
      [
        ['a', 4],
        ['c', 3],
        ['b', 3]
      ]
    );
  });

  it('continues a list after rows that were added in the meantime, and ends it when the rest is no longer kept', () => {
    const { all, add } = drops();
    for (let number = 1; number <= 10; number++) add(`t/${number}`, 0, 'p', 'expired', 'c', 1);
    const { cursor } = all.list({ limit: 4 });
    add('new', 0, 'p', 'expired', 'c', 1);
    assert.deepEqual(
      all.list({ limit: 2, ...(cursor && { cursor }) }).entries.map(({ number }) => number),
      [6, 5]
    );
    all.clear();
    assert.deepEqual(all.list({ limit: 2, ...(cursor && { cursor }) }).entries, []);
  });

  it('truncates long topics and client ids, and still finds the client', () => {
    const { all, add } = drops();
    const long = 'x'.repeat(4_000);
    add(long, 1, long, 'expired', long, 1);
    add(long, 1, long, 'expired', long, 1);
    const { entries } = all.list({ clientId: long });
    assert.deepEqual(
      entries.map(({ topic, clientId, publisher, count }) => [topic.length, clientId?.length, publisher.length, count]),
      [[256, 256, 256, 2]]
    );
  });

  it('refuses unknown queries', () => {
    const { all } = drops();
    assert.equal(
      codeOf(() => all.list({ topic: 'a' } as never)),
      'OPTION_UNKNOWN'
    );
    assert.equal(
      codeOf(() => all.list({ reason: 'expird' as never })),
      'OPTION_INVALID'
    );
    assert.equal(
      codeOf(() => all.list({ filter: 'a/#/b' })),
      'TOPIC_FILTER_INVALID'
    );
    assert.equal(
      codeOf(() => all.list({ cursor: 'x' })),
      'CURSOR_INVALID'
    );
  });
});
