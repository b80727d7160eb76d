import { BrokerError } from '../base/errors.ts';
import { MOST_LEVELS } from './values.ts';
import { MAX_WEIGHT } from './weight.ts';

/** Longest part of a line that is shown around a fault. */
const SHOWN = 100;

/**
 * A statement is invalid. `code` is `SQL_INVALID`. The message has the line of the fault, a mark below its place, and a hint where there is one.
 */
export class SqlError extends BrokerError {
  /** What is wrong, in one line without the position. */
  readonly fault: string;
  /** Line of the fault, from 1. */
  readonly line: number;
  /** Column of the fault, from 1. */
  readonly column: number;
  /** How to mend it. */
  readonly hint: string | undefined;

  /** @param start offset of the fault in the text */
  constructor(fault: string, text: string, start: number, hint?: string) {
    const lineStart = start === 0 ? 0 : text.lastIndexOf('\n', start - 1) + 1;
    const line = text.slice(0, lineStart).split('\n').length;
    const column = start - lineStart + 1;
    super('SQL_INVALID', messageOf(fault, text, { lineStart, line, column }, hint));
    this.fault = fault;
    this.line = line;
    this.column = column;
    this.hint = hint;
  }
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
  // one column for each character, so that the mark stands below the fault
  const shown = whole.slice(from, from + SHOWN).replace(/[\p{Cc}\p{Cf}]/gu, ' ');
  const mark = `${' '.repeat(column - 1 - from)}^`;
  return `${fault} at line ${line}, column ${column}\n  ${shown}\n  ${mark}${hint === undefined ? '' : `\nhint: ${hint}`}`;
}

/** The evaluation of a statement has failed, for one event. `code` is `SQL_FAILED`. */
export class SqlFailure extends BrokerError {
  constructor(message: string, cause?: unknown) {
    super('SQL_FAILED', message, cause === undefined ? undefined : { cause });
  }
}

/** Refuse a value with too many levels inside each other, instead of an overflow of the stack. @throws SqlFailure */
export function checkLevel(level: number): void {
  if (level > MOST_LEVELS) throw new SqlFailure(`the value has more than ${MOST_LEVELS} levels`);
}

/** @param what for the message: `an output` */
export function tooHeavy(what: string): SqlFailure {
  return new SqlFailure(`${what} is larger than ${MAX_WEIGHT} bytes as JSON`);
}
