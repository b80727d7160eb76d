import type { StreamDefinition } from '../types.ts';
import type { DdlReader } from './reader.ts';

/** Checks the value of an option. @returns the fault as the end of a sentence; undefined if the value is valid */
type Check = (value: string) => string | undefined;

const anyText: Check = () => undefined;
const trueOrFalse: Check = (value) => (/^(true|false)$/i.test(value) ? undefined : 'expect TRUE/FALSE value');
const count: Check = (value) => (/^\d{1,15}$/.test(value) ? undefined : 'expect number value');
const tableKind: Check = (value) => (/^(scan|lookup)$/i.test(value) ? undefined : 'expect scan/lookup value');

/** An option of streams and tables, for checks and documentation. */
interface DdlOption {
  readonly check: Check;
  readonly about: string;
  /** Set if the value is converted to lower case. */
  readonly isWord?: true;
}

const ACCEPTED = 'Accepted for compatibility, without effect.';

/** The options of streams and tables [stream rules 3]. */
export const DDL_OPTIONS: ReadonlyMap<string, DdlOption> = new Map([
  [
    'DATASOURCE',
    {
      check: anyText,
      about: 'The origin of rows: topic filters separated by commas, a path, a URL or a table, depending on the type.'
    }
  ],
  [
    'FORMAT',
    {
      check: anyText,
      about: 'Format of payloads: `json` (default), `delimited`, `binary`, `urlencoded`, or a format of the app.'
    }
  ],
  ['KEY', { check: anyText, about: 'Column whose values identify the rows of a lookup table of the type `memory`.' }],
  ['CONF_KEY', { check: anyText, about: 'Name of a section of properties of the source. Default: `default`.' }],
  [
    'SHARED',
    { check: trueOrFalse, isWord: true, about: 'Without effect: rules on the same stream always share its source.' }
  ],
  [
    'STRICT_VALIDATION',
    {
      check: trueOrFalse,
      isWord: true,
      about:
        '`true`: a row in which a declared column is missing or has another type is an error. Default `false`: the column is null.'
    }
  ],
  ['TYPE', { check: anyText, about: 'Type of the source. Default: `mqtt`; for tables `file`.' }],
  ['TIMESTAMP', { check: anyText, about: 'Column with the time of a row, for rules with the option `isEventTime`.' }],
  ['TIMESTAMP_FORMAT', { check: anyText, about: 'Format of times in strings. Default: ISO 8601.' }],
  [
    'RETAIN_SIZE',
    {
      check: count,
      about:
        'Number of latest rows that a table has. Default: 1; a table of a finite source, such as a file, has all of its rows.'
    }
  ],
  ['SCHEMAID', { check: anyText, about: 'Schema of the format.' }],
  ['KIND', { check: tableKind, isWord: true, about: 'Kind of a table: `scan` (default) or `lookup`.' }],
  ['DELIMITER', { check: anyText, about: 'Separator of the columns of the format `delimited`. Default: a comma.' }],
  ['EXTRA', { check: anyText, about: ACCEPTED }],
  ['VERSION', { check: anyText, about: ACCEPTED }],
  ['TEMP', { check: trueOrFalse, isWord: true, about: ACCEPTED }]
]);

/**
 * Parse options in parentheses; the commas between them are optional.
 * @returns their values, by name in upper case
 * @throws SqlError
 */
export function readOptions(reader: DdlReader): StreamDefinition['options'] {
  if (!reader.takeSymbol('(')) throw reader.wrong('expect stream options.', 'WITH (DATASOURCE="a/b")');
  const options: Record<string, string> = {};
  while (!reader.takeSymbol(')')) {
    if (reader.takeSymbol(',')) continue;
    const name = reader.token.type === 'word' ? reader.token.text.toUpperCase() : '';
    const option = DDL_OPTIONS.get(name);
    if (option === undefined) throw reader.wrong(`unknown option keys(${[...DDL_OPTIONS.keys()].join('|')}).`);
    if (Object.hasOwn(options, name)) throw reader.errorAt(reader.token.start, `the option ${name} occurs twice`);
    reader.advance();
    if (!reader.takeSymbol('=')) throw reader.wrong('expect equals(=) in options.');
    const { type, text } = reader.token;
    if (type !== 'string') throw reader.wrong('expect string value in option.', `put values in quotes: ${name}="..."`);
    const fault = option.check(text);
    if (fault !== undefined) throw reader.wrong(`${fault} in ${name} option.`);
    options[name] = option.isWord === true ? text.toLowerCase() : text;
    reader.advance();
  }
  return options;
}

/**
 * The reason why options do not fit each other or the columns; undefined if they do. The sentences are those of the
 * original.
 */
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
