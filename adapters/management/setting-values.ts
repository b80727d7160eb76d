import { settingText } from '../../lib/adapter.ts';
import type { Setting } from '../../lib/index.ts';

/**
 * The value of an option in a form that can be sent back: `64`, `true`, and strings such as `90s`. The empty string
 * means that the option has no value.
 */
export function shownValue(setting: Pick<Setting, 'value' | 'kind' | 'unit'>): string | number | boolean {
  const { value, kind } = setting;
  const isPlain = typeof value === 'boolean' || (typeof value === 'number' && kind !== 'duration');
  return isPlain ? value : settingText(setting);
}

/**
 * Convert a value of a request for `broker.configuration`. The empty string means that the option has no value; JSON stands
 * for objects.
 */
export function givenValue(given: unknown, { kind }: Pick<Setting, 'kind'>): unknown {
  if (given === '') return null;
  if (kind !== 'object' || typeof given !== 'string' || !/^\s*[[{]/.test(given)) return given;
  try {
    return JSON.parse(given);
  } catch {
    return given; // refused later, with the expected values
  }
}
