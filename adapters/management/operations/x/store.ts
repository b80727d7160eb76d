import * as Type from 'typebox';
import { recordOf } from '../../../rest/index.ts';
import { type Operation, operation } from '../../operation.ts';

const STORE = Type.Object({
  has_store: Type.Boolean({ description: 'True if the broker has a store; otherwise the other fields are absent' }),
  name: Type.Optional(Type.String({ description: 'Name of the store, for example its folder' })),
  failed: Type.Optional(
    Type.Boolean({ description: 'True if the last commit has failed, so that nothing can be persisted' })
  ),
  size_bytes: Type.Optional(
    Type.Integer({ description: 'Size, with the space of deleted records; absent if the store does not tell' })
  ),
  free_bytes: Type.Optional(
    Type.Integer({
      description: 'Bytes that can be written before the reserve is used; absent if the store does not tell'
    })
  ),
  unwritten_bytes: Type.Optional(Type.Integer({ description: 'Bytes that are not committed yet' })),
  commits: Type.Optional(Type.Integer({ description: 'Commits since the store was created' })),
  commits_per_s: Type.Optional(
    Type.Number({ description: 'Commits per second since the request before, at least a second ago' })
  ),
  records: Type.Optional(
    recordOf(Type.Object({ records: Type.Integer(), bytes: Type.Integer() }), {
      description: 'Number and size of the records by kind'
    })
  ),
  records_complete: Type.Optional(
    Type.Boolean({ description: 'false: there are more records; ten seconds were not enough to count them' })
  )
});

/** Contents and activity of the store. */
export const STORE_METRICS: readonly Operation[] = [
  operation({
    name: 'lookup_store',
    method: 'GET',
    path: '/x/store',
    ctl: 'store --records',
    descr: 'The size of the store, and what is written to it',
    example: {},
    query: Type.Object({
      records: Type.Optional(
        Type.Boolean({ default: false, description: 'Count the records by kind: this reads all of the store' })
      )
    }),
    data: STORE,
    run: async ({ broker }, { query: { records } }) => {
      const { store } = broker.monitor;
      const state = await store.read();
      if (state === undefined) return { has_store: false };
      const counted = records === true ? await store.records() : undefined;
      const { name, isFailed, sizeBytes, freeBytes, unwrittenBytes, commits, commitsPerSec } = state;
      // undefined fields are not written
      return {
        has_store: true,
        name,
        failed: isFailed,
        size_bytes: sizeBytes,
        // undefined and Infinity mean that there is no limit
        free_bytes: freeBytes === undefined || !Number.isFinite(freeBytes) ? undefined : Math.round(freeBytes),
        unwritten_bytes: unwrittenBytes,
        commits,
        commits_per_s: Math.round(commitsPerSec * 100) / 100,
        records: counted?.kinds,
        records_complete: counted?.isComplete
      };
    }
  })
];
