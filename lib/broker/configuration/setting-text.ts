import type { Rate } from '../../base/fields.ts';
import type { Setting } from './configuration.ts';

/** Units of durations with their milliseconds, the longest first. */
const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000]
] as const;

/**
 * The value of an option as a string that `broker.configuration.set` accepts: `64`, `true`, `90s`, `1048576`, `100,10s`, `a=1,b=2`. Lists are
 * written as JSON, and no value as ''.
 */
export function settingText({ value, kind, unit }: Pick<Setting, 'value' | 'kind' | 'unit'>): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number' && kind === 'duration') return durationText(unit === 's' ? value * 1000 : value);
  if (kind === 'rate') return `${(value as Rate).amount},${durationText((value as Rate).perMs)}`;
  if (value instanceof Map) return [...value].map(([topic, priority]) => `${topic}=${priority}`).join(',');
  return typeof value === 'object' ? JSON.stringify(value) : `${value}`;
}

function durationText(ms: number): string {
  if (ms === Infinity) return 'infinity';
  if (ms === 0) return '0s';
  const [unit, size] = UNITS.find(([, one]) => ms % one === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}
