import type { Fault, FaultKind } from './fault.ts';

/** Time after which a broker that stops, or whose store has failed, may serve again, in seconds. */
const RETRY_SOON = { 'retry-after': '5' };
const HEADERS: Partial<Record<FaultKind, Readonly<Record<string, string>>>> = {
  unauthorized: { 'www-authenticate': 'Basic realm="embermq", charset="UTF-8"' },
  // failed logins are forgotten after this time
  tooManyLogins: { 'retry-after': '60' },
  unavailable: RETRY_SOON,
  storeFailed: RETRY_SOON
};
/** Faults after which the remaining body is not read. */
const CLOSING: ReadonlySet<FaultKind> = new Set([
  'unauthorized',
  'notPermitted',
  'tooManyLogins',
  'bodyTooLarge',
  'bodyTooSlow'
]);

/** The headers of the answer to a fault, apart from that of its content, and whether it closes the connection. */
export function faultParts({ kind, headers }: Fault): { headers: Readonly<Record<string, string>>; closes: boolean } {
  return { headers: { ...HEADERS[kind], ...headers }, closes: CLOSING.has(kind) };
}
