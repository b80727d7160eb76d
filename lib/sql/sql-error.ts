import { BrokerError } from '../base/errors.ts';
import { MAX_LEVELS } from './values.ts';
import { MAX_WEIGHT } from './weight.ts';

/** Maximum length of the part of a line that is shown around an error. */
const SHOWN = 100;

/**
 * An invalid statement. `code` is `SQL_INVALID`. The message shows the line of the error, a mark below its position and
 * a hint, if there is one.
 */
export class SqlError extends BrokerError {
  /** The error in one line, without the position. */
  readonly fault: string;
  /** Line of the error, from 1. */
  readonly line: number;
  /** Column of the error, from 1. */
  readonly column: number;
  /** Number of characters of the word, string or sign at this place; 0 at the end of the statement. */
  readonly length: number;
  /** A suggestion for correcting the statement. */
  readonly hint: string | undefined;

  /** @param start offset of the error in the text */
  constructor(fault: string, text: string, start: number, hint?: string) {
    const lineStart = start === 0 ? 0 : text.lastIndexOf('\n', start - 1) + 1;
    const line = text.slice(0, lineStart).split('\n').length;
    const column = start - lineStart + 1;
    super('SQL_INVALID', messageOf(fault, text, { lineStart, line, column }, hint));
    this.fault = fault;
    this.line = line;
    this.column = column;
    this.length = lengthAt(text, start);
    this.hint = hint;
  }
}

/** A string or a name in quotes, a word or a number, an operator, or any other character. */
const WORD = /(["'`])(?:\\.|(?!\1)[^\\])*\1?|[\p{L}\p{N}_$]+|[<>=!~]+|\S/suy;

function lengthAt(text: string, start: number): number {
  WORD.lastIndex = start;
  return WORD.exec(text)?.[0].length ?? 0;
}

interface Place {
  readonly lineStart: number;
  readonly line: number;
  readonly column: number;
}

function messageOf(fault: string, text: string, { lineStart, line, column }: Place, hint: string | undefined): string {
  const lineEnd = text.indexOf('\n', lineStart);
  const whole = text.slice(lineStart, lineEnd === -1 ? undefined : lineEnd);
  const from = Math.max(0, column - 1 - SHOWN / 2);
  // one column for each character, so that the mark stands below the error
  const shown = whole.slice(from, from + SHOWN).replace(/[\p{Cc}\p{Cf}]/gu, ' ');
  const mark = `${' '.repeat(column - 1 - from)}^`;
  return `${fault} at line ${line}, column ${column}\n  ${shown}\n  ${mark}${hint === undefined ? '' : `\nhint: ${hint}`}`;
}

/** The failure to evaluate a statement for one event. `code` is `SQL_FAILED`. */
export class SqlFailure extends BrokerError {
  constructor(message: string, cause?: unknown) {
    super('SQL_FAILED', message, cause === undefined ? undefined : { cause });
  }
}

/** An error of a statement. */
export interface StatementError {
  /** In one line, without the place. */
  readonly message: string;
  /** From 1. Undefined, as the two that follow, if the error has no place. */
  readonly line: number | undefined;
  /** From 1, in UTF-16 code units. */
  readonly column: number | undefined;
  /** Number of UTF-16 code units of the word at the place; 0 at the end of the statement. */
  readonly length: number | undefined;
  /** Advice; undefined if there is none. */
  readonly hint: string | undefined;
}

/** Errors that are about a statement and have no place in it. */
const OF_STATEMENTS = new Set(['STREAM_NOT_FOUND', 'STREAM_RULE_INVALID', 'SOURCE_NOT_FOUND', 'PROPERTY_INVALID']);

/** An error of a statement, from what its compiler throws. @throws other errors */
export function statementError(error: unknown): StatementError {
  if (error instanceof SqlError) {
    const { fault: message, line, column, length, hint } = error;
    return { message, line, column, length, hint };
  }
  if (!(error instanceof BrokerError) || !OF_STATEMENTS.has(error.code)) throw error;
  const none = undefined;
  return { message: error.message, line: none, column: none, length: none, hint: none };
}

/** Refuse a value with too many nested levels, to avoid a stack overflow. @throws SqlFailure */
export function checkLevel(level: number): void {
  if (level > MAX_LEVELS) throw new SqlFailure(`the value has more than ${MAX_LEVELS} levels`);
}

/** @param what subject of the message: `an output` */
export function tooHeavy(what: string): SqlFailure {
  return new SqlFailure(`${what} is larger than ${MAX_WEIGHT} bytes as JSON`);
}
