import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { markdown, median, ratio, type Sample, troubles } from '../../bench/report.ts';
import type { Row } from '../../bench/rows.ts';
import type { BrokerName } from '../../bench/support/brokers.ts';

const NO_FAULTS = {
  lost: 0,
  duplicated: 0,
  reordered: 0,
  disconnected: 0,
  badAcks: 0,
  unacknowledged: 0,
  idsReused: 0
};

const row: Row = {
  name: 'pairs',
  task: { mode: 'pairs' },
  brokers: ['embermq', 'aedes'],
  figures: [{ key: 'cpuUs', label: 'message', unit: 'us', goal: { aedes: 10 } }]
};

function sample(broker: BrokerName, repetition: number, cpuUs: number, lost = 0): Sample {
  return {
    row: row.name,
    broker,
    repetition,
    outcome: { figures: { cpuUs, perSec: 1000 }, faults: { ...NO_FAULTS, lost } }
  };
}

function reportOf(samples: readonly Sample[]): string {
  const kinds = (['embermq', 'aedes'] as const).map((name) => ({ name, version: '1', command: () => [] }));
  return markdown({
    rows: [row],
    samples,
    kinds,
    absent: [{ name: 'mosquitto', remedy: 'install it' }],
    notes: [],
    extras: new Map()
  });
}

describe('the benchmark report', () => {
  it('calculates the median, for an even number of values as the mean of the two in the middle', () => {
    assert.equal(median([3, 1, 2]), 2);
    assert.equal(median([4, 1, 2, 3]), 2.5);
    assert.ok(Number.isNaN(median([])));
  });

  it('calculates ratios within each repetition, before the median', () => {
    // The second repetition ran on a machine that was three times slower; the ratio of the medians would be 20 / 2 = 10.
    const samples = [
      sample('aedes', 0, 20),
      sample('embermq', 0, 1),
      sample('aedes', 1, 60),
      sample('embermq', 1, 3),
      sample('aedes', 2, 10),
      sample('embermq', 2, 2)
    ];
    assert.equal(ratio(samples, { row: 'pairs', broker: 'aedes' }, { row: 'pairs', broker: 'embermq' }, 'cpuUs'), 20);
  });

  it('omits repetitions from a ratio that only one of the two brokers has', () => {
    const samples = [sample('aedes', 0, 20), sample('embermq', 0, 1), sample('embermq', 1, 5)];
    assert.equal(ratio(samples, { row: 'pairs', broker: 'aedes' }, { row: 'pairs', broker: 'embermq' }, 'cpuUs'), 20);
  });

  it('shows whether a goal is met, nearly met or missed', () => {
    assert.match(reportOf([sample('aedes', 0, 20), sample('embermq', 0, 2)]), /x aedes 10 \| met \|/);
    assert.match(reportOf([sample('aedes', 0, 18), sample('embermq', 0, 2)]), /x aedes 10 \| nearly \|/);
    assert.match(reportOf([sample('aedes', 0, 10), sample('embermq', 0, 2)]), /x aedes 10 \| missed \(50 %\) \|/);
  });

  it('names a peer that was not found, and how to install it', () => {
    assert.match(reportOf([]), /mosquitto was not measured, because it was not found \(install it\)/);
  });

  it('reports lost messages, failed runs and missing values, and nothing else', () => {
    const failed: Sample = { row: 'pairs', broker: 'aedes', repetition: 0, error: 'the broker does not listen' };
    const samples = [sample('embermq', 0, 1), sample('embermq', 1, 1, 3), sample('embermq', 2, Number.NaN), failed];
    assert.deepEqual(troubles({ rows: [row], samples }), [
      'pairs, embermq, repetition 2: 3 lost',
      'pairs, embermq, repetition 3: no value for cpuUs',
      'pairs, aedes, repetition 1: the broker does not listen'
    ]);
  });
});
