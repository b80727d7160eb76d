import type { Rate, Setting } from '../../lib/index.ts';

/** Units of durations with their milliseconds, the longest first. */
const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000]
] as const;

type Value = Pick<Setting, 'value' | 'kind' | 'unit'>;

/**
 * The value of an option as the interface writes it, so that it can be sent back: `64`, `true`, `90s`, `1048576`, `100,10s`, `a=1,b=2`. ''
 * is no value.
 */
export function shownValue({ value, kind, unit }: Value): string | number | boolean {
  if (value === undefined || value === null) return '';
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number') return kind === 'duration' ? durationText(unit === 's' ? value * 1000 : value) : value;
  if (kind === 'rate') return `${(value as Rate).amount},${durationText((value as Rate).perMs)}`;
  if (value instanceof Map) return [...value].map(([topic, priority]) => `${topic}=${priority}`).join(',');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The value of an option as a text. */
export function valueText(value: Value): string {
  return `${shownValue(value)}`;
}

/** A value of a request as `broker.configuration` takes it. The empty string is no value, and JSON stands for objects. */
export function givenValue(given: unknown, { kind }: Pick<Setting, 'kind'>): unknown {
  if (given === '') return null;
  if (kind !== 'object' || typeof given !== 'string' || !/^\s*[[{]/.test(given)) return given;
  try {
    return JSON.parse(given);
  } catch {
    return given; // which is refused with what is expected
  }
}

function durationText(ms: number): string {
  if (ms === Infinity) return 'infinity';
  if (ms === 0) return '0s';
  const [unit, size] = UNITS.find(([, one]) => ms % one === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}
