import type { Value } from '../values.ts';
import type { Weighs } from '../weight.ts';

/** Kinds of arguments. `bytes`: a string, or bytes that are not UTF-8; `json`: any value, where a string that is JSON stands for what it encodes. */
export type ParameterType = 'any' | 'json' | 'string' | 'bytes' | 'integer' | 'number' | 'boolean' | 'list' | 'object';

/** A parameter; with `?` it may be left out, with `...` there may be any number of them. */
export type Parameter = ParameterType | `${ParameterType}?` | `${ParameterType}...`;

/** What functions use of the process. */
export interface FunctionTools {
  /** Wall-clock milliseconds. */
  now(): number;
  /** A number from 0 to 1. */
  random(): number;
  /** Compile a regular expression. @throws SqlFailure */
  pattern(text: string): Pattern;
  /** What the functions `kv_store_*` share. */
  readonly table: Map<string, Value>;
}

/** A regular expression that takes time in proportion to the text and to its parts. */
export interface Pattern {
  /** Number of its parts, if its repetitions are written out. */
  readonly parts: number;
  test(text: string): boolean;
  /** Number of groups. */
  readonly groupCount: number;
  /** The groups of the first match, '' for those without a part in it; empty if there is no match. */
  groups(text: string): readonly string[];
  /** Replace each match. @param replacement called with the match, followed by its groups */
  replace(text: string, replacement: (match: readonly string[]) => string): string;
}

/** A function of SQL. */
export interface SqlFunction {
  /** In lower case. */
  readonly name: string;
  /** Functions that belong together in the documents. */
  readonly family: string;
  readonly params: readonly Parameter[];
  /** What it gives, for the documents. */
  readonly returns: ParameterType;
  /** What it does, in one sentence. */
  readonly about: string;
  /** A column whose value is the first argument, before those that are written. */
  readonly column?: string;
  /** The values that a parameter can have, by its index. */
  readonly choices?: Readonly<Record<number, readonly string[]>>;
  /** An argument, by its index, that is a regular expression; the first argument is its text. */
  readonly patternAt?: number;
  /** An argument, by its index, that is a list of which every element may be read; its length counts towards what one event may take. */
  readonly scans?: number;
  /**
   * The weight of a list or an object that it gives follows from its arguments, of which texts count 8 times: it is no more than that of one of them (`part`), or
   * than that of all together (`sum`), but for 64. Absent: the result is walked to weigh it, also that of a function of the app. @internal
   */
  readonly weighs?: Weighs | undefined;
  /** It never fails with arguments of the right types. */
  readonly isTotal?: true;
  /** Called for each event, with arguments that are checked. @throws SqlFailure */
  // biome-ignore lint/suspicious/noExplicitAny: the types of the arguments follow from `params`
  readonly run: (...args: any[]) => Value;
  /** Instead of `run`, for a function that uses the process. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly make?: (tools: FunctionTools) => (...args: any[]) => Value;
}

/** A row of a table of functions, without its family. */
export type FunctionRow = Omit<SqlFunction, 'family' | 'run'> & Partial<Pick<SqlFunction, 'run'>>;

/** The functions of a family. */
export function family(name: string, rows: readonly FunctionRow[]): readonly SqlFunction[] {
  return rows.map((row) => ({ run: notMade, ...row, family: name }));
}

function notMade(): Value {
  throw new TypeError('a function that uses the process is made first');
}
