/** Approximate maximum number of characters that a search of V8 may compare, which takes some milliseconds; longer ones are done here. */
const MAX_COMPARISONS = 8_388_608;

/**
 * `text.indexOf(what, from)`, also for strings that clients choose: V8 needs seconds for some of 200,000 characters, because its time grows
 * with the product of the lengths. Here it grows with their sum.
 */
export function firstIn(text: string, what: string, from = 0): number {
  if (isQuick(text.length - from, what)) return text.indexOf(what, from);
  for (const at of occurrences(text, what, from)) return at;
  return -1;
}

/** `text.lastIndexOf(what)`; see `firstIn`. */
export function lastIn(text: string, what: string): number {
  if (isQuick(text.length, what)) return text.lastIndexOf(what);
  let last = -1;
  for (const at of occurrences(text, what, 0)) last = at;
  return last;
}

/** `text.split(by)` for a separator that is not empty; see `firstIn`. */
export function splitBy(text: string, by: string): string[] {
  if (isQuick(text.length, by)) return text.split(by);
  const parts: string[] = [];
  let end = 0;
  for (const at of occurrences(text, by, 0)) {
    if (at < end) continue; // it overlaps the previous one
    parts.push(text.slice(end, at));
    end = at + by.length;
  }
  parts.push(text.slice(end));
  return parts;
}

function isQuick(length: number, what: string): boolean {
  return what.length > length || length * what.length <= MAX_COMPARISONS;
}

/** The positions of a string in another one, including overlapping ones, by the algorithm of Knuth, Morris and Pratt. */
function* occurrences(text: string, what: string, from: number): Generator<number, void> {
  const borders = bordersOf(what);
  let matched = 0;
  for (let at = from; at < text.length; at++) {
    const character = text.charCodeAt(at);
    while (matched > 0 && character !== what.charCodeAt(matched)) matched = borders[matched - 1];
    if (character === what.charCodeAt(matched)) matched++;
    if (matched < what.length) continue;
    yield at - what.length + 1;
    matched = borders[matched - 1];
  }
}

/** For each prefix of a string: the length of the longest shorter prefix that is also its suffix. */
function bordersOf(what: string): Int32Array {
  const borders = new Int32Array(what.length);
  for (let at = 1, length = 0; at < what.length; at++) {
    const character = what.charCodeAt(at);
    while (length > 0 && character !== what.charCodeAt(length)) length = borders[length - 1];
    if (character === what.charCodeAt(length)) length++;
    borders[at] = length;
  }
  return borders;
}
