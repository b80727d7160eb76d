import { MAX_LEVELS } from '../../sql/parser.ts';
import type { Column, ColumnType } from '../types.ts';
import type { DdlReader } from './reader.ts';

const SIMPLE_TYPES: ReadonlyMap<string, Exclude<ColumnType['type'], 'array' | 'struct'>> = new Map([
  ['BIGINT', 'bigint'],
  ['FLOAT', 'float'],
  ['STRING', 'string'],
  ['DATETIME', 'datetime'],
  ['BOOLEAN', 'boolean'],
  ['BYTEA', 'bytea']
]);

/**
 * Parse columns in parentheses; a trailing comma is allowed.
 * @param level number of enclosing types
 * @throws SqlError
 */
export function readColumns(reader: DdlReader, level = 0): readonly Column[] {
  reader.expectSymbol('(');
  const columns: Column[] = [];
  const names = new Set<string>();
  while (!reader.takeSymbol(')')) {
    const { start } = reader.token;
    if (!reader.isName) throw reader.wrong('expect stream field name.', 'put a name that is a keyword in backquotes');
    const { text: name } = reader.advance();
    if (names.has(name)) throw reader.errorAt(start, `the column ${name} is defined twice`);
    names.add(name);
    columns.push({ name, type: readType(reader, level) });
    if (!reader.takeSymbol(',') && !reader.isSymbol(')')) throw reader.wrong('expect comma or rparen.');
  }
  return columns;
}

function readType(reader: DdlReader, level: number): ColumnType {
  if (level > MAX_LEVELS) throw reader.errorAt(reader.token.start, `the type has more than ${MAX_LEVELS} levels`);
  const word = reader.token.type === 'word' ? reader.token.text.toUpperCase() : '';
  const simple = SIMPLE_TYPES.get(word);
  if (simple === undefined && word !== 'ARRAY' && word !== 'STRUCT')
    throw reader.wrong(level === 0 ? COLUMN_TYPES : 'expect stream data types.', TYPE_HINT);
  reader.advance();
  if (simple !== undefined) return { type: simple };
  if (!reader.isSymbol('(')) throw reader.wrong(`expect lparen in ${word.toLowerCase()} type definition.`, TYPE_HINT);
  if (word === 'STRUCT') return { type: 'struct', fields: readColumns(reader, level + 1) };
  reader.advance();
  const element = readType(reader, level + 1);
  if (!reader.takeSymbol(')')) throw reader.wrong('expect rparen in array type definition.');
  return { type: 'array', element };
}

const COLUMN_TYPES =
  'expect valid stream field types(BIGINT | FLOAT | STRING | DATETIME | BOOLEAN | BYTEA | ARRAY | STRUCT).';
const TYPE_HINT = 'for example a BIGINT, b ARRAY(STRING), c STRUCT(d FLOAT)';
