import { backup } from '../../../../lib/index.ts';
import { flag, integer, number, objectOf, optional, recordOf, text } from '../../../rest/kit/index.ts';
import { replyWithLines } from '../../line-reply.ts';
import { type Operation, operation } from '../../operation.ts';

const STORE = objectOf({
  has_store: flag('True if the broker has a store; otherwise the other fields are absent'),
  name: optional(text('Name of the store, for example its folder')),
  failed: optional(flag('True if the last commit has failed, so that nothing can be persisted')),
  size_bytes: optional(integer('Size, with the space of deleted records; absent if the store does not tell')),
  free_bytes: optional(
    integer('Bytes that can be written before the reserve is used; absent if the store does not tell')
  ),
  unwritten_bytes: optional(integer('Bytes that are not committed yet')),
  commits: optional(integer('Commits since the store was created')),
  commits_per_s: optional(number('Commits per second since the request before, at least a second ago')),
  records: optional(
    recordOf(
      objectOf({ records: integer('Number of records'), bytes: integer('Their size in bytes') }),
      'Number and size of the records by kind'
    )
  ),
  records_complete: optional(flag('false: there are more records; ten seconds were not enough to count them'))
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
    query: objectOf({
      records: optional(flag('Count the records by kind: this reads all of the store', { default: false }))
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

/** A copy of the store, made while the broker runs. */
export const BACKUP: readonly Operation[] = [
  operation({
    name: 'backup_store',
    method: 'POST',
    path: '/x/backup',
    ctl: 'backup FILE --force',
    descr: 'Back up the store while the broker runs: lines of JSON for "embermq store import"',
    isForAdministrators: true,
    isForApplications: true,
    contentType: 'application/jsonl',
    run: async ({ broker }) => replyWithLines(await backup(broker))
  })
];
