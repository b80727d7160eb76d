import type { EventClosure, Scope } from './row.ts';
import { SqlFailure } from './sql-error.ts';
import { describe, isList, isObject, own, setKey, type Value } from './values.ts';

/** A compiled step of a path. */
export type CompiledStep =
  | { readonly type: 'key'; readonly key: string }
  | { readonly type: 'index'; readonly index: EventClosure; readonly append: boolean }
  | { readonly type: 'slice'; readonly from: number; readonly to: number };

/**
 * Walk down from a decoded value. Strings along the path are decoded as JSON; missing values are absent. @throws
 * SqlFailure for a slice of a value that is not a list
 */
export function walk(start: Value, steps: readonly CompiledStep[], scope: Scope): Value {
  let value = start;
  for (let at = 0; at < steps.length; at++) {
    const step = steps[at];
    if (at > 0 && typeof value === 'string') value = scope.decode(value);
    if (value === undefined || value === null) return undefined;
    if (step.type === 'slice') value = scope.counted(slice(value, step.from, step.to));
    else if (step.type === 'key') value = isObject(value) ? own(value, step.key) : undefined;
    else value = elementAt(value, step.index(scope));
  }
  return value;
}

/** @param index from 1, or from the end if negative */
function elementAt(value: Value, index: Value): Value {
  if (!isList(value) || typeof index !== 'number' || !Number.isInteger(index)) return undefined;
  return index > 0 ? value[index - 1] : index < 0 ? value[value.length + index] : undefined;
}

function slice(value: Value, from: number, to: number): Value {
  if (!isList(value)) throw new SqlFailure(`a slice needs a list, but has ${describe(value)}`);
  const { length } = value;
  const start = from > 0 ? from - 1 : length + from;
  const end = to > 0 ? to : length + to + 1;
  return value.slice(Math.max(0, start), Math.max(0, end));
}

/** A copy of a value with another value set at a path. Values along the path that are in the way are replaced. */
export function place(target: Value, steps: readonly CompiledStep[], value: Value, scope: Scope, at = 0): Value {
  if (at === steps.length) return value;
  const step = steps[at];
  const whole = typeof target === 'string' ? scope.decode(target) : target;
  if (step.type === 'key') {
    if (isObject(whole)) scope.copied(Object.keys(whole).length);
    const object = isObject(whole) ? { ...whole } : {};
    setKey(object, step.key, place(own(object, step.key), steps, value, scope, at + 1));
    return object;
  }
  if (step.type !== 'index') return whole;
  const inner = (element: Value) => place(element, steps, value, scope, at + 1);
  if (!isList(whole)) return [inner(undefined)];
  scope.counted(whole);
  const index = step.index(scope);
  if (step.append) return [...whole, inner(undefined)];
  if (index === 0) return [inner(undefined), ...whole];
  if (typeof index !== 'number' || !Number.isInteger(index) || Math.abs(index) > whole.length) return whole;
  const position = index > 0 ? index - 1 : whole.length + index;
  return whole.with(position, inner(whole[position]));
}
