import { StreamFailure } from '../values/values.ts';
import { isList, isObject, type TemplateValue, typeOf } from './template-value.ts';

/**
 * What a parameter takes. `int` is an integer, or a float without a fraction, as a number; `whole` is what can be read as an integer, as
 * bigint, and `float` what can be read as a number: both are 0 for anything else, as in the original.
 */
type ParameterKind = 'any' | 'string' | 'bool' | 'int' | 'whole' | 'float' | 'list' | 'object';

/** A function of templates. */
interface TemplateFunction {
  readonly params: readonly ParameterKind[];
  /** The last parameter may occur any number of times. */
  readonly isVariadic: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: the types of the arguments follow from `params`
  readonly run: (...args: any[]) => TemplateValue;
}

/** Functions of templates by name. */
export type TemplateFunctions = Readonly<Record<string, TemplateFunction>>;

/** Finds a function, ready to be called. @throws TypeError if there is none */
export type BoundFunctions = (name: string) => (args: readonly TemplateValue[]) => TemplateValue;

/** Make a row of a table. @param params kinds with spaces in between; the last one may end in `...` */
export function fn(params: string, run: TemplateFunction['run']): TemplateFunction {
  const isVariadic = params.endsWith('...');
  const kinds = params.replace('...', '').split(' ');
  return { params: (params === '' ? [] : kinds) as readonly ParameterKind[], isVariadic, run };
}

/** Prepare a function: its arguments are counted, checked and converted at each call. */
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

/** A value as an integer: fractions are cut off, and 0 stands for what is no number. */
export function toInteger(value: TemplateValue): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'string' && /^\s*[+-]?\d+\s*$/.test(value))
    return BigInt.asIntN(64, BigInt(value.trim().replace('+', '')));
  const number = Math.trunc(toFloat(value));
  return Number.isFinite(number) ? BigInt(number) : 0n;
}

/** A value as a float; 0 stands for what is no number. */
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
