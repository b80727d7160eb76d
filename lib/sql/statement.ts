import type { Dialect } from './dialect.ts';
import { Parser } from './parser.ts';
import type { Expression, Field, FromTopic, Path, Statement } from './tree.ts';

/**
 * Parse a statement of rules: `SELECT ... FROM ... WHERE ...`, or `FOREACH ... DO ... INCASE ... FROM ... WHERE ...`.
 * @throws SqlError
 */
export function parseStatement(text: string, dialect: Dialect): Statement {
  const parser = new Parser(text, dialect);
  const statement = parser.takeKeyword('SELECT')
    ? select(parser)
    : dialect.hasForeach && parser.takeKeyword('FOREACH')
      ? foreach(parser)
      : undefined;
  if (statement === undefined) throw parser.unexpected(dialect.hasForeach ? 'SELECT or FOREACH' : 'SELECT');
  parser.takeSymbol(';');
  if (parser.token.type !== 'end')
    throw parser.unexpected(
      statement.where === undefined ? 'WHERE or the end of the statement' : 'the end of the statement'
    );
  return statement;
}

/** Parse a condition as it follows WHERE, alone; WHERE may be written. @throws SqlError */
export function parseCondition(text: string, dialect: Dialect): Expression {
  const parser = new Parser(text, dialect);
  parser.takeKeyword('WHERE');
  const condition = parser.expression();
  if (parser.token.type !== 'end') throw parser.unexpected('the end of the condition');
  return condition;
}

function select(parser: Parser): Statement {
  const selected = fields(parser);
  return { type: 'select', fields: selected, ...origin(parser) };
}

function foreach(parser: Parser): Statement {
  const selected = fields(parser);
  const does = parser.takeKeyword('DO') ? fields(parser) : undefined;
  const incase = parser.takeKeyword('INCASE') ? parser.expression() : undefined;
  if (parser.keyword === 'DO') throw parser.unexpected('FROM', 'put DO before INCASE');
  return {
    type: 'foreach',
    fields: selected,
    ...(does === undefined ? {} : { does }),
    ...(incase === undefined ? {} : { incase }),
    ...origin(parser)
  };
}

/** Parse FROM and WHERE. */
function origin(parser: Parser): { from: FromTopic[]; where?: Expression } {
  parser.expectKeyword('FROM');
  const from = [source(parser)];
  while (parser.takeSymbol(',')) from.push(source(parser));
  return parser.takeKeyword('WHERE') ? { from, where: parser.expression() } : { from };
}

const TOPIC_HINT = 'put topics in double quotes: FROM "a/b"';

function source(parser: Parser): FromTopic {
  const { type } = parser.token;
  const isBare = type === 'word' && parser.keyword === undefined;
  if (type !== 'quoted' && !isBare) throw parser.unexpected('a topic in double quotes', TOPIC_HINT);
  const { text: name, start, end } = parser.advance();
  const { type: next, text: symbol } = parser.token;
  if (isBare && next === 'symbol' && symbol !== ',' && symbol !== ';') throw parser.unexpected('WHERE', TOPIC_HINT);
  return { name, start, end };
}

function fields(parser: Parser): Field[] {
  const list = [field(parser)];
  while (parser.takeSymbol(',')) list.push(field(parser));
  return list;
}

function field(parser: Parser): Field {
  const { start } = parser.token;
  if (parser.takeSymbol('*')) return { type: 'star', start, end: parser.previousEnd };
  if (parser.isForeignWord && parser.token.text.toUpperCase() === 'DISTINCT') throw parser.unexpected('an expression');
  const expression = parser.expression();
  const alias = aliasOf(parser);
  return { type: 'selected', expression, ...(alias === undefined ? {} : { alias }), start, end: parser.previousEnd };
}

function aliasOf(parser: Parser): Path | undefined {
  const hasAs = parser.takeKeyword('AS');
  const { type, start } = parser.token;
  const isName = type === 'quoted' || (type === 'word' && parser.keyword === undefined);
  if (!hasAs && (!isName || parser.isForeignWord)) return undefined;
  if (!isName) throw parser.unexpected('an alias', 'put an alias that is a keyword in double quotes');
  const alias = parser.path();
  if (alias.steps.some((step) => step.type === 'slice')) throw parser.errorAt(start, 'an alias cannot be a slice');
  return alias;
}
