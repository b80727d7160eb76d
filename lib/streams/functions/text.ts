// Lengths count code points, and white space is that of Unicode, as in the documented product. Results that can be
// longer than the arguments are limited before they are built (`checkCharacters`, `TextParts`). A row of the table
// says how null is handled and whether calls with constants may be evaluated once.

import { LRUCache } from 'lru-cache';
import { firstIn, splitBy } from '../../base/text-search.ts';
import { fixed } from '../../sql/json.ts';
import type { StreamFunctionTools, StreamPattern } from '../function.ts';
import { isArray, isStruct, StreamFailure, type StreamValue } from '../values/values.ts';
import { bytesOf, floatOf, indexOf, textOf } from './arguments.ts';
import { concatenated } from './arrays.ts';
import { checkCharacters, TextParts } from './bounds.ts';
import { PURE, type StreamFunctionEntry, streamFamily } from './family.ts';

/** White space as defined by Unicode, as in the original. */
const SPACE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

function trimmed(text: string, isStart: boolean, isEnd: boolean): string {
  let [start, end] = [0, text.length];
  if (isStart) while (start < end && SPACE.test(text[start])) start++;
  if (isEnd) while (end > start && SPACE.test(text[end - 1])) end--;
  return text.slice(start, end);
}

function ofText(name: string, about: string, run: (text: string) => StreamValue): StreamFunctionEntry {
  return {
    name,
    params: ['string'],
    about,
    ifNull: null,
    isPure: true,
    run: (value: StreamValue) => run(textOf(value))
  };
}

function concat(...args: StreamValue[]): StreamValue {
  if (args.some(isArray)) return concatenated(args);
  const parts = new TextParts();
  for (const arg of args) parts.add(textOf(arg));
  return parts.toString();
}

function lengthOf(value: StreamValue): bigint {
  if (isArray(value)) return BigInt(value.length);
  if (isStruct(value)) return BigInt(Object.keys(value).length);
  const text = textOf(value);
  let count = text.length;
  for (let at = 0; at < text.length - 1; at++)
    if ((text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) count--;
  return BigInt(count);
}

/** A string of spaces. @throws StreamFailure */
function spaces(text: string, count: StreamValue): string {
  const number = indexOf(count);
  if (number < 0) throw new StreamFailure(`the number of spaces must not be negative, but is ${number}`);
  checkCharacters(text.length + number);
  return ' '.repeat(number);
}

/** @throws StreamFailure for bounds that are negative or in the wrong order; the part beyond the end is ignored */
function substring(value: StreamValue, from: StreamValue, to: StreamValue = Number.MAX_SAFE_INTEGER): string {
  const [start, end] = [indexOf(from), indexOf(to)];
  if (start < 0) throw new StreamFailure(`start index must be a positive number, but is ${start}`);
  if (end < 0) throw new StreamFailure(`end index must be a positive number, but is ${end}`);
  if (start > end) throw new StreamFailure(`start index must be smaller than end index, but ${start} is after ${end}`);
  const text = textOf(value);
  const bytes = Buffer.from(text);
  return bytes.length === text.length ? text.slice(start, end) : bytes.subarray(start, end).toString();
}

function checkSubstring([, start, end]: readonly (StreamValue | undefined)[]): string | undefined {
  if (typeof start !== 'bigint') return undefined;
  if (start < 0n) return 'The start index should not be a negative integer.';
  return typeof end === 'bigint' && end < start ? 'The end index should be larger than start index.' : undefined;
}

function indexIn(value: StreamValue, what: StreamValue): bigint {
  const text = textOf(value);
  const at = firstIn(text, textOf(what));
  return at === -1 ? -1n : BigInt(Buffer.byteLength(text.slice(0, at)));
}

function splitValue(value: StreamValue, separator: StreamValue, index: StreamValue): string {
  const [text, by] = [textOf(value), textOf(separator)];
  const parts = by === '' ? [...text] : splitBy(text, by);
  const at = indexOf(index);
  const part = parts.at(at);
  if (part === undefined) throw new StreamFailure(`${at} out of index array (size = ${parts.length})`);
  return part;
}

/** Maximum number of decimals of `format`. */
const MAX_DECIMALS = 100;

/** Cached formatters by locale, because they are expensive to create. */
const FORMATTERS = new LRUCache<string, Intl.NumberFormat>({ max: 50 });

function format(value: StreamValue, decimals: StreamValue, locale?: StreamValue): string {
  const [number, places] = [floatOf(value), indexOf(decimals)];
  if (places < 0) throw new StreamFailure(`the decimal places must greater or equal than 0, but are ${places}`);
  if (places > MAX_DECIMALS) throw new StreamFailure(`format: there are at most ${MAX_DECIMALS} decimal places`);
  if (!Number.isFinite(number)) return textOf(number);
  return locale === undefined ? fixed(number, places) : formatterOf(textOf(locale), places).format(number);
}

function formatterOf(locale: string, decimals: number): Intl.NumberFormat {
  const key = `${locale} ${decimals}`;
  const known = FORMATTERS.get(key);
  if (known !== undefined) return known;
  const tag = locale.replaceAll('_', '-');
  if (!isLocale(tag)) throw new StreamFailure(`format: unknown locale "${locale.slice(0, 20)}"; use one such as en_US`);
  const made = new Intl.NumberFormat(tag, { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  FORMATTERS.set(key, made);
  return made;
}

function isLocale(tag: string): boolean {
  try {
    return Intl.NumberFormat.supportedLocalesOf(tag).length > 0;
  } catch {
    return false; // the tag is malformed
  }
}

/** Caches the expression of the previous row, which seldom changes. */
function patterns(tools: StreamFunctionTools): (value: StreamValue) => StreamPattern {
  let text: string | undefined;
  let pattern: StreamPattern | undefined;
  return (value) => {
    const given = textOf(value);
    if (given !== text || pattern === undefined) {
      pattern = tools.pattern(given);
      text = given;
    }
    return pattern;
  };
}

/** `$1` and `${1}` stand for groups, `$$` for a dollar sign. @throws StreamFailure for named groups */
function expand(replacement: string, match: readonly string[]): string {
  return replacement.replace(/\$(?:\$|(\w+)|\{(\w+)\})/g, (whole, bare, braced) => {
    if (whole === '$$') return '$';
    const group = Number(bare ?? braced);
    if (!Number.isNaN(group)) return match[group] ?? '';
    throw new StreamFailure(`regexp_replace: write the number of the group instead of ${whole.slice(0, 30)}`);
  });
}

function regexpReplace(tools: StreamFunctionTools) {
  const patternOf = patterns(tools);
  return (value: StreamValue, pattern: StreamValue, replacement: StreamValue) => {
    const [text, by] = [textOf(value), textOf(replacement)];
    let made = 0;
    return patternOf(pattern).replace(text, (match) => {
      const part = expand(by, match);
      made += part.length;
      checkCharacters(made);
      return part;
    });
  };
}

function regexpSubstring(name: string): StreamFunctionEntry {
  return {
    name,
    params: ['string', 'string'],
    about: 'The first match of a regular expression (RE2), or an empty string.',
    patternAt: 1,
    ifNull: null,
    make: (tools) => {
      const patternOf = patterns(tools);
      return (value: StreamValue, pattern: StreamValue) => {
        let first: string | undefined;
        patternOf(pattern).replace(textOf(value), ([match]) => {
          first ??= match;
          return '';
        });
        return first ?? '';
      };
    }
  };
}

export const TEXT_FUNCTIONS = streamFamily('text', [
  {
    name: 'concat',
    params: ['any', 'any...'],
    about: 'The strings joined, without those that are null; of arrays, one array.',
    isPure: true,
    run: concat
  },
  {
    name: 'length',
    params: ['any'],
    about: 'Number of characters, or of the members of an array or a struct.',
    ifNull: 0n,
    isPure: true,
    run: lengthOf
  },
  {
    name: 'numbytes',
    params: ['string'],
    about: 'Number of bytes in UTF-8.',
    ifNull: 0n,
    isPure: true,
    run: (value: StreamValue) => BigInt(typeof value === 'string' ? Buffer.byteLength(value) : bytesOf(value).length)
  },
  ofText('lower', 'In lower case.', (text) => text.toLowerCase()),
  ofText('upper', 'In upper case.', (text) => text.toUpperCase()),
  ofText('trim', 'Without white space at both ends.', (text) => trimmed(text, true, true)),
  ofText('ltrim', 'Without white space at the beginning.', (text) => trimmed(text, true, false)),
  ofText('rtrim', 'Without white space at the end.', (text) => trimmed(text, false, true)),
  ofText('reverse', 'The characters in reverse order.', (text) => [...text].reverse().join('')),
  {
    name: 'lpad',
    params: ['string', 'bigint'],
    about: 'The string preceded by a number of spaces.',
    ...PURE,
    run: (value: StreamValue, count: StreamValue) => spaces(textOf(value), count) + textOf(value)
  },
  {
    name: 'rpad',
    params: ['string', 'bigint'],
    about: 'The string followed by a number of spaces.',
    ...PURE,
    run: (value: StreamValue, count: StreamValue) => textOf(value) + spaces(textOf(value), count)
  },
  {
    name: 'substring',
    params: ['string', 'bigint', 'bigint?'],
    about: 'The bytes from a start index, counted from 0, up to, but not including, an end index.',
    check: checkSubstring,
    ...PURE,
    run: substring
  },
  {
    name: 'indexof',
    params: ['string', 'string'],
    about: 'The byte, from 0, at which the second string begins in the first; -1 if it is not there.',
    ifNull: -1n,
    isPure: true,
    run: indexIn
  },
  {
    name: 'startswith',
    params: ['string', 'string'],
    about: 'Whether the first string begins with the second.',
    ifNull: false,
    isPure: true,
    run: (value: StreamValue, start: StreamValue) => textOf(value).startsWith(textOf(start))
  },
  {
    name: 'endswith',
    params: ['string', 'string'],
    about: 'Whether the first string ends with the second.',
    ifNull: false,
    isPure: true,
    run: (value: StreamValue, end: StreamValue) => textOf(value).endsWith(textOf(end))
  },
  {
    name: 'split_value',
    params: ['string', 'string', 'bigint'],
    about: 'A part of a string between separators, by its index from 0; from -1 backwards.',
    ...PURE,
    run: splitValue
  },
  {
    name: 'format',
    params: ['number', 'bigint', 'string?'],
    about: 'A number with a number of decimals; with a locale such as en_US, in groups of digits.',
    ...PURE,
    run: format
  },
  {
    name: 'regexp_matches',
    params: ['string', 'string'],
    about: 'Whether a regular expression (RE2) matches a part of the string.',
    patternAt: 1,
    ifNull: false,
    make: (tools) => {
      const patternOf = patterns(tools);
      return (value: StreamValue, pattern: StreamValue) => patternOf(pattern).test(textOf(value));
    }
  },
  {
    name: 'regexp_replace',
    params: ['string', 'string', 'string'],
    about: 'Each match of a regular expression (RE2) replaced; $1 stands for a group.',
    patternAt: 1,
    ifNull: null,
    make: regexpReplace
  },
  regexpSubstring('regexp_substr'),
  regexpSubstring('regexp_substring')
]);
