import type { SqlFunction } from './functions/function.ts';
import { Members } from './json-members.ts';
import type { Access, Call, Expression, Field, Over, Path, Statement, Step } from './tree.ts';

/** The direct subexpressions of an expression, including those of its steps. */
export function childrenOf(node: Expression): readonly Expression[] {
  switch (node.type) {
    case 'path':
      return indexesOf(node.steps);
    case 'access':
      return [node.subject, ...indexesOf(node.steps)];
    case 'call':
      return node.over === undefined ? node.args : [...node.args, ...overOf(node.over)];
    case 'unary':
      return [node.operand];
    case 'binary':
      return [node.left, node.right];
    case 'in':
      return [node.subject, ...node.items];
    case 'between':
      return [node.subject, node.low, node.high];
    case 'like':
      return [node.subject, node.pattern];
    case 'case': {
      const { subject, branches, otherwise } = node;
      const parts = branches.flatMap(({ when, result }) => [when, result]);
      return [...(subject ? [subject] : []), ...parts, ...(otherwise ? [otherwise] : [])];
    }
    case 'list':
      return node.items;
    default:
      return [];
  }
}

function indexesOf(steps: readonly Step[]): Expression[] {
  return steps.flatMap((step) => {
    if (step.type === 'index') return [step.index];
    return step.type === 'part' ? [step.from, step.to].filter((bound) => bound !== undefined) : [];
  });
}

function overOf({ partitionBy, when }: Over): readonly Expression[] {
  return when === undefined ? partitionBy : [...partitionBy, when];
}

/** Call a function for an expression and all its subexpressions. */
function visit(node: Expression, seen: (node: Expression) => void): void {
  seen(node);
  for (const child of childrenOf(node)) visit(child, seen);
}

function expressionsOf(fields: readonly Field[]): Expression[] {
  return fields.flatMap((field) =>
    field.type === 'star' ? [] : [field.expression, ...indexesOf(field.alias?.steps ?? [])]
  );
}

/** All expressions of a statement. */
function expressionsIn(statement: Statement): Expression[] {
  const { fields, where } = statement;
  const others = statement.type === 'foreach' ? [...expressionsOf(statement.does ?? [])] : [];
  const incase = statement.type === 'foreach' && statement.incase ? [statement.incase] : [];
  return [...expressionsOf(fields), ...others, ...incase, ...(where ? [where] : [])];
}

/** The names of the columns and aliases that an expression or a statement uses. */
export function namesIn(part: Statement | Expression): ReadonlySet<string> {
  return new Set(pathsIn(part).map(({ name }) => name));
}

/** The paths of an expression or a statement, in the order in which they are written in each clause. */
export function pathsIn(part: Statement | Expression): readonly Path[] {
  const paths: Path[] = [];
  const expressions = part.type === 'select' || part.type === 'foreach' ? expressionsIn(part) : [part];
  for (const expression of expressions)
    visit(expression, (node) => {
      if (node.type === 'path') paths.push(node);
    });
  return paths;
}

/** Maximum number of values in an example of what a condition has read. */
export const MAX_READS = 20;

/**
 * The parts of an expression that read values from its input: paths, and calls of functions that read a column.
 * @param isRead tells whether a function is of this kind
 */
export function readsIn(node: Expression, isRead: (name: string) => boolean): readonly (Path | Access | Call)[] {
  const isWhole = node.type === 'path' || node.type === 'access' || (node.type === 'call' && isRead(node.name));
  return isWhole ? [node] : childrenOf(node).flatMap((child) => readsIn(child, isRead));
}

/**
 * For each column of which a statement reads only single JSON members, such as payload.temp: these members. The column
 * whose list FOREACH iterates over is excluded, because lists are always decoded as a whole.
 */
export function membersIn(statement: Statement): ReadonlyMap<string, Members> {
  const found = new Map<string, Set<string> | undefined>();
  const see = (node: Expression) => {
    if (node.type !== 'path' || node.steps.length === 0) return;
    const { name, steps } = node;
    const [first] = steps;
    const names = found.has(name) ? found.get(name) : new Set<string>();
    found.set(name, steps.length === 1 && first.type === 'key' ? names?.add(first.key) : undefined);
  };
  for (const expression of expressionsIn(statement)) visit(expression, see);
  if (statement.type === 'foreach')
    for (const field of statement.fields.slice(-1))
      if (field.type === 'selected' && field.expression.type === 'path') found.delete(field.expression.name);
  const members = new Map<string, Members>();
  for (const [column, names] of found) {
    const read = names && Members.of(names);
    if (read !== undefined) members.set(column, read);
  }
  return members;
}

/** The functions called in a statement. */
export function functionsIn(statement: Statement): ReadonlySet<string> {
  const names = new Set<string>();
  for (const expression of expressionsIn(statement))
    visit(expression, (node) => {
      if (node.type === 'call') names.add(node.name);
    });
  return names;
}

/** Check whether the evaluation of an expression can fail. */
export function canFail(node: Expression, functions: ReadonlyMap<string, SqlFunction>): boolean {
  switch (node.type) {
    case 'path':
      if (node.steps.some((step) => step.type === 'slice')) return true;
      break;
    case 'call': {
      const row = functions.get(node.name);
      if (row?.isTotal !== true || row.params.some((param) => !param.startsWith('any'))) return true;
      break;
    }
    case 'unary':
      if (node.operator !== 'NOT') return true;
      break;
    case 'binary':
      if (node.operator !== 'AND' && node.operator !== 'OR') return true;
      break;
  }
  return childrenOf(node).some((child) => canFail(child, functions));
}
