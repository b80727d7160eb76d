import { BrokerError, InvalidInput, NotFound, StateError } from '../../lib/index.ts';
import { Fault, type FaultKind } from '../rest/index.ts';

/** The codes of errors in JSON [stream rules 1.1]. */
export const CODES = {
  undefined: 1000,
  notFound: 1002,
  io: 1003,
  encoding: 1004,
  syntax: 2001,
  plan: 2101,
  executor: 2201,
  stream: 3000,
  rule: 4000,
  configuration: 5000
} as const;

export type CodeName = keyof typeof CODES;

/** HTTP statuses of faults. */
type FaultStatus = 400 | 401 | 403 | 404 | 408 | 413 | 422 | 429 | 500 | 503;

/** A request that is answered with an error. */
export class StreamFault extends Error {
  readonly status: FaultStatus;
  readonly code: CodeName;
  /** True if the message is complete: nothing is put in front of it. */
  readonly isWhole: boolean;

  /** @param message for people, without the prefix of the operation */
  constructor(status: FaultStatus, code: CodeName, message: string, isWhole = false) {
    super(message);
    this.name = 'StreamFault';
    this.status = status;
    this.code = code;
    this.isWhole = isWhole;
  }
}

type FaultEntry = readonly [status: FaultStatus, code: CodeName];

/** The faults for errors of the broker, by error code. */
const ERRORS: Readonly<Record<string, FaultEntry>> = {
  STREAM_RULE_NOT_FOUND: [404, 'notFound'],
  STREAM_NOT_FOUND: [404, 'notFound'],
  FUNCTION_NOT_FOUND: [404, 'notFound'],
  SQL_INVALID: [400, 'syntax'],
  SOURCE_NOT_FOUND: [400, 'plan'],
  SINK_NOT_FOUND: [400, 'plan'],
  STREAM_RULE_INVALID: [400, 'plan'],
  PROPERTY_INVALID: [400, 'plan'],
  STREAM_RULE_EXISTS: [400, 'rule'],
  STREAM_RULE_NOT_STARTED: [400, 'rule'],
  STREAM_INVALID: [400, 'stream'],
  STREAM_EXISTS: [400, 'stream'],
  STREAM_IN_USE: [400, 'stream'],
  STREAMS_STOPPED: [503, 'executor'],
  BROKER_NOT_STARTED: [503, 'executor'],
  STORE_FAILED: [503, 'io'],
  STORE_CLOSED: [503, 'io']
};

/** Replacements for messages whose remedy is meant for the app, not for an HTTP client. */
const MESSAGES: Readonly<Record<string, string>> = {
  BROKER_NOT_STARTED: 'the broker is stopping, or has not started; try again later',
  STREAMS_STOPPED: 'the stream service is stopped'
};

/** The faults for errors of the mount: those of bodies and of credentials. */
const KINDS: Partial<Record<FaultKind, FaultEntry>> = {
  notJson: [400, 'encoding'],
  missingParameter: [400, 'configuration'],
  wrongParameter: [400, 'configuration'],
  unauthorized: [401, 'undefined'],
  notPermitted: [403, 'undefined'],
  tooManyLogins: [429, 'undefined'],
  bodyTooLarge: [413, 'io'],
  bodyTooSlow: [408, 'io'],
  bodyIncomplete: [400, 'io']
};

/**
 * The fault for an error.
 * @returns undefined for an unexpected error
 */
export function faultOf(error: unknown): StreamFault | undefined {
  if (error instanceof StreamFault) return error;
  if (error instanceof Fault) {
    const row = KINDS[error.kind];
    return row && new StreamFault(...row, error.message, row[0] !== 400);
  }
  if (!(error instanceof BrokerError)) return undefined;
  const row = ERRORS[error.code] ?? rowOfClass(error);
  return row && new StreamFault(...row, MESSAGES[error.code] ?? error.message);
}

function rowOfClass(error: BrokerError): FaultEntry | undefined {
  if (error instanceof NotFound) return [404, 'notFound'];
  if (error instanceof InvalidInput) return [400, 'configuration'];
  return error instanceof StateError ? [400, 'undefined'] : undefined;
}

/** Check whether an error has one of some codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof BrokerError && codes.includes(error.code);
}
