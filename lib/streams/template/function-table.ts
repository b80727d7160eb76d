import { StreamFailure } from '../values/values.ts';
import { isList, isObject, type TemplateValue, typeOf } from './template-value.ts';

/**
 * Kinds of parameters. `int` is an integer, or a float without a fraction, as a number; `whole` is any value that can
 * be read as an integer, as bigint, and `float` any value that can be read as a number: both are 0 for other values, as
 * in the original.
 */
type ParameterKind = 'any' | 'string' | 'bool' | 'int' | 'whole' | 'float' | 'list' | 'object';

/** A function of templates. */
interface TemplateFunction {
  readonly params: readonly ParameterKind[];
  /** True if the last parameter may occur any number of times. */
  readonly isVariadic: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: the types of the arguments follow from `params`
  readonly run: (...args: any[]) => TemplateValue;
}

/** Functions of templates by name. */
export type TemplateFunctions = Readonly<Record<string, TemplateFunction>>;

/** Finds a function, prepared for calls. @throws TypeError if it does not exist */
export type BoundFunctions = (name: string) => (args: readonly TemplateValue[]) => TemplateValue;

/** Make a row of a table. @param params kinds separated by spaces; the last one may end in `...` */
export function fn(params: string, run: TemplateFunction['run']): TemplateFunction {
  const isVariadic = params.endsWith('...');
  const kinds = params.replace('...', '').split(' ');
  return { params: (params === '' ? [] : kinds) as readonly ParameterKind[], isVariadic, run };
}

/** Prepare a function for calls, at which its arguments are counted, checked and converted. */
export function bind({ params, isVariadic, run }: TemplateFunction): (args: readonly TemplateValue[]) => TemplateValue {
  const least = isVariadic ? params.length - 1 : params.length;
  const last = params[params.length - 1];
  return (args) => {
    if (args.length < least || (args.length > least && !isVariadic)) {
      const want = isVariadic ? `at least ${least}` : String(least);
      throw new StreamFailure(`wrong number of args: want ${want} got ${args.length}`);
    }
    const converted = args.map((arg, at) => convert(at < params.length ? params[at] : last, arg));
    return run(...converted);
  };
}

function convert(kind: ParameterKind, value: TemplateValue): unknown {
  switch (kind) {
    case 'any':
      return value;
    case 'string':
      if (typeof value === 'string') return value;
      break;
    case 'bool':
      if (typeof value === 'boolean') return value;
      break;
    case 'int':
      if (typeof value === 'bigint') return Number(value);
      if (Number.isInteger(value)) return value;
      break;
    case 'whole':
      return toInteger(value);
    case 'float':
      return toFloat(value);
    case 'list':
      if (isList(value)) return value;
      throw new StreamFailure(`expected a list; got ${typeOf(value)}`);
    case 'object':
      if (isObject(value)) return value;
      throw new StreamFailure(`expected an object; got ${typeOf(value)}`);
  }
  if (value === undefined) throw new StreamFailure(`invalid value; expected ${kind}`);
  throw new StreamFailure(`wrong type for value; expected ${kind}; got ${typeOf(value)}`);
}

/** Convert a value to an integer: fractions are truncated, and values that are not numbers become 0. */
export function toInteger(value: TemplateValue): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'string' && /^\s*[+-]?\d+\s*$/.test(value))
    return BigInt.asIntN(64, BigInt(value.trim().replace('+', '')));
  const number = Math.trunc(toFloat(value));
  return Number.isFinite(number) ? BigInt(number) : 0n;
}

/** Convert a value to a float; values that are not numbers become 0. */
export function toFloat(value: TemplateValue): number {
  switch (typeof value) {
    case 'number':
      return value;
    case 'bigint':
    case 'boolean':
      return Number(value);
    case 'string':
      return value.trim() === '' || !/^[\s\d.eE+-]+$/.test(value) ? 0 : Number(value) || 0;
    default:
      return 0;
  }
}
