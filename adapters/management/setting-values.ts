import { settingText } from '../../lib/adapter.ts';
import type { Setting } from '../../lib/index.ts';

/** The value of an option as the interface writes it, so that it can be sent back: `64`, `true`, and strings such as `90s`. '' means that there is no value. */
export function shownValue(setting: Pick<Setting, 'value' | 'kind' | 'unit'>): string | number | boolean {
  const { value, kind } = setting;
  const isPlain = typeof value === 'boolean' || (typeof value === 'number' && kind !== 'duration');
  return isPlain ? value : settingText(setting);
}

/** A value of a request as `broker.configuration` takes it. The empty string means that there is no value; JSON stands for objects. */
export function givenValue(given: unknown, { kind }: Pick<Setting, 'kind'>): unknown {
  if (given === '') return null;
  if (kind !== 'object' || typeof given !== 'string' || !/^\s*[[{]/.test(given)) return given;
  try {
    return JSON.parse(given);
  } catch {
    return given; // which is refused with what is expected
  }
}
