// The schemas that rules over events and stream rules have in common: of samples, and of the errors of a statement.

import { flag, integer, objectOf, optional, text } from './schemas.ts';

/** The time of a sample. */
export const SAMPLE_AT = integer('The time, in milliseconds since 1970');
/** The mark of a sample that is not complete. */
export const SAMPLE_CUT = flag('True if a part was left out, because the sample is longer than 4,096 characters');

/** An error of a statement, with its place. */
export const STATEMENT_ERROR = objectOf({
  message: text('The error in one line'),
  line: optional(integer('The line, from 1; absent, as the two that follow: the error has no place')),
  column: optional(integer('The column, from 1, in UTF-16 code units')),
  length: optional(integer('Number of UTF-16 code units of the word at this place; 0: the end of the statement')),
  hint: optional(text('Advice'))
});
