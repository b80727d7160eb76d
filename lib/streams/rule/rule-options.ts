import { InvalidInput } from '../../base/errors.ts';
import { checkObject, durationMs, unknownKey } from '../../base/fields.ts';
import type { RestartStrategy, RuleOptions } from '../types.ts';

/** Validates and converts the value of an option. @throws InvalidInput STREAM_RULE_INVALID */
type Read = (value: unknown, field: string) => unknown;

/** Maximum of a time option in milliseconds: 24.8 days, which any kind of timer can represent. */
const MAX_MS = 2 ** 31 - 1;

const boolean: Read = (value, field) => {
  if (typeof value !== 'boolean') throw invalid(field, 'true or false', value);
  return value;
};
const text: Read = (value, field) => {
  if (typeof value !== 'string') throw invalid(field, 'a string', value);
  return value;
};
const anyText: Read = (value, field) => (value === undefined || value === null ? '' : text(value, field));

/** A number of milliseconds, or a duration with a unit. */
const milliseconds: Read = (value, field) => {
  const ms = typeof value === 'string' ? durationMs(value, field) : value;
  return count(0, MAX_MS)(ms, field);
};

/** @param least for smaller values, the message is that of the original */
function count(least: number, most: number): Read {
  return (value, field) => {
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most)
      throw new InvalidInput(
        'STREAM_RULE_INVALID',
        field,
        `an integer from ${least} to ${most}`,
        value,
        `rule option ${field} ${String(value)} is invalid, require a positive integer`
      );
    return value;
  };
}

function oneOf(...choices: readonly unknown[]): Read {
  return (value, field) => {
    if (!choices.includes(value)) throw invalid(field, `one of ${choices.join(', ')}`, value);
    return value;
  };
}

const RESTART: Readonly<Record<keyof RestartStrategy, readonly [value: number, read: Read]>> = {
  attempts: [0, count(0, 1_000_000)],
  delay: [1000, milliseconds],
  multiplier: [2, number(1, 100)],
  maxDelay: [30_000, milliseconds],
  jitterFactor: [0.1, number(0, 1)]
};

function number(least: number, most: number): Read {
  return (value, field) => {
    if (typeof value !== 'number' || !(value >= least && value <= most))
      throw invalid(field, `a number from ${least} to ${most}`, value);
    return value;
  };
}

const restartStrategy: Read = (value, field) => {
  checkObject(value, field);
  const given = value as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(given)) if (!(name in RESTART)) throw unknownKey(name, Object.keys(RESTART), field);
  return Object.fromEntries(
    Object.entries(RESTART).map(([name, [preset, read]]) => [
      name,
      given[name] === undefined ? preset : read(given[name], `${field}.${name}`)
    ])
  );
};

const ranges: Read = (value, field) => {
  if (value === null) return [];
  if (!Array.isArray(value)) throw invalid(field, 'an array of { begin, end }', value);
  return value.map((range, index) => {
    const { begin, end } = range ?? {};
    if (typeof begin !== 'string' || typeof end !== 'string' || !(Date.parse(begin) <= Date.parse(end)))
      throw invalid(`${field}[${index}]`, 'two times, such as { begin: "2026-01-01 00:00:00", end: "..." }', range);
    return { begin, end };
  });
};

/** The options of a rule, each with its default and its reader. */
const OPTIONS: Readonly<Record<keyof RuleOptions, readonly [value: unknown, read: Read]>> = {
  isEventTime: [false, boolean],
  idleTimeout: [0, milliseconds],
  lateTolerance: [1000, milliseconds],
  concurrency: [1, count(1, 1000)],
  bufferLength: [1024, count(0, 10_000_000)],
  sendMetaToSink: [false, boolean],
  sendError: [true, boolean],
  qos: [0, oneOf(0, 1, 2)],
  checkpointInterval: [300_000, milliseconds],
  restartStrategy: [restartStrategy({}, 'restartStrategy'), restartStrategy],
  cron: ['', anyText],
  duration: ['', anyText],
  cronDatetimeRange: [[], ranges],
  sendNilField: [false, boolean],
  emitEmptyWindows: [false, boolean],
  windowAlign: ['clock', oneOf('clock', 'start')],
  joinRows: ['merged', oneOf('merged', 'pairs')],
  schemalessIntegers: [false, boolean],
  debug: [false, boolean],
  logFilename: ['', anyText]
};

/** The options of a rule that specifies none. */
const PRESETS: RuleOptions = Object.freeze(
  Object.fromEntries(Object.entries(OPTIONS).map(([name, [preset]]) => [name, preset]))
) as unknown as RuleOptions;

/** Options of later versions of the original that have no meaning here. They are accepted and ignored. */
const IGNORED = new Set([
  'planOptimizeStrategy',
  'enableRuleTracer',
  'notifySub',
  'enableSaveStateBeforeStop',
  'forceExitTimeout',
  'experiment',
  'disableBufferFullDiscard',
  'sendNil'
]);

/** Default interval in milliseconds between the checkpoints of a rule that delivers exactly once. */
const EXACT_INTERVAL_MS = 1000;

/**
 * Validate the options of a rule and fill in defaults.
 * @throws InvalidInput STREAM_RULE_INVALID, OPTION_UNKNOWN
 */
export function readRuleOptions(given: unknown, defaults: Partial<RuleOptions> = {}): RuleOptions {
  if (given !== undefined && given !== null) checkObject(given, 'options');
  const own = (given ?? {}) as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(own))
    if (!(name in OPTIONS) && !IGNORED.has(name)) throw unknownKey(name, Object.keys(OPTIONS), 'the options of a rule');
  if (Object.keys(own).length === 0 && Object.keys(defaults).length === 0) return PRESETS; // shared by most rules
  const values = Object.entries(OPTIONS).map(([name, [preset, read]]) => {
    const value = own[name] ?? defaults[name as keyof RuleOptions];
    return [name, value === undefined ? preset : read(value, name)] as const;
  });
  const options = Object.fromEntries(values) as unknown as RuleOptions;
  const hasInterval = own.checkpointInterval !== undefined || defaults.checkpointInterval !== undefined;
  return options.qos === 2 && !hasInterval ? { ...options, checkpointInterval: EXACT_INTERVAL_MS } : options;
}

export function invalid(field: string, expected: string, got: unknown): InvalidInput {
  return new InvalidInput('STREAM_RULE_INVALID', field, expected, got);
}
