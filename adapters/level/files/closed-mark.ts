import { open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { readManifest } from './manifest.ts';
import { type Damage, numberedFiles } from './tables.ts';

const NAME = 'CLOSED';
const VERSION = 1;

interface ClosedFile {
  readonly name: string;
  readonly bytes: number;
  readonly checksum: number;
}

/** What `CLOSED` says: JSON in one line, and a checksum of it in a second one. */
interface ClosedState {
  readonly version: number;
  /** The manifest that was in force. LevelDB begins a new one at each open, so whoever opens the folder makes the mark void. */
  readonly manifest: string;
  readonly files: readonly ClosedFile[];
}

/**
 * The mark of a clean stop: the manifest and the logs as they are when LevelDB has closed the folder. What a log lost at its end looks as
 * after a crash, and only this tells the difference. Tables need no mark: the manifest has their sizes, and each block its checksum.
 */
export class ClosedMark {
  readonly #folder: string;
  #manifest: string | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Before LevelDB closes the folder: remember which manifest is its own. */
  async prepare(): Promise<void> {
    this.#manifest = await this.#current();
  }

  /**
   * After LevelDB has closed it. The files are brought to the disk first, so that the mark also holds when the machine fails afterwards.
   * @throws what the disk says; then there is no mark
   */
  async write(): Promise<void> {
    const manifest = this.#manifest;
    if (manifest === undefined) return;
    const { isReplayed } = await readManifest(this.#folder, manifest);
    const logs = (await numberedFiles(this.#folder)).filter(
      ({ name, number }) => name.endsWith('.log') && isReplayed(number)
    );
    const files: ClosedFile[] = [];
    for (const name of [manifest, ...logs.map((log) => log.name)]) {
      const file = await open(join(this.#folder, name), 'r+');
      try {
        await file.sync();
        const bytes = await file.readFile();
        files.push({ name, bytes: bytes.length, checksum: crc32(bytes) });
      } finally {
        await file.close();
      }
    }
    // another process may have opened it meanwhile: then the mark is void from the beginning
    const state: ClosedState = { version: VERSION, manifest, files };
    const line = JSON.stringify(state);
    const path = join(this.#folder, NAME);
    await writeFile(`${path}.new`, `${line}\n${crc32(line)}\n`, { flush: true });
    await rename(`${path}.new`, path);
  }

  /** Files that are not as they were when the folder was closed; none where it was opened since, or was not closed by this package. */
  async damages(): Promise<Damage[]> {
    const state = await this.#read();
    if (state === undefined || state.manifest !== (await this.#current())) return [];
    const damages: Damage[] = [];
    for (const { name, bytes, checksum } of state.files) {
      const found = await readFile(join(this.#folder, name)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
        return undefined;
      });
      const damage = (why: string | undefined) => damages.push({ file: name, why, blockEnds: [] });
      if (found === undefined) damage(undefined);
      else if (found.length !== bytes)
        damage(`it has ${found.length} bytes and had ${bytes} when the store was closed`);
      else if (crc32(found) !== checksum) damage('it is not as it was when the store was closed');
    }
    return damages;
  }

  /** The folder is made anew. */
  async remove(): Promise<void> {
    await rm(join(this.#folder, NAME), { force: true });
  }

  async #read(): Promise<ClosedState | undefined> {
    try {
      const [line, sum] = (await readFile(join(this.#folder, NAME), 'utf8')).split('\n');
      const state = JSON.parse(line) as ClosedState;
      return sum === `${crc32(line)}` && state.version === VERSION ? state : undefined;
    } catch {
      return undefined; // there is none, or it says nothing
    }
  }

  async #current(): Promise<string | undefined> {
    const text = await readFile(join(this.#folder, 'CURRENT'), 'latin1').catch(() => '');
    return /^MANIFEST-\d+$/m.exec(text)?.[0];
  }
}
