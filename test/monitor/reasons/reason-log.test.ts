import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { TimeReading } from '../../../lib/base/time-reading.ts';
import { type ReasonKeys, ReasonLog } from '../../../lib/monitor/reasons/reason-log.ts';
import { ManualClock } from '../../support/manual-clock.ts';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Numbers from 0 to 1 that are the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The memory that is in use after a garbage collection, in bytes. */
function used(): number {
  gc();
  return process.memoryUsage().heapUsed;
}

function logOf(maxBytes = 16_777_216) {
  const clock = new ManualClock();
  const time = new TimeReading(clock);
  const log = new ReasonLog(maxBytes, time);
  const pass = (ms: number) => {
    clock.advance(ms);
    time.read();
  };
  const topics = (keys: ReasonKeys) => [...log.records(keys)].map(({ topic }) => topic);
  return { log, pass, topics, time };
}

describe(`The log of reasons (SEED=${SEED})`, () => {
  it('finds a record by its receiver, publisher and topic, and once if several of them are asked for', () => {
    const { log } = logOf();
    log.drop('t', 1, 'publisher', 'queue_full', 'receiver', 1, 'detail');
    for (const keys of [
      { client: 'receiver' },
      { client: 'publisher' },
      { topic: 't' },
      { client: 'receiver', topic: 't' }
    ])
      assert.deepEqual(
        [...log.records(keys)].map((record) => record.shown()),
        [
          {
            number: 1,
            since: log.records().next().value?.since,
            at: log.records().next().value?.at,
            code: 'queue_full',
            count: 1,
            qos: 1,
            clientId: 'receiver',
            publisher: 'publisher',
            topic: 't',
            rule: undefined,
            address: undefined,
            detail: 'detail'
          }
        ]
      );
    assert.deepEqual([...log.records({ client: 'other' })], []);
  });

  it('keeps 32 records of a client, 8 of a topic and 16 of a rule, and knows until when the others were', () => {
    const { log, pass, topics, time } = logOf();
    for (let number = 0; number < 40; number++) {
      pass(1);
      log.drop(`t/${number}`, 0, '', 'queue_full', 'c', 1);
    }
    assert.deepEqual(topics({ client: 'c' }).length, 32);
    assert.equal(topics({ client: 'c' })[31], 't/8');
    assert.equal(log.lostAt({ client: 'c' }), time.wallMs - 32);
    assert.equal(log.lostAt({ topic: 't/0' }), -Infinity, 'the topic still has its record');
    assert.equal(log.size, 40);
    for (let number = 0; number < 10; number++) log.drop('t', 0, `p${number}`, 'no_subscribers', undefined, 1);
    assert.equal([...log.records({ topic: 't' })].length, 8);
    for (let number = 0; number < 20; number++) log.add('function_failed', { rule: 'r', topic: `u/${number}` });
    assert.equal(topics({ rule: 'r' }).length, 16);
  });

  it('counts equal records as one, also if others are between them, and tells the first and the last time', () => {
    const { log, pass } = logOf();
    log.drop('a', 0, 'p', 'no_subscribers', undefined, 3);
    pass(10);
    log.drop('b', 0, 'p', 'no_subscribers', undefined, 1);
    pass(10);
    log.drop('a', 0, 'p', 'no_subscribers', undefined, 2);
    const [a, b] = [...log.records({ client: 'p' })];
    assert.deepEqual([a.topic, a.count, a.at - a.since, b.topic, b.count], ['a', 5, 20, 'b', 1]);
    log.drop('a', 1, 'p', 'no_subscribers', undefined, 1);
    assert.equal(log.size, 3, 'another QoS is another record');
  });

  it('keeps the stops of a rule while its errors alternate between topics, which are one record for each topic', () => {
    const { log, pass } = logOf();
    log.add('rule_stopped', { rule: 'r', detail: 'disabled' });
    log.add('rule_started', { rule: 'r' });
    for (let number = 0; number < 100; number++) {
      pass(100);
      log.add('target_refused', { rule: 'r', topic: `t/${number % 2}`, detail: 'refused' });
    }
    const errors = [...log.records({ rule: 'r' })].map(({ code, topic, count }) => [code, topic, count]);
    assert.deepEqual(errors, [
      ['target_refused', 't/1', 50],
      ['target_refused', 't/0', 50],
      ['rule_started', undefined, 1],
      ['rule_stopped', undefined, 1]
    ]);
    for (let number = 0; number < 100; number++)
      log.add('target_refused', { rule: 'r', topic: `u/${number}`, detail: 'refused' });
    const codes = [...log.records({ rule: 'r' })].map(({ code }) => code);
    assert.deepEqual([codes.length, codes.at(-1)], [16, 'rule_stopped']);
  });

  it('keeps the drops of a topic and of its publisher while a receiver refuses messages to it in turn', () => {
    const { log, pass } = logOf();
    log.drop('t/0', 1, 'p', 'queue_full', 'slow', 1);
    for (let number = 0; number < 1_000; number++, pass(1))
      log.drop(`t/${number % 2}`, 1, 'p', 'receiver_refused', 'r', 1, 'reason code 0x87 (not authorized)');
    const found = [...log.records({ topic: 't/0' })].map(({ code, count }) => [code, count]);
    assert.deepEqual(found, [
      ['receiver_refused', 500],
      ['queue_full', 1]
    ]);
  });

  it('keeps the records of other clients while one causes a flood', () => {
    const { log, topics } = logOf();
    log.drop('quiet', 0, '', 'queue_full', 'quiet', 1);
    for (let number = 0; number < 100_000; number++)
      log.drop(`t/${number}`, 0, 'noisy', 'no_subscribers', undefined, 1);
    assert.deepEqual(topics({ client: 'quiet' }), ['quiet']);
    assert.equal(topics({ client: 'noisy' }).length, 32);
    assert.ok(log.size <= 10_033, `${log.size}`);
  });

  it('summarises the drops of a client in one record while there are too many different ones', () => {
    const { log, pass } = logOf();
    const flood = () => {
      for (let number = 0; number < 1_000; number++) log.drop(`t/${number}`, 1, 'p', 'queue_full', 'c', 1);
    };
    flood();
    const [summary] = [...log.records({ client: 'c' })];
    assert.deepEqual(
      [summary.code, summary.topic, summary.publisher, summary.count],
      ['queue_full', undefined, undefined, 800]
    );
    assert.equal([...log.records({ topic: 't/0' })].length, 1);
    assert.equal([...log.records({ topic: 't/900' })].length, 0);
    assert.ok(log.lostAt({ topic: 't/900' }) > -Infinity, 'the record of a topic may be part of a summary');
    assert.equal(log.lostAt({ topic: 't/0', client: 'p' }), log.lostAt({ client: 'p' }));
    pass(100);
    log.drop('t/900', 1, 'p', 'queue_full', 'c', 1);
    assert.equal([...log.records({ topic: 't/900' })].length, 1);
  });

  it('counts the drops of a topic without subscribers at its route until it is read, with the time of the last one', () => {
    const { log, pass, time } = logOf();
    const route = { topic: 't', lastDrop: undefined, repeatedDrop: undefined };
    const since = time.wallMs;
    for (let round = 0; round < 5; round++) {
      log.dropUnsubscribed(route, 0, 'p', 2);
      pass(10);
    }
    log.dropUnsubscribed(route, 1, 'p', 1);
    log.dropUnsubscribed(route, 0, 'other', 1);
    pass(5_000);
    const shown = () =>
      [...log.records()].map(({ publisher, qos, count, since, at }) => [publisher, qos, count, since, at]);
    const all = [
      ['other', 0, 1, since + 50, since + 50],
      ['p', 1, 1, since + 50, since + 50],
      ['p', 0, 10, since, since + 40]
    ];
    assert.deepEqual(shown(), all);
    assert.deepEqual(shown(), all, 'they are added once');
    log.dropUnsubscribed(route, 0, 'p', 1);
    log.clearDrops();
    log.dropUnsubscribed(route, 0, 'p', 1);
    assert.deepEqual(shown(), [['p', 0, 1, time.wallMs, time.wallMs]]);
  });

  it('keeps the times of drops at a route for months, and if the clock is set back', () => {
    const { log, pass, time } = logOf();
    const route = { topic: 't', lastDrop: undefined, repeatedDrop: undefined };
    const since = time.wallMs;
    const month = 30 * 86_400_000;
    for (let round = 0; round < 3; round++) {
      log.dropUnsubscribed(route, 0, 'p', 1);
      pass(month);
    }
    const [record] = [...log.records()];
    assert.deepEqual([record.count, record.since, record.at], [3, since, since + 2 * month]);
    log.clearDrops();
    log.dropUnsubscribed(route, 0, 'p', 1);
    time.wallMs = since - 2 * month;
    log.dropUnsubscribed(route, 0, 'p', 1);
    assert.equal([...log.records()][0].at, since - 2 * month);
  });

  it('compares a drop with the given record of the same place first', () => {
    const { log } = logOf();
    const places = Array.from({ length: 1_000 }, () => ({ last: undefined as ReturnType<ReasonLog['drop']> }));
    for (let round = 0; round < 3; round++)
      for (const [at, place] of places.slice(0, 150).entries())
        place.last = log.drop(`t/${at}`, 0, 'p', 'no_subscribers', undefined, 1, undefined, place.last);
    assert.deepEqual(new Set([...log.records()].map(({ count }) => count)), new Set([3]));
    assert.equal(log.size, 150, 'the topics keep them, although the publisher keeps 32 only');
    log.clearDrops();
    const last = log.drop('t/0', 0, 'p', 'no_subscribers', undefined, 1, undefined, places[0].last);
    assert.equal(last?.count, 1, 'a record that was removed is not counted again');
  });

  it('forgets the client that was used first when there are more than 10,000', () => {
    const { log, pass } = logOf();
    for (let number = 0; number < 10_001; number++) {
      pass(1);
      log.add('connected', { clientId: `c${number}` });
      if (number === 5_000) log.add('subscribed', { clientId: 'c0', topic: 'a/#' });
    }
    const has = (client: string) => [...log.records({ client })].length;
    assert.deepEqual([has('c0'), has('c1'), has('c2')], [2, 0, 1]);
    assert.ok(log.lostAt({ client: 'c1' }) > -Infinity);
    assert.equal(log.lostAt({ client: 'never there' }), log.lostAt({ client: 'c1' }), 'it may have been there');
  });

  it('does not list subscriptions by topic', () => {
    const { log } = logOf();
    log.add('subscribed', { clientId: 'c', topic: 'a/b' });
    assert.deepEqual([...log.records({ topic: 'a/b' })], []);
  });

  it('keeps within its memory, from the oldest record on', () => {
    const { log, pass } = logOf(65_536);
    for (let number = 0; number < 5_000; number++) {
      pass(1);
      log.drop(`t/${number}`, 0, `p${number}`, 'no_subscribers', undefined, 1);
    }
    assert.ok(log.bytes <= 65_536 && log.bytes > 60_000, `${log.bytes}`);
    assert.equal([...log.records({ topic: 't/0' })].length, 0);
    assert.equal([...log.records({ topic: 't/4999' })].length, 1);
    assert.ok(log.lostAt({ topic: 't/0' }) > -Infinity);
  });

  it('records nothing with a memory of 0', () => {
    const { log } = logOf(0);
    log.drop('t', 0, 'p', 'no_subscribers', undefined, 1);
    log.add('connected', { clientId: 'c' });
    assert.equal(log.size, 0);
  });

  it('truncates strings to 256 characters, and still finds them', () => {
    const { log } = logOf();
    const long = 'x'.repeat(70_000);
    log.drop(long, 0, long, 'no_subscribers', undefined, 1, long);
    const [record] = [...log.records({ topic: long })];
    assert.deepEqual([record.topic?.length, record.publisher?.length, record.detail?.length], [256, 256, 256]);
  });

  it('keeps its lists consistent after random records', () => {
    const random = randomFrom(SEED);
    const { log, pass } = logOf(100_000);
    const pick = (kind: string, from: number) => `${kind}${Math.floor(random() * from)}`;
    for (let round = 0; round < 20_000; round++) {
      pass(1);
      const kind = random();
      if (kind < 0.5) log.drop(pick('t', 300), 0, pick('c', 30), 'no_subscribers', undefined, 1);
      else if (kind < 0.8) log.drop(pick('t', 300), 0, pick('c', 30), 'queue_full', pick('c', 30), 1, pick('d', 3));
      else log.add('function_failed', { rule: pick('r', 5), topic: pick('t', 300), publisher: pick('c', 30) });
      if (round === 10_000) log.clearDrops();
    }
    const all = [...log.records()];
    assert.equal(all.length, log.size, `SEED=${SEED}`);
    assert.equal(all.filter(({ row }) => row.drop !== undefined).length, log.drops);
    assert.deepEqual(
      all.map(({ number }) => number),
      all.map(({ number }) => number).sort((a, b) => b - a)
    );
    for (const record of all) {
      const { clientId, publisher, topic, rule } = record;
      const lists = [
        { client: clientId },
        publisher === clientId ? {} : { client: publisher },
        { topic },
        { rule }
      ].filter((keys) => Object.values(keys).some((name) => name !== undefined));
      const holders = lists.filter((keys) => [...log.records(keys)].includes(record)).length;
      assert.equal(record.holders, holders, `SEED=${SEED} ${JSON.stringify(record.shown())}`);
      assert.ok(holders > 0);
    }
    log.clearDrops();
    assert.equal(log.drops, 0);
  });

  it('keeps the records of clients that have connected while others invent client ids', () => {
    const { log, pass } = logOf();
    log.add('connected', { clientId: 'known' });
    log.add('wrong_password', { clientId: 'known', address: '192.0.2.1', detail: 'wrong (from 192.0.2.1)' });
    for (let number = 0; number < 20_000; number++) {
      pass(1);
      const address = `198.51.100.${number % 250}`;
      log.add('wrong_password', { clientId: `invented ${number}`, address, detail: `wrong (from ${address})` });
    }
    const codes = (client: string) => [...log.records({ client })].map(({ code }) => code);
    assert.deepEqual(codes('known'), ['wrong_password', 'connected']);
    assert.equal(log.lostAt({ client: 'known' }), -Infinity);
    assert.deepEqual(codes('invented 19999'), ['wrong_password']);
    assert.deepEqual(codes('invented 0'), []);
    assert.ok(log.lostAt({ client: 'invented 0' }) > -Infinity, 'a record is missing');
    const [last] = log.records({ address: '198.51.100.249' });
    assert.equal(last.clientId, 'invented 19999', 'it is found by its address');
  });

  it('joins the records of a client that was refused before it could connect', () => {
    const { log } = logOf();
    log.add('wrong_password', { clientId: 'c', detail: 'first' });
    log.add('connected', { clientId: 'c' });
    log.add('banned', { clientId: 'c', detail: 'last' });
    assert.deepEqual(
      [...log.records({ client: 'c' })].map(({ detail }) => detail),
      ['last', undefined, 'first']
    );
  });

  it('knows that the earlier records of a client are gone when it is there again', () => {
    const { log, pass, time } = logOf();
    log.add('connected', { clientId: 'back' });
    const lostAt = Math.round(time.wallMs);
    for (let number = 0; number < 10_000; number++) {
      pass(1);
      log.add('connected', { clientId: `c${number}` });
    }
    log.add('connected', { clientId: 'back' });
    assert.deepEqual([...log.records({ client: 'back' })].length, 1);
    assert.ok(log.lostAt({ client: 'back' }) >= lostAt, `${log.lostAt({ client: 'back' })}`);
    pass(1);
    assert.ok(log.lostAt({ client: 'back' }) < time.wallMs, 'later records are complete');
  });

  it('knows that refusals of a client are gone when it has connected since', () => {
    const { log, pass, time } = logOf();
    for (let number = 0; number < 10; number++) {
      pass(1);
      log.add('wrong_password', { clientId: 'c', detail: `${number}` });
    }
    const lostAt = Math.round(time.wallMs - 4);
    log.add('connected', { clientId: 'c' });
    assert.equal([...log.records({ client: 'c' })].length, 5);
    assert.equal(log.lostAt({ client: 'c' }), lostAt);
  });

  it('keeps the refusals of a client that has connected since, while others invent client ids', () => {
    const { log } = logOf();
    log.add('wrong_password', { clientId: 'c', detail: 'first' });
    log.add('connected', { clientId: 'c' });
    for (let number = 0; number < 2_001; number++) log.add('wrong_password', { clientId: `invented ${number}` });
    const codes = [...log.records({ client: 'c' })].map(({ code }) => code);
    assert.deepEqual(codes, ['connected', 'wrong_password']);
    assert.equal(log.lostAt({ client: 'c' }), -Infinity);
    assert.equal(log.size, 2_002);
  });

  it('keeps within its memory if topics and client ids are long and the log is not read', () => {
    const { log } = logOf();
    const long = (number: number) => Buffer.alloc(50_000, `${number} `).toString('latin1');
    const kept = Array.from({ length: 500 }, () => ({ topic: 't', lastDrop: undefined, repeatedDrop: undefined }));
    const before = used();
    for (let number = 0; number < 1_000; number++) {
      const route = { topic: long(number), lastDrop: undefined, repeatedDrop: undefined };
      log.dropUnsubscribed(route, 0, 'p', 1);
    }
    for (const [number, route] of kept.entries()) log.dropUnsubscribed(route, 0, long(number), 1);
    const pending = used() - before;
    assert.ok(pending < 8_388_608, `${pending} bytes`);
    assert.ok(log.size > 0);
    assert.ok(used() - before < 8_388_608, 'the routes name no publishers whose drops are in the log');
    assert.equal(kept.length, 500);
  });

  it('keeps no strings of a record that was removed, although a session still refers to it', () => {
    const { log, pass } = logOf();
    const name = (number: number) => Buffer.alloc(256, `${number} `).toString('latin1');
    const sessions: object[] = [];
    const before = used();
    for (let number = 0; number < 5_000; number++) {
      pass(1);
      sessions.push(log.drop(name(number), 1, '', 'queue_full', name(-number), 1, name(number)) as object);
    }
    log.clearDrops();
    const kept = (used() - before) / sessions.length;
    assert.ok(kept < 400, `${kept} bytes for each session`);
  });
});
