import { SqlError } from '../../lib/sql/sql-error.ts';
import { parseDdl } from '../../lib/streams/ddl/ddl.ts';
import { describeJson, describeText } from '../../lib/streams/ddl/describe.ts';
import { printStreamStatement } from '../../lib/streams/print-statement.ts';
import { parseStreamStatement } from '../../lib/streams/statement.ts';
import { StreamStatementMaker } from '../streams/generated.ts';
import { GRAMMAR_CASES } from '../streams/grammar-cases.ts';
import type { Random } from './random.ts';
import type { SqlFuzzOptions } from './sql.ts';
import { damaged } from './sql-inputs.ts';

/** Maximum CPU time of one input, in milliseconds: far more than any takes, also on a slow machine. */
const MAX_MS = 3000;

const PIECES = [
  ...[
    'SELECT',
    'FROM',
    'WHERE',
    'GROUP BY',
    'HAVING',
    'ORDER BY',
    'LIMIT',
    'AS',
    'INNER JOIN',
    'ON',
    'LEFT',
    'CROSS JOIN'
  ],
  ...[
    'TUMBLINGWINDOW(',
    'COUNTWINDOW(',
    'STATEWINDOW(',
    'FILTER(WHERE',
    'OVER(',
    'PARTITION BY',
    'WHEN',
    'ss',
    'EXCEPT('
  ],
  ...['REPLACE(', 'INVISIBLE', 'CASE', 'THEN', 'ELSE', 'END', 'NOT', 'IN', 'BETWEEN', 'AND', 'LIKE', 'DESC', 'true'],
  ...['CREATE', 'STREAM', 'TABLE', 'SHOW', 'DROP', 'DESCRIBE', 'WITH', 'BIGINT', 'ARRAY(', 'STRUCT(', 'TYPE', 'FORMAT'],
  ...[
    'demo',
    'a',
    'count(',
    '*',
    '"a"',
    "'a'",
    '`a`',
    '1',
    '.5',
    '-3',
    '1e3',
    '-- x\n',
    '/* x */',
    '/*',
    '\\',
    '"',
    '`',
    "'"
  ],
  ...[
    '(',
    ')',
    '[',
    ']',
    ':',
    '->',
    '.',
    ',',
    ';',
    '=',
    '!=',
    '<>',
    '<',
    '+',
    '-',
    '/',
    '%',
    '&',
    '|',
    '^',
    '#',
    '!',
    '$'
  ],
  ...['\n', '\0', '\ufeff', 'é', '😀', '\ud800', '__proto__', 'constructor', '9'.repeat(400)]
];

/** Parts around an expression, which can be put inside each other any number of times. */
const WRAPS: readonly (readonly [before: string, after: string])[] = [
  ...([
    ['(', ')'],
    ['- ', ''],
    ['1 + ', ''],
    ['', ' = 1'],
    ['', '.a'],
    ['', '->a'],
    ['', '[1]'],
    ['a[:', ']']
  ] as const),
  ...([
    ['f(', ')'],
    ['CASE WHEN ', ' THEN 1 END'],
    ['1 IN (', ')'],
    ['a BETWEEN 1 AND ', ''],
    ['a LIKE ', '']
  ] as const),
  ...([
    ['lag(a) OVER (WHEN ', ')'],
    ['a IN ', ''],
    ['(', ')->a']
  ] as const)
];

type End = 'valid' | 'invalid';

/**
 * Parse statements over streams and definitions that are damaged, random or nested deeply. Valid ones are printed and parsed again.
 * @returns the number of inputs for each result
 * @throws Error for an error that is not an SQL error, a printed statement that has another meaning, or an input that takes too long
 */
export function fuzzStreamSql({ runs, random }: SqlFuzzOptions): Record<End, number> {
  const ends = { valid: 0, invalid: 0 };
  const makers = makersOf(random);
  for (let run = 0; run < runs; run++) {
    const text = makers[run % makers.length]();
    const before = process.cpuUsage();
    ends[endOf(text)]++;
    const { user, system } = process.cpuUsage(before);
    const tookMs = (user + system) / 1000;
    if (tookMs > MAX_MS) throw new Error(`${JSON.stringify(text.slice(0, 1000))} took ${tookMs} ms`);
    if ('polluted' in Object.prototype) throw new Error('the prototype of all objects was changed');
  }
  return ends;
}

function makersOf(random: Random): readonly (() => string)[] {
  const maker = new StreamStatementMaker(random);
  const texts = GRAMMAR_CASES.map(({ text }) => text);
  return [
    () => damaged(random.pick(texts), random),
    () => damaged(printStreamStatement(maker.statement()), random),
    () => inserted(random.pick(texts), random),
    () => (random.once(20) ? deep(random) : soup(random))
  ];
}

/** A string with a piece of another statement in it. */
function inserted(text: string, random: Random): string {
  const at = random.below(text.length + 1);
  return `${text.slice(0, at)} ${random.pick(PIECES)} ${text.slice(at + random.below(4))}`;
}

/** Pieces of statements, in any order. */
function soup(random: Random): string {
  const pieces = Array.from({ length: random.below(30) }, () => random.pick(PIECES));
  const start = random.pick([
    '',
    'SELECT ',
    'SELECT * FROM demo ',
    'SELECT * FROM demo GROUP BY ',
    'CREATE STREAM a ('
  ]);
  return `${start}${pieces.join(random.pick(['', ' ']))}`;
}

/** A statement with an expression or a type that is nested deeply, to the longest statement and beyond. */
function deep(random: Random): string {
  const times = random.pick([10, 400, 499, 501, 5000, 20_000]);
  if (random.once(4)) return `CREATE STREAM a (b ${'ARRAY('.repeat(times)}BIGINT${')'.repeat(times)}) WITH ()`;
  const [before, after] = random.pick(WRAPS);
  return `SELECT ${before.repeat(times)}b${after.repeat(times)} FROM demo`;
}

function endOf(text: string): End {
  try {
    if (/^\s*(create|show|drop|describe|explain)/i.test(text)) {
      const ddl = parseDdl(text);
      if (ddl.type === 'create') JSON.stringify([describeText(ddl.definition), describeJson(ddl.definition)]);
      return 'valid';
    }
    const printed = printStreamStatement(parseStreamStatement(text));
    if (printStreamStatement(parseStreamStatement(printed)) !== printed) throw new Error(`is printed as ${printed}`);
    return 'valid';
  } catch (error) {
    if (error instanceof SqlError && !isOfPrinted(error, text)) return 'invalid';
    throw new Error(`${JSON.stringify(text.slice(0, 1000))}: ${(error as Error).message}`, { cause: error });
  }
}

/** Tell whether an error concerns a printed statement: the statement itself is valid. */
function isOfPrinted(error: SqlError, text: string): boolean {
  if (/characters|levels|steps/.test(error.fault)) return false; // a printed statement can be longer
  try {
    parseStreamStatement(text);
    return true;
  } catch {
    return false;
  }
}
