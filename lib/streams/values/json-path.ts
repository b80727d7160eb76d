// A path comes from the author of a rule and its value from clients: a filter is never run as a script, the number of
// values that a query looks at is limited, and descending does not recurse. A path of keys and indices selects one
// value; any other selects an array, even of one element.

import { type Condition, parseCondition, type Selector, type Work } from './json-path-filter.ts';
import { PathScanner } from './json-path-scanner.ts';
import { describe, isArray, isStruct, StreamFailure, type StreamValue } from './values.ts';

/** Maximum length of a path, in characters. */
const MAX_CHARACTERS = 10_000;
/** Maximum number of values that one query visits. */
const MAX_VISITED = 1_000_000;

/** A compiled path. */
export interface JsonPath {
  /**
   * Query the path: one value, or an array if the path may select several.
   * @throws StreamFailure if a path to one value selects none, or if it visits too many values
   */
  query(value: StreamValue): StreamValue;
  /** As `query`, but undefined if the path selects nothing. @throws StreamFailure if it visits too many values */
  find(value: StreamValue): StreamValue;
}

/** A step of a path. */
type Step =
  | { readonly type: 'key'; readonly key: string }
  | { readonly type: 'index'; readonly index: number }
  | {
      readonly type: 'slice';
      readonly from?: number | undefined;
      readonly to?: number | undefined;
      readonly by: number;
    }
  | { readonly type: 'all' }
  | { readonly type: 'descend' }
  | { readonly type: 'any'; readonly of: readonly Step[] }
  | { readonly type: 'filter'; readonly condition: Condition };

/**
 * Compile a JSON path in Goessner's syntax: `$.a.b`, `$.a[0]`, `$["my.key"]`, `$.a[*].b`, `$.a[1:3]`, `$..b`,
 * `$.a[0,2]`, `$.friends[? @.age > 60 && @.name != "Jane"].first`. A filter has comparisons, arithmetic, `&&`, `||`,
 * `!` and parentheses; it is never executed as a script.
 * @throws StreamFailure if the path is invalid
 */
export function compileJsonPath(text: string): JsonPath {
  if (text.length > MAX_CHARACTERS) throw new StreamFailure(`the JSON path has more than ${MAX_CHARACTERS} characters`);
  const scanner = new PathScanner(text);
  scanner.skipSpace();
  if (!scanner.takes('$')) throw scanner.failure('expected $');
  const steps = parseSteps(scanner);
  scanner.skipSpace();
  if (!scanner.isAtEnd) throw scanner.failure('expected . or [; write ["..."] for keys with other characters');
  const select = selection(steps);
  const find = (value: StreamValue) => select(value, value, new Visits());
  return {
    find,
    query(value) {
      const found = find(value);
      if (found === undefined) throw new StreamFailure(`the JSON path ${text} selects nothing in ${describe(value)}`);
      return found;
    }
  };
}

/** Counts the values that a query visits. */
class Visits implements Work {
  #count = 0;

  take(count: number): void {
    this.#count += count;
    if (this.#count > MAX_VISITED) throw new StreamFailure(`the JSON path visits more than ${MAX_VISITED} values`);
  }
}

function parseSteps(scanner: PathScanner): readonly Step[] {
  const steps: Step[] = [];
  for (;;) {
    if (scanner.takes('..')) {
      steps.push({ type: 'descend' });
      steps.push(scanner.takes('[') ? parseBracket(scanner) : parseMember(scanner));
    } else if (scanner.takes('.')) steps.push(parseMember(scanner));
    else if (scanner.takes('[')) steps.push(parseBracket(scanner));
    else return steps;
  }
}

function parseMember(scanner: PathScanner): Step {
  if (scanner.takes('*')) return { type: 'all' };
  const key = scanner.name();
  if (key === undefined) throw scanner.failure('expected a key or *');
  return { type: 'key', key };
}

function parseBracket(scanner: PathScanner): Step {
  const steps: Step[] = [];
  do steps.push(scanner.nested(() => parseSelector(scanner)));
  while (scanner.takes(','));
  scanner.expect(']');
  return steps.length === 1 ? steps[0] : { type: 'any', of: steps };
}

function parseSelector(scanner: PathScanner): Step {
  scanner.skipSpace();
  const step = selectorAt(scanner);
  scanner.skipSpace();
  return step;
}

function selectorAt(scanner: PathScanner): Step {
  if (scanner.takes('*')) return { type: 'all' };
  if (scanner.takes('?')) return { type: 'filter', condition: parseCondition(scanner, parsePath) };
  const key = scanner.string() ?? scanner.name();
  if (key !== undefined) return { type: 'key', key };
  const from = scanner.integer();
  scanner.skipSpace();
  if (!scanner.takes(':')) {
    if (from === undefined) throw scanner.failure('expected an index, a key in quotes, * or ?');
    return { type: 'index', index: from };
  }
  scanner.skipSpace();
  const to = scanner.integer();
  scanner.skipSpace();
  const by = scanner.takes(':') ? (scanner.integer() ?? 1) : 1;
  if (by < 1) throw scanner.failure('the step of a slice must be 1 or more');
  return { type: 'slice', from, to, by };
}

/** Parse a path in a filter, after `$` or `@`. */
function parsePath(scanner: PathScanner): Selector {
  return selection(parseSteps(scanner));
}

/** Compile steps to a selection: one value or undefined, or an array if the steps may select several. */
function selection(steps: readonly Step[]): Selector {
  const singles = steps.filter((step) => step.type === 'key' || step.type === 'index');
  if (singles.length === steps.length)
    return (current) => {
      let value = current;
      for (const step of singles)
        value = step.type === 'key' ? memberOf(value, step.key) : elementOf(value, step.index);
      return value;
    };
  return (current, root, work) => {
    let values: StreamValue[] = [current];
    for (const step of steps) {
      const next: StreamValue[] = [];
      for (const value of values) selectInto(next, value, step, root, work);
      values = next;
    }
    return values;
  };
}

function memberOf(value: StreamValue, key: string): StreamValue {
  return isStruct(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function elementOf(value: StreamValue, index: number): StreamValue {
  return isArray(value) ? value.at(index) : undefined;
}

function selectInto(result: StreamValue[], value: StreamValue, step: Step, root: StreamValue, work: Work): void {
  work.take(1);
  switch (step.type) {
    case 'key':
    case 'index': {
      const found = step.type === 'key' ? memberOf(value, step.key) : elementOf(value, step.index);
      if (found !== undefined) result.push(found);
      return;
    }
    case 'slice':
      for (const each of sliceOf(value, step.from, step.to, step.by, work)) result.push(each);
      return;
    case 'all':
      for (const each of childrenOf(value, work)) result.push(each);
      return;
    case 'descend':
      descendInto(result, value, work);
      return;
    case 'any':
      for (const each of step.of) selectInto(result, value, each, root, work);
      return;
    case 'filter':
      for (const each of childrenOf(value, work)) if (step.condition(each, root, work)) result.push(each);
  }
}

function childrenOf(value: StreamValue, work: Work): readonly StreamValue[] {
  const children = isArray(value) ? value : isStruct(value) ? Object.values(value) : [];
  work.take(children.length);
  return children;
}

function sliceOf(
  value: StreamValue,
  from: number | undefined,
  to: number | undefined,
  by: number,
  work: Work
): readonly StreamValue[] {
  if (!isArray(value)) return [];
  const part = value.slice(from, to);
  work.take(part.length);
  return by === 1 ? part : part.filter((_, index) => index % by === 0);
}

/** The value and its descendants, in pre-order. */
function descendInto(result: StreamValue[], value: StreamValue, work: Work): void {
  const waiting: StreamValue[] = [value];
  while (waiting.length > 0) {
    const each = waiting.pop();
    result.push(each);
    const children = childrenOf(each, work);
    for (let at = children.length - 1; at >= 0; at--) waiting.push(children[at]);
  }
}
