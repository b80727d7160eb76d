import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CHAPTERS, idsOf, STATEMENTS } from './support/statements.ts';

describe('The ids in front of a test name', () => {
  it('reads the ids alone, in a list, in groups and as a range', () => {
    assert.deepEqual(idsOf('[MQTT-3.1.2-4] discards it'), ['MQTT-3.1.2-4']);
    assert.deepEqual(idsOf('[MQTT-3.1.2-16, -17] both'), ['MQTT-3.1.2-16', 'MQTT-3.1.2-17']);
    assert.deepEqual(idsOf('[MQTT-3.4.2-1] [MQTT3-1.5.3-1] both'), ['MQTT-3.4.2-1', 'MQTT3-1.5.3-1']);
    assert.deepEqual(idsOf('[MQTT-3.4.2-1, 3.5.2-1] both'), ['MQTT-3.4.2-1', 'MQTT-3.5.2-1']);
    assert.deepEqual(idsOf('[MQTT-4.3.3-9 .. -11] all'), ['MQTT-4.3.3-9', 'MQTT-4.3.3-10', 'MQTT-4.3.3-11']);
    assert.deepEqual(idsOf('[MQTT31-no-empty-id] refuses'), ['MQTT31-no-empty-id']);
  });

  it('ignores ids in the middle of the name', () => {
    assert.deepEqual(idsOf('keeps to [MQTT-3.1.2-4]'), []);
    assert.deepEqual(idsOf('[not an id] [1.2.3-4] at all'), []);
  });
});

describe('The table of statements', () => {
  it('contains no id twice', () => {
    assert.equal(STATEMENTS.size, CHAPTERS.flatMap(({ statements }) => statements).length);
  });
});
