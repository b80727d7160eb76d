// The checks of calls that both languages make when a statement is compiled. A language gives its types and texts.

import { errorText } from '../../base/errors.ts';
import { nearest } from '../../base/fields.ts';
import { SqlError } from '../sql-error.ts';
import type { Call, Expression } from '../tree.ts';
import type { FunctionFields, Parameter } from './function.ts';

/** The types of parameters of a language, and its messages about calls. */
export interface CallRules<Type extends string, V> {
  readonly types: Readonly<Record<Type, { readonly name: string; readonly accepts: (value: V) => boolean }>>;
  /** @param counts the permitted numbers of arguments: `2`, `at least 1`, `1 to 3` */
  count(name: string, counts: string, given: number): string;
  /** @param index of the argument, from 0 */
  type(row: FunctionFields<Type>, index: number, value: V): readonly [fault: string, hint?: string];
  choice(name: string, index: number, choices: readonly string[]): string;
}

/** The type of an argument; the last parameter may stand for several arguments. */
export function typeAt<Type extends string>(params: readonly Parameter<Type>[], index: number): Type {
  return params[Math.min(index, params.length - 1)].replace(/\?$|\.\.\.$/, '') as Type;
}

/** A function with its parameters and its purpose, for hints. */
export function signature({ name, params, about }: FunctionFields<string>): string {
  return `${name}(${params.join(', ')}): ${about}`;
}

/** @throws SqlError if a call has too few or too many arguments */
export function checkCount<Type extends string, V>(
  { args, start }: Call,
  row: FunctionFields<Type>,
  rules: CallRules<Type, V>,
  text: string
): void {
  const { name, params } = row;
  const least = params.filter((param) => !/[?.]$/.test(param)).length;
  const most = params.some((param) => param.endsWith('...')) ? Infinity : params.length;
  if (args.length >= least && args.length <= most) return;
  const counts = least === most ? `${least}` : most === Infinity ? `at least ${least}` : `${least} to ${most}`;
  throw new SqlError(rules.count(name, counts, args.length), text, start, signature(row));
}

/**
 * Check a constant argument: its type, whether it is among the choices, and its regular expression.
 * @param checkPattern compiles a regular expression
 * @throws SqlError
 */
export function checkConstant<Type extends string, V>(
  row: FunctionFields<Type>,
  index: number,
  { value, arg }: { readonly value: V; readonly arg: Expression },
  rules: CallRules<Type, V>,
  { text, checkPattern }: { readonly text: string; readonly checkPattern: (pattern: string) => void }
): void {
  const { start } = arg;
  if (!rules.types[typeAt(row.params, index)].accepts(value)) {
    const [fault, hint] = rules.type(row, index, value);
    throw new SqlError(fault, text, start, hint);
  }
  const choices = row.choices?.[index];
  if (choices !== undefined && !(choices as readonly unknown[]).includes(value))
    throw new SqlError(rules.choice(row.name, index, choices), text, start);
  if (row.patternAt === index && typeof value === 'string')
    try {
      checkPattern(value);
    } catch (error) {
      throw new SqlError(errorText(error), text, start);
    }
}

/** Functions by their names in other dialects. Those that a language has are suggested. */
const OTHER_NAMES: ReadonlyMap<string, readonly string[]> = new Map([
  ['nvl', ['coalesce']],
  ['ifnull', ['coalesce']],
  ['len', ['strlen', 'length']],
  ['substr', ['substring']],
  ['substring', ['substr']],
  ['pow', ['power']],
  ['mean', ['avg']],
  ['average', ['avg']],
  ['tumbling', ['tumblingwindow']],
  ['hopping', ['hoppingwindow']],
  ['sliding', ['slidingwindow']],
  ['session', ['sessionwindow']]
]);

/**
 * The error for a function that is not defined.
 * @param names of those that are
 * @param remedies hints for functions that a language does not have, by their names in lower case
 */
export function unknownFunction(
  { name, start }: Pick<Call, 'name' | 'start'>,
  names: readonly string[],
  { fault, text, remedies }: { readonly fault: string; readonly text: string; readonly remedies: Remedies }
): SqlError {
  const lower = name.toLowerCase();
  const meant = [lower, ...(OTHER_NAMES.get(lower) ?? [])].find((each) => names.includes(each));
  const similar = meant ?? nearest(name, names);
  const suggestion = similar === undefined ? undefined : `did you mean ${similar}()?`;
  return new SqlError(fault, text, start, remedies.get(lower) ?? suggestion);
}

/** Hints for functions of other dialects, by their names in lower case. */
export type Remedies = ReadonlyMap<string, string>;
