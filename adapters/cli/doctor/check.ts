import type { FolderReport } from '../../level/index.ts';
import type { Shell } from '../command.ts';
import type { ServeSettings } from '../serve/settings.ts';
import type { ConfigurationProblem } from './configuration.ts';
import type { Construction } from './construction.ts';
import type { Machine } from './machine.ts';

/** The result of a check. */
export interface Finding {
  readonly level: 'ok' | 'warning' | 'fault';
  /** The result in words. */
  readonly text: string;
  /** The step that solves the problem. Default: the remedy of the check. */
  readonly remedy?: string;
}

/** The broker, folder and machine that `embermq doctor` examines. */
export interface Subject {
  /** The data folder; undefined with `--memory`. */
  readonly folder: string | undefined;
  /** True if the user has named the folder. */
  readonly isNamed: boolean;
  /** The path of the config file. */
  readonly config: string | undefined;
  /** The content of the config file, as far as it is valid. */
  readonly content: Readonly<Record<string, unknown>>;
  /** The settings of `serve`, as far as they are valid; undefined if nothing could be read. */
  readonly settings: ServeSettings | undefined;
  readonly problems: readonly ConfigurationProblem[];
  /** Listeners whose certificates, keys or ciphers cannot be used, with the error. */
  readonly unusable: Construction['unusable'];
  /** The files of the data folder; an error if they could not be read. */
  readonly report: FolderReport | Error | undefined;
  readonly machine: Machine;
  readonly shell: Shell;
}

/** A row of the table of checks. */
export interface Check {
  readonly id: string;
  /** A statement that is true if all is well. */
  readonly title: string;
  readonly remedy: string;
  /** @returns nothing if the check does not apply */
  run(subject: Subject): Finding[] | Promise<Finding[]>;
}

/** Create a finding without a problem. */
export function ok(text: string): Finding {
  return { level: 'ok', text };
}

/** Create a finding that limits or endangers the broker. */
export function warning(text: string, remedy?: string): Finding {
  return { level: 'warning', text, ...(remedy !== undefined && { remedy }) };
}

/** Create a finding that prevents a start, loses data, or lets strangers in. */
export function fault(text: string, remedy?: string): Finding {
  return { level: 'fault', text, ...(remedy !== undefined && { remedy }) };
}

/** The report about the files of the data folder, if they could be read. */
export function reportOf({ report }: Subject): FolderReport | undefined {
  return report instanceof Error ? undefined : report;
}

/** Rights of other users in a file mode. */
export const OTHERS = 0o007;
export const GROUP_AND_OTHERS = 0o077;

/** The rights of a file mode: `0644`. */
export function shownMode(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, '0');
}

/** Quote a path for a shell. */
export function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** Format a number of bytes: `64 MB`. */
export function sized(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${value >= 10 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
