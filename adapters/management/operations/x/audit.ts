import * as Type from 'typebox';
import type { AuditEntry } from '../../../../lib/index.ts';
import { recordOf } from '../../../rest/index.ts';
import { countUnder, Listing } from '../../listing.ts';
import { type Operation, operation } from '../../operation.ts';

const CONDITIONS = Type.Object({
  operation: Type.Optional(Type.String({ description: 'Only this operation, by its name in the index' })),
  caller: Type.Optional(Type.String({ description: 'Only requests of this application or user, by its id' })),
  failed: Type.Optional(Type.Boolean({ description: 'true: only what was refused or has failed; false: all else' }))
});
const ENTRY = Type.Object({
  at: Type.Integer({ description: 'Time of the answer, in milliseconds since 1970; of several requests, of the last' }),
  operation: Type.String({ description: 'Name of the operation' }),
  caller: Type.Object({
    kind: Type.String({ description: 'application, user, function, host or none: what has accepted the credentials' }),
    id: Type.Optional(Type.String({ description: 'The id of the credentials' }))
  }),
  address: Type.Optional(Type.String({ description: 'IP address of the caller' })),
  request: Type.String({ description: 'Method and path of the operation' }),
  parameters: recordOf(Type.Unknown(), {
    description: 'Parameters of the path, the query and the body, without secrets and payloads; of a batch, 20 entries'
  }),
  status: Type.Integer({ description: 'HTTP status of the answer' }),
  code: Type.Integer({ description: 'Code of the answer; 0: success' }),
  count: Type.Integer({ description: 'Number of requests in a row; only publications are counted together' })
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
    data: Type.Array(ENTRY),
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
      return new Listing(page.entries, { count: countUnder(query, page.count), cursor: page.cursor }, shown);
    }
  })
];
