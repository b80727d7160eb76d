import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A line of the text file: a statement, and its result. */
interface GrammarCase {
  /** `grammar.txt:12` */
  readonly place: string;
  readonly text: string;
  /** The statement as it is printed, or the JSON of a definition; `error ...`: a part of the message. */
  readonly expected: string;
}

const FILE = 'grammar.txt';

/**
 * The cases of the text file. A line is a comment (`# ...`), or a case: a statement or an expression, ` => `, and its
 * result. `=` stands for the text itself. Expressions, and their results, are those of a statement `SELECT ... FROM
 * demo`.
 */
export const GRAMMAR_CASES: readonly GrammarCase[] = readFileSync(join(import.meta.dirname, 'cases', FILE), 'utf8')
  .split('\n')
  .flatMap((line, index) => {
    if (line.trim() === '' || line.startsWith('#')) return [];
    const at = line.lastIndexOf(' => ');
    if (at === -1) throw new Error(`${FILE}:${index + 1} has no " => "`);
    const [left, right] = [line.slice(0, at).trim(), line.slice(at + 4).trim()];
    const isStatement = /^(select|create|show|describe|explain|drop|!)/i.test(left);
    const whole = (text: string) =>
      isStatement ? text.replace(/^!/, '').replaceAll('\\n', '\n') : `SELECT ${text} FROM demo`;
    const text = whole(left);
    if (right.startsWith('error ')) return [{ place: `${FILE}:${index + 1}`, text, expected: right }];
    return [{ place: `${FILE}:${index + 1}`, text, expected: right === '=' ? text : whole(right) }];
  });
