import { createHash } from 'node:crypto';
import { StreamFailure } from '../values/values.ts';
import { fn, type TemplateFunctions } from './function-table.ts';
import { joined, printInner } from './print.ts';
import { quoted } from './printf.ts';
import { isList, makeObject, type TemplateValue, tooLong } from './template-value.ts';

/** Functions of text, with the names of the sprig collection. @param most maximum number of characters */
export function textFunctions(most: number): TemplateFunctions {
  const print = (value: TemplateValue) => printInner(value, most);
  const present = (values: readonly TemplateValue[]) => values.filter((value) => value !== undefined && value !== null);
  const strings = (list: TemplateValue) => {
    let length = 0;
    return (isList(list) ? present(list) : [list]).map((value) => {
      const text = print(value);
      if ((length += text.length) > most) throw tooLong(most);
      return text;
    });
  };
  const repeat = (count: number, text: string) => {
    if (count > 0 && text.length * count > most) throw tooLong(most);
    return text.repeat(Math.max(0, count));
  };
  const indent = (count: number, text: string) => {
    const margin = repeat(count, ' ');
    return margin + text.replaceAll('\n', `\n${margin}`);
  };
  const replaced = (from: string, to: string, text: string) => {
    const parts = from === '' ? text.length + 1 : text.split(from).length;
    if (parts * to.length > most) throw tooLong(most);
    return text.replaceAll(from, () => to);
  };
  return {
    toString: fn('any', print),
    toStrings: fn('any', strings),
    ...LETTER_FUNCTIONS,
    repeat: fn('int string', repeat),
    replace: fn('string string string', replaced),
    contains: fn('string string', (part: string, text: string) => text.includes(part)),
    hasPrefix: fn('string string', (part: string, text: string) => text.startsWith(part)),
    hasSuffix: fn('string string', (part: string, text: string) => text.endsWith(part)),
    quote: fn('any...', (...values) => joined(present(values), ' ', (value) => quoted(print(value)), most)),
    squote: fn('any...', (...values) => joined(present(values), ' ', (value) => `'${print(value)}'`, most)),
    cat: fn('any...', (...values) => joined(present(values), ' ', print, most)),
    indent: fn('int string', indent),
    nindent: fn('int string', (count: number, text: string) => `\n${indent(count, text)}`),
    camelcase: fn('string', (text: string) =>
      text
        .split(/[_\-\s]+/)
        .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
        .join('')
    ),
    snakecase: fn('string', (text: string) => cased(text, '_')),
    kebabcase: fn('string', (text: string) => cased(text, '-')),
    swapcase: fn('string', (text: string) =>
      [...text].map((each) => (each === each.toUpperCase() ? each.toLowerCase() : each.toUpperCase())).join('')
    ),
    initials: fn('string', (text: string) =>
      text
        .split(/\s+/)
        .map((word) => word.charAt(0))
        .join('')
    ),
    join: fn('string any', (separator: string, list: TemplateValue) => {
      const parts = strings(list);
      if (separator.length * parts.length > most) throw tooLong(most);
      return parts.join(separator);
    }),
    sortAlpha: fn('any', (list: TemplateValue) => strings(list).sort((a, b) => (a < b ? -1 : 1))),
    split: fn('string string', (separator: string, text: string) =>
      makeObject(text.split(separator).map((part, at) => [`_${at}`, part]))
    ),
    splitn: fn('string int string', (separator: string, count: number, text: string) =>
      makeObject(splitMost(text, separator, count).map((part, at) => [`_${at}`, part]))
    ),
    splitList: fn('string string', (separator: string, text: string) => text.split(separator)),
    b64enc: fn('string', (text: string) => Buffer.from(text).toString('base64')),
    b64dec: fn('string', (text: string) => decoded(text)),
    sha1sum: fn('string', (text: string) => createHash('sha1').update(text).digest('hex')),
    sha256sum: fn('string', (text: string) => createHash('sha256').update(text).digest('hex')),
    sha512sum: fn('string', (text: string) => createHash('sha512').update(text).digest('hex'))
  };
}

/** Functions whose results are never longer than their arguments. */
const LETTER_FUNCTIONS: TemplateFunctions = {
  upper: fn('string', (text: string) => text.toUpperCase()),
  lower: fn('string', (text: string) => text.toLowerCase()),
  title: fn('string', (text: string) => text.replace(/(?<![\p{L}\p{N}_])\p{L}/gu, (letter) => letter.toUpperCase())),
  untitle: fn('string', (text: string) => text.replace(/(?<!\S)\S/gu, (letter) => letter.toLowerCase())),
  trim: fn('string', (text: string) => text.trim()),
  trimAll: fn('string string', (set: string, text: string) => trimmed(text, set, 'start', 'end')),
  trimPrefix: fn('string string', (part: string, text: string) =>
    text.startsWith(part) ? text.slice(part.length) : text
  ),
  trimSuffix: fn('string string', (part: string, text: string) =>
    part !== '' && text.endsWith(part) ? text.slice(0, -part.length) : text
  ),
  trimLeft: fn('string string', (set: string, text: string) => trimmed(text, set, 'start')),
  trimRight: fn('string string', (set: string, text: string) => trimmed(text, set, 'end')),
  trunc: fn('int string', truncated),
  abbrev: fn('int string', (width: number, text: string) =>
    width < 4 || text.length <= width ? text : `${text.slice(0, width - 3)}...`
  ),
  substr: fn('int int string', (start: number, end: number, text: string) => {
    if (start < 0) return text.slice(0, Math.max(0, end));
    return end < 0 || end > text.length ? text.slice(start) : text.slice(start, Math.max(start, end));
  }),
  nospace: fn('string', (text: string) => text.replace(/\s/g, ''))
};

function truncated(count: number, text: string): string {
  if (count >= 0) return text.slice(0, count);
  return text.length + count > 0 ? text.slice(count) : text;
}

function trimmed(text: string, set: string, ...sides: readonly ('start' | 'end')[]): string {
  const characters = new Set(set);
  const all = [...text];
  let [start, end] = [0, all.length];
  if (sides.includes('start')) while (start < end && characters.has(all[start])) start++;
  if (sides.includes('end')) while (end > start && characters.has(all[end - 1])) end--;
  return all.slice(start, end).join('');
}

function cased(text: string, separator: string): string {
  return text
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, `$1${separator}$2`)
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, `$1${separator}$2`)
    .replace(/[\s_-]+/g, separator)
    .toLowerCase();
}

function splitMost(text: string, separator: string, count: number): string[] {
  const parts = text.split(separator);
  return count <= 0 || parts.length <= count
    ? parts
    : [...parts.slice(0, count - 1), parts.slice(count - 1).join(separator)];
}

function decoded(text: string): string {
  if (text.length % 4 !== 0 || !/^[A-Za-z\d+/]*={0,2}$/.test(text)) throw new StreamFailure('illegal base64 data');
  return Buffer.from(text, 'base64').toString();
}
