// Numbers, sizes, times and names as a person reads them.

const NUMBERS = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const ONE_DECIMAL = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const SIZE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];
const COUNT_UNITS = ['', 'k', 'M', 'G'];

/** A count with separators: `12,345`. */
export function countText(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '–' : NUMBERS.format(value);
}

/** A count in at most five characters: `12.3k`. */
export function shortCount(value: number): string {
  return scaled(value, 1000, COUNT_UNITS, '');
}

/** A size with its unit, in powers of 1,000: `1.2 MB`. */
export function sizeText(bytes: number | undefined): string {
  return bytes === undefined || Number.isNaN(bytes) ? '–' : scaled(bytes, 1000, SIZE_UNITS, ' ');
}

/** A rate per second: `12.3k/s`. */
export function rateText(perSecond: number | undefined): string {
  return perSecond === undefined || Number.isNaN(perSecond) ? '–' : `${shortCount(perSecond)}/s`;
}

function scaled(value: number, base: number, units: readonly string[], gap: string): string {
  let at = 0;
  while (Math.abs(value) >= base * 0.9995 && at < units.length - 1) {
    value /= base;
    at++;
  }
  const digits = Math.abs(value) >= 100 || (Number.isInteger(value) && at === 0) ? NUMBERS : ONE_DECIMAL;
  return `${digits.format(value)}${units[at] === '' ? '' : gap}${units[at]}`;
}

const STEPS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1]
] as const;

/** A duration in its two largest units: `3 d 4 h`, `12 s`; below a second in milliseconds: `20 ms`. */
export function durationText(ms: number | undefined): string {
  if (ms === undefined || Number.isNaN(ms)) return '–';
  if (ms < 1000) return `${ONE_DECIMAL.format(ms)} ms`;
  let left = Math.round(ms / 1000);
  const parts: string[] = [];
  for (const [unit, seconds] of STEPS) {
    const count = Math.floor(left / seconds);
    left -= count * seconds;
    if (count > 0) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break; // `3 d` and not `3 d 5 min`
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}

/**
 * A time in the zone of the reader, as `2026-11-30 14:05:09`; with `ms` also milliseconds.
 * @param at milliseconds since 1970, or a text that a date can be read from
 */
export function timeText(at: number | string | undefined, { ms = false }: { readonly ms?: boolean } = {}): string {
  if (at === undefined || at === '') return '–';
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return `${at}`;
  const two = (value: number) => `${value}`.padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return `${day} ${time}${ms ? `.${`${date.getMilliseconds()}`.padStart(3, '0')}` : ''}`;
}

/** A time with milliseconds in the zone of the reader, with the day only if it is another one than that of `now`. */
export function shortTimeText(at: number, now: number): string {
  const [day, time] = timeText(at, { ms: true }).split(' ');
  return timeText(now).startsWith(day) ? time : `${day} ${time}`;
}

/**
 * The time at which clocks of a zone show a local time, `2026-11-30 14:05:09`.
 * @param zone a name such as `Europe/Berlin`. Default: that of the reader
 * @returns milliseconds since 1970; undefined if the text is not such a time
 */
export function instantOf(text: string, zone?: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(text)) return undefined;
  if (zone === undefined) return new Date(text.replace(' ', 'T')).getTime();
  const meant = Date.parse(`${text.replace(' ', 'T')}Z`);
  // the offset at a time near the one that is meant may be another one, on the day of a change
  const near = meant - offsetOf(meant, zone);
  return meant - offsetOf(near, zone);
}

/** The milliseconds by which clocks of a zone are ahead of UTC at a time. */
function offsetOf(at: number, zone: string): number {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit'
  }).formatToParts(at);
  const part = (type: string) => Number(parts.find((one) => one.type === type)?.value);
  const shown = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'));
  return shown - Math.floor(at / 1000) * 1000;
}

/** A time in the zone of the reader, as an input of a form has it: `2026-11-30T14:05:09`. @param at as `timeText` */
export function inputTime(at: string): string {
  const text = timeText(at);
  return at === '' || Number.isNaN(Date.parse(at)) ? '' : text.replace(' ', 'T');
}

/** The time of an input, the same for readers in all zones. @returns '' if it is not a time */
export function absoluteTime(input: string): string {
  const at = new Date(input);
  return Number.isNaN(at.getTime()) ? '' : at.toISOString().replace('.000Z', 'Z');
}

/** The words around a time that has passed. */
export interface AgoWords {
  readonly now: string;
  ago(text: string): string;
}

/** The time that has passed since another one, in its largest unit: `3 min ago`. */
export function agoText(at: number, now: number, words: AgoWords): string {
  const ms = Math.max(0, now - at);
  if (ms < 1000) return words.now;
  for (const [unit, seconds] of STEPS) {
    const count = Math.floor(ms / 1000 / seconds);
    if (count > 0) return words.ago(`${count} ${unit}`);
  }
  return words.now;
}

/** A part of a name: characters as they are, or one that cannot be seen. */
export interface NamePart {
  readonly text: string;
  /** The code of a character that cannot be seen: `U+202E`; undefined: `text` is shown. */
  readonly code: string | undefined;
}

/** Blanks other than single spaces inside a name, controls, and characters that change the direction of the text around them. */
const UNSEEN =
  /^ +| +$| {2,}|[\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\u00ad\p{Cc}\p{Cs}\ufffe\uffff]/gu;

/**
 * A name that a client has chosen, in parts that can be shown: blanks and controls are marked, so that names that differ look different.
 * @param max the number of characters that are shown at most
 */
export function namePartsOf(name: string, max = 256): { readonly parts: readonly NamePart[]; readonly hidden: number } {
  const shown = name.length > max ? wholeCharacters(name, max) : name;
  const parts: NamePart[] = [];
  let at = 0;
  for (const { 0: found, index } of shown.matchAll(UNSEEN)) {
    if (index > at) parts.push({ text: shown.slice(at, index), code: undefined });
    if (/^ +$/.test(found)) parts.push({ text: '·'.repeat(found.length), code: codeOf(found) });
    else parts.push({ text: codeOf(found), code: codeOf(found) });
    at = index + found.length;
  }
  if (at < shown.length) parts.push({ text: shown.slice(at), code: undefined });
  return { parts, hidden: name.length - shown.length };
}

function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** The beginning of a text, without half of a pair of surrogates at the end. */
function wholeCharacters(text: string, max: number): string {
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max);
}

/**
 * A sentence of the broker without the backticks of Markdown, which surround options and commands. Names of clients stand in quotes, and keep what they
 * have.
 */
export function plainText(text: string): string {
  return text
    .split(/("(?:[^"\\]|\\.)*")/)
    .map((part, index) => (index % 2 === 1 ? part : part.replace(/`([^`\s][^`]*)`/g, '$1')))
    .join('');
}
