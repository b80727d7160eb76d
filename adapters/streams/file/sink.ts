// Writes and checks run one after the other. A path is checked after templates are filled in, and after links are
// resolved, since data of clients may be part of it: it never leaves the allowed folders. For more than a hundred
// paths, the least recently used file is closed. A write that fails is a failed send, which the emitter repeats or
// counts.

import { constants, mkdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import type { FieldTable, OpenSink, SinkItem, SinkSetup, SinkType } from '../../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../../lib/index.ts';
import { csvText } from './csv-text.ts';
import { FilePlaces, type FolderOptions } from './places.ts';
import { RollingFile } from './rolling-file.ts';

/** Options of `fileSink`. */
export interface FileSinkOptions extends FolderOptions {}

/** Maximum number of open files, for paths that are templates. Beyond it, the least recently used file is closed. */
const MAX_FILES = 100;
const MAX_CHECK_MS = 300_000;

const PROPERTIES: FieldTable = {
  path: {
    type: 'string',
    default: 'cache',
    isTemplate: true,
    about: 'Path of the file, in the folder files of the service.'
  },
  fileType: {
    type: 'string',
    default: 'lines',
    choices: ['lines', 'json', 'csv'],
    about: 'lines, json (a list) or csv.'
  },
  hasHeader: { type: 'boolean', default: false, about: 'Start CSV files with the names of the columns.' },
  rollingInterval: {
    type: 'duration',
    unit: 'ms',
    default: 0,
    min: 0,
    about: 'Start a new file after this time. 0: never.'
  },
  checkInterval: {
    type: 'duration',
    unit: 'ms',
    default: MAX_CHECK_MS,
    min: 1,
    about: 'Interval at which the time is checked while nothing is written.'
  },
  rollingCount: {
    type: 'number',
    default: 0,
    min: 0,
    about: 'Start a new file after this number of outputs. 0: never.'
  },
  rollingSize: {
    type: 'number',
    default: 0,
    min: 0,
    about: 'Begin a new file from this size in bytes on. 0: never.'
  },
  rollingNamePattern: {
    type: 'string',
    default: 'none',
    choices: ['', 'none', 'prefix', 'suffix'],
    about:
      'Place of the time of creation, in milliseconds, in the name of a file. none: new files continue the earlier one.'
  },
  compression: { type: 'string', default: 'none', choices: ['', 'none', 'gzip'], about: 'gzip: files end in .gz.' },
  interval: { type: 'duration', unit: 'ms', about: 'Accepted for compatibility: outputs are written at once.' }
};

interface FileProperties {
  readonly fileType: 'lines' | 'json' | 'csv';
  readonly hasHeader: boolean;
  readonly rollingInterval: number;
  readonly checkInterval: number;
  readonly rollingCount: number;
  readonly rollingSize: number;
  readonly rollingNamePattern: string;
  readonly compression: string;
  readonly delimiter: string;
  readonly fields?: readonly string[];
}

/**
 * The sink `file`: each output is a line of a file, an element of a JSON list, or rows of a CSV file.
 *
 * Paths are relative to the folder `files` in the data folder of the service, and cannot leave it, even by links,
 * unless `folders` allows others. A failed write, for example on a full disk, is a failed send.
 */
export function fileSink(options: FileSinkOptions = {}): SinkType {
  return {
    name: 'file',
    about: 'Writes outputs to files.',
    properties: PROPERTIES,
    async open(setup) {
      const sink = new FileSink(setup, options);
      const path = String(setup.properties.path);
      if (!path.includes('{{')) await sink.check(path);
      return sink;
    }
  };
}

/** The name of the sink in errors. */
const SINK = 'file sink';
/** Flags for reading and appending. */
const FLAGS = constants.O_APPEND | constants.O_CREAT | constants.O_RDWR;

class FileSink implements OpenSink {
  readonly #setup: SinkSetup;
  readonly #properties: FileProperties;
  readonly #places: FilePlaces;
  /** Keyed by path without the time of creation, the least recently used first. */
  readonly #files = new Map<string, RollingFile>();
  /** Serializes writes and checks. */
  #last: Promise<unknown> = Promise.resolve();
  #timer: unknown;

  constructor(setup: SinkSetup, options: FileSinkOptions) {
    this.#setup = setup;
    this.#properties = setup.properties as unknown as FileProperties;
    const { fileType, compression, rollingNamePattern } = this.#properties;
    if (fileType === 'json' && compression === 'gzip' && !['prefix', 'suffix'].includes(rollingNamePattern)) {
      const text = 'file sink: a compressed json file cannot be continued; set rollingNamePattern to prefix or suffix';
      throw new InvalidInput('PROPERTY_INVALID', 'rollingNamePattern', 'prefix or suffix', rollingNamePattern, text);
    }
    this.#places = new FilePlaces(setup.dataDir, options);
  }

  /**
   * Check a path without a template.
   * @throws InvalidInput PROPERTY_INVALID if it is in no allowed folder; errors of the file system
   */
  async check(path: string): Promise<void> {
    const place = this.#places.file(SINK, path);
    await this.#places.real(SINK, place);
    const former = await this.#places.formerPlace(path, place);
    if (former === undefined) return;
    const { ruleId, warn } = this.#setup;
    warn(
      `stream rule ${ruleId} writes to ${place} from now on; ${former}, to which it has written before, stays as it is`
    );
  }

  send(item: SinkItem): Promise<void> {
    return this.#inTurn(() => this.#write(item));
  }

  close(): Promise<void> {
    return this.#inTurn(() => {
      this.#setup.clock.clearTimeout(this.#timer); // an earlier check may have set it
      return this.#closeFiles([...this.#files.keys()]);
    });
  }

  #inTurn(run: () => Promise<void>): Promise<void> {
    const done = this.#last.then(run);
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #write(item: SinkItem): Promise<void> {
    const { fileType, rollingCount, rollingSize } = this.#properties;
    const path = this.#places.file(SINK, String(item.property('path')));
    const before = this.#files.get(path);
    if (before !== undefined && this.#isOld(before)) await this.#closeFile(path);
    const file = this.#files.get(path) ?? (await this.#open(path));
    this.#files.delete(path);
    this.#files.set(path, file);
    const text = fileType === 'csv' ? this.#csv(item, file) : fileType === 'json' ? elements(item) : `${item.bytes}\n`;
    if (text !== '') await file.append(text);
    const isFull = (rollingCount > 0 && file.count >= rollingCount) || (rollingSize > 0 && file.size >= rollingSize);
    if (isFull) await this.#closeFile(path);
  }

  async #open(path: string): Promise<RollingFile> {
    const { fileType, compression, rollingNamePattern, checkInterval, rollingInterval } = this.#properties;
    const { clock } = this.#setup;
    const openedAt = clock.now();
    const [oldest] = this.#files.keys();
    if (this.#files.size >= MAX_FILES) await this.#closeFile(oldest);
    const isCompressed = compression === 'gzip';
    const real = await this.#places.real(SINK, path);
    const name = await freeName(real, rollingNamePattern, openedAt, isCompressed && !path.endsWith('.gz') ? '.gz' : '');
    await mkdir(dirname(name), { recursive: true, mode: 0o700 });
    const handle = await this.#places.open(SINK, name, FLAGS);
    const file = await RollingFile.from(handle, { fileType, isCompressed }, openedAt);
    this.#files.set(path, file);
    if (rollingInterval > 0) this.#timer ??= clock.setTimeout(() => this.#check(), checkInterval);
    return file;
  }

  #isOld({ openedAt }: RollingFile): boolean {
    const { rollingInterval } = this.#properties;
    return rollingInterval > 0 && this.#setup.clock.now() - openedAt >= rollingInterval;
  }

  /** Complete the files whose time has passed. */
  #check(): void {
    const { clock, disconnected } = this.#setup;
    this.#timer = undefined;
    this.#inTurn(async () => {
      const old = [...this.#files].filter(([, file]) => this.#isOld(file));
      try {
        await this.#closeFiles(old.map(([path]) => path));
      } finally {
        if (this.#files.size > 0) this.#timer ??= clock.setTimeout(() => this.#check(), this.#properties.checkInterval);
      }
    }).catch(disconnected);
  }

  /**
   * Complete files. A failure does not keep the others open.
   * @throws the first error
   */
  async #closeFiles(paths: readonly string[]): Promise<void> {
    const results = await Promise.allSettled(paths.map((path) => this.#closeFile(path)));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  async #closeFile(path: string): Promise<void> {
    const file = this.#files.get(path);
    this.#files.delete(path);
    await file?.close();
  }

  #csv(item: SinkItem, file: RollingFile): string {
    const { value } = item;
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return `${item.bytes}\n`;
    const rows = (Array.isArray(value) ? value : [value]) as readonly Readonly<Record<string, unknown>>[];
    if (rows.length === 0) return '';
    const { delimiter, hasHeader, fields } = this.#properties;
    const columns = file.columnsFrom(() => fields ?? Object.keys(rows[0]));
    return csvText(rows, columns, delimiter, hasHeader && file.size === 0);
  }
}

/** The elements that an item adds to a JSON list: those of a list, or the item itself. */
function elements({ value, bytes }: SinkItem): string {
  const text = bytes.toString();
  if (!Array.isArray(value)) return text;
  if (text.startsWith('[') && text.endsWith(']')) return text.slice(1, -1);
  throw new BrokerError('SINK_FAILED', 'file sink: the file type json needs the format json');
}

/** The name of a new file. If it contains the time, no other file has the name. */
async function freeName(path: string, pattern: string, nowMs: number, ending: string): Promise<string> {
  const [folder, name, extension] = [dirname(path), basename(path), extname(path)];
  if (pattern !== 'prefix' && pattern !== 'suffix') return path + ending;
  for (let at = nowMs; ; at++) {
    const named = pattern === 'prefix' ? `${at}-${name}` : `${basename(name, extension)}-${at}${extension}`;
    const full = join(folder, named) + ending;
    const isFree = await stat(full)
      .then(() => false)
      .catch(() => true);
    if (isFree) return full;
  }
}
