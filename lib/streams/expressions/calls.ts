// Everything that is wrong with a call and visible without a row is an `SqlError` when the rule is made: the number
// of arguments, constant arguments of the wrong type, regular expressions. Other arguments are checked by the
// function for each row. A call of a pure function with constants is evaluated once. Functions with a state are not
// called here: they have an operator, and the call reads its result from a slot. Calls with up to three arguments
// have closures without an array of arguments. Texts of errors are those of the documented product.

import { constantOf } from '../../sql/compile.ts';
import {
  type CallRules,
  checkConstant,
  checkCount,
  type Remedies,
  signature,
  typeAt,
  unknownFunction
} from '../../sql/functions/calls.ts';
import { SqlError } from '../../sql/sql-error.ts';
import type { Call } from '../../sql/tree.ts';
import type {
  ContextFunction,
  ScalarFunction,
  StreamFunction,
  StreamFunctionTools,
  StreamParameterType
} from '../function.ts';
import { textOf } from '../functions/arguments.ts';
import { weighed } from '../limits.ts';
import type { Evaluate } from '../values/tuple.ts';
import { isNull, isNumber, isStruct, type StreamValue } from '../values/values.ts';
import { WINDOW_NAMES } from '../window-text.ts';
import { isPlaceFunction, PLACE_FUNCTION_NAMES, placeFunction } from './place-functions.ts';
import type { Compile, CompiledExpression, NameScope } from './scope.ts';

const CONDITIONAL = 'use CASE WHEN condition THEN a ELSE b END';
const REMEDIES: Remedies = new Map([
  ['if', CONDITIONAL],
  ['iif', CONDITIONAL]
]);

/** Compile a call. @throws SqlError for an unknown function, or arguments that it does not accept */
export function compileCall(node: Call, scope: NameScope, compile: Compile): CompiledExpression {
  const name = node.name.toLowerCase();
  if (isPlaceFunction(name)) {
    refuseOver(node, scope.text);
    return { evaluate: placeFunction(name, node, scope) };
  }
  const row = scope.functions.get(name);
  if (row === undefined)
    throw unknownFunction(
      { name, start: node.start },
      [...scope.functions.keys(), ...PLACE_FUNCTION_NAMES, ...WINDOW_NAMES],
      {
        fault: `error getting function ${node.name}: not found`,
        text: scope.text,
        remedies: REMEDIES
      }
    );
  checkCall(node, row, scope.text);
  if (row.kind !== 'scalar' && row.kind !== 'context') return { evaluate: scope.special(node, row) };
  return compilePlain(node, row, scope, compile);
}

/** Check the number of arguments of a call, and that OVER is used only where it has a meaning. @throws SqlError */
export function checkCall(node: Call, row: StreamFunction, text: string): void {
  checkCount(node, row, RULES, text);
  const remembers = row.kind === 'analytic' || (row.kind === 'columns' && row.load !== undefined);
  if (!remembers) refuseOver(node, text);
}

/** Compile the arguments of a call, and check those that are constant. @throws SqlError */
export function compileArguments(
  node: Call,
  row: StreamFunction,
  scope: NameScope,
  compile: Compile
): CompiledExpression[] {
  const { text, pattern, constants } = scope;
  const checkPattern = (of: string) => pattern && constants.checkPattern(of, pattern);
  const args = node.args.map(compile);
  for (const [index, { constant }] of args.entries())
    if (constant !== undefined)
      checkConstant(row, index, { ...constant, arg: node.args[index] }, RULES, { text, checkPattern });
  const fault = row.check?.(args.map(({ constant }) => constant?.value));
  if (fault !== undefined) throw new SqlError(fault, text, node.start, signature(row));
  return args;
}

function compilePlain(
  node: Call,
  row: ScalarFunction | ContextFunction,
  scope: NameScope,
  compile: Compile
): CompiledExpression {
  const args = compileArguments(node, row, scope, compile);
  const evaluates = args.map(({ evaluate }) => evaluate);
  if (row.kind === 'context') {
    scope.chance();
    return { evaluate: weighed(contextCall(row, evaluates, scope.tools), `${row.name}()`, scope.tools) };
  }
  const evaluate = weighed(scalarCall(row, evaluates), `${row.name}()`, scope.tools);
  if (row.isPure !== true) {
    scope.chance();
    return { evaluate };
  }
  if (args.some(({ constant }) => constant === undefined)) return { evaluate };
  const [first] = args;
  if (row.nullIsNull === true && args.length > 0 && isNull(first.constant?.value)) return constantOf(null);
  return scope.constants.fold(node, args, evaluate);
}

function scalarCall({ run, nullIsNull }: ScalarFunction, args: readonly Evaluate[]): Evaluate {
  const [first, second, third] = args;
  if (nullIsNull === true && args.length > 0) return guardedCall(run, args);
  switch (args.length) {
    case 0:
      return () => run();
    case 1:
      return (tuple) => run(first(tuple));
    case 2:
      return (tuple) => run(first(tuple), second(tuple));
    case 3:
      return (tuple) => run(first(tuple), second(tuple), third(tuple));
  }
  return (tuple) => run(...args.map((arg) => arg(tuple)));
}

/** A call that returns null if its first argument is null. */
function guardedCall(run: ScalarFunction['run'], args: readonly Evaluate[]): Evaluate {
  const [first, second, third] = args;
  const others = args.slice(1);
  switch (args.length) {
    case 1:
      return (tuple) => {
        const value = first(tuple);
        return isNull(value) ? null : run(value);
      };
    case 2:
      return (tuple) => {
        const value = first(tuple);
        return isNull(value) ? null : run(value, second(tuple));
      };
    case 3:
      return (tuple) => {
        const value = first(tuple);
        return isNull(value) ? null : run(value, second(tuple), third(tuple));
      };
  }
  return (tuple) => {
    const value = first(tuple);
    return isNull(value) ? null : run(value, ...others.map((arg) => arg(tuple)));
  };
}

function contextCall(
  row: ContextFunction,
  args: readonly Evaluate[],
  tools: StreamFunctionTools | undefined
): Evaluate {
  if (tools === undefined) return () => null;
  const run = row.patternAt === undefined ? row.make(tools) : matching(row, row.patternAt, tools);
  const [first, second] = args;
  switch (args.length) {
    case 0:
      return (tuple) => run(tuple);
    case 1:
      return (tuple) => run(tuple, first(tuple));
    case 2:
      return (tuple) => run(tuple, first(tuple), second(tuple));
  }
  return (tuple) => run(tuple, ...args.map((arg) => arg(tuple)));
}

/** A call that counts the work of its regular expression before it is applied. */
function matching(
  { name, make }: ContextFunction,
  patternAt: number,
  tools: StreamFunctionTools
): ReturnType<ContextFunction['make']> {
  const run = make(tools);
  let known: StreamValue;
  let parts = 0;
  return (tuple, ...args) => {
    const [text] = args;
    const pattern = args[patternAt];
    if (isNull(text) || isNull(pattern)) return run(tuple, ...args);
    if (pattern !== known) {
      parts = tools.pattern(textOf(pattern)).parts;
      known = pattern;
    }
    const given = textOf(text);
    tools.rowWork?.addMatched(tuple, parts * given.length, name);
    return run(tuple, given, ...args.slice(1));
  };
}

function refuseOver({ name, over, start }: Call, text: string): void {
  if (over === undefined) return;
  const hint = 'use OVER with functions that remember earlier rows, such as lag()';
  throw new SqlError(`${name.toLowerCase()}() cannot have OVER`, text, start, hint);
}

const ORDINALS = ['1st', '2nd', '3rd'];

function orNull(name: string, accepts: (value: StreamValue) => boolean) {
  return { name, accepts: (value: StreamValue) => isNull(value) || accepts(value) };
}

/** Constants are checked when the rule is created, all other arguments by the function for each row. */
const RULES: CallRules<StreamParameterType, StreamValue> = {
  types: {
    any: orNull('any', () => true),
    bigint: orNull('int', (value) => typeof value === 'bigint'),
    float: orNull('float', isNumber),
    number: orNull('number - float or int', isNumber),
    string: orNull('string', (value) => typeof value === 'string'),
    boolean: orNull('bool', (value) => typeof value === 'boolean'),
    datetime: orNull('datetime', (value) => value instanceof Date || isNumber(value) || typeof value === 'string'),
    array: orNull('array', Array.isArray),
    struct: orNull('struct', isStruct)
  },
  count: (_, counts, given) => `Expect ${counts} arguments but found ${given}.`,
  type: (row, index) => [
    `Expect ${RULES.types[typeAt(row.params, index)].name} type for ${index + 1} parameter of function ${row.name}.`,
    signature(row)
  ],
  choice: (_, index, choices) =>
    `Expect one of following value for the ${ORDINALS[index] ?? `${index + 1}th`} parameter: ${choices.join(', ')}.`
};
