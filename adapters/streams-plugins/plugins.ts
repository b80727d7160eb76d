// Changes run one after the other, and the list of plugins is written before and after what it describes: an
// installation that was interrupted is removed at the next start, and a plugin that was to be replaced is published
// again. A plugin is loaded and defined before its record says that it is installed. A dropped plugin stays in effect
// until the service restarts; until then its version is `$deleted`. Plugins run with the rights of the process.

import { InvalidInput, NotFound, StateError } from '../../lib/index.ts';
import {
  PLUGIN_TYPES,
  type PluginDescription,
  type PluginFunction,
  type PluginInput,
  type PluginsApi,
  type PluginType
} from './api.ts';
import { Changes } from './changes.ts';
import { libraryName } from './content.ts';
import { definitionsOf } from './definitions.ts';
import { PluginFiles } from './files.ts';
import { Installer, type LoadedPlugin } from './installer.ts';
import { checkFree, checkFunctions, checkName, functionsOf } from './names.ts';
import { type PluginOptions, type PluginSettings, type PluginsHost, readPluginOptions } from './options.ts';
import { PluginList, type PluginRecord } from './plugin-list.ts';
import { offers } from './prebuild.ts';
import { redefine } from './registry.ts';
import { Scripts } from './scripts.ts';

/** The version of a deleted plugin, until the service restarts. */
const DELETED = '$deleted';
/** Exit code of a process that ends because a plugin was deleted, and the delay after the deletion. */
const EXIT_CODE = 100;
const EXIT_DELAY_MS = 1000;

/** The plugins of a stream service, created by `streamPlugins`. */
export class StreamPlugins implements PluginsApi {
  readonly scripts: Scripts;
  readonly #host: PluginsHost;
  readonly #settings: PluginSettings;
  readonly #files: PluginFiles;
  readonly #list: PluginList;
  readonly #installer: Installer;
  readonly #closing = new AbortController();
  readonly #changes = new Changes(this.#closing.signal);
  /** The active plugins, by folder. */
  readonly #loaded = new Map<string, LoadedPlugin>();
  #detach: () => void = () => {};
  /** Reported libraries that are not loaded. */
  readonly #reported = new Set<string>();

  /** @internal */
  constructor(host: PluginsHost, settings: PluginSettings) {
    const { dataDir, scriptTime, scriptMemory, onLog, maxScripts } = settings;
    this.#host = host;
    this.#settings = settings;
    this.#files = new PluginFiles(dataDir);
    this.#list = new PluginList(this.#files.listPath);
    this.#installer = new Installer(this.#files, settings, host.clock, this.#closing.signal);
    const limits = { timeMs: scriptTime, memoryBytes: scriptMemory, onLog, max: maxScripts };
    this.scripts = new Scripts(host, this.#list, this.#changes, limits);
  }

  /** @internal */
  async open(): Promise<this> {
    await this.#list.read();
    this.#detach = this.#host.streams.beforeStart(() => this.#changes.run(() => this.#begin()));
    if (this.#host.streams.isRunning) await this.#changes.run(() => this.#begin());
    return this;
  }

  /** End changes in progress, and accept no more. Definitions in the stream service remain. */
  close(): void {
    this.#detach();
    this.#closing.abort(new StateError('PLUGINS_CLOSED', 'the plugins of the stream service are closed'));
  }

  async create(type: PluginType, input: PluginInput): Promise<PluginDescription> {
    const checked = checkInput(type, input);
    return this.#changes.run(async () => {
      const { name } = checked;
      const existing = this.#record(type, name);
      if (existing?.state === 'deleted') throw deleted(name);
      if (existing !== undefined) throw new StateError('PLUGIN_EXISTS', `invalid name ${name}: duplicate`);
      if (this.#list.plugins.length >= this.#settings.maxPlugins)
        throw new StateError('PLUGINS_FULL', `there are ${this.#settings.maxPlugins} plugins, the option maxPlugins`);
      return this.#install(type, checked, undefined);
    });
  }

  async update(type: PluginType, input: PluginInput): Promise<PluginDescription> {
    const checked = checkInput(type, input);
    return this.#changes.run(async () => {
      const existing = this.#existing(type, checked.name);
      if (existing.state === 'deleted') throw deleted(checked.name);
      const { functions } = existing;
      return this.#install(type, functions === undefined ? checked : { functions, ...checked }, existing);
    });
  }

  async list(type: PluginType): Promise<string[]> {
    checkType(type);
    return this.#of(type).map(({ name }) => name);
  }

  async get(type: PluginType, name: string): Promise<PluginDescription> {
    checkType(type);
    return description(this.#existing(type, name));
  }

  /** @deprecated Use `get`. */
  describe(type: PluginType, name: string): Promise<PluginDescription> {
    return this.get(type, name);
  }

  async delete(
    type: PluginType,
    name: string,
    { restart = false }: Parameters<PluginsApi['delete']>[2] = {}
  ): Promise<void> {
    checkType(type);
    await this.#changes.run(async () => {
      const record = this.#record(type, name);
      if (record === undefined) throw new NotFound('PLUGIN_NOT_FOUND', `invalid name ${name}: not exist`);
      if (record.state === 'deleted' && !restart) throw deleted(name);
      if (record.state !== 'deleted') await this.#list.put({ ...record, state: 'deleted' }, record);
    });
    if (restart) await this.#stop(type, name);
  }

  /** @deprecated Use `delete`. */
  drop(...args: Parameters<StreamPlugins['delete']>): ReturnType<StreamPlugins['delete']> {
    return this.delete(...args);
  }

  async udfs(): Promise<string[]> {
    const installed = this.#of('functions').filter(({ state }) => state === 'installed');
    return installed.flatMap(functionsOf).sort();
  }

  async udf(name: string): Promise<PluginFunction> {
    const found = this.#of('functions').find((each) => each.state === 'installed' && functionsOf(each).includes(name));
    if (found === undefined) throw new NotFound('FUNCTION_NOT_FOUND', 'not found');
    return { name, plugin: found.name };
  }

  register(plugin: string, functions: readonly string[]): Promise<void> {
    return this.#changes.run(async () => {
      const record = this.#existing('functions', plugin);
      if (record.state === 'deleted') throw deleted(plugin);
      checkFunctions(functions);
      checkFree(functions, this.#list, { plugin });
      const fresh: PluginRecord = { ...record, functions: [...functions] };
      const old = this.#loaded.get(record.folder);
      const library = old?.library ?? (await this.#installer.load(fresh, 'etc')).library;
      const missing = functions.find((name) => library.find(name) === undefined);
      if (missing !== undefined) {
        const text = `the library of plugin ${plugin} does not export the function ${missing}`;
        throw new InvalidInput('PLUGIN_FUNCTIONS_INVALID', 'functions', 'exported functions', functions, text);
      }
      const place = { etcDir: this.#files.etcOf(record) };
      const definitions = await definitionsOf('functions', library, functions, place, {});
      await this.#replace(old, { record: fresh, library, definitions }, record);
    });
  }

  prebuild(type: PluginType): Promise<Record<string, string>> {
    checkType(type);
    const {
      pluginHosts: hosts,
      pluginVersion: version = this.#host.version,
      pluginOs: os,
      maxRedirects
    } = this.#settings;
    const closing = this.#closing.signal;
    return offers(type, { hosts, version, os }, { clock: this.#host.clock, closing, maxRedirects });
  }

  async #install(type: PluginType, input: PluginInput, previous: PluginRecord | undefined): Promise<PluginDescription> {
    const { name, functions } = input;
    if (type === 'functions') checkFree(functions ?? [name], this.#list, { plugin: name });
    const old = previous && this.#loaded.get(previous.folder);
    let record: PluginRecord | undefined;
    try {
      const fetched = await this.#installer.fetch(type, input);
      record = fetched.record;
      await this.#list.put(record); // removed on the next start, unless it is installed by then
      await this.#settle(fetched.folder, record, old, previous);
    } catch (error) {
      await this.#undo(record, previous);
      throw error;
    }
    await this.#sweep();
    return description(record);
  }

  /** Load and define the content of a folder. */
  async #settle(
    folder: string,
    record: PluginRecord,
    old: LoadedPlugin | undefined,
    ...replaced: readonly (PluginRecord | undefined)[]
  ): Promise<void> {
    await this.#files.settle(folder, record);
    const loaded = await this.#installer.load(record, 'archive');
    await this.#files.publish(record); // before rules can open it
    const installed: PluginRecord = { ...record, state: 'installed' };
    await this.#replace(old, { ...loaded, record: installed }, record, ...replaced);
  }

  /** Activate a loaded plugin in place of another one. */
  async #replace(
    old: LoadedPlugin | undefined,
    fresh: LoadedPlugin,
    ...replaced: readonly (PluginRecord | undefined)[]
  ): Promise<void> {
    const { streams } = this.#host;
    await redefine(streams, old?.definitions ?? [], fresh.definitions);
    try {
      await this.#list.put(fresh.record, ...replaced);
    } catch (error) {
      await redefine(streams, fresh.definitions, old?.definitions ?? []);
      throw error;
    }
    if (old !== undefined) this.#loaded.delete(old.record.folder);
    this.#loaded.set(fresh.record.folder, fresh);
  }

  /** Remove the leftovers of a failed installation. Files that cannot be removed now are removed on the next start. */
  async #undo(record: PluginRecord | undefined, previous: PluginRecord | undefined): Promise<void> {
    try {
      if (record !== undefined) {
        if (previous === undefined) await this.#files.unpublish(record);
        else await this.#files.publish(previous);
        await this.#list.remove(...this.#list.plugins.filter(({ folder }) => folder === record.folder));
      }
      await this.#files.sweep(this.#list.plugins);
    } catch (error) {
      this.#host.failed(error, 'removing a plugin whose installation has failed');
    }
  }

  async #sweep(): Promise<void> {
    try {
      await this.#files.sweep(this.#list.plugins);
    } catch (error) {
      this.#host.failed(error, 'removing files of former plugins');
    }
  }

  /** Called when the service starts: remove deleted and incompletely installed plugins, and load the others. */
  async #begin(): Promise<void> {
    for (const record of this.#list.plugins) {
      if (record.state === 'installed') continue;
      await this.#attempt(`removing the plugin ${record.name}`, async () => {
        const loaded = this.#loaded.get(record.folder);
        if (loaded !== undefined) await redefine(this.#host.streams, loaded.definitions, []);
        this.#loaded.delete(record.folder);
        const previous = this.#list.plugins.find((each) => each !== record && isSame(each, record));
        if (previous === undefined) await this.#files.unpublish(record);
        else await this.#files.publish(previous); // it was about to be replaced
        await this.#list.remove(record);
      });
    }
    await this.#sweep();
    for (const type of PLUGIN_TYPES)
      for (const file of await this.#files.loose(type))
        await this.#attempt(`the library ${file} of the folder of plugins`, () => this.#adopt(type, file));
    for (const record of this.#list.plugins)
      if (!this.#loaded.has(record.folder))
        await this.#attempt(`loading the plugin ${record.name}`, async () => {
          const loaded = await this.#installer.load(record, 'etc');
          await redefine(this.#host.streams, [], loaded.definitions);
          this.#loaded.set(record.folder, loaded);
        });
    await this.scripts.begin();
  }

  /** Install a library that was put manually into the folder of plugins. */
  async #adopt(type: PluginType, library: string): Promise<void> {
    const named = libraryName(library);
    if (named === undefined) return;
    const { name, version } = named;
    const { autoLoad, autoLoadName } = this.#settings;
    if (!autoLoad) {
      const path = this.#files.loosePath(type, library);
      if (this.#reported.has(path)) return;
      this.#reported.add(path);
      const text = `${path} was put there manually and is not loaded; remove it, or allow it with ${autoLoadName}`;
      throw new StateError('PLUGIN_NOT_LOADED', text);
    }
    checkName(name);
    if (this.#record(type, name) !== undefined)
      throw new StateError('PLUGIN_EXISTS', `invalid name ${name}: duplicate`);
    if (type === 'functions') checkFree([name], this.#list, {});
    const folder = this.#files.folderName(name);
    const record: PluginRecord = { type, name, version, library, folder, state: 'installed' };
    await this.#files.settle(await this.#files.gather(record), record);
    await this.#list.put(record);
  }

  async #attempt(during: string, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      this.#host.failed(error, during);
    }
  }

  async #stop(type: PluginType, name: string): Promise<void> {
    await this.#host.streams.stop();
    this.#settings.onStop?.({ type, name });
    if (this.#settings.exitOnPluginDrop) this.#host.clock.setTimeout(() => void this.#exit(), EXIT_DELAY_MS);
  }

  async #exit(): Promise<never> {
    await this.#attempt('stopping after a plugin was deleted', async () => {
      await this.#host.stop();
    });
    process.exit(EXIT_CODE);
  }

  #of(type: PluginType): PluginRecord[] {
    return this.#list.plugins.filter((record) => record.type === type && record.state !== 'installing');
  }

  #record(type: PluginType, name: string): PluginRecord | undefined {
    return this.#of(type).find((record) => record.name === name);
  }

  /** @throws NotFound PLUGIN_NOT_FOUND */
  #existing(type: PluginType, name: string): PluginRecord {
    const record = this.#record(type, name);
    if (record === undefined) throw new NotFound('PLUGIN_NOT_FOUND', 'not found');
    return record;
  }
}

function isSame(a: PluginRecord, b: PluginRecord): boolean {
  return a.type === b.type && a.name === b.name;
}

function description({ name, version, state, functions }: PluginRecord): PluginDescription {
  const shown = state === 'deleted' ? DELETED : version;
  return { name, version: shown, ...(functions === undefined ? {} : { functions }) };
}

function deleted(name: string): StateError {
  const text = 'the plugin is marked as deleted but Kuiper is not restarted for the change to take effect yet';
  return new StateError('PLUGIN_DELETED', `invalid name ${name}: ${text}`);
}

/** @throws NotFound PLUGIN_TYPE_UNKNOWN */
function checkType(type: PluginType): void {
  if (!PLUGIN_TYPES.includes(type))
    throw new NotFound('PLUGIN_TYPE_UNKNOWN', `there are plugins of ${PLUGIN_TYPES.join(', ')}, but not of ${type}`);
}

const MAX_PARAMETERS = 100;
const MAX_PARAMETER_CHARACTERS = 4096;

function checkInput(type: PluginType, input: PluginInput): PluginInput {
  checkType(type);
  const { name, file, functions, shellParas } = input ?? {};
  checkName(name);
  if (typeof file !== 'string')
    throw new InvalidInput('PLUGIN_FILE_INVALID', 'file', 'a URL', file, `invalid uri ${file ?? ''}`);
  if (functions !== undefined) {
    if (type !== 'functions')
      throw new InvalidInput(
        'PLUGIN_INPUT_INVALID',
        'functions',
        'nothing, except for plugins of functions',
        functions
      );
    checkFunctions(functions);
  }
  const isParameter = (each: unknown) =>
    typeof each === 'string' && each.length <= MAX_PARAMETER_CHARACTERS && !each.includes('\0');
  const isGood = Array.isArray(shellParas) && shellParas.length <= MAX_PARAMETERS && shellParas.every(isParameter);
  if (shellParas !== undefined && !isGood) {
    const expected = `a list of at most ${MAX_PARAMETERS} strings of at most ${MAX_PARAMETER_CHARACTERS} characters`;
    throw new InvalidInput('PLUGIN_INPUT_INVALID', 'shellParas', expected, shellParas);
  }
  return {
    ...{ name, file },
    ...(functions === undefined ? {} : { functions: [...functions] }),
    ...(shellParas === undefined ? {} : { shellParas: [...shellParas] })
  };
}

/**
 * The plugins of the stream service of a broker: `await streamPlugins(broker, { dataDir: 'data/streams' })`. Installed
 * plugins are loaded when the service starts, before the first rule, or now if it is running.
 *
 * Plugins and the `install.sh` of an archive run with the rights of the process: permit the installation only to users
 * who may have all these rights. Needs the package `yauzl`; sources need `yaml`, and functions in JavaScript
 * `quickjs-emscripten`.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN; BrokerError PLUGINS_STATE_FAILED
 */
export function streamPlugins(host: PluginsHost, options: PluginOptions): Promise<StreamPlugins> {
  return new StreamPlugins(host, readPluginOptions(options)).open();
}
