import type { Parser } from '../sql/parser.ts';
import type { SqlError } from '../sql/sql-error.ts';
import type { Call, Expression, Over, TimeUnit, Window, WindowKind } from '../sql/tree.ts';

const KINDS: ReadonlyMap<string, WindowKind> = new Map([
  ['tumblingwindow', 'tumbling'],
  ['hoppingwindow', 'hopping'],
  ['slidingwindow', 'sliding'],
  ['sessionwindow', 'session'],
  ['countwindow', 'count'],
  ['statewindow', 'state']
]);

/** The names of the windows, in lower case. */
export const WINDOW_NAMES: readonly string[] = [...KINDS.keys()];

/** The permitted numbers of arguments of windows with a unit of time. */
const COUNTS: Readonly<Partial<Record<WindowKind, readonly number[]>>> = {
  tumbling: [2],
  hopping: [3],
  sliding: [2, 3],
  session: [3]
};

/** Milliseconds by unit of length. */
const UNIT_MS: Readonly<Record<TimeUnit, number>> = {
  dd: 86_400_000,
  hh: 3_600_000,
  mi: 60_000,
  ss: 1000,
  ms: 1
};

/** Maximum length of a window. */
const MAX_DAYS = 36_500;

const ORDINALS = ['1st', '2nd', '3rd'];

/** Check whether a function name denotes a window: `TUMBLINGWINDOW`. */
export function isWindowName(name: string): boolean {
  return KINDS.has(name.toLowerCase());
}

/**
 * The window denoted by a call in GROUP BY, with the FILTER and OVER that follow it. The sentences about its arguments
 * are those of the original [stream rules 5.1].
 * @throws SqlError
 */
export function readWindow(call: Call, parser: Parser): Window {
  const kind = KINDS.get(call.name.toLowerCase()) as WindowKind;
  const parts =
    kind === 'state'
      ? stateParts(call, parser)
      : kind === 'count'
        ? countParts(call, parser)
        : timeParts(kind, call, parser);
  const filter = parser.takeKeyword('FILTER') ? readFilter(parser) : undefined;
  const over = call.over ?? parser.takeOver();
  checkOver(kind, over, call, parser);
  return {
    kind,
    ...parts,
    ...(filter === undefined ? {} : { filter }),
    ...(over?.when === undefined ? {} : { when: over.when }),
    partitionBy: over?.partitionBy ?? [],
    start: call.start,
    end: parser.previousEnd
  };
}

type Parts = Pick<Window, 'unit' | 'lengths' | 'conditions'>;

function stateParts({ name, args, start }: Call, parser: Parser): Parts {
  if (args.length !== 1 && args.length !== 2) throw wrongCount(name, '1 or 2', start, parser);
  return { lengths: [], conditions: args };
}

function countParts({ args, start }: Call, parser: Parser): Parts {
  if (args.length !== 1 && args.length !== 2)
    throw parser.errorAt(start, 'Invalid parameter count.', 'countwindow(10) or countwindow(10, 5)');
  const lengths = args.map((arg) => {
    const length = integerOf(arg);
    if (length === undefined || length <= 0)
      throw parser.errorAt(
        arg.start,
        `Invalid parameter value ${length ?? parser.text.slice(arg.start, arg.end)}.`,
        'a number of rows is an integer above 0'
      );
    return length;
  });
  const [count, interval = count] = lengths;
  if (interval > count)
    throw parser.errorAt(
      args[1].start,
      `The second parameter value ${interval} should be less than the first parameter ${count}.`
    );
  return { lengths, conditions: [] };
}

function timeParts(kind: WindowKind, { name, args, start }: Call, parser: Parser): Parts {
  const counts = COUNTS[kind] ?? [];
  if (!counts.includes(args.length)) throw wrongCount(name, counts.join(' or '), start, parser);
  const [first, ...rest] = args;
  const unit = unitOf(first);
  if (unit === undefined)
    throw parser.errorAt(
      first.start,
      `The 1st argument for ${name.toLowerCase()} is expecting timer literal expression. One value of [dd|hh|mi|ss|ms].`
    );
  const lengths = rest.map((arg, index) => {
    const argument = `The ${ORDINALS[index + 1]} argument for ${name.toLowerCase()}`;
    const length = integerOf(arg);
    if (length === undefined) throw parser.errorAt(arg.start, `${argument} is expecting integer literal expression.`);
    // for a sliding window, the delay may be 0, and the length may be 0 if there is a delay
    const mayBeZero = kind === 'sliding' && (index === 1 || (integerOf(rest[1] ?? first) ?? 0) > 0);
    if (length < (mayBeZero ? 0 : 1))
      throw parser.errorAt(arg.start, `${argument} should be ${mayBeZero ? '0 or more' : 'greater than 0'}.`);
    if (length * UNIT_MS[unit] > MAX_DAYS * UNIT_MS.dd)
      throw parser.errorAt(arg.start, `${argument} should be at most ${MAX_DAYS} days.`);
    return length;
  });
  return { unit, lengths, conditions: [] };
}

function wrongCount(name: string, count: string, start: number, parser: Parser): SqlError {
  return parser.errorAt(start, `The arguments for ${name.toLowerCase()} should be ${count}.`);
}

function unitOf(arg: Expression): TimeUnit | undefined {
  if (arg.type !== 'path' || arg.steps.length > 0) return undefined;
  const word = arg.name.toLowerCase();
  return Object.hasOwn(UNIT_MS, word) ? (word as TimeUnit) : undefined;
}

function integerOf(arg: Expression): number | undefined {
  if (arg.type !== 'literal' || typeof arg.value !== 'number') return undefined;
  return Number.isSafeInteger(arg.value) ? arg.value : undefined;
}

/** Parse `FILTER (WHERE a > 1)`. */
function readFilter(parser: Parser): Expression {
  parser.expectSymbol('(');
  parser.expectKeyword('WHERE');
  const filter = parser.expression();
  parser.expectSymbol(')');
  return filter;
}

function checkOver(kind: WindowKind, over: Over | undefined, { name, start }: Call, parser: Parser): void {
  if (over?.when !== undefined && kind !== 'sliding')
    throw parser.errorAt(
      over.when.start,
      `${name.toLowerCase()}() does not support OVER (WHEN ...)`,
      'use it with SLIDINGWINDOW'
    );
  if (over !== undefined && over.partitionBy.length > 0 && kind !== 'state')
    throw parser.errorAt(
      start,
      `${name.toLowerCase()}() does not support OVER (PARTITION BY ...)`,
      'use it with STATEWINDOW'
    );
}
