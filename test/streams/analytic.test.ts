import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { deserialize, serialize } from 'node:v8';
import type { AnalyticState, ExpandingState } from '../../lib/streams/function.ts';
import { StreamRow } from '../../lib/streams/values/tuple.ts';
import { StreamFailure, type StreamValue } from '../../lib/streams/values/values.ts';
import { readValue } from './expression-support.ts';
import { FUNCTIONS, show, TOOLS } from './function-support.ts';

const LINES = readFileSync(join(import.meta.dirname, 'cases', 'analytic.txt'), 'utf8').split('\n');
const ROW = new StreamRow({}, 0);
/** The columns of the arguments of `changed_cols`; the last one stands for `*`. */
const NAMES = ['', '', 'a', 'b', undefined];

type State = AnalyticState | ExpandingState;

/** Create the state of a function, or restore a saved one. */
function stateOf(name: string, saved?: unknown): State {
  const row = FUNCTIONS.get(name);
  if (row?.kind === 'analytic')
    return saved === undefined ? row.make(TOOLS, ['', '', '']) : row.load(TOOLS, ['', '', ''], saved);
  if (row?.kind !== 'rows' && row?.kind !== 'columns') throw new TypeError(`${name} is not an analytic function`);
  return saved === undefined ? row.make(TOOLS, NAMES) : (row.load?.(TOOLS, NAMES, saved) ?? row.make(TOOLS, NAMES));
}

/** The results for successive rows. @param isRestored whether the state is saved and restored before each row */
function resultsOf(name: string, rows: readonly string[], isRestored: boolean): string {
  const results: string[] = [];
  let state = stateOf(name);
  let previous: StreamValue = null;
  for (const row of rows) {
    const args = readValue(row.replace('skip', '')) as readonly StreamValue[];
    try {
      const isSkipped = row.startsWith('skip');
      const skipped = (state as AnalyticState).skipped;
      previous = !isSkipped ? state.next(args, ROW) : skipped === undefined ? previous : skipped(args, ROW);
      results.push(show(previous));
    } catch (error) {
      if (!(error instanceof StreamFailure)) throw error;
      results.push(`fails ${error.message}`);
    }
    if (isRestored && state.save !== undefined) state = stateOf(name, deserialize(serialize(state.save())));
  }
  return results.join(' ');
}

describe('analytic functions', () => {
  for (const [index, line] of LINES.entries()) {
    if (line.trim() === '' || line.startsWith('# ')) continue;
    const [given, expected] = line.split(' -> ');
    const [name, rows] = given.split(': ');
    const parts = rows.split(/ (?=\[|skip)/);
    it(`analytic.txt:${index + 1}: ${line}`, () => {
      assert.equal(resultsOf(name, parts, false), expected);
      assert.equal(resultsOf(name, parts, true), expected, 'with checkpoints');
    });
  }

  it('checks literals when a rule is created', () => {
    assert.equal(FUNCTIONS.get('lag')?.check?.([undefined, -1n]), 'the index should not be a negative integer');
    assert.equal(FUNCTIONS.get('acc_sum')?.check?.([undefined, true]), 'Expect 1/3 arguments but found 2.');
    assert.equal(FUNCTIONS.get('changed_cols')?.check?.([1n, true]), 'Expect string type for parameter 1');
    assert.equal(FUNCTIONS.get('changed_cols')?.check?.(['a', 1n]), 'Expect bool type for parameter 2');
  });
});
