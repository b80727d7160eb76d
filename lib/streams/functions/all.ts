import type { ContextFunction, ScalarFunction, StreamFunction, StreamFunctionTools } from '../function.ts';
import type { Tuple } from '../values/tuple.ts';
import { isNull, StreamFailure, type StreamValue } from '../values/values.ts';
import { aggregateFunctions } from './aggregates.ts';
import { ANALYTIC_FUNCTIONS } from './analytic.ts';
import { arrayOf } from './arguments.ts';
import { ARRAY_FUNCTIONS } from './arrays.ts';
import { CONTEXT_FUNCTIONS } from './context.ts';
import { CONVERSION_FUNCTIONS, HASH_FUNCTIONS } from './conversion.ts';
import { DATE_FUNCTIONS } from './dates.ts';
import { EXPANDING_FUNCTIONS } from './expanding.ts';
import { JSON_FUNCTIONS } from './json.ts';
import { MATH_FUNCTIONS } from './math.ts';
import { OBJECT_FUNCTIONS } from './objects.ts';
import { TEXT_FUNCTIONS } from './text.ts';

/**
 * All functions of stream statements except those that read the position of a row instead of values, such as `meta` and
 * `window_start`.
 */
export function streamFunctions(): readonly StreamFunction[] {
  const single = [
    ...MATH_FUNCTIONS,
    ...TEXT_FUNCTIONS,
    ...CONVERSION_FUNCTIONS,
    ...HASH_FUNCTIONS,
    ...JSON_FUNCTIONS,
    ...CONTEXT_FUNCTIONS,
    ...DATE_FUNCTIONS,
    ...ARRAY_FUNCTIONS,
    ...OBJECT_FUNCTIONS
  ];
  return [...single, arrayMap(single), ...aggregateFunctions(), ...ANALYTIC_FUNCTIONS, ...EXPANDING_FUNCTIONS];
}

type SingleFunction = ScalarFunction | ContextFunction;
type OneArgument = (tuple: Tuple, value: StreamValue) => StreamValue;

/** The function that applies another function to each element of an array. */
function arrayMap(functions: readonly SingleFunction[]): ContextFunction {
  const known = new Map(functions.map((row) => [row.name, row]));
  return {
    kind: 'context',
    name: 'array_map',
    family: 'arrays',
    params: ['string', 'array'],
    about: 'The results of a function of one argument for each element: array_map("upper", names).',
    make: (tools) => {
      const made = new Map<string, OneArgument>();
      return (tuple, name, value) => {
        if (isNull(name) || isNull(value)) return null;
        if (typeof name !== 'string') throw new StreamFailure('first argument should be string');
        const array = arrayOf(value, 'second argument should be array of interface{}');
        const key = name.toLowerCase();
        let apply = made.get(key);
        if (apply === undefined) {
          apply = ofOneArgument(known.get(key), name, tools);
          made.set(key, apply);
        }
        const results: StreamValue[] = [];
        for (const each of array) results.push(apply(tuple, each));
        return results;
      };
    }
  };
}

/** @throws StreamFailure if no function of this name takes one argument */
function ofOneArgument(row: SingleFunction | undefined, name: string, tools: StreamFunctionTools): OneArgument {
  if (row === undefined)
    throw new StreamFailure(
      `unknown built-in function: ${name.slice(0, 50)}; name a function of one value, such as "upper"`
    );
  const needed = row.params.filter((param) => !param.endsWith('?') && !param.endsWith('...')).length;
  if (needed > 1 || row.params.length === 0)
    throw new StreamFailure(`validate function arguments failed: ${row.name} is not a function of one argument`);
  if (row.kind === 'context') return row.make(tools);
  const { run, nullIsNull } = row;
  return (_, value) => (nullIsNull && isNull(value) ? null : run(value));
}
