import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Check, checkOf, ROW_BYTES, Rows } from '../../bench/streams/rows.ts';

const COUNT = 200;
const rows = new Rows('demo', 3);

/** The payloads of rows. */
function payloads(from: number, to: number): string[] {
  const bytes = rows.frames(from, to);
  const frame = bytes.length / (to - from);
  return Array.from({ length: to - from }, (_, at) =>
    bytes.toString('latin1', (at + 1) * frame - ROW_BYTES, (at + 1) * frame)
  );
}

/** The rows that pass a filter. */
function passed(): string[] {
  return payloads(0, COUNT).filter((_, sequence) => rows.passes(sequence));
}

function take(check: Check, sent: readonly string[], topic = 'out/0'): void {
  for (const payload of sent) check.take(topic, payload);
}

describe('The rows of the benchmark of stream rules', () => {
  it('produces PUBLISH packets of 35 bytes of JSON with a sequence number', () => {
    const bytes = rows.frames(12, 13);
    assert.deepEqual([...bytes.subarray(0, 8)], [0x30, 41, 0, 4, ...Buffer.from('demo')]);
    assert.equal(bytes.toString('latin1', 8), '{"temperature":38.5,"n":1000000012}');
    assert.equal(rows.frames(12, 15).length, 3 * bytes.length);
    for (const [sequence, payload] of payloads(0, COUNT).entries())
      assert.equal(JSON.parse(payload).temperature > 30, sequence % 10 < 3);
  });

  it('counts rows as complete if each passing row arrives once and in order, one by one or in lists', () => {
    const check = checkOf('filter', rows, 2);
    take(check, passed());
    take(check, [`[${passed().join(',')}]`], 'out/1');
    assert.equal(check.received, check.expected(COUNT));
    assert.deepEqual(check.problems(COUNT), []);
  });

  it('reports rows that are lost, duplicated, reordered or changed', () => {
    const sent = passed();
    for (const [faulty, expected] of [
      [sent.toSpliced(7, 1), '1 rows lost'],
      [sent.toSpliced(7, 0, sent[6]), '1 rows duplicated'],
      [sent.toSpliced(7, 2, sent[8], sent[7]), '1 rows reordered'],
      [
        [...sent, '{"temperature":20.1,"n":1000000003}'],
        '1 rows are wrong, such as {"temperature":20.1,"n":1000000003}'
      ],
      [
        [...sent, '{"temperature":99.9,"n":1000000000}'],
        '1 rows are wrong, such as {"temperature":99.9,"n":1000000000}'
      ],
      [[...sent, 'x'], '1 rows are wrong, such as x']
    ] as const) {
      const check = checkOf('filter', rows, 1);
      take(check, faulty);
      assert.deepEqual(check.problems(COUNT), [expected]);
    }
  });

  it('counts rows as complete if the windows together have counted each row once', () => {
    const windows = [0, 50, 120].map((from, at, all) => {
      const temperatures = payloads(from, all[at + 1] ?? COUNT).map(
        (payload) => JSON.parse(payload).temperature as number
      );
      const c = temperatures.length;
      return { c, a: temperatures.reduce((sum, each) => sum + each, 0) / c, m: Math.max(...temperatures) };
    });
    const problemsOf = (sent: readonly object[]) => {
      const check = checkOf('window', rows, 1);
      take(
        check,
        sent.map((each) => JSON.stringify(each))
      );
      return check.problems(COUNT);
    };
    assert.deepEqual(problemsOf(windows), []);
    assert.deepEqual(problemsOf(windows.slice(1)), ['the windows of output 0 have 150 of 200 rows']);
    assert.match(problemsOf([windows[0], windows[0], windows[1], { ...windows[2], c: 30 }])[0], /averages of output 0/);
    assert.match(problemsOf([...windows, { error: 'x' }])[0], /1 windows are wrong, such as {"error":"x"}/);
  });
});
