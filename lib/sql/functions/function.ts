import type { CompareWork } from '../compare.ts';
import type { Value } from '../values.ts';
import type { Weighs } from '../weight.ts';

/**
 * Types of arguments. `bytes`: a string, or bytes that are not UTF-8; `json`: any value, with strings of valid JSON
 * decoded.
 */
export type ParameterType = 'any' | 'json' | 'string' | 'bytes' | 'integer' | 'number' | 'boolean' | 'list' | 'object';

/** A parameter of one of the types of a language; `?` marks it as optional, `...` as repeatable. */
export type Parameter<Type extends string = ParameterType> = Type | `${Type}?` | `${Type}...`;

/** Dependencies of functions on the process. */
export interface FunctionTools {
  /** Wall-clock time in milliseconds. */
  now(): number;
  /** A number from 0 to 1. */
  random(): number;
  /** Compile a regular expression. @throws SqlFailure */
  pattern(text: string): Pattern;
  /** The table shared by the functions `kv_store_*`. */
  readonly table: Map<string, Value>;
}

/** Counts the work that a function does for an event. */
export interface FunctionWork extends CompareWork {
  /** Count a text that is read or made. @returns the text @throws SqlFailure if the event exceeds its limit */
  readText(text: string): string;
  /** Count a text whose characters are found as grapheme clusters. @returns the text @throws SqlFailure as above */
  segmentText(text: string): string;
  /** Count the division of an integer. @throws SqlFailure as above */
  divided(value: Value): void;
  /** Count the members of an object that are copied or listed. @throws SqlFailure as above */
  copied(members: number): void;
  /** Decode JSON, each text only once for an event. Undefined: the text is not valid JSON. */
  decode(text: string): Value;
}

/** A regular expression that matches in time proportional to the text and to the number of its parts. */
export interface Pattern {
  /** Number of its parts with repetitions written out. */
  readonly parts: number;
  /** Check whether a text contains a match. */
  test(text: string): boolean;
  /** Number of capturing groups. */
  readonly groupCount: number;
  /** The groups of the first match, '' for those that did not participate; empty if there is no match. */
  groups(text: string): readonly string[];
  /** Replace each match. @param replacement called with the match and its groups */
  replace(text: string, replacement: (match: readonly string[]) => string): string;
}

/** The fields that functions of both languages have. */
export interface FunctionFields<Type extends string> {
  /** In lower case. */
  readonly name: string;
  /** The group to which the function belongs in the documentation. */
  readonly family: string;
  /** The parameters, in their order. */
  readonly params: readonly Parameter<Type>[];
  /** The purpose of the function in one sentence. */
  readonly about: string;
  /** The permitted values of an argument, by its index; in streams, those of a literal. */
  readonly choices?: Readonly<Record<number, readonly string[]>>;
  /**
   * The index of the argument that is a regular expression, of which a literal is compiled with the statement. The
   * first argument is the text that it is applied to.
   */
  readonly patternAt?: number;
}

/** A function of SQL. */
export interface SqlFunction extends FunctionFields<ParameterType> {
  /** The type of the result, for the documentation. */
  readonly returns: ParameterType;
  /** A column that is inserted as the first argument, before the written ones. */
  readonly column?: string;
  /**
   * The index of an argument that is a list of which every element may be read; its length counts towards the work
   * limit of an event.
   */
  readonly scans?: number;
  /** True if the characters of the first argument are found as grapheme clusters, which takes longer. @internal */
  readonly isSegmented?: true;
  /** True if `run` has the `FunctionWork` of the event as its first argument, before the others, since only it knows its work. @internal */
  readonly countsWork?: true;
  /**
   * The weight of a resulting list or object as a function of the arguments, whose strings count 8 times. It is at most
   * that of one of them (`part`) or that of all together (`sum`), plus 64. Absent: the result is walked to weigh it;
   * this includes functions of the app. @internal
   */
  readonly weighs?: Weighs | undefined;
  /** True if the function never fails for arguments of the right types. */
  readonly isTotal?: true;
  /** Called for each event with checked arguments. @throws SqlFailure */
  // biome-ignore lint/suspicious/noExplicitAny: the types of the arguments follow from `params`
  readonly run: (...args: any[]) => Value;
  /** Replaces `run` for a function that depends on the process. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly make?: (tools: FunctionTools) => (...args: any[]) => Value;
}

/** A row in a table of functions, without the family. */
export type SqlFunctionEntry = Omit<SqlFunction, 'family' | 'run'> & Partial<Pick<SqlFunction, 'run'>>;

/** The functions of one family. */
export function family(name: string, rows: readonly SqlFunctionEntry[]): readonly SqlFunction[] {
  return rows.map((row) => ({ run: notMade, ...row, family: name }));
}

function notMade(): Value {
  throw new TypeError('call make() before running a function that uses the process');
}
