// Three kinds of configuration have the same life: sections of source properties (CONF_KEY), connections, and schemas
// of formats. They are persisted as JSON, and shown without secrets. Sources and sinks see only the result: `section`
// has the properties of connections merged in, `connected` does it for a sink, and a format receives its schemas. A
// change applies to rules that start afterwards.

import { InvalidInput, NotFound, StateError, show } from '../../base/errors.ts';
import { checkSpellings, type FieldTable, fieldsOf } from '../../base/fields.ts';
import { isForOtherServer, namesServer } from '../../base/secret-lists.ts';
import { isPlain, memberOf, namedMember } from '../../base/secrets.ts';
import type {
  StreamConfigApi,
  StreamConfigEntry,
  StreamConfigKey,
  StreamConfigKind,
  StreamConfigState,
  StreamConfigUse
} from '../api.ts';
import type { Catalogue } from '../ddl/catalogue.ts';
import type { FormatType } from '../format.ts';
import type { StreamsHost, StreamTable } from '../host.ts';
import { overlaid, readProperties } from '../properties.ts';
import type { Registry } from '../registry.ts';
import { LOOKUP_PROPERTIES, SOURCE_PROPERTIES, type SourceSections } from '../sources/stream-settings.ts';
import { DEFAULT_BOUNDS } from '../streams-options.ts';
import type { Properties, StreamBounds, StreamDefinition, StreamsOptions } from '../types.ts';
import {
  checkEntry,
  checkedKey,
  checkJson,
  checkKind,
  invalid,
  keyOf,
  SELECTOR,
  WORDS
} from './configuration-entry.ts';
import { checkUsers, type ImportedUsers, NO_USE, NOT_IMPORTED, schemaOf, usesOf } from './configuration-use.ts';
import type { ReadStreamRule } from './definition.ts';
import { hideProperties, keepProperties } from './secrets.ts';

type Sections = NonNullable<StreamsOptions['sourceConfig']>;
/** The properties of sections of all types. */
const SECTION_PROPERTIES: FieldTable = {
  ...SOURCE_PROPERTIES,
  ...LOOKUP_PROPERTIES,
  lookup: { type: 'object', about: 'Properties of lookup tables.' },
  [SELECTOR]: { type: 'string', about: 'A connection.' }
};
/** An entry, with the length of its JSON. */
type Entry = StreamConfigEntry & { readonly bytes: number };

/** `broker.streams.config`. The service makes one change at a time. */
export class StreamConfiguration implements StreamConfigApi, SourceSections {
  readonly #table: StreamTable<string>;
  /** The sections of the option `sourceConfig`; types are in lower case. */
  readonly #ofOptions: Sections;
  readonly #bounds: StreamBounds;
  readonly #registry: Registry;
  readonly #catalogue: Catalogue;
  readonly #rules: () => Iterable<ReadStreamRule>;
  readonly #ruleActions: StreamsHost['ruleActions'];
  #entries = new Map<string, Entry>();
  /** Make a configuration without entries. */
  readonly #empty: () => StreamConfiguration;

  constructor(
    host: Pick<StreamsHost, 'configuration' | 'options' | 'ruleActions'>,
    registry: Registry,
    setup: { readonly catalogue: Catalogue; readonly rules: () => Iterable<ReadStreamRule> }
  ) {
    const { configuration, options, ruleActions } = host;
    const { catalogue, rules } = setup;
    this.#empty = () => new StreamConfiguration(host, registry, setup);
    this.#table = configuration;
    this.#bounds = { ...DEFAULT_BOUNDS, ...options.bounds };
    const types = new Map<string, Readonly<Record<string, Properties>>>();
    for (const [type, all] of Object.entries(options.sourceConfig ?? {}))
      types.set(type.toLowerCase(), { ...types.get(type.toLowerCase()), ...all });
    this.#ofOptions = Object.fromEntries(types);
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
        const { kind, type, name, properties } = JSON.parse(json) as StreamConfigEntry;
        this.#entries.set(key, { kind, type, name, properties, bytes: Buffer.byteLength(json) });
        if (kind === 'schema') await this.#checkSchema(type, name, properties);
      } catch (error) {
        errors.push(error);
      }
    }
    return errors;
  }

  /** @param warn as for `connected` */
  section(type: string, name: string, warn: (text: string) => void): Properties | undefined {
    const given = this.#given(type, name);
    return given && this.connected(type, given, warn);
  }

  sectionNames(type: string): string[] {
    const own = this.#all('confKey').filter((entry) => entry.type === type.toLowerCase());
    return [...own.map(({ name }) => name), ...Object.keys(memberOf(this.#ofOptions, type.toLowerCase()) ?? {})];
  }

  schemaText({ options: { FORMAT, SCHEMAID } }: StreamDefinition): unknown {
    return schemaOf(FORMAT, SCHEMAID).map((key) => this.#entries.get(key)?.properties.content)[0];
  }

  /**
   * The properties of a source or a sink, over those of the connection that they name.
   * @param warn called if the connection does not exist: in 0.2 the name had no effect
   * @throws InvalidInput PROPERTY_INVALID if the connection does not exist, without `warn`, if they name another server, or if
   * a property has two spellings
   */
  connected(type: string, properties: Properties, warn?: (text: string) => void): Properties {
    checkSpellings(properties, 'PROPERTY_INVALID', { what: type });
    const name = namedMember(properties, SELECTOR) ?? '';
    if (name === '') return properties;
    const key = keyOf({ kind: 'connection', name: `${name}` });
    const found = this.#entries.get(key);
    const own = Object.entries(properties).filter(([key]) => key.toLowerCase() !== SELECTOR.toLowerCase());
    if (found === undefined || typeof name !== 'string' || found.type !== type.toLowerCase()) {
      const text = `${SELECTOR}: there is no connection ${show(name)} of the type ${type}`;
      const expected = `the id of a connection of the type ${type}`;
      if (warn === undefined)
        throw new InvalidInput('PROPERTY_INVALID', SELECTOR, expected, name, `${text}; create it first`);
      warn(`${text}, so it has no effect; create it, or leave the property out`);
      return Object.fromEntries(own);
    }
    const all = overlaid(found.properties, Object.fromEntries(own));
    if (!namesServer(found.properties) || !isForOtherServer(all, found.properties)) return all;
    const text = `${SELECTOR}: the connection ${name} names the server; leave out ${SELECTOR}, or the server beside it`;
    throw new InvalidInput('PROPERTY_INVALID', SELECTOR, 'a connection to the same server', name, text);
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

  async list(kind: StreamConfigKind): Promise<StreamConfigState[]> {
    checkKind(kind);
    const uses = this.#uses();
    return this.#all(kind).map((entry) => this.#shown(entry, uses));
  }

  async get(key: StreamConfigKey): Promise<StreamConfigState | undefined> {
    const found = this.#entries.get(checkedKey(key));
    return found && this.#shown(found, this.#uses());
  }

  set(given: StreamConfigEntry, options: { readonly isNew?: boolean } = {}): Promise<string[]> {
    return this.#set(given, options, NOT_IMPORTED);
  }

  async #set(
    given: StreamConfigEntry,
    options: { readonly isNew?: boolean },
    imported: ImportedUsers
  ): Promise<string[]> {
    checkEntry(given);
    if (!isPlain(options)) throw invalid('options', 'an object with isNew', options);
    const { isNew } = options;
    const { kind, name } = given;
    const key = keyOf(given);
    const exists = this.#entries.has(key);
    if (isNew === true && exists) throw new StateError('STREAM_CONFIG_EXISTS', `${WORDS[kind]} ${name} already exists`);
    if (isNew === false && !exists)
      throw new NotFound('STREAM_CONFIG_NOT_FOUND', `${WORDS[kind]} ${name} is not found`);
    const { entry, json, warnings } = await this.#prepared(given, imported);
    await this.#table.set(key, json);
    this.#entries.set(key, entry);
    return warnings;
  }

  /** All entries with their secrets, each after those that it names. */
  export(): StreamConfigEntry[] {
    const all = (['connection', 'confKey', 'schema'] as const).flatMap((kind) => this.#all(kind));
    return all.map(({ bytes: _, ...entry }) => entry);
  }

  /** A copy in which an import is checked. */
  copy(): StreamConfiguration {
    const copy = this.#empty();
    copy.#entries = new Map(this.#entries);
    return copy;
  }

  /** Set an entry of a copy. @throws as `set` */
  async stage(given: StreamConfigEntry, imported: ImportedUsers): Promise<void> {
    checkEntry(given);
    const { entry } = await this.#prepared(given, imported);
    this.#entries.set(keyOf(given), entry);
  }

  /** Set an entry of an import. @returns what has to be restarted to use it */
  async import(given: StreamConfigEntry, imported: ImportedUsers): Promise<StreamConfigUse> {
    const json = () => JSON.stringify(this.#entries.get(keyOf(given)));
    const before = json();
    await this.#set(given, {}, imported);
    return json() === before ? NO_USE : (this.#uses().get(keyOf(given)) ?? NO_USE);
  }

  /** Check an entry, and put the current secrets in the place of `******`. */
  async #prepared({ kind, type, name, properties }: StreamConfigEntry, imported: ImportedUsers) {
    const before = this.#entries.get(keyOf({ kind, type, name }));
    if (before !== undefined && before.type !== type.toLowerCase())
      throw invalid('type', `${before.type}, the type of the connection ${name}`, type);
    if (kind === 'confKey' && this.#ofApp(type, name) !== undefined)
      throw new StateError('STREAM_OF_APP', `${name} is defined in the options of the broker; change it there`);
    const owner = { what: `${WORDS[kind]} ${name}`, table: this.#propertiesOf(type.toLowerCase()) };
    const kept = kind === 'schema' ? properties : keepProperties(properties, before?.properties, owner);
    if (kind === 'connection' && before !== undefined && isForOtherServer(kept, before.properties))
      checkUsers({ type, name }, imported, {
        sections: this.sectionNames(type).map((one) => [one, this.#given(type, one)]),
        rules: this.#rules(),
        ruleActions: this.#ruleActions(),
        tableOf: (its) => this.#propertiesOf(its.toLowerCase())
      });
    checkJson(kept, 'properties');
    const entry = { kind, type: type.toLowerCase(), name, properties: kept };
    const warnings = await this.#checked(entry);
    const json = JSON.stringify(entry);
    const bytes = Buffer.byteLength(json);
    this.#checkRoom(bytes, before);
    return { entry: { ...entry, bytes }, json, warnings };
  }

  /** @throws StateError STREAM_LIMIT */
  #checkRoom(bytes: number, before: Entry | undefined): void {
    const { configEntries, configBytes } = this.#bounds;
    const limit = (text: string, option: keyof StreamBounds) =>
      new StateError(
        'STREAM_LIMIT',
        `there are at most ${text} (option streams.bounds.${option}): delete some, or raise the option`
      );
    if (before === undefined && this.#entries.size >= configEntries)
      throw limit(`${configEntries} sections, connections and schemas`, 'configEntries');
    let total = bytes - (before?.bytes ?? 0);
    for (const entry of this.#entries.values()) total += entry.bytes;
    if (total > configBytes) throw limit(`${configBytes} bytes of sections, connections and schemas`, 'configBytes');
  }

  async delete(key: StreamConfigKey): Promise<boolean> {
    const found = this.#entries.get(checkedKey(key));
    if (found === undefined) return false;
    const { sections, streams, rules, brokerRules } = this.#uses().get(keyOf(found)) ?? NO_USE;
    const users = [
      ...sections.map((one) => `section ${one}`),
      ...streams.map((one) => `stream ${one}`),
      ...rules.map((one) => `rule ${one}`),
      ...brokerRules.map((one) => `broker rule ${one}`)
    ];
    if (users.length > 0)
      throw new StateError('STREAM_CONFIG_IN_USE', `${WORDS[found.kind]} ${found.name} is used by ${users.join(', ')}`);
    this.#entries.delete(keyOf(key)); // at once, so that no rule can begin to use it
    try {
      await this.#table.delete(keyOf(key));
    } catch (error) {
      this.#entries.set(keyOf(key), found);
      throw error;
    }
    return true;
  }

  #all(kind: StreamConfigKind): Entry[] {
    const found = [...this.#entries.values()].filter((entry) => entry.kind === kind);
    return found.sort((a, b) => (`${a.type}/${a.name}` < `${b.type}/${b.name}` ? -1 : 1));
  }

  #shown({ kind, type, name, properties }: Entry, uses: ReadonlyMap<string, StreamConfigUse>): StreamConfigState {
    const shown = kind === 'schema' ? properties : hideProperties(properties, this.#propertiesOf(type));
    return { kind, type, name, properties: shown, use: uses.get(keyOf({ kind, type, name })) ?? NO_USE };
  }

  /** The properties of the sources and sinks of a type; undefined if there are none, or if it accepts all. */
  #propertiesOf(name: string): FieldTable | undefined {
    const registry = this.#registry;
    const types = [...registry.sources(), ...registry.sinks()].filter((type) => type.name.toLowerCase() === name);
    const tables = types.flatMap(({ properties }) => (properties === undefined ? [] : [fieldsOf(properties)]));
    return tables.length === 0 ? undefined : Object.assign({}, ...tables);
  }

  /** @returns a sentence for each property without effect @throws NotFound SOURCE_NOT_FOUND; InvalidInput PROPERTY_INVALID */
  async #checked({ kind, type, name, properties }: StreamConfigEntry): Promise<string[]> {
    const warnings: string[] = [];
    if (kind === 'schema') {
      await this.#checkSchema(type, name, properties);
      return warnings;
    }
    const registry = this.#registry;
    const isSink = registry.sinks().some((sink) => sink.name.toLowerCase() === type);
    if (kind === 'confKey' || !isSink) registry.source(type);
    if (kind === 'confKey') this.connected(type, properties);
    const table = this.#propertiesOf(type);
    const rows = Object.entries({ ...(kind === 'confKey' ? SECTION_PROPERTIES : {}), ...table });
    // what is missing may be in another section, or in the statement
    const optional = rows.map(([row, field]) => [row, { ...field, required: undefined, default: undefined }] as const);
    const warn = table && ((text: string) => void warnings.push(text));
    readProperties(Object.fromEntries(optional), properties, `${WORDS[kind]} ${name}`, warn);
    return warnings;
  }

  async #checkSchema(type: string, name: string, { content }: Properties): Promise<void> {
    const format = this.#registry.formats().find((one) => one.name === type);
    if (format?.checkSchema === undefined)
      throw new NotFound('FORMAT_NOT_FOUND', `there is no format ${type} with schemas: add it to the option formats`);
    if (typeof content !== 'string' || content.trim() === '') throw invalid('content', 'the text of a schema', content);
    await format.checkSchema(name, content);
  }

  /** A section as it was given. */
  #given(type: string, name: string): Properties | undefined {
    return this.#entries.get(keyOf({ kind: 'confKey', type, name }))?.properties ?? this.#ofApp(type, name);
  }

  /** The users of all entries, by key. In one pass, because there may be many streams and rules. */
  #uses(): ReadonlyMap<string, StreamConfigUse> {
    return usesOf({
      sections: [...this.#entries.values(), ...this.#entriesOfApp()].filter(({ kind }) => kind === 'confKey'),
      section: (type, name) => this.#given(type, name),
      typeOf: (connection) => this.#entries.get(keyOf({ kind: 'connection', name: connection }))?.type,
      streams: [...this.#catalogue.list('stream'), ...this.#catalogue.list('table')],
      rules: this.#rules(),
      ruleActions: this.#ruleActions()
    });
  }

  #entriesOfApp(): StreamConfigEntry[] {
    return Object.entries(this.#ofOptions).flatMap(([type, all]) =>
      Object.entries(all).map(([name, properties]) => ({ kind: 'confKey', type, name, properties }) as const)
    );
  }

  /** A section of the options. */
  #ofApp(type: string, name: string): Properties | undefined {
    return memberOf(memberOf(this.#ofOptions, type.toLowerCase()), name) as Properties | undefined;
  }
}
