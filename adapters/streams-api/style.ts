import { Fault, type FaultKind, faultParts, shortened } from '../rest/index.ts';
import type { Operation, ReplyStyle } from '../rest/kit/index.ts';
import { checkBody, readBody } from './body.ts';
import { codesOf, faultOf } from './faults.ts';
import type { StreamsSettings } from './options.ts';
import { jsonText, wantsJson } from './reply.ts';

const TEXT = { 'content-type': 'text/plain; charset=utf-8' };
const JSON_TYPE = { 'content-type': 'application/json' };
/** Browsers must not interpret error texts as pages, whatever they contain. */
const PLAIN = { ...TEXT, 'x-content-type-options': 'nosniff' };
/** Faults of the rule in a body; others are about the body itself. */
const REFUSALS: readonly FaultKind[] = ['syntax', 'plan', 'rule', 'stream', 'refused'];

/**
 * The query and body parameters in the audit log. Actions of rules, statements and the URLs of plugins may contain secrets.
 */
const RECORDED = new Set([
  'id',
  'name',
  'restart',
  'stop',
  'force',
  'triggered',
  'version',
  'functions',
  'tags',
  'ids'
]);

/**
 * The form of the interface of streams: sentences in text for commands, plain JSON for queries. A fault is
 * `PREFIX: MESSAGE` as text, or `{"error":CODE,"message":"PREFIX: MESSAGE"}`.
 */
export function makeStreamsStyle({ errors, maxDepth, unmatched }: StreamsSettings): ReplyStyle {
  return {
    recorded: RECORDED,
    isLeft: (_call, methods) => methods.length === 0 && unmatched === 'next',
    unknown: (_call, methods) => {
      if (methods.length === 0) return new Fault('unknownPath', '404 page not found');
      return new Fault('wrongMethod', '', undefined, { headers: { allow: ['OPTIONS', ...methods].join(', ') } });
    },
    faultOf,
    read: (row, sent, params) => readBody(row, sent, { params, maxDepth }),
    check: checkBody,
    success: (result, { filename, status = 200 }) => {
      if (typeof result === 'string') return { status, headers: TEXT, body: result };
      const disposition = filename && { 'content-disposition': `attachment; filename="${filename}"` };
      return { status, headers: { ...JSON_TYPE, ...disposition }, body: `${jsonText(result)}\n` };
    },
    fault: (fault, { call, row, params }) => {
      const { status, code } = statusAndCode(fault, row);
      const { headers, closes } = faultParts(fault);
      if (status === 405) return { status, headers, body: '' };
      const message = messageOf(fault, row, params);
      return errors === 'json' || wantsJson(call.header('accept'))
        ? { status, headers: { ...JSON_TYPE, ...headers }, body: `${jsonText({ error: code, message })}\n`, closes }
        : { status, headers: { ...PLAIN, ...headers }, body: `${message}\n`, closes };
    },
    codesOf: statusAndCode
  };
}

function statusAndCode(fault: Fault, row: Operation | undefined) {
  const { status, code } = codesOf(fault);
  return { status: row?.refusal !== undefined && REFUSALS.includes(fault.kind) ? row.refusal : status, code };
}

function messageOf(fault: Fault, row: Operation | undefined, params: Readonly<Record<string, string>>): string {
  const { isWhole = fault.isWhole } = codesOf(fault);
  const { errorPrefix = '' } = row ?? {};
  const prefix = typeof errorPrefix === 'function' ? errorPrefix(params) : errorPrefix;
  return shortened(isWhole || prefix === '' ? fault.message : `${prefix}: ${fault.message}`);
}
