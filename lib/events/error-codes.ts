import { ACCESS_CODES } from './error-codes/access.ts';
import { ADAPTER_CODES } from './error-codes/adapters.ts';
import { BROKER_CODES } from './error-codes/broker.ts';
import { COMMAND_CODES } from './error-codes/command.ts';
import type { ErrorCodeEntry } from './error-codes/row.ts';
import { RULE_CODES } from './error-codes/rules.ts';
import { STORE_CODES } from './error-codes/store.ts';
import { STREAM_CODES } from './error-codes/streams.ts';
import { TESTING_CODES } from './error-codes/testing.ts';

/** The codes of errors by area, for the tables of the documentation. */
export const ERROR_AREAS = {
  'The broker and its clients': BROKER_CODES,
  'The store': STORE_CODES,
  'Authentication and access': ACCESS_CODES,
  'Listeners, HTTP, webhooks and bridges': ADAPTER_CODES,
  Rules: RULE_CODES,
  Streams: STREAM_CODES,
  'The test kit': TESTING_CODES,
  'The command': COMMAND_CODES
};

/**
 * The meaning and the remedy of each error code. Apps can show the remedy with an error.
 *
 * ```ts
 * console.log(error.message, ERROR_CODES[error.code]?.remedy);
 * ```
 */
export const ERROR_CODES: Readonly<Record<string, ErrorCodeEntry | undefined>> = /* @__PURE__ */ Object.assign(
  {},
  BROKER_CODES,
  STORE_CODES,
  ACCESS_CODES,
  ADAPTER_CODES,
  RULE_CODES,
  STREAM_CODES,
  TESTING_CODES,
  COMMAND_CODES
);
