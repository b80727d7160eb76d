// Positions and lengths count characters as people see them (`characters.ts`), not the units of JavaScript strings. A
// result that can be longer than its arguments is built in `bounded`, which refuses it before it exists. Functions
// with a regular expression have `patternAt`, so that its work is counted.

import { firstIn, lastIn, splitBy } from '../../base/text-search.ts';
import { bounded, MAX_STRING } from '../arithmetic.ts';
import { SqlFailure } from '../sql-error.ts';
import { bytesOf, type Value } from '../values.ts';
import { charactersOf, lengthOf, partOf } from './characters.ts';
import { type FunctionWork, family, type SqlFunctionEntry } from './function.ts';
import { formatText } from './sprintf.ts';

function substring(text: string, start: number | bigint, length: number | bigint = Infinity): string {
  if (start < 0 || length < 0) throw new SqlFailure(`substr: start ${start} or length ${length} is negative`);
  return partOf(text, Number(start), Number(start) + Number(length));
}

const SPLIT_MODES = ['trim', 'notrim', 'leading', 'trailing', 'leading_notrim', 'trailing_notrim'];
const PLACES = ['all', 'leading', 'trailing'];
const ENDS = ['leading', 'trailing'];
const SIDES = ['leading', 'trailing', 'both'];

function split(text: string, separator: string, mode = 'trim'): string[] {
  const parts = separator === '' ? [text] : splitAt(text, separator, mode);
  return mode.endsWith('notrim') ? parts : parts.filter((part) => part !== '');
}

function splitAt(text: string, separator: string, mode: string): string[] {
  const isOnce = mode.startsWith('leading') || mode.startsWith('trailing');
  if (!isOnce) return splitBy(text, separator);
  const at = mode.startsWith('leading') ? firstIn(text, separator) : lastIn(text, separator);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** @param lines `nocrlf`: line ends are separators, too */
function tokens(text: string, separators: string, lines?: string): string[] {
  const parts: string[] = [];
  const among = new Set(lines === undefined ? separators : `${separators}\r\n`);
  let part = '';
  for (const character of text)
    if (!among.has(character)) part += character;
    else if (part !== '') {
      parts.push(part);
      part = '';
    }
  if (part !== '') parts.push(part);
  return parts;
}

function pad(text: string, length: number | bigint, side = 'trailing', fill = ' '): string {
  const missing = fill === '' ? 0 : Math.max(0, Number(length) - lengthOf(text));
  return bounded(text.length + missing * fill.length, () => {
    const before = side === 'leading' ? missing : side === 'both' ? Math.floor(missing / 2) : 0;
    return fill.repeat(before) + text + fill.repeat(missing - before);
  });
}

function replace(text: string, what: string, by: string, place = 'all'): string {
  if (what === '') return text;
  if (place === 'all') return replaceAll(text, what, by);
  const at = place === 'leading' ? firstIn(text, what) : lastIn(text, what);
  return at === -1 ? text : text.slice(0, at) + by + text.slice(at + what.length);
}

function replaceAll(text: string, what: string, by: string): string {
  const parts = splitBy(text, what);
  return bounded(text.length + (parts.length - 1) * (by.length - what.length), () => parts.join(by));
}

function find(text: string, what: string, end = 'leading'): string {
  const at = end === 'leading' ? firstIn(text, what) : what === '' ? 0 : lastIn(text, what);
  return at === -1 ? '' : text.slice(at);
}

/** `&` stands for the match, `\1` for a group, and `\&` for an ampersand. */
function expand(replacement: string, match: readonly string[]): string {
  return replacement.replace(/\\(\d)|\\g\{(\d{1,2})\}|\\(.)|&/gs, (whole, digit, braced, escaped) =>
    whole === '&' ? match[0] : escaped !== undefined ? escaped : (match[Number(digit ?? braced)] ?? '')
  );
}

/** A function from a string to a string. */
function ofText(name: string, about: string, run: (text: string) => string): SqlFunctionEntry {
  return { name, params: ['string'], returns: 'string', about, isTotal: true, run };
}

export const TEXT_FUNCTIONS = family('text', [
  ofText('lower', 'In lower case.', (text) => text.toLowerCase()),
  ofText('upper', 'In upper case.', (text) => text.toUpperCase()),
  ofText('trim', 'Without white space at both ends.', (text) => text.trim()),
  ofText('ltrim', 'Without white space at the beginning.', (text) => text.trimStart()),
  ofText('rtrim', 'Without white space at the end.', (text) => text.trimEnd()),
  {
    ...ofText('reverse', 'The characters in reverse order.', (text) => [...charactersOf(text)].reverse().join('')),
    isSegmented: true
  },
  {
    name: 'strlen',
    params: ['string'],
    returns: 'integer',
    about: 'Number of characters as a reader sees them (grapheme clusters).',
    isTotal: true,
    isSegmented: true,
    run: lengthOf
  },
  {
    name: 'substr',
    params: ['string', 'integer', 'integer?'],
    returns: 'string',
    about: 'A part of a string: start from 0, and length.',
    isSegmented: true,
    run: substring
  },
  {
    name: 'split',
    params: ['string', 'string', 'string?'],
    returns: 'list',
    about:
      'The parts between separators. Modes: trim (default: without empty parts), notrim, leading and trailing (split once), leading_notrim, trailing_notrim.',
    choices: { 2: SPLIT_MODES },
    isTotal: true,
    run: split
  },
  {
    name: 'tokens',
    params: ['string', 'string', 'string?'],
    returns: 'list',
    about: 'The parts between any of these characters, without empty ones; with nocrlf, line ends separate, too.',
    choices: { 2: ['nocrlf'] },
    isTotal: true,
    run: tokens
  },
  {
    name: 'concat',
    params: ['string', 'string', 'string...'],
    returns: 'string',
    about: 'Two or more strings joined.',
    run: (...texts: string[]) =>
      bounded(
        texts.reduce((sum, { length }) => sum + length, 0),
        () => texts.join('')
      )
  },
  {
    name: 'sprintf',
    params: ['string', 'any...'],
    returns: 'string',
    about:
      'A string with values: ~s string, ~p any value, ~b integer, ~.2f number with decimals, ~n line end, ~~ tilde.',
    countsWork: true,
    run: (work: FunctionWork, format: string, ...values: Value[]) => formatText('sprintf', format, values, work)
  },
  {
    name: 'sprintf_s',
    params: ['string', 'list'],
    returns: 'string',
    about: 'As sprintf, with the values in a list.',
    countsWork: true,
    run: (work: FunctionWork, format: string, values: readonly Value[]) => formatText('sprintf_s', format, values, work)
  },
  {
    name: 'pad',
    params: ['string', 'integer', 'string?', 'string?'],
    returns: 'string',
    about: 'Filled to a length: trailing (default), leading or both; with spaces or the fourth argument.',
    choices: { 2: SIDES },
    isSegmented: true,
    run: pad
  },
  {
    name: 'replace',
    params: ['string', 'string', 'string', 'string?'],
    returns: 'string',
    about: 'Each occurrence of the second argument replaced by the third, or only the leading or trailing one.',
    choices: { 3: PLACES },
    run: replace
  },
  {
    name: 'regex_match',
    params: ['string', 'string'],
    returns: 'boolean',
    about: 'Whether a regular expression (RE2) matches a part of the text.',
    patternAt: 1,
    make: (tools) => (text: string, pattern: string) => tools.pattern(pattern).test(text)
  },
  {
    name: 'regex_replace',
    params: ['string', 'string', 'string'],
    returns: 'string',
    about: 'Each match of a regular expression replaced; & is the match, \\1 a group, \\& an ampersand.',
    patternAt: 1,
    make: (tools) => (text: string, pattern: string, replacement: string) => {
      let length = text.length;
      return tools.pattern(pattern).replace(text, (match) => {
        const by = expand(replacement, match);
        length += by.length;
        return bounded(Math.min(length, MAX_STRING + 1), () => by);
      });
    }
  },
  {
    name: 'regex_extract',
    params: ['string', 'string'],
    returns: 'list',
    about:
      'The groups of the first match of a regular expression; an empty list if it does not match or has no groups.',
    patternAt: 1,
    make: (tools) => (text: string, pattern: string) => tools.pattern(pattern).groups(text)
  },
  {
    name: 'ascii',
    params: ['bytes'],
    returns: 'integer',
    about: 'The first byte.',
    run: (text: string | Uint8Array) => {
      if (text.length === 0) throw new SqlFailure('ascii: the text is empty');
      return bytesOf(text)[0];
    }
  },
  {
    name: 'find',
    params: ['string', 'string', 'string?'],
    returns: 'string',
    about: 'The rest of the text from the leading (default) or trailing occurrence of the second argument.',
    choices: { 2: ENDS },
    isTotal: true,
    run: find
  }
]);
