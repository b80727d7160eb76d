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
 * - `space`: blanks at the beginning or end of a level
 * - `share`: the filter is meant to be shared, but does not begin with `$share/` [MQTT-4.8.2-1]
 */
export type FilterDifference = 'case' | 'slash' | 'levels' | 'system' | 'space' | 'share';

/** The beginning of a filter that was meant to be shared: `$shared/GROUP/`, `$Share/GROUP/`, `share/GROUP/`. */
const LIKE_SHARE = /^(\$?)shared?\/[^/]+\/(?=.)/i;

/** Maximum number of levels of topics and filters that are compared for a missing run of levels. */
const MAX_LEVELS = 32;
/** Maximum length of topics and filters that are compared, so that no topic makes a comparison long. */
export const MAX_CHARACTERS = 4_096;

const NONE: readonly FilterDifference[] = [];

/** A topic to which filters are compared, with its levels in the ways in which they are compared. */
export class ComparedTopic {
  readonly topic: string;
  readonly #levels: readonly string[];
  readonly #folded: readonly string[];
  readonly #named: readonly string[];
  readonly #foldedNamed: readonly string[];

  /** @param topic at most `MAX_CHARACTERS` */
  constructor(topic: string) {
    this.topic = topic;
    this.#levels = topic.split('/');
    this.#folded = this.#levels.map(folded);
    this.#named = this.#levels.filter(isNamed);
    this.#foldedNamed = this.#folded.filter(isNamed);
  }

  /**
   * Find the differences to a filter that nearly matches the topic.
   * @param filter without a share prefix
   * @returns empty if the filter matches the topic, or is not near
   */
  differencesTo(filter: string): readonly FilterDifference[] {
    if (matches(filter, this.topic) || filter.length > MAX_CHARACTERS) return NONE;
    if (isLikeShared(filter, this.topic)) return ['share'];
    if (BLANKS.test(filter) !== BLANKS.test(this.topic) && matches(trimmed(filter), trimmed(this.topic)))
      return ['space'];
    const wanted = filter.split('/');
    const isHidden = this.topic.startsWith('$') && (wanted[0] === '+' || wanted[0] === '#');
    const spelling = this.#spellingOf(wanted);
    if (spelling !== undefined) return isHidden ? ['system', ...spelling] : spelling;
    return !isHidden && differsInLevels(wanted, this.#levels) ? ['levels'] : NONE;
  }

  /** The differences in case and slashes; undefined if there is another one. */
  #spellingOf(wanted: readonly string[]): readonly FilterDifference[] | undefined {
    if (fits(wanted, this.#levels)) return NONE;
    const plain = wanted.map(folded);
    if (fits(plain, this.#folded)) return ['case'];
    if (fits(wanted.filter(isNamed), this.#named)) return ['slash'];
    return fits(plain.filter(isNamed), this.#foldedNamed) ? ['case', 'slash'] : undefined;
  }
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

/** The rest of a filter that begins like a shared one, such as `$shared/GROUP/FILTER`; undefined: it does not. */
export function restOfMisspelledShare(filter: string): string | undefined {
  const [prefix, dollar] = LIKE_SHARE.exec(filter) ?? [];
  return prefix === undefined || dollar !== '$' || filter.startsWith('$share/')
    ? undefined
    : filter.slice(prefix.length);
}

/** Tell whether a filter would match as a shared one. Without `$` it begins a tree of topics as well, so its rest must name a level. */
function isLikeShared(filter: string, topic: string): boolean {
  const [prefix, dollar] = LIKE_SHARE.exec(filter) ?? [];
  if (prefix === undefined) return false;
  const rest = filter.slice(prefix.length);
  return matches(rest, topic) && (dollar === '$' || isNamedIn(rest.split('/')));
}

/** Blanks at the beginning or end of a level. */
const BLANKS = /(^|\/)\s|\s(\/|$)/;

function trimmed(topic: string): string {
  return BLANKS.test(topic)
    ? topic
        .split('/')
        .map((level) => level.trim())
        .join('/')
    : topic;
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
  return wanted.some((level) => level !== '+' && level !== '#' && level !== '');
}
