import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { isSecretByName, shownText } from '../../../lib/adapter.ts';

/** A line of a file of another broker that has a setting. */
export interface SourceLine {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
  /** The first word: the name of the setting. */
  readonly name: string;
  /** The rest of the line. */
  readonly value: string;
}

/** A line that is not taken over. */
interface RefusedLine {
  readonly file: string;
  readonly line: number;
  /** The text of the line, without secrets. */
  readonly text: string;
  readonly reason: string;
}

/** The result of converting one line: undefined if it is taken over, otherwise the reason why it is not. */
export type Verdict = string | undefined;

/** The config file that is made from the files of another broker, and the lines that are not taken over. */
export class Draft {
  /** The content of the config file. */
  readonly config: Record<string, unknown> = Object.create(null);
  /** The lines from which the keys of `config` come. */
  readonly #origins = new Map<string, SourceLine[]>();
  readonly #refused: RefusedLine[] = [];
  /** Settings that no line has, written so that the broker decides as the other one: sentences. */
  readonly added: string[] = [];
  /** Further files to write, by their suffix. */
  readonly files = new Map<string, string>();

  /** The lines that are not taken over, in their order. */
  get refused(): readonly RefusedLine[] {
    return this.#refused.toSorted((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1));
  }

  /** Set a key of the config file. A line that has set it before is not taken over. */
  set(line: SourceLine, key: string, value: unknown): void {
    for (const earlier of this.#origins.get(key) ?? []) this.refuse(earlier, `line ${line.line} sets it again`);
    this.config[key] = value;
    this.#origins.set(key, [line]);
  }

  /** Add a setting that no line has. */
  add(key: string, value: unknown, why: string): void {
    this.config[key] = value;
    this.added.push(`${key}: ${JSON.stringify(value)}: ${why}`);
  }

  /** Add entries to a list of the config file. */
  append(lines: readonly SourceLine[], key: string, ...entries: readonly unknown[]): void {
    this.config[key] = [...((this.config[key] as unknown[] | undefined) ?? []), ...entries];
    this.#origins.set(key, [...(this.#origins.get(key) ?? []), ...lines]);
  }

  /** Leave out a key of the config file. */
  leaveOut(key: string, reason: string): void {
    delete this.config[key];
    for (const line of this.#origins.get(key) ?? []) this.refuse(line, reason);
    this.#origins.delete(key);
  }

  /** Leave out an entry of a list to which each line has added one. */
  leaveOutEntry(key: string, at: number, reason: string): void {
    const [entries, lines] = [this.config[key] as unknown[], this.#origins.get(key) as SourceLine[]];
    entries.splice(at, 1);
    for (const line of lines.splice(at, 1)) this.refuse(line, reason);
    if (entries.length === 0) delete this.config[key];
  }

  /** List a line as not taken over. */
  refuse({ file, line, text, name, value }: SourceLine, reason: string): void {
    if (this.#refused.some((one) => one.file === file && one.line === line)) return;
    const isSecret = isSecretByName(name, value) && value !== '' && !/file$/.test(name);
    const start = text.slice(0, text.length - value.length);
    this.#refused.push({ file, line, text: start + (isSecret ? '******' : shownText(value)), reason });
  }

  /** List a line as not taken over, unless the verdict is undefined. */
  judged(line: SourceLine, verdict: Verdict): void {
    if (verdict !== undefined) this.refuse(line, verdict);
  }
}

/**
 * Find a file that a config file names. Relative names are searched for in the working directory, beside the config
 * file and in the folder above it.
 * @returns the path that exists; if there is none, the name as it is
 */
export function located(name: string, config: string): string {
  if (isAbsolute(name)) return name;
  const folder = dirname(config);
  return [name, join(folder, name), join(folder, '..', name)].find((path) => existsSync(path)) ?? name;
}

/** The entry of a table for a word of a file. */
export function entryOf<T>(table: Readonly<Record<string, T>>, word: string): T | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined;
}

/** Read a boolean of a setting: true, false, on or off. */
export function isOn(value: string): boolean {
  return /^(true|on|1|yes)$/i.test(value);
}
