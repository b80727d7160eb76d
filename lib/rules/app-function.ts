import { InvalidInput } from '../base/errors.ts';
import { isThenable } from '../events/hooks.ts';
import type { SqlFunction } from '../sql/functions/function.ts';
import { SqlFailure } from '../sql/sql-error.ts';
import { Float, textOf, type Value } from '../sql/values.ts';

const NAME = /^[A-Za-z]\w{0,63}$/;
const TYPES = ['any', 'string', 'bytes', 'integer', 'number', 'boolean', 'list', 'object'];
const PARAM = new RegExp(`^(${TYPES.join('|')})(\\?|\\.\\.\\.)?$`);

/** Check a function of the app for statements. @throws InvalidInput FUNCTION_INVALID */
export function checkFunction(row: SqlFunction): void {
  const isGood =
    typeof row === 'object' &&
    row !== null &&
    NAME.test(row.name) &&
    Array.isArray(row.params) &&
    typeof (row.run ?? row.make) === 'function';
  if (!isGood)
    throw new InvalidInput('FUNCTION_INVALID', 'function', 'an object with name, params, returns, about and run', row);
  for (const [at, param] of row.params.entries())
    if (typeof param !== 'string' || !PARAM.test(param)) {
      const expected = `one of ${TYPES.join(', ')}, optionally followed by "?" or "..."`;
      throw new InvalidInput('FUNCTION_INVALID', `${row.name}.params[${at}]`, expected, param);
    }
  if (row.returns !== undefined && !TYPES.includes(row.returns))
    throw new InvalidInput('FUNCTION_INVALID', `${row.name}.returns`, `one of ${TYPES.join(', ')}`, row.returns);
}

/**
 * A function of the app whose results are checked: a result that is not a value of statements makes the evaluation
 * fail.
 */
export function checkedFunction(row: SqlFunction): SqlFunction {
  const { name, make } = row;
  return {
    ...row,
    weighs: undefined,
    run: (...args) => checkResult(name, row.run(...args)),
    ...(make !== undefined && {
      make: (tools) => {
        const run = make.call(row, tools);
        return (...args) => checkResult(name, run(...args));
      }
    })
  };
}

/**
 * A result as a value of statements: bytes that are UTF-8 are a string. Bytes within a list or an object are not converted, so that large results
 * are not read.
 * @throws SqlFailure
 */
function checkResult(name: string, result: unknown): Value {
  if (isValue(result)) return result instanceof Uint8Array ? textOf(result) : result;
  if (isThenable(result)) Promise.resolve(result).catch(() => undefined); // the evaluation fails in any case
  throw new SqlFailure(`${name}() returned ${kindOf(result)}; it must return a value that JSON can represent`);
}

/** Check whether a result is a SQL value, without checking its contents. */
function isValue(result: unknown): result is Value {
  if (typeof result !== 'object' || result === null) return typeof result !== 'function' && typeof result !== 'symbol';
  if (Array.isArray(result) || result instanceof Uint8Array || result instanceof Float) return true;
  const prototype: unknown = Object.getPrototypeOf(result);
  return prototype === null || Object.getPrototypeOf(prototype) === null; // a plain object, possibly of another realm
}

function kindOf(result: unknown): string {
  if (typeof result === 'function') return 'a function';
  if (typeof result !== 'object' || result === null) return 'a symbol';
  if (isThenable(result)) return 'a promise, which statements do not await';
  return `an object of the class ${result.constructor?.name}`;
}
