import type { Column, ColumnType, StreamDefinition } from '../types.ts';

/**
 * The text of DESCRIBE STREAM and DESCRIBE TABLE: a line for each column and each specified option [stream rules 1.3].
 */
export function describeText({ columns = [], options, fault }: StreamDefinition): string {
  const fields = columns.map(({ name, type }) => `${name}\t${typeText(type)}\n`);
  const written = Object.entries(options)
    .filter(([, value]) => value !== '')
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}: ${value}\n`);
  return `Fields\n${'-'.repeat(80)}\n${fields.join('')}\n${written.join('')}${fault === undefined ? '' : `FAULT: ${fault}\n`}`;
}

/** A type as written in CREATE, in lower case: `array(struct(a bigint, b string))`. */
function typeText(type: ColumnType): string {
  if (type.type === 'array') return `array(${typeText(type.element)})`;
  if (type.type !== 'struct') return type.type;
  return `struct(${type.fields.map(({ name, type: each }) => `${name} ${typeText(each)}`).join(', ')})`;
}

/** The options that are always shown, with the values shown for absent ones. */
const SHOWN = {
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

/**
 * The description of a stream or a table over HTTP [stream rules 1.3]. Options of later versions are shown if they were
 * specified.
 */
export function describeJson({
  kind,
  name,
  columns,
  options,
  fault
}: StreamDefinition): Readonly<Record<string, unknown>> {
  const written = Object.entries(options).map(([option, value]) => [option, optionValue(option, value)]);
  return {
    Name: name,
    StreamFields: columns === undefined ? null : columns.map(columnJson),
    Options: { ...SHOWN, ...Object.fromEntries(written) },
    StreamType: kind === 'stream' ? 0 : 1,
    ...(fault === undefined ? {} : { Fault: fault })
  };
}

function optionValue(option: string, value: string): string | number | boolean {
  if (option === 'RETAIN_SIZE') return Number(value);
  return option === 'STRICT_VALIDATION' || option === 'SHARED' || option === 'TEMP' ? value === 'true' : value;
}

function columnJson({ name, type }: Column): Readonly<Record<string, unknown>> {
  return { FieldType: typeJson(type), Name: name };
}

function typeJson(type: ColumnType): unknown {
  if (type.type === 'array') return { Type: 'array', ElementType: typeJson(type.element) };
  return type.type === 'struct' ? { Type: 'struct', Fields: type.fields.map(columnJson) } : type.type;
}
