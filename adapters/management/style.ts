import { Fault, isPreflight } from '../rest/index.ts';
import type { ReplyStyle } from '../rest/kit/index.ts';
import { codesOf, faultOf } from './codes.ts';
import { checkBody, checkNames, pageRequest, readBody } from './input.ts';
import type { ManagementMembers } from './operation.ts';
import type { ManagementSettings } from './options.ts';
import { answerTo, answerWith } from './reply.ts';
import { REVISION_ROWS } from './revisions.ts';

/** The query and body parameters in the audit log. No parameter that may have a secret is among them. */
const RECORDED: ReadonlySet<string> = new Set([
  'clientid',
  'client_id',
  'username',
  'login',
  'is_superuser',
  'topic',
  'topics',
  'qos',
  'retain',
  'action',
  'access',
  'all',
  'who',
  'as',
  'by',
  'reason',
  'desc',
  'at',
  'until',
  'tags',
  'app_id',
  'name',
  'status',
  'id',
  'type',
  'enabled',
  'on_action_failed',
  'test',
  'expired',
  'mode',
  'threshold_ms',
  'limit',
  'expiry_s',
  'duration_s',
  'confirm',
  'key',
  'ip_address',
  'zone',
  'conn_state',
  'clean_start',
  'proto_name',
  'proto_ver',
  '_like_clientid',
  '_like_username',
  '_gte_created_at',
  '_lte_created_at',
  '_gte_connected_at',
  '_lte_connected_at'
]);

/**
 * The form of the management interface: each answer is an envelope with a code. The option `errors: 'original'` answers
 * as the documented products do.
 * @param nextSlice waits for the next time slice of long answers
 */
export function makeManagementStyle(
  settings: ManagementSettings,
  nextSlice: () => Promise<void>
): ReplyStyle<ManagementMembers> {
  const { errors, maxRowLimit, origins, revision, unmatched } = settings;
  const isOriginal = errors === 'original';
  return {
    recorded: RECORDED,
    isLeft: (call, methods) =>
      call.method === 'OPTIONS' ? methods.length === 0 || !isPreflight(call, origins) : unmatched === 'next',
    unknown: ({ method, path }, methods) => {
      const asked = `there is no operation ${method} ${path.slice(0, 200)}`;
      if (methods.length === 0) return new Fault('unknownPath', asked);
      const allow = methods.join(', ');
      return new Fault('unknownPath', `${asked}; this path has ${allow}`, undefined, { headers: { allow } });
    },
    faultOf,
    page: (row, { query }, given) => {
      if (!isOriginal || row.path.startsWith('/x/')) checkNames(row, query);
      return pageRequest(row, given, { maxRowLimit, isOriginal });
    },
    read: readBody,
    check: (row, body, params) => checkBody(row, body, { isOriginal, params }),
    success: (result, { contentType }, { page }) => answerWith(result, page, nextSlice, contentType),
    fault: (fault, { row }) => answerTo(fault, isOriginal, row?.originalAnswer?.(fault, REVISION_ROWS[revision])),
    codesOf
  };
}
