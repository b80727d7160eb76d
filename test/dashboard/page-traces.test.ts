// The lines of a trace in the page.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  isRefusal,
  MAX_LINES,
  NO_LINES,
  restOf,
  resumedLines,
  withLines
} from '../../adapters/dashboard/page/model/traces.ts';

const lines = (...numbers: number[]) => numbers.map((number) => ({ number, record: {} }));

describe('Lines of a trace in the page', () => {
  it('takes each line once, also if the stream begins again', () => {
    const first = withLines(NO_LINES, lines(1, 2), false);
    const paused = withLines(first, lines(1, 2, 3), true);
    assert.deepEqual([paused.lines.length, paused.held.map(({ number }) => number)], [2, [3]]);
    assert.equal(withLines(paused, lines(1, 2, 3), true), paused);
    assert.deepEqual(
      resumedLines(paused).lines.map(({ number }) => number),
      [1, 2, 3]
    );
  });

  it('keeps as many lines as the broker', () => {
    const all = lines(...Array.from({ length: MAX_LINES + 5 }, (_, index) => index + 1));
    for (const isPaused of [false, true]) {
      const { lines: kept, held } = withLines(NO_LINES, all, isPaused);
      assert.deepEqual([kept.length + held.length, (isPaused ? held : kept)[0].number], [MAX_LINES, 6]);
    }
  });

  it('counts the lines that the broker has discarded before it sent them', () => {
    const opened = withLines(NO_LINES, lines(3, 4), false);
    assert.equal(opened.missed, 2);
    const later = withLines(withLines(opened, lines(3, 4, 5), false), lines(9, 10), true);
    assert.equal(later.missed, 5);
    assert.equal(resumedLines(later).missed, 5);
  });

  it('shows the fields without a column in one line, and marks refusals', () => {
    const record = { time: 't', event: 'e', retain: false, qos: 1, options: { a: 1 } };
    assert.equal(restOf(record), 'qos 1, options {"a":1}');
    assert.equal(restOf({ packet: 'puback', reasonCode: 0x10 }), 'no matching subscribers (0x10)');
    assert.equal(restOf({ packet: 'suback', reasonCodes: [1, 0x87] }), 'granted QoS 1, not authorized (0x87)');
    assert.equal(restOf({ packet: 'unsuback', reasonCodes: [0] }), 'success (0x00)');
    assert.equal(restOf({ reasonCode: 'x' }), 'reasonCode x');
    assert.deepEqual(
      [{ reasonCode: 0x87 }, { reasonCodes: [0, 0x80] }, { event: 'message.dropped' }, { error: 'x' }].map(isRefusal),
      [true, true, true, true]
    );
    assert.deepEqual([{}, { reasonCode: 0x10 }, { reasonCodes: [2] }].map(isRefusal), [false, false, false]);
  });
});
