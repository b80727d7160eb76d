import type { ErrorCodeEntry } from './row.ts';

/** Codes of rules and of SQL. */
export const RULE_CODES = {
  ACTION_EXISTS: { about: 'An action of this name already exists.', remedy: 'Use another name.' },
  ACTION_FAILED: { about: 'An action of a rule failed.', remedy: 'The message names the cause.' },
  ACTION_INVALID: { about: 'An action type is invalid.', remedy: 'See `expected` of the error.' },
  ACTION_NOT_FOUND: {
    about: 'There is no action of this name.',
    remedy: 'Use the name that the message suggests, or define it in the option `rules`.'
  },
  FUNCTION_EXISTS: { about: 'A function of this name already exists.', remedy: 'Use another name.' },
  FUNCTION_INVALID: { about: 'A function for SQL is invalid.', remedy: 'See `expected` of the error.' },
  MESSAGE_EXPIRED: {
    about: 'A message expired before an action could send it.',
    remedy: 'Check the target, or raise the expiry.'
  },
  PARAM_INVALID: {
    about: 'A parameter of an action or a resource is invalid.',
    remedy: 'See `expected` of the error.'
  },
  PARAM_REQUIRED: { about: 'A required parameter is missing.', remedy: 'Give the parameter that `field` names.' },
  RESOURCE_DOWN: {
    about: 'The target of a resource cannot be reached.',
    remedy: 'Check the target; it is tried again.'
  },
  RESOURCE_EXISTS: { about: 'A resource of this id already exists.', remedy: 'Use another id.' },
  RESOURCE_INVALID: { about: 'A resource has an invalid field.', remedy: 'See `expected` of the error.' },
  RESOURCE_IN_USE: { about: 'A rule uses the resource.', remedy: 'Change or delete the rule first.' },
  RESOURCE_NOT_FOUND: { about: 'There is no resource of this id.', remedy: 'Make it first.' },
  RESOURCE_NOT_INITIALIZED: { about: 'A resource could not be made ready.', remedy: 'The message names the cause.' },
  RESOURCE_OF_APP: { about: 'The resource is in the options of the broker.', remedy: 'Change it there.' },
  RESOURCE_TYPE_EXISTS: { about: 'A resource type of this name already exists.', remedy: 'Use another name.' },
  RESOURCE_TYPE_INVALID: { about: 'A resource type is invalid.', remedy: 'See `expected` of the error.' },
  RESOURCE_TYPE_NOT_FOUND: {
    about: 'There is no resource type of this name.',
    remedy: 'Add it to the option `rules`.'
  },
  RULE_EXISTS: { about: 'A rule of this id already exists.', remedy: 'Use another id.' },
  RULE_INVALID: { about: 'A rule has an invalid field.', remedy: 'See `expected` of the error.' },
  RULE_LOOP: {
    about: 'Rules publish because of each other, so a message was not published.',
    remedy: 'Publish to a topic that does not trigger the rule.'
  },
  RULE_NOT_FOUND: { about: 'There is no rule of this id.', remedy: 'List the rules.' },
  RULE_OF_APP: { about: 'The rule is in the options of the broker.', remedy: 'Change it there.' },
  SQL_FAILED: { about: 'A statement failed on a row.', remedy: 'The message names the expression; check the values.' },
  SQL_INVALID: { about: 'A statement is invalid.', remedy: 'The message has line, column and a hint.' }
} as const satisfies Readonly<Record<string, ErrorCodeEntry>>;
