import type { Broker } from '../../lib/index.ts';
import { type Call, type Caller, clientAddress, type TrustedProxies } from '../rest/index.ts';
import { CODES, type StreamFault } from './faults.ts';
import type { Operation } from './operation.ts';

/** Facts about a request when it is answered. */
export interface ChangeRequest {
  readonly row: Operation | undefined;
  readonly params: Readonly<Record<string, string>>;
  caller?: Caller;
  input?: { readonly query: unknown; readonly body: unknown };
}

/**
 * The query and body parameters that the audit log contains in addition to those of paths. All others are left out:
 * actions of rules, statements and the URLs of plugins may contain secrets.
 */
const RECORDED = ['id', 'name', 'restart', 'stop', 'force', 'triggered', 'version', 'functions', 'tags', 'ids'];
/** Entries of a list that are recorded. */
const MAX_ENTRIES = 20;
/** Longer values are truncated. */
const MAX_CHARACTERS = 256;

/**
 * Report a request to the audit log of the broker, as the management interface does. Requests that only read, and
 * requests with rejected credentials, are left out.
 * @param fault undefined: the request succeeded
 */
export function auditChange(
  broker: Broker,
  { row, params, caller, input }: ChangeRequest,
  answered: { readonly call: Call; readonly trustedProxies: TrustedProxies; readonly fault: StreamFault | undefined }
): void {
  if (row === undefined || row.method === 'GET' || row.isReading === true || caller === undefined) return;
  const { call, trustedProxies, fault } = answered;
  const { kind, id } = caller;
  broker.monitor.audit.record({
    operation: row.name,
    caller: id === undefined ? { kind } : { kind, id: cut(id) },
    address: clientAddress(call, trustedProxies),
    request: `${row.method} ${row.path}`,
    parameters: { ...recorded(input?.query), ...ofBody(row, input?.body), ...recorded(params, Object.keys(params)) },
    status: fault?.status ?? row.status ?? 200,
    code: fault === undefined ? 0 : CODES[fault.code]
  });
}

function ofBody(row: Operation, body: unknown): Record<string, unknown> {
  const names = typeof body === 'object' && body !== null ? (row.audited?.(body as Record<string, unknown>) ?? {}) : {};
  return { ...recorded(names, Object.keys(names)), ...recorded(body) };
}

function recorded(given: unknown, names: readonly string[] = RECORDED): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  if (typeof given !== 'object' || given === null) return found;
  for (const name of names) {
    const value = (given as Readonly<Record<string, unknown>>)[name];
    if (typeof value === 'string') found[name] = cut(value);
    else if (typeof value === 'number' || typeof value === 'boolean') found[name] = value;
    else if (Array.isArray(value) && value.every((each) => typeof each === 'string'))
      found[name] = value.slice(0, MAX_ENTRIES).map(cut);
  }
  return found;
}

function cut(text: string): string {
  return text.length <= MAX_CHARACTERS ? text : `${text.slice(0, MAX_CHARACTERS)}...`;
}
