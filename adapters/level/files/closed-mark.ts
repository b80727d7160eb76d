import { open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { FILE_MODE } from './folder.ts';
import { readManifest } from './manifest.ts';
import { type Damage, numberedFiles } from './tables.ts';

const FILE_NAME = 'CLOSED';
const VERSION = 1;

interface ClosedFile {
  readonly name: string;
  readonly bytes: number;
  readonly checksum: number;
}

/** The content of the file CLOSED: this object as one line of JSON, and the checksum of that line as a second line. */
interface ClosedState {
  readonly version: number;
  /**
   * The current manifest. LevelDB starts a new one at each open, so the mark is void once the folder has been opened.
   */
  readonly manifest: string;
  readonly files: readonly ClosedFile[];
}

/**
 * The mark of a clean stop: name, size and checksum of the manifest and of each log after LevelDB has closed the folder.
 *
 * A log that loses its end afterwards looks like a log after a crash; only the mark shows the difference. Tables need no mark: the manifest
 * has their sizes, and each block has a checksum.
 */
export class ClosedMark {
  readonly #folder: string;
  #manifestAtClose: string | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Record the current manifest; to be called before LevelDB closes the folder. */
  async rememberManifest(): Promise<void> {
    this.#manifestAtClose = await this.#currentManifest();
  }

  /**
   * Write the mark; to be called after LevelDB has closed the folder. The files are synced first, so the mark is right after a loss of
   * power.
   * @throws Error from the file system; then there is no mark
   */
  async write(): Promise<void> {
    const manifest = this.#manifestAtClose;
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
    // if another process has opened the folder meanwhile, the mark names an old manifest and is void
    const state: ClosedState = { version: VERSION, manifest, files };
    const line = JSON.stringify(state);
    const path = join(this.#folder, FILE_NAME);
    await writeFile(`${path}.new`, `${line}\n${crc32(line)}\n`, { flush: true, mode: FILE_MODE });
    await rename(`${path}.new`, path);
  }

  /** Find files that have changed since the folder was closed. Without a mark, or with one that is void, the list is empty. */
  async damages(): Promise<Damage[]> {
    const state = await this.#read();
    if (state === undefined || state.manifest !== (await this.#currentManifest())) return [];
    const damages: Damage[] = [];
    for (const { name, bytes, checksum } of state.files) {
      const found = await readFile(join(this.#folder, name)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
        return undefined;
      });
      const report = (why: string | undefined) => damages.push({ file: name, why, blockEnds: [] });
      if (found === undefined) report(undefined);
      else if (found.length !== bytes)
        report(`it has ${found.length} bytes, but had ${bytes} when the store was closed`);
      else if (crc32(found) !== checksum) report('its content has changed since the store was closed');
    }
    return damages;
  }

  /** Delete the mark, which does not apply to a repaired folder. */
  async remove(): Promise<void> {
    await rm(join(this.#folder, FILE_NAME), { force: true });
  }

  async #read(): Promise<ClosedState | undefined> {
    try {
      const [line, sum] = (await readFile(join(this.#folder, FILE_NAME), 'utf8')).split('\n');
      const state = JSON.parse(line) as ClosedState;
      return sum === `${crc32(line)}` && state.version === VERSION ? state : undefined;
    } catch {
      return undefined; // missing or unreadable
    }
  }

  async #currentManifest(): Promise<string | undefined> {
    const text = await readFile(join(this.#folder, 'CURRENT'), 'latin1').catch(() => '');
    return /^MANIFEST-\d+$/m.exec(text)?.[0];
  }
}
