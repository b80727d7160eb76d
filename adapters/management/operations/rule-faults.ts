import { BrokerError, NotFound, StateError } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { anyOf, flag, oneOf, optional } from '../../rest/kit/index.ts';
import { faultOf, renamed } from '../codes.ts';

/** The first words of messages, as in the original products, by the error codes of the broker. */
const WORDS: Readonly<Record<string, string>> = {
  SQL_INVALID: 'parse_error',
  PARAM_REQUIRED: 'required_field_missing',
  PARAM_INVALID: 'invalid_data_type',
  RESOURCE_NOT_INITIALIZED: 'resource_not_initialized',
  RESOURCE_IN_USE: 'dependency_exists',
  ACTION_FAILED: 'init_action_failure'
};
/** The parameters with a separate first word for invalid values. */
const WORDS_OF_PARAMETERS: Readonly<Record<string, string>> = {
  enabled: 'invalid_enabled',
  on_action_failed: 'invalid_on_failed'
};
/** The parameters by the fields of rules. */
const NAMES = { sql: 'rawsql', isEnabled: 'enabled', onActionFailed: 'on_action_failed' };
/**
 * Errors whose message is used unchanged: a statement that fails for the event of a test, or a package that is not
 * installed.
 */
const AS_THEY_ARE: ReadonlySet<string> = new Set(['SQL_FAILED', 'PACKAGE_MISSING']);
/** Errors that concern the broker, not its rules. */
const GENERAL: ReadonlySet<string> = new Set(['BROKER_NOT_STARTED', 'STORE_FAILED', 'STORE_CLOSED']);

/**
 * A fault for an invalid argument.
 * @param word as in the original products
 */
function badArguments(message: string, word?: string): Fault {
  return new Fault('badArguments', `Bad Arguments: ${word === undefined ? '' : `${word}: `}${message}`);
}

/** The body parameter that requests a test. */
export const TEST = optional(anyOf([flag(), oneOf(['true', 'false'])], 'As in the query'));

/**
 * Check whether a request asks for a test.
 * @param value of the query or body parameter
 */
export function isTest(value: boolean | string | undefined): boolean {
  return value === true || value === 'true';
}

/**
 * Check that a parameter is given.
 * @throws Fault missingParameter if it is undefined
 */
export function given<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Fault('missingParameter', `the parameter "${name}" is missing`, name);
  return value;
}

/**
 * The fault for an error of the rule engine. Invalid requests are code 400; objects named by the path that do not exist
 * are code 404.
 * @returns undefined: the error means the same as in other operations
 */
export function ruleFault(error: unknown): Fault | undefined {
  if (error instanceof Fault) return faultOfInput(error);
  if (!(error instanceof BrokerError) || GENERAL.has(error.code)) return undefined;
  const { code, message } = error;
  if (code === 'RULE_EXISTS' || code === 'RESOURCE_EXISTS') return new Fault('badArguments', 'Already Exists');
  const word = WORDS[code];
  if (word !== undefined || AS_THEY_ARE.has(code)) return badArguments(message, word);
  // only these are named by the path; all others are named by the body
  if (code === 'RULE_NOT_FOUND' || code === 'RESOURCE_NOT_FOUND') return new Fault('notFound', message);
  if (error instanceof StateError || error instanceof NotFound) return badArguments(message);
  const named = renamed(error, NAMES);
  if (named instanceof Fault) return faultOfInput(named);
  return faultOf(error) && badArguments(message);
}

function faultOfInput({ kind, message, original: name = '' }: Fault): Fault | undefined {
  if (kind === 'missingParameter') return badArguments(message, 'required_field_missing');
  return kind === 'wrongParameter'
    ? badArguments(message, WORDS_OF_PARAMETERS[name] ?? 'invalid_data_type')
    : undefined;
}
