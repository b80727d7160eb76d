import type { AuditEntry } from '../../../../lib/index.ts';
import { anyObject, flag, integer, listOf, objectOf, optional, text } from '../../../rest/kit/index.ts';
import { countUnder, Listing } from '../../listing.ts';
import { type Operation, operation } from '../../operation.ts';

const CONDITIONS = objectOf({
  operation: optional(text('Only this operation, by its name in the index')),
  caller: optional(text('Only requests of this application or user, by its id')),
  failed: optional(flag('true: only what was refused or has failed; false: all else'))
});
const ENTRY = objectOf({
  at: integer('Time of the answer, in milliseconds since 1970; of several requests, of the last'),
  operation: text('Name of the operation'),
  caller: objectOf(
    {
      kind: text('application, user, function, host or none: what has accepted the credentials'),
      id: optional(text('The id of the credentials'))
    },
    { description: 'The sender of the request' }
  ),
  address: optional(text('IP address of the caller')),
  request: text('Method and path of the operation'),
  parameters: anyObject(
    'Parameters of the path, the query and the body, without secrets and payloads; of a batch, 20 entries'
  ),
  status: integer('HTTP status of the answer'),
  code: integer('Code of the answer; 0: success'),
  count: integer('Number of requests in a row; only publications are counted together')
});

function shown({ number: _, ...entry }: AuditEntry): object {
  return entry; // undefined fields are not written
}

/** Changes made through management interfaces, with their callers. */
export const AUDIT: readonly Operation[] = [
  operation({
    name: 'list_audit',
    method: 'GET',
    path: '/x/audit',
    ctl: { 'audit [OPERATION=operation] --failed': 'at caller.id address operation status count parameters' },
    descr: 'List the last 1,000 changes made through management interfaces, the newest first',
    paged: 100,
    hasCursor: true,
    query: CONDITIONS,
    data: listOf(ENTRY),
    example: {
      query: { operation: 'create_banned' },
      data: [
        {
          at: 1_767_225_600_000,
          operation: 'create_banned',
          caller: { kind: 'application', id: 'app' },
          address: '127.0.0.1',
          request: 'POST /banned',
          parameters: { who: 'sensor-9', as: 'clientid', reason: 'replaced' },
          status: 200,
          code: 0,
          count: 1
        }
      ]
    },
    run: ({ broker, page: { limit, skip, cursor } }, { query }) => {
      const { operation, caller: callerId, failed: isFailed } = query;
      const page = broker.monitor.audit.list({ operation, callerId, isFailed, limit, skip, cursor });
      return new Listing(page.entries, shown, { count: countUnder(query, page.count), cursor: page.cursor });
    }
  })
];
