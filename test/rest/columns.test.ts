import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { operation as managementOperation } from '../../adapters/management/operation.ts';
import { operation as streamsOperation } from '../../adapters/streams-api/operation.ts';

const ROW = { name: 'x', method: 'GET', path: '/x', descr: 'An operation', run: () => 1 } as const;

describe('The compiler', () => {
  it('refuses columns of operations in an interface where they have no effect', () => {
    const rows = [
      managementOperation({ ...ROW, in: ['later'] }),
      // @ts-expect-error the revision does not exist
      managementOperation({ ...ROW, in: ['latre'] }),
      // @ts-expect-error the fault is in an envelope
      managementOperation({ ...ROW, errorPrefix: 'error' }),
      // @ts-expect-error success is always 200
      managementOperation({ ...ROW, status: 201 }),
      streamsOperation({ ...ROW, errorPrefix: 'error', status: 201, refusal: 422 }),
      // @ts-expect-error lists have no pages
      streamsOperation({ ...ROW, paged: 100 }),
      // @ts-expect-error there are no revisions
      streamsOperation({ ...ROW, in: ['later'] })
    ];
    assert.equal(rows.length, 7);
  });
});
