// A row of `SECTIONS` says how a section is read, checked and changed. Sections are imported in the order of the
// rows, so resources come before the rules that use them. The whole document is checked before anything changes;
// changes then follow in slices of `ENTRIES_AT_ONCE`, and the writes of a slice leave together, so a failing store
// can leave a document half imported; the result counts what has changed and names the errors. `replace` removes
// entries that are not in the document, but never the user `admin`. A document with a section that is not known is
// refused.

import { type AclRecord, checkAclRecord } from '../access/acl-records.ts';
import { checkApplication, type ExportedApplication } from '../access/applications.ts';
import { type BanInput, checkBan } from '../access/banned.ts';
import { type CredentialRecords, checkCredential, type ExportedCredential } from '../access/credential-records.ts';
import { checkUser, type ExportedUser } from '../access/management-users.ts';
import { BrokerError, errorText, InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import { type Broker, engineOf } from './broker.ts';
import {
  checkExportedResource,
  checkExportedRule,
  type ExportedResource,
  type ExportedRule
} from './computing/rules.ts';

/** The current version of documents. A document of a later version is refused. */
const VERSION = 1;
const FORMAT = 'embermq-configuration';
/** Number of entries that are checked or changed in one turn. Their writes are committed together. */
const ENTRIES_AT_ONCE = 100;
/** The user of the management interface that cannot be deleted. */
const PERMANENT_USER = 'admin';
/** Maximum number of errors that are reported. */
const MAX_ERRORS = 20;

/** A feature, with whether it is started. */
export interface ExportedFeature {
  /** The name of the feature, for example `retainer`. */
  readonly name: string;
  /** True if it is started. */
  readonly isStarted: boolean;
}

/** The value of an option that was set at run time. */
export interface ExportedSetting {
  /** The documented spelling of its name, or any other that `broker.configuration.set` accepts. */
  readonly key: string;
  /** As `broker.configuration.set` takes it; null: no value. */
  readonly value: unknown;
}

/** A source of authentication or of access rules that is stopped. */
export interface ExportedStoppedSource {
  /** The name of the source. */
  readonly name: string;
}

/** The contents of a document, by section. */
export interface ConfigurationSections {
  /** Client ids with hashes of their passwords. */
  readonly clientIds?: readonly ExportedCredential[];
  /** User names with hashes of their passwords. */
  readonly usernames?: readonly ExportedCredential[];
  /** User names that can be superusers, with hashes of their passwords. */
  readonly logins?: readonly ExportedCredential[];
  /** Access rules that were set at run time, the oldest first. */
  readonly acl?: readonly AclRecord[];
  /** Bans; those without `until` do not end. */
  readonly banned?: readonly BanInput[];
  /** Applications with hashes of their secrets. */
  readonly applications?: readonly ExportedApplication[];
  /** Users of the management interface with hashes of their passwords. */
  readonly users?: readonly ExportedUser[];
  /** The features, and whether each is started. */
  readonly features?: readonly ExportedFeature[];
  /** Options that were set at run time. They are changed together, or not at all. */
  readonly settings?: readonly ExportedSetting[];
  /** The sources that are stopped; `replace` starts the others. */
  readonly stoppedSources?: readonly ExportedStoppedSource[];
  /** Resources of rules, with their passwords. */
  readonly resources?: readonly ExportedResource[];
  /** Rules that were created at run time, except those with functions of the app; with the passwords in parameters of their actions. */
  readonly rules?: readonly ExportedRule[];
}

/**
 * The configuration of a broker that was set at run time, as `exportConfiguration` returns it. It contains hashes of passwords, but the
 * passwords of resources and those in parameters of actions in clear text.
 */
export interface ConfigurationDocument {
  /** Identifies the kind of document. */
  readonly format: 'embermq-configuration';
  /** The version of the format. */
  readonly version: number;
  /** Name of the node. */
  readonly node: string;
  /** In milliseconds since 1970. */
  readonly exportedAt: number;
  /** The entries by section. */
  readonly sections: ConfigurationSections;
}

/** The changes of an import in a section. */
export interface ImportedSection {
  /** Number of entries that were absent. */
  readonly added: number;
  /** Number of existing entries that are now as in the document. */
  readonly replaced: number;
  /** Number of entries that were not in the document. */
  readonly removed: number;
  /** Number of existing entries that are unchanged. */
  readonly skipped: number;
}

/** An entry that could not be changed. */
export interface ImportError {
  /** The section of the entry. */
  readonly section: string;
  /** The identity of the entry: a name, an id. */
  readonly entry: string;
  /** The reason, for people. */
  readonly message: string;
}

/** The result of an import. */
export interface ImportResult {
  /** The number of entries that were changed, by section. */
  readonly sections: Readonly<Record<string, ImportedSection>>;
  /** Entries whose change failed, because the store cannot be written, for example. The rest of their section was left unchanged. */
  readonly errors: readonly ImportError[];
}

/** The functions that read and change a section. */
interface Section<E> {
  /** The entries of the broker, in the order in which they were added. They can be read in several turns, while entries change. */
  entries(broker: Broker): Iterable<E>;
  /** The key that identifies an entry in its section, once it has been checked. */
  keyOf(entry: E, broker: Broker): string;
  /** @throws BrokerError */
  check(entry: E, broker: Broker): void;
  put?(broker: Broker, entry: E): Promise<unknown>;
  /** Tells whether an entry is put after the others, because it depends on them. Absent: none is. */
  isLate?(entry: E, broker: Broker): boolean;
  /** Absent: entries are not removed. */
  remove?(broker: Broker, entry: E): Promise<unknown>;
  /** Put and remove entries together or not at all, instead of `put` and `remove`. */
  changeAll?(broker: Broker, put: readonly E[], remove: readonly E[]): Promise<void>;
}

const SECTIONS: { readonly [N in keyof Required<ConfigurationSections>]: Section<never> } = {
  clientIds: credentials(({ access }) => access.clientIds),
  usernames: credentials(({ access }) => access.usernames),
  logins: credentials(({ access }) => access.logins),
  acl: section<AclRecord>({
    entries: ({ access: { acl } }) => acl.exported(),
    keyOf: ({ clientId, username, topic }) => JSON.stringify([clientId, username, topic]),
    check: checkAclRecord,
    put: ({ access }, record) => access.acl.set(record),
    remove: ({ access }, { clientId, username, topic }) =>
      access.acl.delete(clientId !== undefined ? { clientId } : username !== undefined ? { username } : 'all', topic)
  }),
  banned: section<BanInput>({
    entries: ({ access }) => access.banned.exported(),
    keyOf: ({ kind, who }) => `${kind}/${who}`,
    check: checkBan,
    put: ({ access }, ban) => access.banned.create({ until: Infinity, ...ban }),
    remove: ({ access }, { kind, who }) => access.banned.delete(kind, who)
  }),
  applications: section<ExportedApplication>({
    entries: ({ applications }) => applications.exported(),
    keyOf: ({ id }) => id,
    check: checkApplication,
    put: ({ applications }, application) => applications.restore(application),
    remove: ({ applications }, { id }) => applications.delete(id)
  }),
  users: section<ExportedUser>({
    entries: ({ users }) => users.exported(),
    keyOf: ({ name }) => name,
    check: checkUser,
    put: ({ users }, user) => users.restore(user),
    // another administrator of the document comes first, because the last one cannot become a viewer
    isLate: ({ name, tags }, { users }) => users.get(name)?.role === 'administrator' && tags !== 'administrator',
    remove: async ({ users }, { name }) => (name === PERMANENT_USER ? undefined : users.delete(name))
  }),
  features: section<ExportedFeature>({
    entries: ({ features }) => features.list().map(({ name, isStarted }) => ({ name, isStarted })),
    keyOf: ({ name }) => name,
    check: (feature, { features }) => {
      checkObject(feature, 'feature');
      checkNames(feature, ['name', 'isStarted'], 'a feature');
      const names = features.list().map(({ name }) => name);
      if (!names.includes(feature.name))
        throw new InvalidInput('RECORD_INVALID', 'name', names.join(', '), feature.name);
      if (typeof feature.isStarted !== 'boolean')
        throw new InvalidInput('RECORD_INVALID', 'isStarted', 'true or false', feature.isStarted);
    },
    put: ({ features }, { name, isStarted }) => (isStarted ? features.start(name) : features.stop(name))
  }),
  settings: section<ExportedSetting>({
    entries: ({ configuration }) => configuration.exported(),
    keyOf: ({ key }, { configuration }) => configuration.get(key).key,
    check: (setting, { configuration }) => {
      checkObject(setting, 'setting');
      checkNames(setting, ['key', 'value'], 'a setting');
      configuration.check(setting.key, setting.value);
    },
    changeAll: ({ configuration }, put, remove) =>
      configuration.setAll([
        ...put.map(({ key, value }) => [key, value] as const),
        ...remove.map(({ key }) => [key, undefined] as const)
      ])
  }),
  stoppedSources: section<ExportedStoppedSource>({
    entries: ({ access }) => access.list().flatMap(({ name, isStarted }) => (isStarted ? [] : [{ name }])),
    keyOf: ({ name }) => name,
    check: (stopped, { access }) => {
      checkObject(stopped, 'source');
      checkNames(stopped, ['name'], 'a stopped source');
      const names = access.list().map(({ name }) => name);
      if (!names.includes(stopped.name))
        throw new InvalidInput('RECORD_INVALID', 'name', names.join(', '), stopped.name);
    },
    put: ({ access }, { name }) => switched(name, () => access.stop(name)),
    remove: ({ access }, { name }) => switched(name, () => access.start(name))
  }),
  // resources before the rules that use them
  resources: section<ExportedResource>({
    entries: (broker) => engineOf(broker).kept.rules.exportedResources(),
    keyOf: ({ id }) => id,
    check: checkExportedResource,
    put: (broker, resource) => engineOf(broker).kept.rules.putResource(resource),
    remove: (broker, { id }) => engineOf(broker).kept.rules.removeResource(id)
  }),
  rules: section<ExportedRule>({
    entries: (broker) => engineOf(broker).kept.rules.exportedRules(),
    keyOf: ({ id }) => id,
    check: checkExportedRule,
    put: (broker, rule) => engineOf(broker).kept.rules.putRule(rule).catch(noteConnections),
    remove: ({ rules }, { id }) => rules.delete(id)
  })
};
const NAMES = Object.keys(SECTIONS) as (keyof ConfigurationSections)[];

function section<E>(row: Section<E>): Section<never> {
  return row as unknown as Section<never>;
}

function credentials(recordsOf: (broker: Broker) => CredentialRecords): Section<never> {
  return section<ExportedCredential>({
    entries: (broker) => recordsOf(broker).exported(),
    keyOf: ({ name }) => name,
    check: checkCredential,
    put: (broker, record) => recordsOf(broker).restore(record),
    remove: (broker, { name }) => recordsOf(broker).delete(name)
  });
}

/** Say in the error for a connection that a rule names that it cannot come from the document. */
function noteConnections(error: unknown): never {
  if (!(error instanceof InvalidInput) || error.field !== 'connectionSelector') throw error;
  const hint =
    'connections are not part of the document: streams.config.set, POST /connections or "embermq ctl stream add-connection" creates them';
  throw new BrokerError(error.code, `${error.message}; ${hint}`, { cause: error });
}

/** Start or stop a source. Its functions can throw any value. */
async function switched(name: string, change: () => Promise<unknown>): Promise<void> {
  try {
    await change();
  } catch (error) {
    if (error instanceof BrokerError) throw error;
    const why = errorText(error);
    throw new BrokerError('SOURCE_FAILED', `the source "${name}": ${why}`, { cause: error });
  }
}

/**
 * Export the configuration of a broker that was set at run time: credentials, access rules, bans, applications, users of the management
 * interface, which features are started, options, which sources are stopped, and rules with their resources. Passwords and secrets of
 * clients and users are not stored, so the document contains their hashes: a weak password can be guessed from them. Resources have their
 * passwords. The content of sources, such as files, is left out.
 *
 * A few entries are read in each turn. The document contains either state of an entry that is changed in the meantime.
 */
export async function exportConfiguration<Data>(broker: Broker<Data>): Promise<ConfigurationDocument> {
  const sections: Record<string, unknown[]> = {};
  const head = headOf(broker);
  for (const name of NAMES) {
    const entries: unknown[] = (sections[name] = []);
    for await (const some of exported(broker as Broker, name)) entries.push(...some);
  }
  return { ...head, sections };
}

/**
 * The document of `exportConfiguration` as the lines of a JSON text, one for each entry, so that two documents can be compared. The entries
 * are not collected in memory.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export async function* exportConfigurationLines<Data>(
  broker: Broker<Data>,
  options: {
    /** Names of sections that are left out. Default: none. */
    readonly without?: readonly (keyof ConfigurationSections)[];
  } = {}
): AsyncGenerator<string, undefined> {
  const names = namesWithout(options);
  yield `${JSON.stringify(headOf(broker)).slice(0, -1)},"sections":{`;
  for (const [at, name] of names.entries()) {
    yield `"${name}":[`;
    let last: string | undefined;
    for await (const some of exported(broker as Broker, name))
      for (const entry of some) {
        if (last !== undefined) yield `${last},`;
        last = JSON.stringify(entry);
      }
    if (last !== undefined) yield last;
    yield at === names.length - 1 ? ']' : '],';
  }
  yield '}}';
  return undefined;
}

function namesWithout(options: { readonly without?: readonly (keyof ConfigurationSections)[] }) {
  checkObject(options, 'options');
  checkNames(options, ['without'], 'exportConfigurationLines');
  const { without = [] } = options;
  if (!Array.isArray(without) || !without.every((name) => NAMES.includes(name)))
    throw new InvalidInput('OPTION_INVALID', 'without', `a list of ${NAMES.join(', ')}`, without);
  return NAMES.filter((name) => !without.includes(name));
}

function headOf<Data>({ settings, clock }: Broker<Data>): Omit<ConfigurationDocument, 'sections'> {
  return { format: FORMAT, version: VERSION, node: settings.node, exportedAt: clock.now() };
}

function exported(broker: Broker, name: keyof ConfigurationSections): AsyncGenerator<readonly unknown[], void> {
  return inSlices(SECTIONS[name].entries(broker), () => broker.directory.nextSlice());
}

/** Go through entries, some of them in each slice. */
async function* inSlices<E>(entries: Iterable<E>, pause: () => Promise<void>): AsyncGenerator<readonly E[], void> {
  let some: E[] = [];
  for (const entry of entries) {
    some.push(entry);
    if (some.length < ENTRIES_AT_ONCE) continue;
    yield some;
    some = [];
    await pause();
  }
  if (some.length > 0) yield some;
}

/** The last import into each broker. Imports run one after the other: two that replace sections would mix them. */
const IMPORTING = new WeakMap<object, Promise<void>>();

/**
 * Import a document of `exportConfiguration`. All of it is checked before anything is changed. The entries of a section are changed a few
 * in each turn, and those of a turn are persisted together or not at all. A second import starts when the first one has ended.
 * @throws InvalidInput IMPORT_INVALID, which names up to 20 entries; OPTION_INVALID, OPTION_UNKNOWN
 */
export function importConfiguration<Data>(
  broker: Broker<Data>,
  document: ConfigurationDocument,
  options: {
    /**
     * `merge`: add the entries that are absent, by their names. `replace`: make the sections of the document equal to it; other sections are
     * unchanged. The user `admin` is never removed. Default: `merge`.
     */
    readonly mode?: 'merge' | 'replace';
  } = {}
): Promise<ImportResult> {
  const before = IMPORTING.get(broker);
  const imported = Promise.resolve(before).then(() => importNow(broker, document, options));
  const done = imported.then(
    () => undefined,
    () => undefined
  );
  IMPORTING.set(broker, done);
  return imported;
}

async function importNow<Data>(
  broker: Broker<Data>,
  document: ConfigurationDocument,
  options: { readonly mode?: 'merge' | 'replace' }
): Promise<ImportResult> {
  checkObject(options, 'options');
  checkNames(options, ['mode'], 'importConfiguration');
  const { mode = 'merge' } = options;
  if (mode !== 'merge' && mode !== 'replace')
    throw new InvalidInput('OPTION_INVALID', 'mode', '"merge" or "replace"', mode);
  const given = broker as Broker;
  const pause = () => given.directory.nextSlice();
  await checkDocument(given, document, pause);
  const sections: Record<string, ImportedSection> = {};
  const errors: ImportError[] = [];
  for (const name of NAMES) {
    const entries = document.sections[name] as readonly never[] | undefined;
    if (entries === undefined) continue;
    const change = new SectionChange(given, name, entries, mode);
    errors.push(...(await change.run(pause)));
    sections[name] = change.counts;
  }
  return { sections, errors };
}

/** The change of a section. */
class SectionChange {
  readonly counts = { added: 0, replaced: 0, removed: 0, skipped: 0 };
  readonly #broker: Broker;
  readonly #name: keyof ConfigurationSections;
  readonly #entries: readonly never[];
  readonly #mode: 'merge' | 'replace';

  constructor(broker: Broker, name: keyof ConfigurationSections, entries: readonly never[], mode: 'merge' | 'replace') {
    this.#broker = broker;
    this.#name = name;
    this.#entries = entries;
    this.#mode = mode;
  }

  /** Change the section. This ends early with the first slice that has an error. @returns the errors */
  async run(pause: () => Promise<void>): Promise<ImportError[]> {
    const row = SECTIONS[this.#name];
    /** The entries of the broker that are not in the part of the document that has been read. */
    const others = new Map<string, never>();
    const broker = this.#broker;
    for await (const some of inSlices(row.entries(broker), pause))
      for (const entry of some) others.set(row.keyOf(entry, broker), entry);
    if (row.changeAll !== undefined) return this.#together(row.changeAll, others);
    const put = (entry: never) => this.#put(row, entry, others.delete(row.keyOf(entry, broker)));
    const late = (entry: never) => Number(row.isLate?.(entry, broker) === true);
    const inOrder = row.isLate === undefined ? this.#entries : this.#entries.toSorted((a, b) => late(a) - late(b));
    const errors = await this.#each(inOrder, put, pause);
    const { remove } = row;
    if (errors.length > 0 || this.#mode === 'merge' || remove === undefined) return errors;
    return this.#each([...others.values()], (entry) => this.#remove(remove, entry), pause);
  }

  async #together(
    changeAll: NonNullable<Section<never>['changeAll']>,
    others: Map<string, never>
  ): Promise<ImportError[]> {
    const { keyOf } = SECTIONS[this.#name];
    const isReplaced = this.#mode === 'replace';
    const known = this.#entries.filter((entry) => others.delete(keyOf(entry, this.#broker)));
    const added = this.#entries.filter((entry) => !known.includes(entry));
    const put = isReplaced ? this.#entries : added;
    const removed = isReplaced ? [...others.values()] : [];
    try {
      await changeAll(this.#broker, put, removed);
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error;
      const { message } = error;
      const entryOf = (entry: never) => ({ section: this.#name, entry: keyOf(entry, this.#broker), message });
      return [...put, ...removed].map(entryOf);
    }
    this.counts.added = added.length;
    this.counts.removed = removed.length;
    this.counts[isReplaced ? 'replaced' : 'skipped'] = known.length;
    return [];
  }

  async #put(row: Section<never>, entry: never, isKnown: boolean): Promise<void> {
    if (isKnown && this.#mode === 'merge') {
      this.counts.skipped++;
      return;
    }
    await row.put?.(this.#broker, entry);
    if (isKnown) this.counts.replaced++;
    else this.counts.added++;
  }

  async #remove(remove: NonNullable<Section<never>['remove']>, entry: never): Promise<void> {
    if ((await remove(this.#broker, entry)) === undefined && (entry as { name?: string }).name === PERMANENT_USER)
      return;
    this.counts.removed++;
  }

  async #each(
    entries: readonly never[],
    change: (entry: never) => Promise<void>,
    pause: () => Promise<void>
  ): Promise<ImportError[]> {
    const row = SECTIONS[this.#name];
    for (let from = 0; from < entries.length; from += ENTRIES_AT_ONCE) {
      if (from > 0) await pause();
      const some = entries.slice(from, from + ENTRIES_AT_ONCE);
      const results = await Promise.allSettled(some.map(change));
      const errors = results.flatMap((result, at) => {
        if (result.status === 'fulfilled') return [];
        if (!(result.reason instanceof BrokerError)) throw result.reason;
        return [{ section: this.#name, entry: row.keyOf(some[at], this.#broker), message: result.reason.message }];
      });
      if (errors.length > 0) return errors;
    }
    return [];
  }
}

/** Check all of a document. @throws InvalidInput IMPORT_INVALID */
async function checkDocument(
  broker: Broker,
  document: ConfigurationDocument,
  pause: () => Promise<void>
): Promise<void> {
  const fail = (why: string): never => {
    throw new InvalidInput('IMPORT_INVALID', 'document', 'a document of exportConfiguration', undefined, why);
  };
  if (typeof document !== 'object' || document === null || document.format !== FORMAT)
    fail(`"format" must be "${FORMAT}": this is not a document of exportConfiguration`);
  if (document.version !== VERSION)
    fail(`the document has version ${String(document.version)}; this version of embermq reads version ${VERSION}`);
  const { sections } = document;
  if (typeof sections !== 'object' || sections === null || Array.isArray(sections))
    fail('"sections" must be an object');
  const errors: string[] = [];
  let count = 0;
  const found = (where: string, why: string) => {
    if (count++ < MAX_ERRORS) errors.push(`${where}: ${why}`);
  };
  for (const [name, entries] of Object.entries(sections)) {
    if (!Object.hasOwn(SECTIONS, name)) found(name, `there is no such section; known are ${NAMES.join(', ')}`);
    else if (!Array.isArray(entries)) found(name, 'a section must be a list');
    else
      await checkSection(broker, name as keyof ConfigurationSections, entries as unknown as readonly never[], {
        pause,
        found
      });
  }
  if (count > 0)
    fail(
      `${count === 1 ? '1 error' : `${count} errors`}, so nothing was changed: ${errors.join('; ')}${count > MAX_ERRORS ? '; ...' : ''}`
    );
}

async function checkSection(
  broker: Broker,
  name: keyof ConfigurationSections,
  entries: readonly never[],
  { pause, found }: { pause(): Promise<void>; found(where: string, why: string): void }
): Promise<void> {
  const row = SECTIONS[name];
  const keys = new Set<string>();
  for (const [at, entry] of entries.entries()) {
    if (at % ENTRIES_AT_ONCE === ENTRIES_AT_ONCE - 1) await pause();
    try {
      row.check(entry, broker);
      const key = row.keyOf(entry, broker);
      if (keys.has(key)) found(`${name}[${at}]`, `there are two entries for ${key}`);
      keys.add(key);
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error;
      found(`${name}[${at}]`, error.message);
    }
  }
}
