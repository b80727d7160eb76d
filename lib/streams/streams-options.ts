import { InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import { MAX_WEIGHT } from '../sql/weight.ts';
import type { StreamBounds, StreamsOptions } from './types.ts';

const LISTS = ['sources', 'sinks', 'functions', 'formats', 'definitions', 'rules'] as const;
const OBJECTS = ['sourceConfig', 'ruleDefaults', 'bounds'] as const;
const NAMES = [...LISTS, ...OBJECTS, 'timezone', 'dataDir', 'max'];

export const DEFAULT_BOUNDS: StreamBounds = {
  windowRows: 1_000_000,
  groups: 100_000,
  joinRows: 1_000_000,
  templateCharacters: 1_048_576,
  rowWeight: MAX_WEIGHT,
  checkpointRows: 100_000,
  checkpointBytes: 67_108_864,
  configEntries: 10_000,
  configBytes: 16_777_216
};

/**
 * Check the option `streams` as far as possible without the stream service; the rest is checked when the broker starts.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function readStreamsOptions(given: StreamsOptions): StreamsOptions {
  checkObject(given, 'streams');
  checkNames(given, NAMES, 'streams');
  for (const name of LISTS)
    if (given[name] !== undefined && !Array.isArray(given[name])) throw invalid(name, 'a list', given[name]);
  for (const name of OBJECTS) if (given[name] !== undefined) checkObject(given[name], `streams.${name}`);
  for (const rule of given.rules ?? []) {
    checkObject(rule, 'streams.rules');
    if (typeof rule.id !== 'string')
      throw invalid('rules.id', 'an id, so that the rule can be recognized after a restart', rule.id);
  }
  const { timezone, dataDir, max, bounds = {} } = given;
  if (timezone !== undefined && !isZone(timezone))
    throw invalid('timezone', 'an IANA name, such as Europe/Berlin', timezone);
  if (dataDir !== undefined && typeof dataDir !== 'string') throw invalid('dataDir', 'a folder', dataDir);
  if (max !== undefined && !(Number.isInteger(max) && max >= 1)) throw invalid('max', 'an integer from 1', max);
  checkNames(bounds, Object.keys(DEFAULT_BOUNDS), 'streams.bounds');
  for (const [name, value] of Object.entries(bounds))
    if (!(Number.isInteger(value) && value >= 1)) throw invalid(`bounds.${name}`, 'an integer from 1', value);
  return given;
}

function isZone(name: unknown): boolean {
  try {
    return typeof name === 'string' && new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

function invalid(field: string, expected: string, got: unknown): InvalidInput {
  return new InvalidInput('OPTION_INVALID', `streams.${field}`, expected, got);
}
