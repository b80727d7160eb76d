import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FlowCheck } from '../../bench/load/flow-check.ts';

describe('the sequence check of the load generator', () => {
  const counts = (sequences: readonly number[]) => {
    const flows = new FlowCheck(2);
    for (const sequence of sequences) flows.note(1, sequence);
    return { duplicated: flows.duplicated, reordered: flows.reordered };
  };

  it('reports no errors for messages in order, including beyond its window', () => {
    const sequences = Array.from({ length: 10_000 }, (_, i) => i);
    assert.deepEqual(counts(sequences), { duplicated: 0, reordered: 0 });
  });

  it('counts a message that arrives again, immediately or much later', () => {
    assert.deepEqual(counts([0, 1, 1, 2, 3, 0]), { duplicated: 2, reordered: 0 });
  });

  it('counts a message that arrives after a later one, and only once', () => {
    assert.deepEqual(counts([0, 2, 1, 3, 1]), { duplicated: 1, reordered: 1 });
  });

  it('does not mistake a gap for a message of an earlier round of its window', () => {
    const first = Array.from({ length: 4096 }, (_, i) => i);
    assert.deepEqual(counts([...first, 4098, 4096]), { duplicated: 0, reordered: 1 });
  });

  it('checks each flow separately', () => {
    const flows = new FlowCheck(2);
    flows.note(0, 0);
    flows.note(1, 0);
    assert.equal(flows.duplicated, 0);
    flows.note(1, 0);
    assert.equal(flows.duplicated, 1);
  });
});
