import type { StreamDefinition } from '../types.ts';
import type { DdlReader } from './reader.ts';

/** What is wrong with the value of an option, as the end of a sentence; undefined: nothing. */
type Check = (value: string) => string | undefined;

const anyText: Check = () => undefined;
const trueOrFalse: Check = (value) => (/^(true|false)$/i.test(value) ? undefined : 'expect TRUE/FALSE value');
const count: Check = (value) => (/^\d{1,15}$/.test(value) ? undefined : 'expect number value');
const tableKind: Check = (value) => (/^(scan|lookup)$/i.test(value) ? undefined : 'expect scan/lookup value');

/** An option of streams and tables, for checks and documents. */
interface DdlOption {
  readonly check: Check;
  readonly about: string;
  /** Its value is in lower case, however it is written. */
  readonly isWord?: true;
}

const ACCEPTED = 'Accepted for compatibility, without effect.';

/** The options of streams and tables [stream rules 3]. */
export const DDL_OPTIONS: ReadonlyMap<string, DdlOption> = new Map([
  [
    'DATASOURCE',
    {
      check: anyText,
      about: 'Where rows come from: topic filters with commas between them, a path, a URL, a table; as the type has it.'
    }
  ],
  [
    'FORMAT',
    {
      check: anyText,
      about: 'Format of payloads: `json` (default), `delimited`, `binary`, `urlencoded`, or one of the app.'
    }
  ],
  ['KEY', { check: anyText, about: 'Column by whose values a lookup table of the type `memory` keeps rows.' }],
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
  ['TIMESTAMP_FORMAT', { check: anyText, about: 'How times are written in strings. Default: ISO 8601.' }],
  [
    'RETAIN_SIZE',
    {
      check: count,
      about:
        'How many of the latest rows a table has. Default: 1; a table of a finite source, such as a file, has all of its rows.'
    }
  ],
  ['SCHEMAID', { check: anyText, about: 'Schema of the format.' }],
  ['KIND', { check: tableKind, isWord: true, about: 'Of tables: `scan` (default) or `lookup`.' }],
  ['DELIMITER', { check: anyText, about: 'Separator of the columns of the format `delimited`. Default: a comma.' }],
  ['EXTRA', { check: anyText, about: ACCEPTED }],
  ['VERSION', { check: anyText, about: ACCEPTED }],
  ['TEMP', { check: trueOrFalse, isWord: true, about: ACCEPTED }]
]);

/** Read options in parentheses; the commas between them may be left out. @returns their values by their names in upper case @throws SqlError */
export function readOptions(reader: DdlReader): StreamDefinition['options'] {
  if (!reader.takeSymbol('(')) throw reader.wrong('expect stream options.', 'WITH (DATASOURCE="a/b")');
  const options: Record<string, string> = {};
  while (!reader.takeSymbol(')')) {
    if (reader.takeSymbol(',')) continue;
    const name = reader.token.type === 'word' ? reader.token.text.toUpperCase() : '';
    const option = DDL_OPTIONS.get(name);
    if (option === undefined) throw reader.wrong(`unknown option keys(${[...DDL_OPTIONS.keys()].join('|')}).`);
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
