// Files are read in the order of their names, one row when there is room for it. A file that cannot be read is
// counted and the next one is read; a missing path is an error when the source opens. Only regular files are read,
// because a pipe may have no writer. Paths never leave the allowed folders, also not by links. Lines and JSON files
// have limits of size.

import { constants, type FileHandle, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import {
  type FieldTable,
  type OpenSource,
  parseStreamJson,
  type SourceSetup,
  type SourceType,
  splitDelimited,
  streamJson
} from '../../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../../lib/index.ts';
import { readLines, records, within } from './lines.ts';
import { FilePlaces, type FolderOptions } from './places.ts';

/** Options of the source `file`. */
export interface FileSourceOptions extends FolderOptions {
  /** The same as `folders: ['/']`. Default false. */
  readonly outside?: boolean;
}

const PROPERTIES: FieldTable = {
  path: { type: 'string', about: 'Folder of the files, in the folder files of the service.', default: '.' },
  fileType: { type: 'string', about: 'Content of the files.', default: 'json', choices: ['json', 'csv', 'lines'] },
  interval: {
    type: 'duration',
    about: 'Time after which files are read again; 0: they are read once.',
    default: 0,
    min: 0,
    unit: 'ms'
  },
  sendInterval: { type: 'duration', about: 'Time between two rows.', default: 0, min: 0, unit: 'ms' },
  watch: { type: 'boolean', about: 'With an interval: read only new and changed files.', default: false },
  hasHeader: { type: 'boolean', about: 'The first line of a CSV file has the names of the columns.', default: false },
  columns: { type: 'array', about: 'Names of the columns of a CSV file.' },
  delimiter: { type: 'string', about: 'Separator of the fields of a CSV file.', default: ',' },
  ignoreStartLines: { type: 'number', about: 'Number of lines to skip at the start.', default: 0, min: 0, max: 1e9 },
  ignoreEndLines: { type: 'number', about: 'Number of lines to skip at the end.', default: 0, min: 0, max: 100_000 },
  actionAfterRead: {
    type: 'number',
    about: '0: keep a file, 1: delete it, 2: move it.',
    default: 0,
    choices: [0, 1, 2]
  },
  moveTo: { type: 'string', about: 'Folder to which files are moved.' },
  maxLineBytes: { type: 'number', about: 'Maximum size of a line in bytes.', default: 1_048_576, min: 1, max: 1 << 28 },
  maxFileBytes: {
    type: 'number',
    about: 'Maximum size of a JSON file in bytes.',
    default: 67_108_864,
    min: 1,
    max: 1 << 28
  }
};

interface FileProperties {
  readonly path: string;
  readonly fileType: 'json' | 'csv' | 'lines';
  readonly interval: number;
  readonly sendInterval: number;
  readonly watch: boolean;
  readonly hasHeader: boolean;
  readonly columns?: readonly string[];
  readonly delimiter: string;
  readonly ignoreStartLines: number;
  readonly ignoreEndLines: number;
  readonly actionAfterRead: 0 | 1 | 2;
  readonly moveTo?: string;
  readonly maxLineBytes: number;
  readonly maxFileBytes: number;
}

/**
 * The source `file`: rows of a file, or of the files of a folder. DATASOURCE is its name.
 *
 * JSON files are decoded as a whole by the FORMAT of the stream, and files of lines line by line; fields of CSV files
 * are strings, which the schema converts. Tables contain the rows of all files once these have been read.
 */
export function fileSource({ outside = false, ...options }: FileSourceOptions = {}): SourceType {
  const folders = outside ? ['/'] : options.folders;
  return {
    name: 'file',
    about: 'Rows of a file, or of the files of a folder.',
    properties: PROPERTIES,
    isBatch: true,
    async open(setup) {
      const properties = setup.properties as unknown as FileProperties;
      const { stream, dataDir, datasource } = setup;
      if (properties.actionAfterRead === 2 && !properties.moveTo)
        throw invalid(stream, 'moveTo', 'a folder, because actionAfterRead is 2');
      if (properties.delimiter === '') throw invalid(stream, 'delimiter', 'at least one character');
      const places = new FilePlaces(dataDir, { ...options, ...(folders === undefined ? {} : { folders }) });
      const what = `source file of ${stream}`;
      const path = places.place(what, properties.path, datasource);
      const moveTo = properties.moveTo === undefined ? undefined : places.place(what, properties.moveTo);
      const source = new FileRows(setup, properties, { what, places, path, moveTo });
      if (properties.interval === 0) await source.check();
      source.start();
      return source;
    }
  };
}

function invalid(stream: string, name: string, expected: string): InvalidInput {
  const text = `source file of ${stream}: property ${name} must be ${expected}`;
  return new InvalidInput('PROPERTY_INVALID', name, expected, undefined, text);
}

/**
 * A fingerprint of a file, which differs after a change.
 * @throws BrokerError FILE_INVALID, for example for a pipe, which may have no writer
 */
async function stateOf(path: string): Promise<string> {
  const stats = await stat(path);
  if (!stats.isFile()) throw new BrokerError('FILE_INVALID', `${path} is not a regular file`);
  return `${stats.ino} ${stats.mtimeMs} ${stats.size}`;
}

/** The files of a source. */
interface Reading {
  /** The name of the source in errors. */
  readonly what: string;
  readonly places: FilePlaces;
  /** The file or folder. */
  readonly path: string;
  readonly moveTo: string | undefined;
}

class FileRows implements OpenSource {
  readonly #setup: SourceSetup;
  readonly #properties: FileProperties;
  readonly #reading: Reading;
  /** Fingerprints of the files when they were read. */
  readonly #seen = new Map<string, string>();
  #isClosed = false;
  #timer: unknown;
  #wake: (() => void) | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(setup: SourceSetup, properties: FileProperties, reading: Reading) {
    this.#setup = setup;
    this.#properties = properties;
    this.#reading = reading;
  }

  /** @throws InvalidInput PROPERTY_INVALID if the file does not exist */
  async check(): Promise<void> {
    try {
      await this.#find();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      const { path, places } = this.#reading;
      const { message } = error as Error;
      throw new InvalidInput('PROPERTY_INVALID', 'path', 'a file that exists', places.shown(path), message);
    }
  }

  /**
   * Check whether the path is a folder.
   * @throws BrokerError if nothing exists there, or if it may not be read
   */
  async #find(): Promise<boolean> {
    const { what, places, path } = this.#reading;
    try {
      return (await stat(await places.real(what, path))).isDirectory();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      const former = await places.formerPlace(join(this.#properties.path, this.#setup.datasource), path);
      const hint =
        former === undefined ? '' : `; ${places.shown(former)}, which an earlier release has read, can be moved there`;
      throw Object.assign(new Error(`file ${places.shown(path)} not exist${hint}`), { code: 'ENOENT' });
    }
  }

  start(): void {
    this.#last = this.#readAll();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#setup.clock.clearTimeout(this.#timer);
    this.#wake?.();
    await this.#last;
  }

  async #readAll(): Promise<void> {
    const { interval } = this.#properties;
    try {
      const files = await this.#files();
      this.#setup.connected();
      for (const file of files) await this.#readOne(file);
      if (!this.#isClosed) this.#setup.end();
    } catch (error) {
      this.#setup.disconnected(error);
      this.#setup.failed(error);
    }
    if (interval > 0 && !this.#isClosed) this.#timer = this.#setup.clock.setTimeout(() => this.start(), interval);
  }

  /** The files in alphabetical order. */
  async #files(): Promise<string[]> {
    const { path } = this.#reading;
    const isFolder = await this.#find();
    const names = isFolder ? (await readdir(path, { withFileTypes: true })).filter((each) => each.isFile()) : [];
    const paths = isFolder ? names.map(({ name }) => join(path, name)).sort() : [path];
    const present = new Set(paths);
    for (const path of this.#seen.keys()) if (!present.has(path)) this.#seen.delete(path);
    return paths;
  }

  /**
   * Read a file; with `watch`, only if it is new or has changed. An unreadable file is counted, and the next one is
   * read.
   */
  async #readOne(path: string): Promise<void> {
    if (this.#isClosed) return;
    const { watch, actionAfterRead } = this.#properties;
    try {
      const before = await stateOf(path);
      if (watch && this.#seen.get(path) === before) return;
      if (watch) this.#seen.set(path, before);
      const { what, places, moveTo } = this.#reading;
      const file = await places.open(what, await places.real(what, path), constants.O_RDONLY);
      await this.#rowsOf(path, file).finally(() => file.close());
      if (this.#isClosed || actionAfterRead === 0) return;
      if ((await stateOf(path)) !== before)
        throw new BrokerError('FILE_CHANGED', `${path} was changed while it was read, and is kept`);
      const entry = await places.entry(what, path);
      if (actionAfterRead === 1) return await places.pinned(what, entry, (pinned) => rm(pinned));
      if (moveTo === undefined) return;
      const folder = await places.real(what, moveTo);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const target = join(folder, basename(path));
      await places.pinned(what, entry, (from) => places.pinned(what, target, (to) => rename(from, to)));
    } catch (error) {
      this.#setup.failed(error);
    }
  }

  async #rowsOf(path: string, file: FileHandle): Promise<void> {
    const { fileType, ignoreStartLines, ignoreEndLines, maxLineBytes } = this.#properties;
    const metadata = { file: path };
    if (fileType === 'json') return this.#jsonOf(path, file);
    const tooLong = (error: BrokerError) => this.#setup.failed(error);
    const lines = readLines(file, path, maxLineBytes, tooLong);
    const wanted = within(lines, ignoreStartLines, ignoreEndLines);
    if (fileType === 'csv') return this.#csvOf(records(path, wanted, maxLineBytes, tooLong), metadata);
    for await (const line of wanted) {
      if (line.length === 0) continue;
      if (!(await this.#ready())) return;
      this.#setup.bytes(line, metadata);
    }
  }

  async #jsonOf(path: string, file: FileHandle): Promise<void> {
    const { maxFileBytes, sendInterval } = this.#properties;
    const { size } = await file.stat();
    if (size > maxFileBytes)
      throw new BrokerError(
        'FILE_TOO_LARGE',
        `${path} has more than ${maxFileBytes} bytes (maxFileBytes); use a file of lines`
      );
    const bytes = await file.readFile();
    const metadata = { file: path };
    const rows: unknown = sendInterval === 0 ? undefined : parseStreamJson(bytes.toString());
    const parts = Array.isArray(rows) ? rows.map((row) => Buffer.from(streamJson(row))) : [bytes];
    for (const part of parts) {
      if (!(await this.#ready())) return;
      this.#setup.bytes(part, metadata);
    }
  }

  async #csvOf(rows: AsyncIterable<string>, metadata: { readonly file: string }): Promise<void> {
    const { hasHeader, delimiter } = this.#properties;
    let { columns } = this.#properties;
    let isHeader = hasHeader;
    for await (const record of rows) {
      const fields = splitDelimited(record, delimiter);
      if (isHeader) {
        isHeader = false;
        columns ??= fields;
        continue;
      }
      if (!(await this.#ready())) return;
      const given = columns === undefined ? fields : fields.slice(0, columns.length);
      this.#setup.row(Object.fromEntries(given.map((field, i) => [columns?.[i] ?? `col${i}`, field])), metadata);
    }
  }

  /**
   * Wait until the next row is due and there is room for it.
   * @returns false if the source is closed
   */
  async #ready(): Promise<boolean> {
    const { sendInterval } = this.#properties;
    const { clock } = this.#setup;
    if (sendInterval > 0) await this.#wait((wake) => (this.#timer = clock.setTimeout(wake, sendInterval)));
    while (this.#setup.isFull && !this.#isClosed) await this.#wait((wake) => this.#setup.whenRoom(wake));
    return !this.#isClosed;
  }

  #wait(begin: (wake: () => void) => void): Promise<void> {
    return new Promise((wake) => {
      this.#wake = wake;
      begin(wake);
    });
  }
}
