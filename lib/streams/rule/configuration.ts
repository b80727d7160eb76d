// Three kinds of configuration have the same life: sections of source properties (CONF_KEY), connections, and schemas
// of formats. They are persisted as JSON, and shown without secrets. Sources and sinks see only the result: `sections`
// has the properties of connections merged in, `connected` does it for a sink, and a format receives its schemas. A
// change applies to rules that start afterwards.

import { InvalidInput, NotFound, StateError } from '../../base/errors.ts';
import { type FieldTable, fieldsOf } from '../../base/fields.ts';
import { memberOf } from '../../base/secrets.ts';
import type { StreamConfigApi, StreamConfigEntry, StreamConfigKey, StreamConfigKind, StreamConfigUse } from '../api.ts';
import type { Catalogue } from '../ddl/catalogue.ts';
import type { FormatType } from '../format.ts';
import type { StreamsHost, StreamTable } from '../host.ts';
import { readProperties } from '../properties.ts';
import type { Registry } from '../registry.ts';
import { sourceTypeName } from '../sources/stream-settings.ts';
import type { Properties, StreamDefinition, StreamsOptions } from '../types.ts';
import type { ReadStreamRule } from './definition.ts';
import { sourcesOf } from './rules.ts';
import { hideProperties, keepProperties } from './secrets.ts';

type Sections = NonNullable<StreamsOptions['sourceConfig']>;
/** An entry by its key. */
type Entry = Required<StreamConfigKey> & { readonly properties: Properties };

/** Names of the kinds in messages. */
const WORDS: Readonly<Record<StreamConfigKind, string>> = {
  confKey: 'section',
  connection: 'connection',
  schema: 'schema'
};
const NAME = /^(?!\.{1,2}$)[^\s/\p{Cc}\p{Cs}]([^/\p{Cc}\p{Cs}]{0,254}[^\s/\p{Cc}\p{Cs}])?$/u;
/** The property that names a connection. */
const SELECTOR = 'connectionSelector';
const MAX_ENTRIES = 10_000;

/** `broker.streams.config`. The service makes one change at a time. */
export class StreamConfiguration implements StreamConfigApi {
  readonly #table: StreamTable<string>;
  /** The sections of the option `sourceConfig`. */
  readonly #ofOptions: Sections;
  readonly #registry: Registry;
  readonly #catalogue: Catalogue;
  readonly #rules: () => Iterable<ReadStreamRule>;
  readonly #ruleActions: StreamsHost['ruleActions'];
  readonly #entries = new Map<string, Entry>();
  /** The sections with their connections; undefined: computed when they are asked for. */
  #sections: Sections | undefined;

  constructor(
    { configuration, options, ruleActions }: Pick<StreamsHost, 'configuration' | 'options' | 'ruleActions'>,
    registry: Registry,
    { catalogue, rules }: { readonly catalogue: Catalogue; readonly rules: () => Iterable<ReadStreamRule> }
  ) {
    this.#table = configuration;
    this.#ofOptions = options.sourceConfig ?? {};
    this.#registry = registry;
    this.#catalogue = catalogue;
    this.#rules = rules;
    this.#ruleActions = ruleActions;
  }

  /** Load what is persisted. @returns the errors of entries that this version cannot use, which stay in the store */
  async restore(): Promise<unknown[]> {
    const errors: unknown[] = [];
    for (const [key, json] of this.#table) {
      try {
        const { kind, type, name, properties } = JSON.parse(json) as Entry;
        this.#entries.set(key, { kind, type, name, properties });
        if (kind === 'schema') await this.#checkSchema(type, name, properties);
      } catch (error) {
        errors.push(error);
      }
    }
    return errors;
  }

  /** The sections of source properties by type and name. */
  get sections(): Sections | undefined {
    this.#sections ??= this.#merged();
    return this.#sections;
  }

  /** The properties of a sink, over those of the connection that they name. */
  connected(type: string, properties: Properties): Properties {
    const key = keyOf({ kind: 'connection', name: `${propertyOf(properties, SELECTOR) ?? ''}` });
    const found = this.#entries.get(key) ?? this.#stored(key);
    if (found === undefined || found.type !== type.toLowerCase()) return properties;
    const own = Object.entries(properties).filter(([name]) => name.toLowerCase() !== SELECTOR.toLowerCase());
    const names = new Set(own.map(([name]) => name.toLowerCase()));
    const taken = Object.entries(found.properties).filter(([name]) => !names.has(name.toLowerCase()));
    return Object.fromEntries([...taken, ...own]);
  }

  /** An entry of the store. Broker rules with sinks are restored before the streams, so before `restore` has read it. */
  #stored(key: string): Entry | undefined {
    const json = this.#table.get(key);
    return json === undefined ? undefined : (JSON.parse(json) as Entry);
  }

  /** The formats of the app, with the schemas that are persisted. */
  formats(): readonly FormatType[] {
    return this.#registry.formats().map((format) => {
      const own = this.#all('schema').filter(({ type }) => type === format.name);
      if (own.length === 0) return format;
      const schemas = Object.fromEntries(own.map(({ name, properties }) => [name, properties.content as string]));
      return { ...format, make: (setup) => format.make({ ...setup, schemas }) };
    });
  }

  async list(kind: StreamConfigKind): Promise<StreamConfigEntry[]> {
    return this.#all(kind).map((entry) => this.#shown(entry));
  }

  async get(key: StreamConfigKey): Promise<StreamConfigEntry | undefined> {
    const found = this.#entries.get(keyOf(key));
    return found && this.#shown(found);
  }

  async use(key: StreamConfigKey): Promise<StreamConfigUse> {
    const found = this.#entries.get(keyOf(key));
    return found === undefined ? { streams: [], rules: [] } : this.#useOf(found);
  }

  async set(
    { kind, type, name, properties }: StreamConfigEntry,
    { isNew = false }: { readonly isNew?: boolean } = {}
  ): Promise<void> {
    if (!NAME.test(name))
      throw invalid(
        'name',
        'a name without "/" and control characters, of at most 256 characters, and not "." or ".."',
        name
      );
    const key = keyOf({ kind, type, name });
    const before = this.#entries.get(key);
    if (before !== undefined && isNew)
      throw new StateError('STREAM_CONFIG_EXISTS', `${WORDS[kind]} ${name} already exists`);
    if (before === undefined && this.#entries.size >= MAX_ENTRIES)
      throw new StateError('STREAM_LIMIT', `there are already ${MAX_ENTRIES} sections, connections and schemas`);
    if (before !== undefined && before.type !== type.toLowerCase())
      throw invalid('type', `${before.type}, the type of the connection ${name}`, type);
    if (kind === 'confKey' && this.#ofApp(type, name) !== undefined)
      throw new StateError('STREAM_OF_APP', `${name} is defined in the options of the broker; change it there`);
    const owner = { what: `${WORDS[kind]} ${name}`, table: this.#propertiesOf(type.toLowerCase()) };
    const kept = kind === 'schema' ? properties : keepProperties(properties, before?.properties, owner);
    const checked = await this.#checked(kind, { type, name, properties: kept });
    const entry = { kind, type: checked, name, properties: kept };
    await this.#table.set(key, JSON.stringify(entry));
    this.#entries.set(key, entry);
    this.#sections = undefined;
  }

  async delete(key: StreamConfigKey): Promise<boolean> {
    const found = this.#entries.get(keyOf(key));
    if (found === undefined) return false;
    const { streams, rules } = this.#useOf(found);
    const named = [...this.#ruleActions()].filter((action) => isUsedBy(found, action)).map(({ rule }) => rule);
    const users = [
      ...this.#sectionsWith(found).map((one) => `section ${one}`),
      ...streams.map((one) => `stream ${one}`),
      ...rules.map((one) => `rule ${one}`),
      ...[...new Set(named)].map((one) => `broker rule ${one}`)
    ];
    if (users.length > 0)
      throw new StateError('STREAM_CONFIG_IN_USE', `${WORDS[found.kind]} ${found.name} is used by ${users.join(', ')}`);
    await this.#table.delete(keyOf(key));
    this.#entries.delete(keyOf(key));
    this.#sections = undefined;
    return true;
  }

  #all(kind: StreamConfigKind): Entry[] {
    const found = [...this.#entries.values()].filter((entry) => entry.kind === kind);
    return found.sort((a, b) => (`${a.type}/${a.name}` < `${b.type}/${b.name}` ? -1 : 1));
  }

  #shown({ properties, ...key }: Entry): StreamConfigEntry {
    return {
      ...key,
      properties: key.kind === 'schema' ? properties : hideProperties(properties, this.#propertiesOf(key.type))
    };
  }

  /** The properties of the sources and sinks of a type; undefined if there are none, or if it accepts all. */
  #propertiesOf(name: string): FieldTable | undefined {
    const registry = this.#registry;
    const types = [...registry.sources(), ...registry.sinks()].filter((type) => type.name.toLowerCase() === name);
    const tables = types.flatMap(({ properties }) => (properties === undefined ? [] : [fieldsOf(properties)]));
    return tables.length === 0 ? undefined : Object.assign({}, ...tables);
  }

  /** @returns the type as it is registered @throws NotFound SOURCE_NOT_FOUND; InvalidInput PROPERTY_INVALID */
  async #checked(
    kind: StreamConfigKind,
    { type: given, name, properties }: Pick<Entry, 'type' | 'name' | 'properties'>
  ): Promise<string> {
    const type = given.toLowerCase();
    if (kind === 'schema') {
      await this.#checkSchema(type, name, properties);
      return type;
    }
    const registry = this.#registry;
    const isSink = registry.sinks().some((sink) => sink.name.toLowerCase() === type);
    if (kind === 'confKey' || !isSink) registry.source(type);
    const rows = Object.entries(this.#propertiesOf(type) ?? {});
    // what is missing may be in another section, or in the statement
    const optional = rows.map(([row, field]) => [row, { ...field, required: undefined, default: undefined }] as const);
    const selector = propertyOf(properties, SELECTOR) ?? '';
    if (kind === 'confKey' && selector !== '' && this.connected(type, properties) === properties)
      throw invalid(SELECTOR, `the id of a connection of the type ${type}`, selector);
    readProperties(Object.fromEntries(optional), properties, `${WORDS[kind]} ${name}`);
    return type;
  }

  async #checkSchema(type: string, name: string, { content }: Properties): Promise<void> {
    const format = this.#registry.formats().find((one) => one.name === type);
    if (format?.checkSchema === undefined)
      throw new NotFound('FORMAT_NOT_FOUND', `there is no format ${type} with schemas: add it to the option formats`);
    if (typeof content !== 'string' || content.trim() === '') throw invalid('content', 'the text of a schema', content);
    await format.checkSchema(name, content);
  }

  #merged(): Sections {
    const merged = new Map(Object.entries(this.#ofOptions).map(([type, all]) => [type, new Map(Object.entries(all))]));
    for (const { type, name, properties } of this.#all('confKey'))
      merged.set(type, (merged.get(type) ?? new Map<string, Properties>()).set(name, properties));
    const connected = (type: string, all: ReadonlyMap<string, Properties>) =>
      [...all].map(([name, properties]) => [name, this.connected(type, properties)] as const);
    return Object.fromEntries([...merged].map(([type, all]) => [type, Object.fromEntries(connected(type, all))]));
  }

  /** The names of the sections that take over a connection, also of those that no stream uses. */
  #sectionsWith({ kind, type, name }: Entry): string[] {
    if (kind !== 'connection') return [];
    const own = this.#all('confKey').filter((entry) => entry.type === type);
    const all = new Map(Object.entries(this.#ofOptions[type] ?? {}));
    for (const section of own) all.set(section.name, section.properties);
    return [...all].filter(([, properties]) => propertyOf(properties, SELECTOR) === name).map(([section]) => section);
  }

  /** The streams and rules whose next start needs an entry. */
  #useOf(entry: Entry): StreamConfigUse {
    const all = [...this.#catalogue.list('stream'), ...this.#catalogue.list('table')];
    const streams = all.filter((stream) => this.#isUsed(entry, stream)).map(({ name }) => name);
    const rules = [...this.#rules()].filter(
      (rule) =>
        sourcesOf(rule).some((name) => streams.includes(name)) || rule.actions.some((one) => isUsedBy(entry, one))
    );
    return { streams, rules: rules.map(({ definition }) => definition.id) };
  }

  #isUsed({ kind, type, name }: Entry, stream: StreamDefinition): boolean {
    const { CONF_KEY, FORMAT = '', SCHEMAID = '' } = stream.options;
    if (kind === 'schema') return FORMAT.toLowerCase() === type && SCHEMAID.startsWith(`${name}.`);
    const own = sourceTypeName(stream);
    if (own !== type) return false;
    const section = CONF_KEY || 'default';
    if (kind === 'confKey') return section === name;
    const sections = [section, 'default'].map((key) => this.#sectionOf(own, key));
    return sections.some((properties) => properties !== undefined && propertyOf(properties, SELECTOR) === name);
  }

  /** A section as it was given. */
  #sectionOf(type: string, name: string): Properties | undefined {
    return this.#entries.get(keyOf({ kind: 'confKey', type, name }))?.properties ?? this.#ofApp(type, name);
  }

  /** A section of the options. */
  #ofApp(type: string, name: string): Properties | undefined {
    return memberOf(memberOf(this.#ofOptions, type.toLowerCase()), name) as Properties | undefined;
  }
}

function isUsedBy(
  { kind, type, name }: Entry,
  action: { readonly type?: string; readonly properties: Properties }
): boolean {
  const [selector, format, schemaId] = [SELECTOR, 'format', 'schemaId'].map((one) =>
    propertyOf(action.properties, one)
  );
  if (kind === 'connection') return selector === name && action.type?.toLowerCase() === type;
  return kind === 'schema' && `${format}`.toLowerCase() === type && `${schemaId}`.startsWith(`${name}.`);
}

/** A property by its name without regard to case; the exact name takes precedence. */
function propertyOf(properties: Properties, name: string): unknown {
  if (Object.hasOwn(properties, name)) return properties[name];
  const lower = name.toLowerCase();
  return Object.entries(properties).find(([key]) => key.toLowerCase() === lower)?.[1];
}

/** Names of connections are unique; those of sections and schemas belong to their type. */
function keyOf({ kind, type = '', name }: StreamConfigKey): string {
  return kind === 'connection' ? `connection/${name}` : `${kind}/${type.toLowerCase()}/${name}`;
}

function invalid(field: string, expected: string, given: unknown): InvalidInput {
  return new InvalidInput('STREAM_CONFIG_INVALID', field, expected, given);
}
