import { Fault } from '../../rest/index.ts';

type Params = Readonly<Record<string, unknown>>;

/** A parameter that is a string. @throws Fault wrongParameter */
export function textIn(params: Params, name: string): string {
  const { [name]: value } = params;
  if (typeof value !== 'string' || value === '') throw wrong(name, 'a string that is not empty');
  return value;
}

/** A parameter that is a list of strings. @throws Fault wrongParameter */
export function textsIn(params: Params, name: string, max: number): readonly string[] {
  const { [name]: value } = params;
  const isList = Array.isArray(value) && value.length <= max && value.every((one) => typeof one === 'string');
  if (!isList) throw wrong(name, `a list of at most ${max} strings`);
  return [...new Set(value as string[])];
}

/** A parameter that may be absent or empty: undefined then. @throws Fault wrongParameter */
export function optionalText(params: Params, name: string): string | undefined {
  const { [name]: value } = params;
  return value === undefined || value === null || value === '' ? undefined : textIn(params, name);
}

/** As `textsIn`; undefined if it is absent or empty. @throws Fault wrongParameter */
export function optionalTexts(params: Params, name: string, max: number): readonly string[] | undefined {
  const list = params[name] === undefined ? [] : textsIn(params, name, max);
  return list.length === 0 ? undefined : list;
}

/** A parameter that is an integer. @throws Fault wrongParameter */
export function integerIn(params: Params, name: string): number {
  const { [name]: value } = params;
  if (!Number.isSafeInteger(value)) throw wrong(name, 'an integer');
  return value as number;
}

export function wrong(name: string, expected: string): Fault {
  return new Fault('wrongParameter', `the parameter "${name}" of the watch must be ${expected}`, name);
}
