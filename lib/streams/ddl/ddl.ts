import { readStreamName } from '../stream-name.ts';
import type { StreamDefinition, StreamKind } from '../types.ts';
import { readColumns } from './columns.ts';
import { checkOptions, readOptions } from './options.ts';
import { DdlReader } from './reader.ts';

/** A statement that defines, lists, describes or drops streams and tables. */
type Ddl =
  | { readonly type: 'create'; readonly definition: StreamDefinition }
  | { readonly type: 'show'; readonly kind: StreamKind }
  | { readonly type: 'describe' | 'explain' | 'drop'; readonly kind: StreamKind; readonly name: string };

/**
 * Parse a statement about the definitions of streams and tables: CREATE, SHOW, DESCRIBE, EXPLAIN or DROP. The sentences of errors are those of
 * the original [stream rules 3].
 * @throws SqlError
 */
export function parseDdl(text: string): Ddl {
  const reader = new DdlReader(text);
  const ddl = readStatement(reader, text);
  reader.takeSymbol(';');
  if (reader.token.type !== 'end') throw reader.wrong('expected semicolon or EOF.');
  return ddl;
}

/** True for a statement that begins with CREATE. @throws SqlError if no token can be read */
export function isDefinition(text: string): boolean {
  return typeof text === 'string' && new DdlReader(text).isWord('CREATE');
}

function readStatement(reader: DdlReader, text: string): Ddl {
  if (reader.takeKeyword('CREATE')) return { type: 'create', definition: readDefinition(reader, text) };
  if (reader.takeKeyword('SHOW')) return { type: 'show', kind: readKinds(reader) };
  for (const [keyword, type] of NAMING)
    if (reader.takeKeyword(keyword)) {
      const kind = readKind(reader);
      return { type, kind, name: readName(reader, kind) };
    }
  throw reader.unexpected(
    'CREATE, SHOW, DESCRIBE, EXPLAIN or DROP',
    'SELECT statements are for rules, not for streams'
  );
}

const NAMING = [
  ['DESCRIBE', 'describe'],
  ['EXPLAIN', 'explain'],
  ['DROP', 'drop']
] as const;

function readKind(reader: DdlReader): StreamKind {
  if (reader.takeKeyword('STREAM')) return 'stream';
  if (reader.takeKeyword('TABLE')) return 'table';
  throw reader.wrong('expected keyword stream or table.');
}

function readKinds(reader: DdlReader): StreamKind {
  if (reader.takeKeyword('STREAMS')) return 'stream';
  if (reader.takeKeyword('TABLES')) return 'table';
  throw reader.wrong('expected keyword streams or tables.');
}

function readName(reader: DdlReader, kind: StreamKind): string {
  if (!reader.isName) throw reader.wrong(`expected ${kind} name.`, 'put a name that is a keyword in backquotes');
  return readStreamName(reader);
}

function readDefinition(reader: DdlReader, sql: string): StreamDefinition {
  const kind = readKind(reader);
  const name = readName(reader, kind);
  if (!reader.isSymbol('(')) throw reader.wrong('expected lparen after stream name.', '() stands for any columns');
  const columns = readColumns(reader);
  if (!reader.takeKeyword('WITH')) throw reader.wrong('expected is with.', 'WITH (DATASOURCE="a/b")');
  const optionsAt = reader.token.start;
  const options = readOptions(reader);
  const definition = { kind, name, columns: columns.length === 0 ? undefined : columns, options, sql };
  const fault = checkOptions(definition);
  if (fault !== undefined) throw reader.errorAt(optionsAt, fault);
  return definition;
}
