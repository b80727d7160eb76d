import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chart } from '../../bench/chart.ts';

/** Costs of one row. */
function costs(all: Readonly<Record<string, number>>) {
  return (row: string, broker: string) => (row === 'pairs100 q0 64B w20' ? all[broker] : undefined);
}

describe('The chart of the benchmark', () => {
  it('draws a bar for each broker, on one scale that begins at zero', () => {
    const drawn = chart(costs({ embermq: 2, aedes: 20 }), 'today') ?? '';
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
    const drawn = chart(costs({ embermq: 1, aedes: 2 }), 'a < b & c') ?? '';
    assert.match(drawn, />a &lt; b &amp; c</);
  });

  it('leaves out rows measured with only one broker', () => {
    assert.equal(chart(costs({ embermq: 1 }), ''), undefined);
  });
});
