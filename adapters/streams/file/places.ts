import { constants, type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { BrokerError, InvalidInput } from '../../../lib/index.ts';

/** The folder for files of rules, in the folder of the stream service. */
const FILES = 'files';
/** Folders of the stream service that are written only by its own code. */
const OWNED = ['plugins', 'etc', 'schemas'];

/** Folder options of sources and sinks. */
export interface FolderOptions {
  /**
   * Folders that rules may use, in addition to the folder `files` of the stream service. `/` allows all. Default: none.
   */
  readonly folders?: readonly string[];
  /**
   * Folders that rules may not use even if they are in one of `folders`, such as that of the store. The folder of the
   * stream service inside them is exempt. Those for plugins and schemas may never be used. Default: none.
   */
  readonly reserved?: readonly string[];
}

const { O_DIRECTORY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
/** Opens a handle of a folder on Linux that need not be readable. Node has no name for it. */
const O_PATH = 0o10000000;

/** Error codes of a missing folder, which contains no links. */
const MISSING = new Set(['ENOENT', 'ENOTDIR']);

/** The folders that may contain files of rules. */
export class FilePlaces {
  /** The folder for files of rules; undefined: the service has no folder. */
  readonly base: string | undefined;
  /** The folder to which paths are relative. */
  readonly #start: string;
  readonly #dataDir: string | undefined;
  readonly #allowed: readonly string[];
  readonly #reserved: readonly string[];
  readonly #owned: readonly string[];

  /** @param dataDir the folder of the stream service */
  constructor(dataDir: string | undefined, { folders = [], reserved = [] }: FolderOptions) {
    this.#dataDir = dataDir === undefined ? undefined : resolve(dataDir);
    this.base = this.#dataDir === undefined ? undefined : join(this.#dataDir, FILES);
    this.#allowed = [...(this.base === undefined ? [] : [this.base]), ...folders.map((folder) => resolve(folder))];
    this.#start = this.base ?? resolve(folders.find((folder) => folder !== sep) ?? '.');
    this.#reserved = reserved.map((folder) => resolve(folder));
    const { base } = this;
    this.#owned = this.#dataDir === undefined ? [] : OWNED.map((name) => join(dirname(base as string), name));
  }

  /**
   * The absolute path of a file or folder, as far as it is known without the file system.
   * @param what for the error, such as `file sink`
   * @throws InvalidInput PROPERTY_INVALID if it is in no allowed folder
   */
  place(what: string, ...names: readonly string[]): string {
    const place = resolve(this.#start, ...names);
    if (this.#isAllowed(place) && !place.includes('\0')) return place;
    throw this.#outside(what, place, names.some(isAbsolute) ? place : join(...names));
  }

  /** Like `place`, for a file: refuses the allowed folders themselves. */
  file(what: string, path: string): string {
    const place = this.place(what, path);
    if (this.#allowed.includes(place)) throw this.#outside(what, place, path);
    return place;
  }

  /** A path for errors, which are visible to callers of the service: they must not learn the location of its folder. */
  shown(place: string): string {
    return this.#dataDir !== undefined && isIn(place, [this.#dataDir]) ? relative(this.#dataDir, place) : place;
  }

  /**
   * The path of a file or folder without links. The file need not exist.
   * @param place an absolute path
   * @throws InvalidInput PROPERTY_INVALID if it is in no allowed folder; errors of the file system
   */
  async real(what: string, place: string): Promise<string> {
    return this.#checked(what, place, await withoutLinks(place));
  }

  /** Like `real`, but a link is not resolved, so that it can be deleted or moved. */
  async entry(what: string, place: string): Promise<string> {
    return this.#checked(what, place, join(await withoutLinks(dirname(place)), basename(place)));
  }

  /**
   * Open a file. Pipes are refused: reading or writing them can block a thread of Node without end.
   * @param real a result of `real`
   * @throws BrokerError FILE_INVALID; errors of `pinned`
   */
  async open(what: string, real: string, flags: number): Promise<FileHandle> {
    const handle = await this.pinned(what, real, (path) => open(path, flags | O_NOFOLLOW | O_NONBLOCK, 0o600));
    if (!(await handle.stat()).isFIFO()) return handle;
    await handle.close();
    throw new BrokerError('FILE_INVALID', `${what}: ${this.shown(real)} is a pipe, which could block the broker`);
  }

  /**
   * Use a file. On Linux, its folder is held open meanwhile, so that another process cannot replace it with a link.
   * @param real a result of `real` or `entry`
   * @throws InvalidInput PROPERTY_INVALID if the folder was replaced; errors of the file system
   */
  async pinned<T>(what: string, real: string, use: (path: string) => Promise<T>): Promise<T> {
    if (process.platform !== 'linux') return use(real);
    const parent = dirname(real);
    const folder = await open(parent, O_DIRECTORY | O_PATH);
    const pinned = `/proc/self/fd/${folder.fd}`;
    try {
      const opened = await readlink(pinned).catch(() => undefined); // /proc may be missing
      if (opened === undefined) return await use(real);
      if (opened !== parent) throw this.#outside(what, real, `${this.shown(real)}, whose folder was replaced`);
      return await use(join(pinned, basename(real)));
    } catch (error) {
      if (error instanceof Error && 'path' in error) error.message = error.message.replaceAll(pinned, parent);
      throw error;
    } finally {
      await folder.close();
    }
  }

  /** @param real the path without links @returns `real` @throws InvalidInput PROPERTY_INVALID if it is in no allowed folder */
  async #checked(what: string, place: string, real: string): Promise<string> {
    const folders = await Promise.all([this.#dataDir ?? '/', ...this.#allowed].map(withoutLinks));
    const [dataDir, ...allowed] = folders;
    const owned = await Promise.all(this.#owned.map(withoutLinks));
    const reserved = await Promise.all(this.#reserved.map(withoutLinks));
    if (isIn(real, allowed) && !isIn(real, owned) && !(isIn(real, reserved) && !isIn(real, [dataDir]))) return real;
    throw this.#outside(
      what,
      place,
      `${this.shown(place)}${real === place ? '' : ', which is a link to another place'}`
    );
  }

  /** The location that version 0.2 used for a relative path, if a file exists there and none at the current one. */
  async formerPlace(path: string, place: string): Promise<string | undefined> {
    if (this.#dataDir === undefined) return undefined;
    const former = resolve(this.#dataDir, path);
    const isElsewhere = former !== place && isIn(former, [this.#dataDir]) && !isIn(former, this.#owned);
    return isElsewhere && !(await exists(place)) && (await exists(former)) ? former : undefined;
  }

  #isAllowed(place: string): boolean {
    const isReserved = isIn(place, this.#reserved) && !(this.#dataDir !== undefined && isIn(place, [this.#dataDir]));
    return isIn(place, this.#allowed) && !isIn(place, this.#owned) && !isReserved;
  }

  /** @param shown the path in the message */
  #outside(what: string, place: string, shown: string): InvalidInput {
    const isOwned = isIn(place, this.#owned) || isIn(place, this.#reserved);
    const expected =
      this.base === undefined
        ? 'a path in a folder of the option folders; the service has no folder (streams.dataDir)'
        : `a path in the folder ${FILES} of the stream service, or in a folder of the option folders`;
    const text = `${what}: property path must be ${expected}${isOwned ? ', and not in a folder of the broker' : ''}; got "${shown}"`;
    return new InvalidInput('PROPERTY_INVALID', 'path', expected, shown, text);
  }
}

/** Check whether a path is one of some folders, or inside one. */
function isIn(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep));
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false
  );
}

/**
 * Resolve the links of a path. The last parts need not exist.
 * @throws BrokerError FILE_OUTSIDE for a dangling link; errors of the file system
 */
async function withoutLinks(path: string): Promise<string> {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(await realpath(at), ...missing);
    } catch (error) {
      if (!MISSING.has((error as NodeJS.ErrnoException).code ?? '') || at === dirname(at)) throw error;
    }
    if (await exists(at))
      throw new BrokerError('FILE_OUTSIDE', `${basename(at)} is a link to something that does not exist`);
    missing.unshift(basename(at));
  }
}
