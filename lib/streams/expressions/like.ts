import { firstIn } from '../../base/text-search.ts';
import { StreamFailure } from '../values/values.ts';

/**
 * Matches a string against a pattern of LIKE: `%` stands for any characters, `_` for one character, and `\` makes the
 * next character literal.
 */
type Matcher = (text: string) => boolean;

const ANY_RUN = Symbol('any characters');
const ANY_ONE = Symbol('one character');

type Element = string | typeof ANY_RUN | typeof ANY_ONE;

/** Maximum number of comparisons for a pattern with `_`, which take about 0.1 s. */
const MAX_COMPARISONS = 16_777_216;

/**
 * Compile a pattern of LIKE.
 *
 * Matching a pattern without `_` takes time proportional to the sum of the lengths; for other patterns, the worst case
 * is proportional to their product.
 * @returns throws StreamFailure if a pattern with `_` needs too many comparisons
 */
export function likePattern(pattern: string): Matcher {
  const elements = elementsOf(pattern);
  if (elements.includes(ANY_ONE)) return (value) => matches([...value], elements);
  const [first, ...others] = partsOf(elements);
  const last = others.pop();
  if (last === undefined) return (value) => value === first;
  return (value) => {
    const end = value.length - last.length;
    if (first.length > end || !value.startsWith(first) || !value.endsWith(last)) return false;
    let at = first.length;
    for (const part of others) {
      const found = firstIn(value, part, at);
      at = found + part.length;
      if (found === -1 || at > end) return false;
    }
    return true;
  };
}

/** The strings between the `%` of a pattern without `_`. */
function partsOf(elements: readonly Element[]): string[] {
  const parts = [''];
  for (const element of elements)
    if (typeof element === 'string') parts[parts.length - 1] += element;
    else parts.push('');
  return parts;
}

function elementsOf(pattern: string): Element[] {
  const elements: Element[] = [];
  const characters = [...pattern];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at];
    if (character === '\\' && at + 1 < characters.length) elements.push(characters[++at]);
    else if (character === '_') elements.push(ANY_ONE);
    else if (character !== '%') elements.push(character);
    else if (elements[elements.length - 1] !== ANY_RUN) elements.push(ANY_RUN);
  }
  return elements;
}

/**
 * Only the last `%` is retried, so that the time is at most proportional to the product of the lengths.
 * @throws StreamFailure if the limit is exceeded
 */
function matches(text: readonly string[], elements: readonly Element[]): boolean {
  let [at, next, run, from] = [0, 0, -1, 0];
  for (let left = MAX_COMPARISONS; at < text.length; left--) {
    if (left === 0)
      throw new StreamFailure(
        `LIKE needs more than ${MAX_COMPARISONS} comparisons; shorten the pattern, or write it without _`
      );
    const element = elements[next];
    if (element === ANY_RUN) [run, from, next] = [next, at, next + 1];
    else if (element === ANY_ONE || element === text[at]) [at, next] = [at + 1, next + 1];
    else if (run === -1) return false;
    else [at, next] = [++from, run + 1];
  }
  while (elements[next] === ANY_RUN) next++;
  return next === elements.length;
}
