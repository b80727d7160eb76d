import type { ContextFunction, ScalarFunction, StreamFunctionTools } from '../function.ts';
import type { Tuple } from '../values/tuple.ts';
import { isNull, type StreamValue } from '../values/values.ts';

/**
 * Fields that all rows of a table have. `ifNull`: the result if any argument is null; the function is then not called.
 */
interface RowBase {
  readonly ifNull?: null | false | 0n | -1n;
}

/** A row in a table of scalar functions: with `run`, or with `make` if it depends on the rule or the process. */
export type StreamFunctionEntry = RowBase &
  (
    | (Omit<ScalarFunction, 'kind' | 'family' | 'nullIsNull'> & { readonly make?: never })
    | (Omit<ContextFunction, 'kind' | 'family' | 'make'> & {
        readonly run?: never;
        // biome-ignore lint/suspicious/noExplicitAny: the types of the arguments follow from `params`
        readonly make: (tools: StreamFunctionTools) => (...args: any[]) => StreamValue;
      })
  );

/** A function that depends only on its arguments, and is null if one of them is null. */
export const PURE = { ifNull: null, isPure: true } as const;

/** The functions of one family, with the null rules of their rows. */
export function streamFamily(
  name: string,
  rows: readonly StreamFunctionEntry[]
): readonly (ScalarFunction | ContextFunction)[] {
  return rows.map(({ ifNull, ...row }) => {
    const checked = (run: Run) => (ifNull === undefined ? run : checkingNull(run, ifNull, row.params));
    const base = { ...row, family: name };
    if (row.make === undefined) {
      const nulls = ifNull === null ? { nullIsNull: true as const } : {};
      return { ...base, ...nulls, kind: 'scalar', run: checked(row.run) };
    }
    const { make } = row;
    return { ...base, kind: 'context', make: (tools) => withoutTuple(checked(make(tools))) };
  });
}

// biome-ignore lint/suspicious/noExplicitAny: the types of the arguments follow from `params`
type Run = (...args: any[]) => StreamValue;

/** The closures are specialized for the number of arguments, because they are called for each row. */
function checkingNull(run: Run, result: StreamValue, params: readonly string[]): Run {
  if (params.some((param) => param.endsWith('?') || param.endsWith('...')))
    return (...args: StreamValue[]) => {
      for (const arg of args) if (isNull(arg)) return result;
      return run(...args);
    };
  switch (params.length) {
    case 1:
      return (a: StreamValue) => (isNull(a) ? result : run(a));
    case 2:
      return (a: StreamValue, b: StreamValue) => (isNull(a) || isNull(b) ? result : run(a, b));
    default:
      return (a: StreamValue, b: StreamValue, c: StreamValue) =>
        isNull(a) || isNull(b) || isNull(c) ? result : run(a, b, c);
  }
}

function withoutTuple(run: Run): (tuple: Tuple, ...args: StreamValue[]) => StreamValue {
  switch (run.length) {
    case 1:
      return (_, a) => run(a);
    case 2:
      return (_, a, b) => run(a, b);
    case 3:
      return (_, a, b, c) => run(a, b, c);
    default:
      return (_, ...args) => run(...args);
  }
}
