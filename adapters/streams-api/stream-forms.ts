import Type from 'typebox';
import type { StreamColumn, StreamColumnType, StreamDefinition, StreamKind } from '../../lib/index.ts';

/** A stream or a table, as it is described. */
export const STREAM = Type.Object(
  {
    Name: Type.String(),
    StreamFields: Type.Union([Type.Array(Type.Record(Type.String(), Type.Unknown())), Type.Null()], {
      description: 'The columns with FieldType and Name; null: it has no schema'
    }),
    Options: Type.Record(Type.String(), Type.Unknown(), { description: 'The options, by their names in upper case' }),
    StreamType: Type.Integer({ description: '0: stream, 1: table' })
  },
  { title: 'Stream' }
);

/** The options that a description always has, with what they are if they are not written [stream rules 1.3]. */
const OPTIONS: Readonly<Record<string, string | boolean | number>> = {
  DATASOURCE: '',
  KEY: '',
  FORMAT: '',
  CONF_KEY: '',
  TYPE: '',
  STRICT_VALIDATION: false,
  TIMESTAMP: '',
  TIMESTAMP_FORMAT: '',
  RETAIN_SIZE: 0
};

/** The value of an option, with the type of its row. */
function optionOf(name: string, text: string): string | boolean | number {
  const fallback = OPTIONS[name];
  if (typeof fallback === 'boolean') return /^true$/i.test(text);
  return typeof fallback === 'number' ? Number(text) : text;
}

/** A definition as the original describes it. */
export function shownStream({ name, columns, options, kind }: StreamDefinition): object {
  const written = Object.entries(options).map(([option, text]) => [option, optionOf(option, text)] as const);
  return {
    Name: name,
    StreamFields: columns === undefined || columns.length === 0 ? null : columns.map(shownColumn),
    Options: { ...OPTIONS, ...Object.fromEntries(written) },
    StreamType: kind === 'table' ? 1 : 0
  };
}

function shownColumn({ name, type }: StreamColumn): object {
  return { FieldType: shownType(type), Name: name };
}

function shownType(type: StreamColumnType): string | object {
  if (type.type === 'array') return { Type: 'array', ElementType: shownType(type.element) };
  if (type.type === 'struct') return { Type: 'struct', Fields: type.fields.map(shownColumn) };
  return type.type;
}

/** The text of DESCRIBE STREAM. */
export function describedText({ columns = [], options }: StreamDefinition): string {
  const lines = columns.map(({ name, type }) => `${name}\t${typeText(type)}\n`);
  const written = Object.entries(options)
    .filter(([, text]) => text !== '')
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, text]) => `${name}: ${text}\n`);
  return `Fields\n${'-'.repeat(80)}\n${lines.join('')}\n${written.join('')}`;
}

function typeText(type: StreamColumnType): string {
  if (type.type === 'array') return `array(${typeText(type.element)})`;
  if (type.type !== 'struct') return type.type;
  return `struct(${type.fields.map(({ name, type: inner }) => `${name} ${typeText(inner)}`).join(', ')})`;
}

/** A statement about streams or tables. */
export interface Ddl {
  readonly verb: 'create' | 'show' | 'describe' | 'explain' | 'drop';
  readonly kind: StreamKind;
  /** Of SHOW: ''. Of CREATE: as far as it can be told without parsing the statement. */
  readonly name: string;
}

const NAME = '(?:`([^`]+)`|([^\\s`;(]+))';
const FORMS = [
  /^(show)\s+(stream|table)s\s*;?$/i,
  new RegExp(`^(describe|explain|drop)\\s+(stream|table)\\s+${NAME}\\s*;?$`, 'i'),
  new RegExp(`^(create)\\s+(stream|table)\\s*${NAME}`, 'i')
];

/** Tell what a statement does. @returns undefined if it is none of the forms; a parser then says what is wrong */
export function ddlOf(sql: string): Ddl | undefined {
  const text = sql.trim();
  for (const form of FORMS) {
    const found = form.exec(text);
    if (found === null) continue;
    const [, verb, kind, quoted, plain = ''] = found;
    return { verb: verb.toLowerCase() as Ddl['verb'], kind: kind.toLowerCase() as StreamKind, name: quoted ?? plain };
  }
  return undefined;
}
