import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BrokerError, type Clock } from '../../lib/index.ts';
import { withDeadline } from '../outgoing/index.ts';
import type { PluginInput, PluginType } from './api.ts';
import { unpack } from './archive.ts';
import { contentOf } from './content.ts';
import { type Definition, definitionsOf } from './definitions.ts';
import { readArchive } from './download.ts';
import { installError } from './errors.ts';
import type { PluginFiles } from './files.ts';
import { runInstallScript } from './install-script.ts';
import { type Library, loadLibrary } from './library.ts';
import { functionsOf } from './names.ts';
import type { PluginSettings } from './options.ts';
import type { PluginRecord } from './plugin-list.ts';

/** A plugin whose library is loaded. */
export interface LoadedPlugin {
  readonly record: PluginRecord;
  readonly library: Library;
  readonly definitions: readonly Definition[];
}

/** Turns archives into folders of plugins, and these into definitions. */
export class Installer {
  readonly #files: PluginFiles;
  readonly #settings: PluginSettings;
  readonly #clock: Clock;
  readonly #closing: AbortSignal;

  constructor(files: PluginFiles, settings: PluginSettings, clock: Clock, closing: AbortSignal) {
    this.#files = files;
    this.#settings = settings;
    this.#clock = clock;
    this.#closing = closing;
  }

  /**
   * Get an archive, unpack and check it, and run its script.
   * @returns its record, and the folder that `PluginFiles.settle` moves
   * @throws errors of `PluginsApi.create`
   */
  async fetch(
    type: PluginType,
    input: PluginInput
  ): Promise<{ readonly record: PluginRecord; readonly folder: string }> {
    const { maxArchiveSize, maxUnpackedSize, maxEntries, downloadTimeout, maxRedirects, onLog } = this.#settings;
    const [clock, closing] = [this.#clock, this.#closing];
    const bytes = await readArchive(input.file, {
      ...{ maxBytes: maxArchiveSize, timeoutMs: downloadTimeout, maxRedirects, clock, closing },
      failed: (reason) => onLog?.(input.name, `the archive cannot be read: ${reason}`)
    });
    const folder = await this.#files.begin();
    const paths = await unpack(bytes, folder, { maxEntries, maxUnpackedBytes: maxUnpackedSize });
    const { name, functions } = input;
    const { library, version, hasScript } = contentOf(type, name, paths);
    if (hasScript) await this.#runScript(folder, input);
    const record: PluginRecord = {
      ...{ type, name, version, library, folder: this.#files.folderName(name), state: 'installing' },
      ...(functions === undefined ? {} : { functions })
    };
    return { record, folder };
  }

  async #runScript(folder: string, { shellParas: args = [] }: PluginInput): Promise<void> {
    if (!this.#settings.installScripts) {
      const text = 'fail to install plugin: the archive has install.sh, and the option installScripts is false';
      throw new BrokerError('PLUGIN_SCRIPT_REFUSED', `${text}; install what it needs by hand, and leave it out`);
    }
    const timeoutMs = this.#settings.installTimeout;
    const output = await runInstallScript({ folder, args, timeoutMs, clock: this.#clock, closing: this.#closing });
    await writeFile(join(folder, 'install.log'), output, { mode: 0o600 });
  }

  /**
   * Load the library of a plugin.
   * @param from the origin of the properties of a source, see `PluginFiles.sections`
   * @throws BrokerError PLUGIN_INSTALL_FAILED, PACKAGE_MISSING
   */
  async load(record: PluginRecord, from: 'archive' | 'etc'): Promise<LoadedPlugin> {
    const sections = await this.#files.sections(record, from);
    const timeoutMs = this.#settings.installTimeout;
    const late = () => installError(`loading ${record.library} took longer than ${timeoutMs} ms`);
    return withDeadline({ clock: this.#clock, ms: timeoutMs, late, outers: [this.#closing] }, async () => {
      const library = await loadLibrary(this.#files.libraryOf(record));
      const names = record.type === 'functions' ? functionsOf(record) : [record.name];
      const place = { etcDir: this.#files.etcOf(record) };
      return { record, library, definitions: await definitionsOf(record.type, library, names, place, sections) };
    });
  }
}
