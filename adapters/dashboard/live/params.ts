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

export function wrong(name: string, expected: string): Fault {
  return new Fault('wrongParameter', `the parameter "${name}" of the watch must be ${expected}`, name);
}
