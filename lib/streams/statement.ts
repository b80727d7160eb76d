// Only the form of a statement is checked here; what depends on streams and functions is checked when names are
// bound. The clauses are parsed in their order, and expressions by the parser of `lib/sql`, which asks the dialect of
// streams what it allows. A window is parsed as a call in GROUP BY. Errors say what could be written instead.

import { STREAM_DIALECT } from '../sql/dialect.ts';
import { childrenOf } from '../sql/inspect.ts';
import { Parser } from '../sql/parser.ts';
import type {
  Expression,
  Field,
  FromStream,
  Join,
  JoinKind,
  OrderKey,
  Path,
  Selected,
  Star,
  StreamSelect,
  Window
} from '../sql/tree.ts';
import { readStreamName } from './stream-name.ts';
import { isWindowName, readWindow } from './window-text.ts';

const CLAUSES = 'AS, a join, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT or the end of the statement';

/**
 * Parse a statement over streams: `SELECT ... FROM ... JOIN ... WHERE ... GROUP BY ... HAVING ... ORDER BY ... LIMIT
 * ...` [stream rules 4.2]. Checks that depend on existing streams and functions happen when names are bound.
 * @throws SqlError
 */
export function parseStreamStatement(text: string): StreamSelect {
  const parser = new Parser(text, STREAM_DIALECT);
  if (!parser.takeKeyword('SELECT')) throw parser.unexpected('SELECT');
  const fields = readFields(parser);
  if (!parser.takeKeyword('FROM')) throw parser.unexpected('FROM', hintBehind(fields[fields.length - 1], parser));
  const from = readSource(parser);
  const joins = readJoins(parser);
  const where = parser.takeKeyword('WHERE') ? parser.expression() : undefined;
  const { window, groupBy } = readGroups(parser);
  const having = parser.takeKeyword('HAVING') ? parser.expression() : undefined;
  const orderBy = readOrder(parser);
  const limit = parser.takeKeyword('LIMIT') ? readLimit(parser) : undefined;
  parser.takeSymbol(';');
  if (parser.token.type !== 'end') throw unexpectedEnd(parser, from, joins);
  const select: StreamSelect = {
    type: 'stream-select',
    fields,
    from,
    joins,
    ...(where === undefined ? {} : { where }),
    ...(window === undefined ? {} : { window }),
    groupBy,
    ...(having === undefined ? {} : { having }),
    orderBy,
    ...(limit === undefined ? {} : { limit })
  };
  for (const expression of expressionsIn(select)) checkExpression(expression, parser);
  return select;
}

/** The top-level expressions of a statement. */
function expressionsIn(select: StreamSelect): readonly Expression[] {
  const { fields, joins, where, window, groupBy, having, orderBy } = select;
  const selected = fields.flatMap((field) => (field.type === 'star' ? (field.replace ?? []) : [field]));
  const optional = [where, having, window?.filter, window?.when, ...joins.map(({ on }) => on)];
  return [
    ...selected.map(({ expression }) => expression),
    ...optional.filter((expression) => expression !== undefined),
    ...(window?.conditions ?? []),
    ...(window?.partitionBy ?? []),
    ...groupBy,
    ...orderBy.map(({ expression }) => expression)
  ];
}

/** @throws SqlError for a window outside GROUP BY, and for a CASE condition that can never be boolean */
function checkExpression(node: Expression, parser: Parser): void {
  if (node.type === 'call' && isWindowName(node.name))
    throw parser.errorAt(node.start, `${node.name}() is a window, which is allowed only in GROUP BY`);
  if (node.type === 'case' && node.subject === undefined)
    for (const { when } of node.branches)
      if (isNoCondition(when))
        throw parser.errorAt(when.start, 'invalid CASE expression, WHEN expression must be a bool condition');
  for (const child of childrenOf(node)) checkExpression(child, parser);
}

/** Check whether an expression cannot have a boolean value, as far as its operators show. */
function isNoCondition(node: Expression): boolean {
  if (node.type === 'literal') return typeof node.value !== 'boolean';
  return node.type === 'unary' || (node.type === 'binary' && '+-*/%'.includes(node.operator));
}

function readFields(parser: Parser): readonly Field[] {
  const fields = [readField(parser)];
  while (parser.takeSymbol(',')) fields.push(readField(parser));
  return fields;
}

/** A hint for an expression that follows a field without a comma. */
function hintBehind(field: Field, parser: Parser): string | undefined {
  if (field.type === 'star' || parser.isForeignWord) return undefined;
  const { expression } = field;
  if (expression.type === 'path' && expression.name.toUpperCase() === 'DISTINCT')
    return STREAM_DIALECT.wordHints.DISTINCT;
  return parser.isName ? 'an alias needs AS: a + 1 AS b' : undefined;
}

function readField(parser: Parser): Field {
  const wildcard = parser.takeWildcard();
  if (wildcard !== undefined) return readStar(parser, wildcard.start, wildcard.stream);
  return readSelected(parser);
}

function readStar(parser: Parser, start: number, stream: string | undefined): Star {
  let except: readonly string[] | undefined;
  let replace: readonly Selected[] | undefined;
  for (;;)
    if (except === undefined && parser.takeKeyword('EXCEPT')) except = inParentheses(parser, () => readName(parser));
    else if (replace === undefined && parser.takeKeyword('REPLACE'))
      replace = inParentheses(parser, () => readReplacement(parser));
    else break;
  if (parser.keyword === 'AS') throw parser.errorAt(parser.token.start, 'alias is not supported for *');
  return {
    type: 'star',
    ...(stream === undefined ? {} : { stream }),
    ...(except === undefined ? {} : { except }),
    ...(replace === undefined ? {} : { replace }),
    start,
    end: parser.previousEnd
  };
}

function inParentheses<T>(parser: Parser, read: () => T): readonly T[] {
  parser.expectSymbol('(');
  const items = [read()];
  while (parser.takeSymbol(',')) items.push(read());
  if (!parser.takeSymbol(')')) throw parser.unexpected('"," or ")"');
  return items;
}

function readReplacement(parser: Parser): Selected {
  const selected = readSelected(parser);
  if (selected.alias === undefined) throw parser.unexpected('AS', 'REPLACE needs the name of a column: a + 1 AS a');
  return selected;
}

function readSelected(parser: Parser): Selected {
  const { start } = parser.token;
  const expression = parser.expression();
  const alias = parser.takeKeyword('AS') ? readAlias(parser) : undefined;
  const isInvisible = parser.takeKeyword('INVISIBLE');
  return {
    type: 'selected',
    expression,
    ...(alias === undefined ? {} : { alias }),
    ...(isInvisible ? { isInvisible } : {}),
    start,
    end: parser.previousEnd
  };
}

function readAlias(parser: Parser): Path {
  const { start, end } = parser.token;
  return { type: 'path', name: readName(parser), steps: [], start, end };
}

/** Parse a name without steps. */
function readName(parser: Parser): string {
  if (!parser.isName)
    throw parser.unexpected('a name', 'put a name that is a keyword or has other characters in backquotes');
  return parser.advance().text;
}

/** Parse a stream or a table and its alias. */
function readSource(parser: Parser): FromStream {
  const { start } = parser.token;
  const name = readStreamName(parser);
  const alias = parser.takeKeyword('AS') ? readName(parser) : undefined;
  return { name, ...(alias === undefined ? {} : { alias }), start, end: parser.previousEnd };
}

const JOIN_KINDS: ReadonlyMap<string | undefined, JoinKind> = new Map([
  ['INNER', 'inner'],
  ['LEFT', 'left'],
  ['RIGHT', 'right'],
  ['FULL', 'full'],
  ['CROSS', 'cross']
]);

function readJoins(parser: Parser): readonly Join[] {
  const joins: Join[] = [];
  for (let kind = JOIN_KINDS.get(parser.keyword); kind !== undefined; kind = JOIN_KINDS.get(parser.keyword)) {
    const { start } = parser.advance();
    parser.expectKeyword('JOIN');
    const source = readSource(parser);
    if (kind === 'cross' && parser.keyword === 'ON')
      throw parser.errorAt(parser.token.start, 'On expression is not required for cross join type.', 'use INNER JOIN');
    const on = parser.takeKeyword('ON') ? parser.expression() : undefined;
    joins.push({ kind, source, ...(on === undefined ? {} : { on }), start, end: parser.previousEnd });
  }
  return joins;
}

function readGroups(parser: Parser): { readonly window?: Window; readonly groupBy: readonly Expression[] } {
  const groupBy: Expression[] = [];
  let window: Window | undefined;
  if (!parser.takeKeyword('GROUP')) return { groupBy };
  parser.expectKeyword('BY');
  do {
    const { start } = parser.token;
    const expression = parser.expression();
    if (expression.type !== 'call' || !isWindowName(expression.name)) groupBy.push(expression);
    else if (window === undefined) window = readWindow(expression, parser);
    else throw parser.errorAt(start, 'GROUP BY has more than one window', 'a statement has one window');
  } while (parser.takeSymbol(','));
  return window === undefined ? { groupBy } : { window, groupBy };
}

function readOrder(parser: Parser): readonly OrderKey[] {
  const keys: OrderKey[] = [];
  if (!parser.takeKeyword('ORDER')) return keys;
  parser.expectKeyword('BY');
  do {
    const expression = parser.expression();
    const isDescending = parser.takeKeyword('DESC');
    if (!isDescending) parser.takeKeyword('ASC');
    keys.push({ expression, isDescending, start: expression.start, end: parser.previousEnd });
  } while (parser.takeSymbol(','));
  return keys;
}

function readLimit(parser: Parser): number {
  const { value, start } = parser.token;
  if (typeof value !== 'number' || !Number.isSafeInteger(value))
    throw parser.errorAt(start, 'limit should be integer', 'for example LIMIT 10');
  parser.advance();
  return value;
}

function unexpectedEnd(parser: Parser, from: FromStream, joins: readonly Join[]): Error {
  const lastSource = joins.at(-1)?.end ?? from.end;
  if (parser.previousEnd !== lastSource) return parser.unexpected('the end of the statement');
  if (parser.isSymbol(','))
    return parser.unexpected(CLAUSES, 'several streams are joined: FROM a INNER JOIN b ON a.id = b.id');
  return parser.unexpected(
    CLAUSES,
    parser.isName && !parser.isForeignWord ? 'an alias needs AS: FROM demo AS d' : undefined
  );
}
