import { BrokerError } from '../../lib/index.ts';
import { type Fault, type FaultKind, faultFor } from '../rest/index.ts';

/** The answer to a fault. */
interface CodeEntry {
  /** HTTP status. */
  readonly status: number;
  /** The code of the error in JSON [stream rules 1.1]. */
  readonly code: number;
  /** True if nothing is put in front of messages. */
  readonly isWhole?: true;
}

/** The statuses and codes of faults. */
const CODES: Readonly<Partial<Record<FaultKind, CodeEntry>>> = {
  refused: { status: 400, code: 1000 },
  unauthorized: { status: 401, code: 1000, isWhole: true },
  notPermitted: { status: 403, code: 1000, isWhole: true },
  tooManyLogins: { status: 429, code: 1000, isWhole: true },
  failed: { status: 500, code: 1000 },
  unknownPath: { status: 404, code: 1002, isWhole: true },
  wrongMethod: { status: 405, code: 1002, isWhole: true },
  notFound: { status: 404, code: 1002 },
  ioFailed: { status: 400, code: 1003 },
  bodyTooLarge: { status: 413, code: 1003, isWhole: true },
  bodyTooSlow: { status: 408, code: 1003, isWhole: true },
  bodyIncomplete: { status: 400, code: 1003 },
  storeFailed: { status: 503, code: 1003 },
  notJson: { status: 400, code: 1004 },
  syntax: { status: 400, code: 2001 },
  plan: { status: 400, code: 2101 },
  unavailable: { status: 503, code: 2201 },
  stream: { status: 400, code: 3000 },
  rule: { status: 400, code: 4000 },
  missingParameter: { status: 400, code: 5000 },
  wrongParameter: { status: 400, code: 5000 }
};

/** The row of a fault, which `faultOf` has returned. */
export function codesOf({ kind }: Fault): CodeEntry {
  return CODES[kind] as CodeEntry;
}

/** The faults for errors of the broker, by error code. */
const FAULTS: Readonly<Record<string, FaultKind>> = {
  SQL_INVALID: 'syntax',
  SOURCE_NOT_FOUND: 'plan',
  SINK_NOT_FOUND: 'plan',
  STREAM_RULE_INVALID: 'plan',
  PROPERTY_INVALID: 'plan',
  STREAM_RULE_EXISTS: 'rule',
  STREAM_RULE_NOT_STARTED: 'rule',
  STREAM_INVALID: 'stream',
  STREAM_EXISTS: 'stream',
  STREAM_IN_USE: 'stream',
  STREAM_CONFIG_IN_USE: 'refused',
  STREAM_CONFIG_EXISTS: 'refused',
  STREAM_CONFIG_NOT_FOUND: 'notFound',
  STREAMS_STOPPED: 'unavailable',
  BROKER_NOT_STARTED: 'unavailable',
  STORE_FAILED: 'storeFailed',
  STORE_CLOSED: 'storeFailed',
  PLUGIN_NOT_FOUND: 'notFound',
  SCRIPT_NOT_FOUND: 'notFound',
  FUNCTION_NOT_FOUND: 'notFound',
  PLUGIN_DOWNLOAD_FAILED: 'ioFailed',
  PLUGIN_HOST_FAILED: 'ioFailed',
  PLUGINS_STATE_FAILED: 'ioFailed',
  PLUGIN_HOSTS_MISSING: 'wrongParameter'
};
/**
 * Codes of all other errors of plugins and of packages that are not installed. Only operations on plugins and functions in JavaScript have the
 * first three kinds; a package may be missing for any operation, such as `croner` for a rule with a schedule.
 */
const OF_PLUGINS = /^(PLUGINS?_|SCRIPTS?_|FUNCTION_|PACKAGE_MISSING)/;

/** The fault for an error; undefined: it is unexpected. */
export function faultOf(error: unknown): Fault | undefined {
  return faultFor(error, {
    table: CODES,
    kindOf: (code) => FAULTS[code] ?? (OF_PLUGINS.test(code) ? 'refused' : undefined),
    notFound: 'notFound',
    state: 'refused'
  });
}

/** Check whether an error has one of some codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof BrokerError && codes.includes(error.code);
}
