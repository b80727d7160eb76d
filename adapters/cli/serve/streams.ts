import { isPlainObject } from '../../../lib/adapter.ts';
import { InvalidInput, type StreamsOptions } from '../../../lib/index.ts';
import { readCredentials } from '../../rest/index.ts';
import type { StreamsApiOptions } from '../../streams-api/index.ts';
import type { Shell } from '../command.ts';
import { filledOptions } from '../config-values.ts';
import { SERVED } from './credentials.ts';

/** The option `streamsApi` of the config file. */
export type ServedStreamsOptions = Omit<StreamsApiOptions, 'prefix' | 'unmatched' | 'plugins'>;

/** The option `streams` of the config file. */
interface ConfiguredStreams {
  /** The option `streams` of `createBroker`. */
  readonly streams?: StreamsOptions;
  /**
   * `streams.folders`: the folders that sources and sinks of the type `file` may use, in addition to
   * `DATA_DIR/streams/files`. `/`: all.
   */
  readonly folders: readonly string[];
}

/** Parts of the option `streams` that need code. */
const IN_CODE = ['sources', 'sinks', 'functions', 'formats'] as const;
/** Options of the interface that are determined by the port. */
const DECIDED = ['prefix', 'unmatched', 'plugins'] as const;

/**
 * Read the object `streams` of the config file: streams, tables, their rules, and properties of their sources.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN, whose message names the place
 */
export async function configuredStreams(
  given: unknown,
  config: string | undefined,
  shell: Shell
): Promise<ConfiguredStreams> {
  if (given === undefined) return { folders: [] };
  const place = `${config}: streams`;
  if (!isPlainObject(given))
    throw new InvalidInput('OPTION_INVALID', place, 'an object with "definitions" and "rules"', given);
  refuse(given, IN_CODE, place);
  const { folders = [], ...streams } = given;
  const isFolder = (folder: unknown) => typeof folder === 'string' && folder !== '' && !folder.includes('\0');
  if (!Array.isArray(folders) || !folders.every(isFolder))
    throw new InvalidInput('OPTION_INVALID', `${place}.folders`, 'a list of folders', folders);
  return { streams: (await filledOptions(streams, place, shell)).filled as StreamsOptions, folders };
}

/**
 * Check the form of the option `streamsApi`; `embermq/streams-api` checks its values.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function readServedStreamsOptions(given: unknown, place: string): ServedStreamsOptions {
  if (given === undefined) return {};
  if (!isPlainObject(given)) throw new InvalidInput('OPTION_INVALID', place, 'an object of options', given);
  refuse(given, DECIDED, place);
  if (given.credentials !== undefined) readCredentials(given.credentials, `${place}.credentials`, SERVED);
  return given as ServedStreamsOptions;
}

function refuse(given: object, names: readonly string[], place: string): void {
  const found = names.find((name) => name in given);
  if (found !== undefined)
    throw new InvalidInput('OPTION_UNKNOWN', `${place}.${found}`, 'an option that a config file can contain', found);
}
