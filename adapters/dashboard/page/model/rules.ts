// Statements of rules: their topics, and the forms of their actions.

/** The topics after FROM. The statement may be incomplete, because it is read while a person types. */
export function topicsIn(statement: string): readonly string[] {
  const from = /\bfrom\b([\s\S]*?)(?:\bwhere\b|$)/i.exec(statement)?.[1] ?? '';
  return [...from.matchAll(/"([^"]*)"|'([^']*)'/g)]
    .map(([, double, single]) => double ?? single)
    .filter((topic) => topic !== '');
}

/** A parameter of an action, as the interface describes it. */
export interface ParamSpec {
  /** `any`: JSON, or a string that is not JSON. `password`: a string that is not shown. */
  readonly type?: string;
  readonly title?: { readonly en?: string };
  readonly description?: { readonly en?: string };
  readonly default?: unknown;
  readonly required?: boolean;
  readonly enum?: readonly unknown[];
  readonly input?: string;
  readonly order?: number;
}

/** The names of the parameters that are secrets. */
export function secretsIn(specs: readonly (readonly [name: string, spec: ParamSpec])[]): ReadonlySet<string> {
  return new Set(specs.filter(([, { type }]) => type === 'password').map(([name]) => name));
}

/** The value of a parameter from the text of its field. @returns undefined if it is left out @throws Error if it is not valid */
export function paramOf({ type, enum: values, required }: ParamSpec, text: string): unknown {
  if (values !== undefined) return values.find((value) => `${value}` === text);
  if (type === 'boolean') return text === '' ? undefined : text === 'true';
  if (text === '' && required !== true) return undefined;
  if (type === 'number') return Number(text);
  if (type === 'object' || type === 'array') return text === '' ? undefined : JSON.parse(text);
  return type === 'any' ? anyOf(text) : text;
}

/** A value of any type: JSON, or a string that is not JSON, such as `10s`. */
function anyOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The text of a field for the value of a parameter. */
export function textOfParam(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value, null, 1) : `${value}`;
}
