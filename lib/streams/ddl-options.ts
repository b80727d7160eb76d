import type { DdlReader } from './ddl-reader.ts';
import type { StreamDefinition } from './types.ts';

/** What is wrong with the value of an option, as the end of a sentence; undefined: nothing. */
type Check = (value: string) => string | undefined;

const anyText: Check = () => undefined;
const trueOrFalse: Check = (value) => (/^(true|false)$/i.test(value) ? undefined : 'expect TRUE/FALSE value');
const count: Check = (value) => (/^\d{1,15}$/.test(value) ? undefined : 'expect number value');
const tableKind: Check = (value) => (/^(scan|lookup)$/i.test(value) ? undefined : 'expect scan/lookup value');

/** The options of streams and tables [stream rules 3]. `isWord`: their value is in lower case, however it is written. */
const OPTIONS: ReadonlyMap<string, { readonly check: Check; readonly isWord?: true }> = new Map([
  ['DATASOURCE', { check: anyText }],
  ['FORMAT', { check: anyText }],
  ['KEY', { check: anyText }],
  ['CONF_KEY', { check: anyText }],
  ['SHARED', { check: trueOrFalse, isWord: true }],
  ['STRICT_VALIDATION', { check: trueOrFalse, isWord: true }],
  ['TYPE', { check: anyText }],
  ['TIMESTAMP', { check: anyText }],
  ['TIMESTAMP_FORMAT', { check: anyText }],
  ['RETAIN_SIZE', { check: count }],
  ['SCHEMAID', { check: anyText }],
  ['KIND', { check: tableKind, isWord: true }],
  ['DELIMITER', { check: anyText }],
  ['EXTRA', { check: anyText }],
  ['VERSION', { check: anyText }],
  ['TEMP', { check: trueOrFalse, isWord: true }]
]);

/** Read options in parentheses; the commas between them may be left out. @returns their values by their names in upper case @throws SqlError */
export function readOptions(reader: DdlReader): StreamDefinition['options'] {
  if (!reader.takeSymbol('(')) throw reader.wrong('expect stream options.', 'WITH (DATASOURCE="a/b")');
  const options: Record<string, string> = {};
  while (!reader.takeSymbol(')')) {
    if (reader.takeSymbol(',')) continue;
    const name = reader.token.type === 'word' ? reader.token.text.toUpperCase() : '';
    const option = OPTIONS.get(name);
    if (option === undefined) throw reader.wrong(`unknown option keys(${[...OPTIONS.keys()].join('|')}).`);
    if (Object.hasOwn(options, name)) throw reader.errorAt(reader.token.start, `the option ${name} is given twice`);
    reader.advance();
    if (!reader.takeSymbol('=')) throw reader.wrong('expect equals(=) in options.');
    const { type, text } = reader.token;
    if (type !== 'string')
      throw reader.wrong('expect string value in option.', `values stand in quotes: ${name}="..."`);
    const fault = option.check(text);
    if (fault !== undefined) throw reader.wrong(`${fault} in ${name} option.`);
    options[name] = option.isWord === true ? text.toLowerCase() : text;
    reader.advance();
  }
  return options;
}

/** What is wrong with options that do not fit each other or the columns; undefined: nothing. The sentences are those of the original. */
export function checkOptions({ kind, columns, options }: Omit<StreamDefinition, 'sql'>): string | undefined {
  const { FORMAT = 'json', KIND, TYPE, KEY = '' } = options;
  if (KIND === 'lookup' && kind === 'stream') return `Option "kind" is only for tables: CREATE TABLE`;
  if (KIND === 'lookup' && TYPE === 'memory' && KEY === '') return 'Option "key" is required for memory lookup table.';
  if (FORMAT.toLowerCase() !== 'binary') return undefined;
  if (kind === 'table') return "'binary' format is not supported for table";
  if (columns === undefined) return undefined;
  if (columns.length > 1) return "'binary' format stream can have only one field";
  return columns[0].type.type === 'bytea' ? undefined : "'binary' format stream can have only 'bytea' type field";
}
