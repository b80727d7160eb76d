import { STREAM_DIALECT } from '../../sql/dialect.ts';
import { childrenOf } from '../../sql/inspect.ts';
import { Printer } from '../../sql/print.ts';
import type { Call, Expression } from '../../sql/tree.ts';
import { Float } from '../../sql/values.ts';

/** Maximum nesting of an expression, including the aliases that it uses. */
export const MAX_LEVELS = 1000;

/**
 * Cached properties of the expressions of a statement, each of which is walked once: callers ask for each call in turn,
 * from the outside in.
 */
export class Measures {
  readonly #levels = new WeakMap<Expression, number>();
  readonly #print = new Printer(STREAM_DIALECT, new WeakMap());

  /** The nesting depth of an expression. */
  levelsOf(node: Expression): number {
    const known = this.#levels.get(node);
    if (known !== undefined) return known;
    let deepest = 0;
    for (const child of childrenOf(node)) deepest = Math.max(deepest, this.levelsOf(child));
    this.#levels.set(node, deepest + 1);
    return deepest + 1;
  }

  /** The expression as SQL. */
  textOf(node: Expression): string {
    return this.#print.expression(node);
  }
}

/**
 * A text that is equal for expressions that have the same value in all rows.
 * @param names `aliasOf`: the number of the alias to which a name refers; `resultOf`: the result of a nested call that
 *   a separate operator computes
 */
export function canonical(
  node: Expression,
  { aliasOf, resultOf }: { aliasOf(name: string): number | undefined; resultOf(call: Call): object | undefined }
): string {
  return JSON.stringify(node, function (this: Record<string, unknown>, key, value) {
    const original = this[key];
    if (key === 'start' || key === 'end') return undefined;
    if (original instanceof Float) return { float: original.value };
    if (typeof original === 'bigint') return { bigint: String(original) };
    if (typeof value !== 'object' || value === null) return value;
    if (value.type === 'path') return { ...value, alias: aliasOf(value.name) };
    if (value.type !== 'call') return value;
    const result = original === node ? undefined : resultOf(original as Call);
    return result === undefined ? { ...value, name: value.name.toLowerCase() } : { result };
  });
}

/** Check whether a part of a tree calls a function. @param name in lower case */
export function hasCall(node: unknown, name: string): boolean {
  if (typeof node !== 'object' || node === null) return false;
  const { type, name: own } = node as Partial<Call>;
  if (type === 'call' && own?.toLowerCase() === name) return true;
  return Object.values(node).some((part) => hasCall(part, name));
}

/** The parts of a condition that must all be true. */
export function conjunctsOf(node: Expression | undefined): readonly Expression[] {
  if (node === undefined) return [];
  if (node.type !== 'binary' || node.operator !== 'AND') return [node];
  return [...conjunctsOf(node.left), ...conjunctsOf(node.right)];
}
