import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A line of a text file: a statement for an event, and its result. */
export interface SqlCase {
  /** `grammar.txt:12` */
  readonly place: string;
  /** The columns of the event. */
  readonly event: Readonly<Record<string, unknown>>;
  readonly sql: string;
  /**
   * JSON of the outputs; `nothing`: WHERE is not true; `absent`: the expression has no value; `fails ...` and `error ...`: a part of the
   * message of a failed evaluation or of an invalid statement.
   */
  readonly expected: string;
  /** True if the line contains only an expression, and `expected` is its value. */
  readonly isExpression: boolean;
}

/**
 * Read the cases of a text file. A line is a comment (`# ...`), the columns of the events that follow (`event {...}`),
 * or a case: a statement or an expression, ` -> `, and its result. A line that begins with spaces continues the
 * previous one.
 */
export function readCases(file: string): SqlCase[] {
  const lines = readFileSync(join(import.meta.dirname, 'cases', file), 'utf8').split('\n');
  const cases: SqlCase[] = [];
  let event = {};
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    if (line.startsWith('event {')) {
      event = JSON.parse(line.slice(6));
      continue;
    }
    const at = line.lastIndexOf(' -> ');
    if (at === -1) throw new Error(`${file}:${index + 1} has no " -> "`);
    const text = line.slice(0, at).trim();
    const isExpression = !/^(select|foreach)\b/i.test(text) && !line.startsWith('!');
    const sql = isExpression ? `SELECT ${text} AS v FROM "t"` : text.replace(/^!/, '').replaceAll('\\n', '\n');
    cases.push({ place: `${file}:${index + 1}`, event, sql, expected: line.slice(at + 4).trim(), isExpression });
  }
  return cases;
}

/** The text files. */
export const CASE_FILES = readdirSync(join(import.meta.dirname, 'cases')).sort();
