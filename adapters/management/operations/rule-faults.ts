import Type from 'typebox';
import { BrokerError, NotFound, StateError } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { faultOf, renamed } from '../codes.ts';

/** The words with which messages begin, as in the original products, by the codes of the errors of the broker. */
const WORDS: Readonly<Record<string, string>> = {
  SQL_INVALID: 'parse_error',
  PARAM_REQUIRED: 'required_field_missing',
  PARAM_INVALID: 'invalid_data_type',
  RESOURCE_NOT_INITIALIZED: 'resource_not_initialized',
  RESOURCE_IN_USE: 'dependency_exists',
  ACTION_FAILED: 'init_action_failure'
};
/** The parameters that have a word of their own, if their value is wrong. */
const WORDS_OF_PARAMETERS: Readonly<Record<string, string>> = {
  enabled: 'invalid_enabled',
  on_action_failed: 'invalid_on_failed'
};
/** The parameters by the fields of rules. */
const NAMES = { sql: 'rawsql', isEnabled: 'enabled', onActionFailed: 'on_action_failed' };
/** A statement that fails for the event of a test, or uses a package that is not installed. */
const AS_THEY_ARE: ReadonlySet<string> = new Set(['SQL_FAILED', 'PACKAGE_MISSING']);
/** These are about the broker, not about rules. */
const GENERAL: ReadonlySet<string> = new Set(['BROKER_NOT_STARTED', 'STORE_FAILED', 'STORE_CLOSED']);

/** A request with a bad argument. @param word as in the original products */
function badArguments(message: string, word?: string): Fault {
  return new Fault('badArguments', `Bad Arguments: ${word === undefined ? '' : `${word}: `}${message}`);
}

/** The parameter of a body that asks for a test. */
export const TEST = Type.Optional(
  Type.Union([Type.Boolean(), Type.Enum(['true', 'false'])], { description: 'As in the query' })
);

/** Whether a request asks for a test. @param value of the parameter of the query, or of the one of the body */
export function isTest(value: boolean | string | undefined): boolean {
  return value === true || value === 'true';
}

/** A parameter that a request must have. @throws Fault missingParameter if it is undefined */
export function given<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Fault('missingParameter', `the parameter "${name}" is missing`, name);
  return value;
}

/**
 * The fault that an error of an operation of the rule engine means. What is wrong with the request is code 400, and what its path names and does
 * not exist is code 404.
 * @returns undefined: the error means the same as in other operations
 */
export function ruleFault(error: unknown): Fault | undefined {
  if (error instanceof Fault) return faultOfInput(error);
  if (!(error instanceof BrokerError) || GENERAL.has(error.code)) return undefined;
  const { code, message } = error;
  if (code === 'RULE_EXISTS' || code === 'RESOURCE_EXISTS') return new Fault('badArguments', 'Already Exists');
  const word = WORDS[code];
  if (word !== undefined || AS_THEY_ARE.has(code)) return badArguments(message, word);
  // what the path names; the others are named by the body
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
