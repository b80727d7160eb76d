import { randomUUID } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isPlainObject } from '../../lib/adapter.ts';
import { BrokerError, type StreamProperties } from '../../lib/index.ts';
import { PLUGIN_TYPES, type PluginType } from './api.ts';
import { installError, messageOf } from './errors.ts';
import type { PluginRecord } from './plugin-list.ts';

/** Maximum size of a YAML file in bytes. */
const MAX_YAML_BYTES = 1024 * 1024;

/** The key of the files of a plugin. */
type PluginKey = Pick<PluginRecord, 'type' | 'name'>;

/**
 * The files of plugins.
 *
 * | path in `dataDir` | content |
 * |---|---|
 * | `plugins/list.json` | the list of plugins and functions |
 * | `plugins/incoming/ID` | an archive that is being installed |
 * | `plugins/TYPE/NAME@ID` | an installation: all files of the archive, and `install.log` |
 * | `etc/TYPE/NAME/` | the folder `etc` of the archive |
 * | `etc/TYPE/NAME.json`, `etc/sources/NAME.yaml` | the same files of the archive |
 */
export class PluginFiles {
  readonly listPath: string;
  readonly #root: string;

  /** @param root the folder of the stream service */
  constructor(root: string) {
    this.#root = root;
    this.listPath = join(root, 'plugins/list.json');
  }

  etcOf({ type, name }: PluginKey): string {
    return join(this.#root, 'etc', type, name);
  }

  libraryOf({ type, folder, library }: PluginRecord): string {
    return join(this.#root, 'plugins', type, folder, library);
  }

  /** Create an empty folder for an archive. */
  async begin(): Promise<string> {
    const folder = join(this.#root, 'plugins/incoming', randomUUID());
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return folder;
  }

  /** A new name for the folder of an installation. */
  folderName(name: string): string {
    return `${name}@${randomUUID()}`;
  }

  /** Move an unpacked archive to its final folder. */
  async settle(incoming: string, { type, folder }: PluginRecord): Promise<void> {
    // otherwise the folders above would determine whether a .js file is a module
    await writeFile(join(incoming, 'package.json'), '{}\n', { flag: 'wx', mode: 0o600 }).catch(ignoreExisting);
    await mkdir(join(this.#root, 'plugins', type), { recursive: true, mode: 0o700 });
    await rename(incoming, join(this.#root, 'plugins', type, folder));
  }

  /** Copy the `etc` files of the archive, in place of existing ones. */
  async publish(record: PluginRecord): Promise<void> {
    const from = join(this.#root, 'plugins', record.type, record.folder);
    await mkdir(join(this.#root, 'etc', record.type), { recursive: true, mode: 0o700 });
    for (const [source, target] of this.#published(record)) {
      const fresh = `${target}.${randomUUID()}.new`;
      const exists = await stat(join(from, source)).catch(ignoreMissing);
      if (exists !== undefined) await cp(join(from, source), fresh, { recursive: true });
      await rm(target, { recursive: true, force: true });
      if (exists !== undefined) await rename(fresh, target);
    }
  }

  /** Remove the files that `publish` has copied. */
  async unpublish(key: PluginKey): Promise<void> {
    for (const [, target] of this.#published(key)) await rm(target, { recursive: true, force: true });
  }

  /** Remove an installation. */
  async remove({ type, folder }: Pick<PluginRecord, 'type' | 'folder'>): Promise<void> {
    await rm(join(this.#root, 'plugins', type, folder), { recursive: true, force: true });
  }

  /** Remove the leftovers of incomplete installations: folders without a record, and copies. */
  async sweep(records: readonly PluginRecord[]): Promise<void> {
    await rm(join(this.#root, 'plugins/incoming'), { recursive: true, force: true });
    for (const type of PLUGIN_TYPES) {
      const folders = records.filter((each) => each.type === type).map(({ folder }) => folder);
      for (const entry of await entriesOf(join(this.#root, 'plugins', type)))
        if (entry.isDirectory() && entry.name.includes('@') && !folders.includes(entry.name))
          await this.remove({ type, folder: entry.name });
      for (const { name } of await entriesOf(join(this.#root, 'etc', type)))
        if (name.endsWith('.new')) await rm(join(this.#root, 'etc', type, name), { recursive: true, force: true });
    }
  }

  /** Libraries that were put into `plugins/TYPE` by hand: their file names. */
  async loose(type: PluginType): Promise<string[]> {
    const entries = await entriesOf(join(this.#root, 'plugins', type));
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  }

  /** The path of such a library. */
  loosePath(type: PluginType, library: string): string {
    return join(this.#root, 'plugins', type, library);
  }

  /** Move a library that was put into `plugins/TYPE` by hand, and copy the file of a source, to a folder like that of an archive. */
  async gather({ type, name, library }: PluginRecord): Promise<string> {
    const incoming = await this.begin();
    const yaml = `${name}.yaml`;
    if (type === 'sources') await cp(join(this.#root, 'etc', type, yaml), join(incoming, yaml));
    await rename(this.loosePath(type, library), join(incoming, library));
    return incoming;
  }

  /**
   * The sections of properties of a source.
   * @param from `archive`: as they were installed; `etc`: from `etc/sources/NAME.yaml`, where an operator may have changed them
   * @throws BrokerError PLUGIN_INSTALL_FAILED, PACKAGE_MISSING
   */
  async sections(
    { type, name, folder }: PluginRecord,
    from: 'archive' | 'etc'
  ): Promise<Readonly<Record<string, StreamProperties>>> {
    if (type !== 'sources') return {};
    const file = `${name}.yaml`;
    const path = from === 'etc' ? join(this.#root, 'etc', type, file) : join(this.#root, 'plugins', type, folder, file);
    const parse = await loadYaml();
    try {
      if ((await stat(path)).size > MAX_YAML_BYTES) throw new Error(`it is larger than ${MAX_YAML_BYTES} bytes`);
      return sectionsOf(parse(await readFile(path, 'utf8')));
    } catch (error) {
      throw installError(`${file}: ${messageOf(error)}`, { cause: error });
    }
  }

  *#published({ type, name }: PluginKey): Generator<readonly [source: string, target: string]> {
    yield ['etc', this.etcOf({ type, name })];
    yield [`${name}.json`, `${this.etcOf({ type, name })}.json`];
    if (type === 'sources') yield [`${name}.yaml`, `${this.etcOf({ type, name })}.yaml`];
  }
}

async function entriesOf(folder: string) {
  return (await readdir(folder, { withFileTypes: true }).catch(ignoreMissing)) ?? [];
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

async function loadYaml(): Promise<(text: string) => unknown> {
  try {
    const { parse } = await import('yaml');
    return (text) => parse(text) as unknown;
  } catch (cause) {
    throw new BrokerError('PACKAGE_MISSING', 'plugins of sources need the package yaml: npm install yaml', { cause });
  }
}

function sectionsOf(value: unknown): Readonly<Record<string, StreamProperties>> {
  if (value === null || value === undefined) return {};
  if (!isPlainObject(value)) throw new Error('expected sections such as "default:", with properties');
  const sections: Record<string, StreamProperties> = {};
  for (const [name, section] of Object.entries(value)) {
    if (section !== null && !isPlainObject(section)) throw new Error(`section ${name}: expected properties by name`);
    Object.defineProperty(sections, name, { value: section ?? {}, enumerable: true });
  }
  return sections;
}
