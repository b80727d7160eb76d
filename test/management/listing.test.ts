import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Order, pageOf } from '../../adapters/management/listing.ts';

const BY_NAME: Order<string> = { keyOf: (name) => name };
const NEWEST_FIRST: Order<number> = { keyOf: (number) => number, isDescending: true };

/** The rows of a page, and its cursor. */
async function read<R>(all: readonly R[], limit: number, cursor?: string, order?: Order<R>) {
  const page = pageOf(all, { number: 1, limit, skip: 0, cursor }, (value) => ({ value }), order);
  const { value } = await page.parts(async () => {}).next();
  const rows: { readonly value: R }[] = JSON.parse(`[${value?.text}]`);
  return { rows: rows.map((row) => row.value), cursor: value?.end?.whole?.cursor };
}

describe('The cursor of a list in memory', () => {
  it('returns cursors from page to page, and none on the last page', async () => {
    const all = ['a', 'b', 'c', 'd', 'e'];
    assert.deepEqual(await read(all, 2, undefined, BY_NAME), { rows: ['a', 'b'], cursor: 'b' });
    assert.deepEqual(await read(all, 2, 'b', BY_NAME), { rows: ['c', 'd'], cursor: 'd' });
    assert.deepEqual(await read(all, 2, 'd', BY_NAME), { rows: ['e'], cursor: undefined });
    assert.deepEqual(await read(all, 5, undefined, BY_NAME), { rows: all, cursor: undefined });
    assert.deepEqual(await read([], 5, 'b', BY_NAME), { rows: [], cursor: undefined });
  });

  it('keeps a cursor valid when its row is removed and others are added', async () => {
    assert.deepEqual(await read(['a', 'aa', 'c', 'd'], 1, 'b', BY_NAME), { rows: ['c'], cursor: 'c' });
    assert.deepEqual(await read(['a'], 2, 'b', BY_NAME), { rows: [], cursor: undefined });
  });

  it('supports lists in descending order', async () => {
    assert.deepEqual(await read([30, 20, 10, 9], 2, undefined, NEWEST_FIRST), { rows: [30, 20], cursor: '20' });
    // a row that was added meanwhile is newer than the remaining pages
    assert.deepEqual(await read([40, 30, 10, 9], 2, '20', NEWEST_FIRST), { rows: [10, 9], cursor: undefined });
  });

  it('rejects a cursor that does not belong to the list', async () => {
    await assert.rejects(() => read([1, 2], 1, 'x', { keyOf: (number) => number }), { kind: 'wrongParameter' });
  });

  it('returns no cursor for a list without an order', async () => {
    assert.deepEqual(await read(['a', 'b'], 1), { rows: ['a'], cursor: undefined });
  });
});
