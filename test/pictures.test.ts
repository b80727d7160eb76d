import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { sessionMachine } from '../lib/machines.ts';
import { drawnTransitions, PICTURES, transitionsOf } from './support/pictures.ts';

const root = join(import.meta.dirname, '..');

describe('The drawn pictures of the pages', () => {
  for (const [path, draw] of Object.entries(PICTURES))
    it(`keeps ${path} as it is drawn now (UPDATE_PAGES=1 writes it)`, async () => {
      const drawn = await draw();
      if (process.env.UPDATE_PAGES === '1') writeFileSync(join(root, path), drawn);
      assert.equal(readFileSync(join(root, path), 'utf8'), drawn);
    });

  it('shows each transition of the chart of a session, and no other', () => {
    assert.deepEqual([...drawnTransitions].sort(), transitionsOf(sessionMachine).sort());
  });
});
