import { InvalidInput, show } from '../../base/errors.ts';
import { type FieldTable, fieldsOf } from '../../base/fields.ts';
import { memberOf } from '../../base/secrets.ts';
import type { Format, FormatType } from '../format.ts';
import type { ParseTime } from '../formats/convert-column.ts';
import { makeFormat } from '../formats/formats.ts';
import { overlaid, readProperties } from '../properties.ts';
import type { Column, Properties, SourceType, StreamDefinition } from '../types.ts';
import { TableRows } from './table-rows.ts';

/** Properties of all sources. */
export const SOURCE_PROPERTIES: FieldTable = {
  concurrency: { type: 'number', about: 'Without effect: rows are read one after the other.', min: 1 },
  bufferLength: {
    type: 'number',
    about: 'Without effect: the length of queues is that of the rule.',
    min: 1
  },
  format: { type: 'string', about: 'Without effect: the format is that of the stream.' }
};

/** Properties of all sources of lookup tables; in the original they are in the object `lookup`, in seconds. */
export const LOOKUP_PROPERTIES: FieldTable = {
  cache: { type: 'boolean', about: 'Cache the rows that were found.', default: false },
  cacheTtl: {
    type: 'duration',
    about: 'Time for which they are cached.',
    default: 60_000,
    min: 0,
    unit: 'ms'
  },
  cacheMissingKey: { type: 'boolean', about: 'Also cache that no rows were found.', default: false }
};

/** The type of the source of a stream or table, in lower case. */
export function sourceTypeName({ kind, options }: StreamDefinition): string {
  return (options.TYPE || (kind === 'table' ? 'file' : 'mqtt')).toLowerCase();
}

/** The validated options of a stream. */
export class StreamSettings {
  readonly what: string;
  readonly columns: readonly Column[] | undefined;
  readonly isStrict: boolean;
  /** Column with the event time. */
  readonly timestamp: string | undefined;
  readonly timestampFormat: string | undefined;
  readonly parseTime: ParseTime;
  readonly #definition: StreamDefinition;
  readonly #isBatch: boolean;
  readonly #formats: readonly FormatType[];

  /** @throws InvalidInput STREAM_INVALID */
  constructor(definition: StreamDefinition, type: SourceType, parseTime: ParseTime, formats: readonly FormatType[]) {
    const { options, kind, name, columns } = definition;
    this.#definition = definition;
    this.#isBatch = type.isBatch === true;
    this.#formats = formats;
    this.what = `${kind} "${name}"`;
    this.columns = columns;
    this.isStrict = options.STRICT_VALIDATION?.toLowerCase() === 'true';
    this.timestamp = options.TIMESTAMP || undefined;
    this.timestampFormat = options.TIMESTAMP_FORMAT || undefined;
    this.parseTime = parseTime;
    this.makeFormat(undefined, false);
    this.makeTable();
  }

  /** @param needed keys of payloads; undefined: all @throws InvalidInput STREAM_INVALID */
  makeFormat(needed: readonly string[] | undefined, integers: boolean): Format {
    const { columns, options } = this.#definition;
    return makeFormat(
      options.FORMAT || undefined,
      { what: this.what, columns, options, needed, integers },
      this.#formats
    );
  }

  /** @returns undefined for streams @throws InvalidInput STREAM_INVALID */
  makeTable(): TableRows | undefined {
    const { kind, options } = this.#definition;
    if (kind !== 'table') return undefined;
    const text = options.RETAIN_SIZE || '0';
    const size = /^\d+$/.test(text) ? Number(text) : -1;
    if (size < 0 || size > MAX_RETAINED)
      throw new InvalidInput('STREAM_INVALID', 'RETAIN_SIZE', `a number from 0 to ${MAX_RETAINED}`, text);
    return new TableRows(size === 0 && !this.#isBatch ? 1 : size);
  }

  /** The keys of payloads from which columns are read, spelled as in the schema. */
  payloadKeys(needed: readonly string[] | undefined): readonly string[] | undefined {
    const { columns } = this;
    if (needed === undefined) return columns?.map(({ name }) => name);
    if (columns === undefined) return needed;
    const wanted = new Set(needed.map((name) => name.toLowerCase()));
    return columns.map(({ name }) => name).filter((name) => wanted.has(name.toLowerCase()));
  }
}

/** Maximum of RETAIN_SIZE: the whole table is passed on with each row. */
const MAX_RETAINED = 10_000;

/** The sections of source properties, with those of the connections that they name. */
export interface SourceSections {
  /**
   * @param type matched without regard to case
   * @param warn called if the section names a connection that does not exist, which has no effect
   */
  section(type: string, name: string, warn: (text: string) => void): Properties | undefined;
  sectionNames(type: string): readonly string[];
  /** The schema of a stream's format; undefined if it has none, or one of the app. */
  schemaText(definition: StreamDefinition): unknown;
}

/**
 * The properties of a source as they are given: the section that CONF_KEY names merged over `default`, and the sections
 * of the options over those of the type.
 * @param warn called with a sentence for each property without effect
 * @throws InvalidInput PROPERTY_INVALID
 */
export function givenProperties(
  type: SourceType,
  definition: StreamDefinition,
  sections: SourceSections,
  warn: (text: string) => void = () => undefined
): Properties {
  const key = definition.options.CONF_KEY || 'default';
  const what = whatOf(type, definition);
  const ofType = (name: string) => memberOf(type.sections, name) as Properties | undefined;
  const section = (name: string) =>
    overlaid(ofType(name) ?? {}, sections.section(type.name, name, (text) => warn(`${what}: ${text}`)) ?? {});
  if (key !== 'default' && (ofType(key) ?? sections.section(type.name, key, () => undefined)) === undefined) {
    const names = new Set([...Object.keys(type.sections ?? {}), ...sections.sectionNames(type.name)]);
    const hint = names.size === 0 ? 'there are none' : `use one of ${[...names].sort().join(', ')}`;
    const text = `${what}: unknown section ${show(key)} (CONF_KEY); ${hint}`;
    throw new InvalidInput(
      'PROPERTY_INVALID',
      'CONF_KEY',
      'the name of a section of the option sourceConfig',
      key,
      text
    );
  }
  return overlaid(section('default'), key === 'default' ? {} : section(key));
}

/** The properties of a source, checked. @param warn as for `givenProperties` @throws InvalidInput PROPERTY_INVALID */
export function sourceProperties(
  type: SourceType,
  definition: StreamDefinition,
  sections: SourceSections,
  warn: (text: string) => void
): Properties {
  const what = whatOf(type, definition);
  const properties = givenProperties(type, definition, sections, warn);
  if (definition.options.KIND?.toLowerCase() === 'lookup') {
    const { lookup, ...others } = properties;
    const all = overlaid(inMilliseconds(lookup), others);
    const table = { ...SOURCE_PROPERTIES, ...LOOKUP_PROPERTIES, ...fieldsOf(type.properties) };
    return readProperties(table, all, what, type.properties === undefined ? undefined : warn);
  }
  if (type.properties === undefined) return properties;
  return readProperties({ ...SOURCE_PROPERTIES, ...fieldsOf(type.properties) }, properties, what, warn);
}

function whatOf({ name }: SourceType, definition: StreamDefinition): string {
  return `source ${name} of ${definition.kind} ${definition.name}`;
}

/** Convert the object `lookup` of the properties, in which numbers are seconds. */
function inMilliseconds(lookup: unknown): Properties {
  if (typeof lookup !== 'object' || lookup === null) return {};
  const { cacheTtl, ...others } = lookup as Properties;
  if (cacheTtl === undefined) return others;
  return { ...others, cacheTtl: typeof cacheTtl === 'number' ? cacheTtl * 1000 : cacheTtl };
}
