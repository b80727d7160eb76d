// The ways in which a filter that does not match a topic nearly does, for the question why a message was not received.
// Each is one mistake that people make. Two are found together only where both are spelling (case and slashes);
// more than that would call every filter near.

import { matches } from './topic.ts';

/**
 * The difference between a topic and a filter that nearly matches it.
 *
 * - `case`: upper and lower case
 * - `slash`: a slash at the beginning or the end, or two in a row
 * - `levels`: the number of levels: one of the two has a run of levels that the other has not
 * - `system`: the topic begins with `$`, which a wildcard at the first level does not match [MQTT-4.7.2-1]
 */
export type FilterDifference = 'case' | 'slash' | 'levels' | 'system';

/** Maximum number of levels of topics and filters that are compared for a missing run of levels. */
const MAX_LEVELS = 128;

const NONE: readonly FilterDifference[] = [];

/**
 * Find the differences between a topic and a filter that nearly matches it.
 * @param filter without a share prefix
 * @returns empty if the filter matches the topic, or is not near
 */
export function differencesOf(filter: string, topic: string): readonly FilterDifference[] {
  if (matches(filter, topic)) return NONE;
  const wanted = filter.split('/');
  const given = topic.split('/');
  const isHidden = given[0].startsWith('$') && (wanted[0] === '+' || wanted[0] === '#');
  const spelling = spellingOf(wanted, given);
  if (spelling !== undefined) return isHidden ? ['system', ...spelling] : spelling;
  return !isHidden && differsInLevels(wanted, given) ? ['levels'] : NONE;
}

/** The differences in case and slashes; undefined if there is another one. */
function spellingOf(wanted: readonly string[], given: readonly string[]): readonly FilterDifference[] | undefined {
  if (fits(wanted, given)) return NONE;
  const [plainWanted, plainGiven] = [wanted.map(folded), given.map(folded)];
  if (fits(plainWanted, plainGiven)) return ['case'];
  if (fits(wanted.filter(isNamed), given.filter(isNamed))) return ['slash'];
  return fits(plainWanted.filter(isNamed), plainGiven.filter(isNamed)) ? ['case', 'slash'] : undefined;
}

/** Describe the slashes that a topic and a filter have differently: "leading", "trailing", "doubled". */
export function slashesOf(filter: string, topic: string): string {
  const [one, other] = [filter, topic].map((text) => ({
    leading: text.startsWith('/'),
    trailing: text.length > 1 && text.endsWith('/'),
    doubled: text.includes('//')
  }));
  const names = (['leading', 'trailing', 'doubled'] as const).filter((name) => one[name] !== other[name]);
  return names.length === 0 ? 'doubled' : names.join(', ');
}

function folded(level: string): string {
  return level.toLowerCase();
}

function isNamed(level: string): boolean {
  return level !== '';
}

/** Tell whether the levels of a filter match those of a topic, a `$` at its beginning included. */
function fits(wanted: readonly string[], given: readonly string[]): boolean {
  for (let at = 0; at < wanted.length; at++) {
    if (wanted[at] === '#') return given.length >= at;
    if (at >= given.length || !isLevel(wanted[at], given[at])) return false;
  }
  return wanted.length === given.length;
}

function isLevel(wanted: string, given: string): boolean {
  return wanted === '+' || wanted === given;
}

/** Tell whether the filter would match if a run of levels were removed from it, or from the topic. */
function differsInLevels(filter: readonly string[], given: readonly string[]): boolean {
  const hasRest = filter.at(-1) === '#';
  const wanted = hasRest ? filter.slice(0, -1) : filter;
  if (wanted.length > MAX_LEVELS || given.length > MAX_LEVELS) return false;
  const shorter = Math.min(wanted.length, given.length);
  if (shorter === 0) return false;
  const first = agreeing(shorter, (at) => isLevel(wanted[at], given[at]));
  if (hasRest && isShifted(wanted, given)) return true;
  if (wanted.length === given.length || (hasRest && given.length > wanted.length)) return false;
  const last = agreeing(shorter - first, (at) => isLevel(wanted.at(-1 - at) as string, given.at(-1 - at) as string));
  if (first + last < shorter) return false;
  return isNamedIn(wanted.slice(0, first)) || isNamedIn(wanted.slice(wanted.length - last)) || !isNamedIn(wanted);
}

/** Tell whether a filter that ends with `#` would match without its first levels, or if the topic had not its first ones. */
function isShifted(wanted: readonly string[], given: readonly string[]): boolean {
  for (let from = 1; from < wanted.length; from++) {
    const rest = wanted.slice(from);
    if (isNamedIn(rest) && fits([...rest, '#'], given)) return true;
  }
  for (let from = 1; from < given.length; from++)
    if (isNamedIn(wanted) && fits([...wanted, '#'], given.slice(from))) return true;
  return false;
}

/** The number of places from 0 up to `most` at which a condition holds, until the first at which it does not. */
function agreeing(most: number, holds: (at: number) => boolean): number {
  let count = 0;
  while (count < most && holds(count)) count++;
  return count;
}

/** Tell whether a level of a filter is a name, not a wildcard: wildcards alone make no filter near. */
function isNamedIn(wanted: readonly string[]): boolean {
  return wanted.some((level) => level !== '+' && level !== '');
}
