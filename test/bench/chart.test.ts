import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chart } from '../../bench/chart.ts';
import type { Sample } from '../../bench/report.ts';
import type { BrokerName } from '../../bench/support/brokers.ts';

function sample(broker: BrokerName, cpuUs: number, repetition = 0): Sample {
  const outcome = { figures: { cpuUs }, faults: {} } as unknown as Sample['outcome'];
  return { row: 'pairs100 q0 64B w20', broker, repetition, outcome };
}

describe('The chart of the benchmark', () => {
  it('draws a bar for the median of each broker, on one scale that begins at zero', () => {
    const drawn =
      chart([1, 9, 2].map((us, at) => sample('embermq', us, at)).concat(sample('aedes', 20)), 'today') ?? '';
    const widths = [...drawn.matchAll(/<rect x="90" y="\d+" width="([\d.]+)"/g)].map(([, width]) => Number(width));
    assert.deepEqual(
      [...drawn.matchAll(/>([\d.]+ us)</g)].map(([, text]) => text),
      ['2.00 us', '20.00 us']
    );
    assert.equal(widths.length, 2);
    assert.equal(widths[1] / widths[0], 10);
    assert.match(drawn, />today</);
  });

  it('escapes the displayed names', () => {
    const drawn = chart([sample('embermq', 1), sample('aedes', 2)], 'a < b & c') ?? '';
    assert.match(drawn, />a &lt; b &amp; c</);
  });

  it('leaves out rows measured with only one broker', () => {
    assert.equal(chart([sample('embermq', 1)], ''), undefined);
  });
});
