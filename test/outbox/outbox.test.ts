import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Metric } from '../../lib/events/metrics.ts';
import type { Outbox, OutboxOptions } from '../../lib/index.ts';
import { Attempt } from '../../lib/outbox/attempt.ts';
import { SendError } from '../../lib/outbox/send-error.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { sized } from '../support/samples.ts';
import { Target, turns } from './target.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const REFUSED = new Error('connect ECONNREFUSED');

async function opened(
  kit: TestBroker,
  target: Target,
  options: Omit<OutboxOptions, 'name' | 'send'> = {}
): Promise<Outbox> {
  return kit.broker.outboxes.open({ name: 'target', send: target.send, ...options });
}

describe('An outbox', () => {
  it('delivers entries of one key one by one, and those of different keys concurrently', async () => {
    await using kit = await createTestBroker();
    const target = new Target();
    const outbox = await opened(kit, target);
    for (const [key, content] of ['a1', 'b1', 'a2', 'b2'].entries()) outbox.add(key % 2 === 0 ? 'a' : 'b', content);
    await turns();
    assert.deepEqual(target.contents, ['a1', 'b1']);
    target.pending[1].accept();
    await turns();
    assert.deepEqual(target.contents, ['a1', 'b1', 'b2']);
    target.pending[0].accept();
    await turns();
    assert.deepEqual(target.contents, ['a1', 'b1', 'b2', 'a2']);
    for (const pending of [...target.pending]) pending.accept();
    await outbox.idle();
    assert.equal(outbox.size, 0);
    assert.equal(outbox.bytes, 0);
    assert.equal(outbox.counters.sent, 4);
    assert.equal(new Set(target.ids).size, 4);
  });

  it('retains nothing of dropped entries and their keys while the target is down', async () => {
    await using kit = await createTestBroker();
    const target = new Target(() => {
      throw new SendError('later', { retryAfterMs: 3_600_000 });
    });
    const outbox = await opened(kit, target, { maxEntries: 10 });
    outbox.add('first', 'x');
    await turns();
    assert.equal(outbox.state, 'paused');
    const fill = async () => {
      for (let at = 0; at < sized(20_000, 100_000); at++) outbox.add(`key ${at}`, 'x');
      await turns();
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const before = await fill();
    for (let round = 0; round < 3; round++) await fill();
    const grown = (await fill()) - before;
    assert.ok(grown < sized(2_000_000, 5_000_000), `${grown} bytes more`);
    assert.equal(outbox.size, 10);
  });

  it('runs at most `concurrency` deliveries at a time', async () => {
    await using kit = await createTestBroker();
    const target = new Target();
    const outbox = await opened(kit, target, { concurrency: 3 });
    for (let at = 0; at < 10; at++) outbox.add(`key ${at}`, `${at}`);
    await turns();
    assert.equal(target.pending.length, 3);
    target.pending[0].accept();
    await turns();
    assert.equal(target.pending.length, 3);
    assert.equal(target.seen.length, 4);
  });

  it('delivers several entries at once if `batch` allows it, in the order of their keys', async () => {
    await using kit = await createTestBroker();
    const target = new Target(() => undefined);
    const outbox = await opened(kit, target, { batch: 5, concurrency: 1 });
    for (const content of ['a1', 'a2', 'b1', 'a3', 'a4', 'b2', 'c1']) outbox.add(content[0], content);
    await outbox.idle();
    assert.deepEqual(target.seen, [
      ['a1', 'a2', 'a3', 'a4', 'b1'],
      ['c1', 'b2']
    ]);
  });

  it('sends an entry that failed again after a delay that doubles, with the same id', async () => {
    await using kit = await createTestBroker();
    let left = 3;
    const target = new Target(() => (left-- > 0 ? REFUSED : undefined));
    const outbox = await opened(kit, target, { backOff: 1_000 });
    const id = outbox.add('a', 'a1');
    await outbox.idle();
    const attempts = [target.seen.length];
    for (const seconds of [0.7, 0.6, 1.3, 1.3, 2.8, 2.6]) {
      await kit.clock.advance(`${seconds * 1000}ms`);
      await outbox.idle();
      attempts.push(target.seen.length);
    }
    // The second attempt is due after 0.75 to 1.25 s, the third after 1.5 to 2.5 more, the fourth after 3 to 5 more.
    assert.equal(attempts[0], 1);
    assert.equal(attempts[1], 1);
    assert.equal(attempts[2], 2);
    assert.equal(attempts.at(-1), 4);
    assert.deepEqual(target.ids, [id, id, id, id]);
    assert.equal(outbox.size, 0);
    assert.equal(outbox.counters.failed, 3);
  });

  it('delays only the key whose entry fails, and drops the entry when it is too old', async () => {
    await using kit = await createTestBroker();
    const outcomes: string[] = [];
    const target = new Target((contents) => (contents.includes('poison') ? REFUSED : undefined));
    const outbox = await opened(kit, target, {
      maxAge: '10m',
      settled: ({ content }, outcome, error) => outcomes.push(`${content} ${outcome} ${error?.message}`)
    });
    outbox.add('a', 'poison');
    outbox.add('a', 'after');
    outbox.add('b', 'b1');
    await outbox.idle();
    assert.deepEqual(outcomes, ['b1 sent undefined']);
    for (let minute = 0; minute < 9; minute++) {
      await kit.clock.advance('1m');
      outbox.add('b', `b at ${minute}`);
      await outbox.idle();
      assert.equal(outcomes.at(-1), `b at ${minute} sent undefined`);
    }
    assert.equal(outbox.state, 'working');
    assert.equal(outbox.lastError, undefined);
    await kit.clock.advance('4m');
    await outbox.idle();
    assert.deepEqual(outcomes.slice(-2), ['poison too_old connect ECONNREFUSED', 'after sent undefined']);
    assert.equal(outbox.counters.dropped.too_old, 1);
  });

  it('keeps its delays when it drops entries of a key that are too old', async () => {
    await using kit = await createTestBroker();
    const target = new Target(() => REFUSED);
    const outbox = await opened(kit, target, { backOff: '1s', maxBackOff: '10s', maxAge: '1m' });
    for (let at = 0; at < 100; at++) outbox.add('a', `${at}`);
    for (let at = 0; at < 60; at++) await kit.clock.advance('2s');
    assert.ok(outbox.counters.dropped.too_old > 2, `${outbox.counters.dropped.too_old} dropped`);
    assert.ok(target.seen.length < 25, `${target.seen.length} deliveries`);
    target.answer = () => undefined;
    await kit.clock.advance('13s');
    await outbox.idle();
    assert.equal(outbox.size, 0);
  });

  it('counts as failing, not as down, while the deliveries of a single key fail', async () => {
    await using kit = await createTestBroker();
    const target = new Target(() => REFUSED);
    const outbox = await opened(kit, target, { backOff: '1s', maxBackOff: '1s' });
    outbox.add('a', 'a1');
    await outbox.idle();
    assert.equal(outbox.state, 'working');
    for (let more = 0; more < 2; more++) {
      await kit.clock.advance('2s');
      await outbox.idle();
    }
    assert.equal(outbox.state, 'failing');
    target.answer = () => undefined;
    await kit.clock.advance('2s');
    await outbox.idle();
    assert.equal(outbox.state, 'working');
  });

  it('tries one delivery after each delay while the target is down, however many keys are waiting', async () => {
    await using kit = await createTestBroker();
    const target = new Target(() => REFUSED);
    const outbox = await opened(kit, target, { concurrency: 4, backOff: '1s', maxBackOff: '1m' });
    for (let at = 0; at < 1_000; at++) outbox.add(`key ${at}`, `${at}`);
    await outbox.idle();
    assert.equal(outbox.state, 'down');
    const before = target.seen.length;
    assert.ok(before <= 4, `${before} deliveries`);
    for (let minute = 0; minute < 60; minute++) {
      await kit.clock.advance('1m');
      await outbox.idle();
    }
    assert.ok(target.seen.length < before + 100, `${target.seen.length} deliveries in an hour`);
    assert.equal(outbox.size, 1_000);
    target.answer = () => undefined;
    await kit.clock.advance('90s');
    await outbox.idle();
    await kit.clock.advance('90s');
    await outbox.idle();
    assert.equal(outbox.size, 0);
    assert.equal(outbox.state, 'working');
    assert.equal(outbox.lastError, undefined);
  });

  it('waits for a single delay when many deliveries fail at the same time', async () => {
    await using kit = await createTestBroker();
    const target = new Target();
    const outbox = await opened(kit, target, { concurrency: 32, backOff: '1s' });
    for (let at = 0; at < 32; at++) outbox.add(`key ${at}`, 'x');
    await turns();
    for (const pending of [...target.pending]) pending.fail(REFUSED);
    await turns();
    assert.equal(outbox.state, 'down');
    target.answer = () => undefined;
    await kit.clock.advance('2s');
    await outbox.idle();
    assert.equal(outbox.size, 0);
  });

  it('raises an alarm when deliveries fail, and clears it after the next success', async () => {
    await using kit = await createTestBroker();
    const target = new Target(() => REFUSED);
    const outbox = await opened(kit, target);
    outbox.add('a', 'a1');
    for (let at = 0; at < 5; at++) {
      await outbox.idle();
      await kit.clock.advance('10s');
    }
    const [alarm] = kit.broker.alarms.present();
    assert.equal(alarm.id, 'outbox_failing:target');
    assert.match(
      alarm.summary,
      /^Deliveries to "target" fail \(ECONNREFUSED\)\. They are repeated; 1 entry is waiting\./
    );
    assert.equal(outbox.lastError, REFUSED);
    target.answer = () => undefined;
    outbox.retryNow();
    await outbox.idle();
    assert.deepEqual(kit.broker.alarms.present(), []);
    assert.equal(kit.broker.metrics.counts[Metric.outboxSent], 1);
  });

  it('drops the oldest entry when there are too many, with an alarm until the queue is half empty', async () => {
    await using kit = await createTestBroker();
    const target = new Target();
    const outbox = await opened(kit, target, { maxEntries: 10, concurrency: 1 });
    outbox.add('a', '0');
    await turns(); // it is being sent, so it stays
    for (let at = 1; at < 15; at++) outbox.add('a', `${at}`);
    assert.equal(outbox.size, 10);
    assert.equal(outbox.counters.dropped.overflow, 5);
    assert.equal(kit.broker.metrics.counts[Metric.outboxDropped], 5);
    assert.equal(kit.broker.alarms.get('outbox_overflow:target')?.severity, 'warning');
    target.pending[0].accept();
    target.answer = () => undefined;
    await outbox.idle();
    assert.deepEqual(target.contents, ['0', '6', '7', '8', '9', '10', '11', '12', '13', '14']);
    assert.equal(kit.broker.alarms.get('outbox_overflow:target'), undefined);
  });

  it('names no message of an error in an alarm, because it may have values of messages', async () => {
    await using kit = await createTestBroker();
    const target = new Target(() => new Error('400: "secret value" is not a number'));
    const outbox = await opened(kit, target, { maxEntries: 10 });
    outbox.add('a', '0');
    for (let at = 0; at < 5; at++) {
      await outbox.idle();
      await kit.clock.advance('10s');
    }
    for (let at = 0; at < 15; at++) outbox.add('a', `${at}`);
    const alarms = kit.broker.alarms.present();
    assert.deepEqual(alarms.map(({ id }) => id).sort(), ['outbox_failing:target', 'outbox_overflow:target']);
    for (const { id, summary } of alarms) {
      assert.ok(!summary.includes('secret'), id);
      assert.match(summary, /fail\. .*The state of the target has the last error\.$/);
    }
    assert.match(`${outbox.lastError?.message}`, /secret value/);
  });

  it('drops an entry that is larger than the queue, and no other one for it', async () => {
    await using kit = await createTestBroker();
    const target = new Target();
    const outbox = await opened(kit, target, { maxBytes: 2_000 });
    outbox.add('a', 'small');
    outbox.add('b', Buffer.alloc(3_000));
    assert.deepEqual(
      [...outbox.entries()].map(({ content }) => content),
      ['small']
    );
    assert.equal(outbox.counters.dropped.overflow, 1);
  });

  it('keeps the limit of bytes', async () => {
    await using kit = await createTestBroker();
    const target = new Target();
    const outbox = await opened(kit, target, { maxBytes: 10_000 });
    for (let at = 0; at < 1_000; at++) outbox.add(`key ${at}`, 'x'.repeat(700));
    assert.ok(outbox.bytes <= 10_000);
    assert.ok(outbox.size >= 9);
  });

  it('counts a delivery without an answer as failed, aborts it, and ignores its later answer', async () => {
    await using kit = await createTestBroker();
    const target = new Target();
    const outbox = await opened(kit, target, { timeout: '5s', backOff: '10s' });
    outbox.add('a', 'a1');
    await turns();
    const [late] = target.pending;
    await kit.clock.advance('6s');
    assert.equal(late.signal.aborted, true);
    assert.equal((outbox.lastError as { code?: string }).code, 'SEND_TIMEOUT');
    assert.equal(outbox.counters.failed, 1);
    late.accept();
    await turns();
    assert.equal(outbox.counters.sent, 0);
    target.answer = () => undefined;
    await kit.clock.advance('13s');
    await outbox.idle();
    assert.equal(outbox.counters.sent, 1);
    assert.deepEqual(target.contents, ['a1', 'a1']);
  });

  it('sends nothing while the target requests a pause, and then continues', async () => {
    await using kit = await createTestBroker();
    let isBusy = true;
    const target = new Target(() =>
      isBusy ? new SendError('429 Too Many Requests', { retryAfterMs: 30_000 }) : undefined
    );
    const outbox = await opened(kit, target, { concurrency: 1 });
    outbox.add('a', 'a1');
    outbox.add('b', 'b1');
    await outbox.idle();
    assert.equal(outbox.state, 'paused');
    isBusy = false;
    await kit.clock.advance('29s');
    await outbox.idle();
    assert.deepEqual(target.contents, ['a1']);
    await kit.clock.advance('2s');
    await outbox.idle();
    assert.equal(outbox.size, 0);
    assert.equal(outbox.state, 'working');
  });

  it('waits for as long as the target has requested, whatever fails in the meantime', async () => {
    await using kit = await createTestBroker();
    const target = new Target();
    const outbox = await opened(kit, target);
    for (const key of ['a', 'b', 'c', 'd']) outbox.add(key, key);
    await turns();
    const [asks, ...others] = [...target.pending];
    asks.fail(new SendError('503', { retryAfterMs: 60_000 }));
    others[0].fail(new SendError('503', { retryAfterMs: 1_000 }));
    for (const other of others.slice(1)) other.fail(REFUSED);
    await kit.clock.advance('59s');
    assert.equal(target.seen.length, 4);
    assert.equal(outbox.state, 'down');
    await kit.clock.advance('2s');
    assert.equal(target.seen.length, 5);
  });

  it('drops entries that the target will never accept, and continues with the next one', async () => {
    await using kit = await createTestBroker();
    const outcomes: string[] = [];
    const target = new Target(([content]) => (content === 'bad' ? new SendError('400', { isFinal: true }) : undefined));
    const outbox = await opened(kit, target, {
      settled: ({ content }, outcome) => outcomes.push(`${content} ${outcome}`)
    });
    outbox.add('a', 'bad');
    outbox.add('a', 'good');
    await outbox.idle();
    assert.deepEqual(outcomes, ['bad refused', 'good sent']);
    assert.deepEqual(kit.broker.alarms.present(), []);
  });

  it('sends the entries of a failed batch one by one, so that a bad one stops only its key', async () => {
    await using kit = await createTestBroker();
    const target = new Target((contents) => (contents.includes('bad') ? REFUSED : undefined));
    const outbox = await opened(kit, target, { batch: 10, backOff: '1s' });
    for (const content of ['a1', 'bad', 'c1']) outbox.add(content, content);
    await outbox.idle();
    assert.deepEqual(target.seen, [['a1', 'bad', 'c1']]);
    for (let at = 0; at < 5; at++) {
      await kit.clock.advance('2s');
      await outbox.idle();
    }
    assert.deepEqual(
      [...outbox.entries()].map(({ content }) => content),
      ['bad']
    );
  });

  it('removes entries on request, but not those being sent', async () => {
    await using kit = await createTestBroker();
    const target = new Target();
    const outbox = await opened(kit, target, { concurrency: 1 });
    for (const content of ['a1', 'a2', 'b1', 'b2']) outbox.add(content[0], content);
    await turns();
    assert.equal(outbox.clear('b'), 2);
    assert.equal(outbox.clear(), 1);
    assert.equal(outbox.size, 1);
    assert.equal(outbox.counters.dropped.removed, 3);
    target.pending[0].accept();
    await outbox.idle();
    assert.equal(outbox.size, 0);
  });

  it('keeps the order of each key in random runs', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    let state = seed;
    const random = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (state >>> 8) % below;
    };
    await using kit = await createTestBroker();
    const delivered = new Map<string, number>();
    const wrong: string[] = [];
    const target = new Target();
    const outbox = await opened(kit, target, {
      batch: 1 + random(4),
      concurrency: 1 + random(4),
      backOff: 10,
      maxBackOff: 500,
      settled: ({ key, content }) => {
        if (Number(content) <= (delivered.get(key) ?? -1)) wrong.push(`${key}: ${content}`);
        delivered.set(key, Number(content));
      }
    });
    for (let at = 0; at < 400; at++) {
      outbox.add(`key ${random(10)}`, `${at}`);
      if (random(3) > 0) continue;
      await turns();
      for (const pending of [...target.pending]) {
        if (random(4) === 0) pending.fail(REFUSED);
        else if (random(4) > 0) pending.accept();
      }
      if (random(20) > 0) continue;
      for (const pending of [...target.pending]) pending.accept(); // virtual time would wait for them
      await kit.clock.advance('1s');
    }
    target.answer = () => undefined;
    for (let at = 0; at < 100 && outbox.size > 0; at++) {
      for (const pending of [...target.pending]) pending.accept();
      await kit.clock.advance('1s');
      await outbox.idle();
    }
    assert.deepEqual(wrong, [], `seed ${seed}`);
    assert.equal(outbox.size, 0, `seed ${seed}`);
    assert.equal(outbox.bytes, 0, `seed ${seed}`);
    assert.equal(outbox.counters.sent, 400, `seed ${seed}`);
  });

  it('refuses invalid names and limits, and a second outbox of a name', async () => {
    await using kit = await createTestBroker();
    const { outboxes } = kit.broker;
    const send = () => undefined;
    assert.throws(() => outboxes.open({ name: '', send }), { code: 'OPTION_INVALID' });
    assert.throws(() => outboxes.open({ name: 'a', send: 'x' as never }), { code: 'HANDLER_INVALID' });
    assert.throws(() => outboxes.open({ name: 'a', send, concurency: 3 } as never), {
      code: 'OPTION_UNKNOWN',
      message: /concurrency/
    });
    assert.throws(() => outboxes.open({ name: 'a', send, maxEntries: 0 }), { code: 'OPTION_INVALID' });
    const outbox = outboxes.open({ name: 'a', send });
    assert.throws(() => outboxes.open({ name: 'a', send }), { code: 'OUTBOX_IN_USE' });
    outbox.close();
    assert.throws(() => outbox.add('key', 'content'), { code: 'OUTBOX_CLOSED' });
    outboxes.open({ name: 'a', send });
  });
});

describe('An attempt to deliver', () => {
  it('aborts its signal if the delivery was aborted before the signal was requested', () => {
    const attempt = new Attempt();
    const reasons: Error[] = [];
    attempt.onAbort((reason) => reasons.push(reason));
    const late = new Error('too late');
    attempt.abort(late);
    assert.equal(attempt.signal.aborted, true);
    assert.equal(attempt.signal.reason, late);
    assert.deepEqual(reasons, [late]);
  });
});
