import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BrokerError } from '../../lib/index.ts';
import { PLUGIN_TYPES, type PluginType, type ScriptDescription } from './api.ts';
import { messageOf } from './errors.ts';

/**
 * `installing`: its installation has not ended, so it is removed on the next start. `deleted`: it was deleted, and is removed when the service restarts.
 */
type PluginState = 'installing' | 'installed' | 'deleted';

/** An entry of the list of plugins. */
export interface PluginRecord {
  readonly type: PluginType;
  readonly name: string;
  readonly version: string;
  /** The name of its folder in `plugins/TYPE`, which is never reused. */
  readonly folder: string;
  /** The file name of its library. */
  readonly library: string;
  readonly state: PluginState;
  /** The functions, if a list was given. */
  readonly functions?: readonly string[];
}

interface Content {
  readonly plugins: readonly PluginRecord[];
  readonly scripts: readonly ScriptDescription[];
}

/** The installed plugins and functions, in a JSON file. */
export class PluginList {
  readonly #path: string;
  #content: Content = { plugins: [], scripts: [] };

  constructor(path: string) {
    this.#path = path;
  }

  get plugins(): readonly PluginRecord[] {
    return this.#content.plugins;
  }

  get scripts(): readonly ScriptDescription[] {
    return this.#content.scripts;
  }

  /** Read the file. @throws BrokerError PLUGINS_STATE_FAILED */
  async read(): Promise<void> {
    try {
      this.#content = checked(JSON.parse(await readFile(this.#path, 'utf8')));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        throw new BrokerError('PLUGINS_STATE_FAILED', `${this.#path} cannot be read: ${messageOf(error)}`, {
          cause: error
        });
    }
  }

  /**
   * Replace the given records, of which there may be none, by a record.
   * @throws BrokerError PLUGINS_STATE_FAILED; then nothing has changed
   */
  async put(record: PluginRecord, ...replaced: readonly (PluginRecord | undefined)[]): Promise<void> {
    const others = this.plugins.filter((each) => !replaced.includes(each));
    await this.#write({ ...this.#content, plugins: [...others, record] });
  }

  /** @throws BrokerError PLUGINS_STATE_FAILED; then nothing has changed */
  async remove(...records: readonly PluginRecord[]): Promise<void> {
    if (records.length === 0) return;
    await this.#write({ ...this.#content, plugins: this.plugins.filter((each) => !records.includes(each)) });
  }

  /** @throws BrokerError PLUGINS_STATE_FAILED; then nothing has changed */
  async setScripts(scripts: readonly ScriptDescription[]): Promise<void> {
    await this.#write({ ...this.#content, scripts });
  }

  async #write(content: Content): Promise<void> {
    const fresh = `${this.#path}.new`;
    try {
      await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
      const file = await open(fresh, 'w', 0o600);
      try {
        await file.writeFile(`${JSON.stringify(content, undefined, 2)}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(fresh, this.#path);
    } catch (error) {
      throw new BrokerError('PLUGINS_STATE_FAILED', `${this.#path} cannot be written: ${messageOf(error)}`, {
        cause: error
      });
    }
    this.#content = content;
  }
}

function checked(value: unknown): Content {
  const { plugins, scripts } = value as Partial<Content>;
  const isText = (text: unknown) => typeof text === 'string' && text !== '' && !/[/\\]/.test(text);
  const isRecord = ({ type, name, folder, library }: PluginRecord) =>
    PLUGIN_TYPES.includes(type) && [name, folder, library].every(isText);
  if (!Array.isArray(plugins) || !plugins.every(isRecord) || !Array.isArray(scripts))
    throw new Error('it is not a list of plugins; restore it, or delete it and install the plugins again');
  return { plugins, scripts };
}
