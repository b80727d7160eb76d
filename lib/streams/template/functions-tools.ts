import { randomUUID } from 'node:crypto';
import { parseDuration } from '../../base/fields.ts';
import type { StreamFunctionTools } from '../function.ts';
import { zoneOffsetMinutes } from '../values/time-zone.ts';
import { StreamFailure } from '../values/values.ts';
import { fn, type TemplateFunctions } from './function-table.ts';
import { type TemplateValue, tooLong } from './template-value.ts';
import { formatTime } from './time-layout.ts';

/** Dependencies of templates on the process. */
export type TemplateTools = Pick<StreamFunctionTools, 'now' | 'pattern' | 'offsetMinutes'>;

/** Functions of time, regular expressions and random values. @param most maximum number of characters */
export function toolFunctions({ now, pattern, offsetMinutes }: TemplateTools, most: number): TemplateFunctions {
  /** Numbers are seconds since 1970. */
  const timeOf = (value: TemplateValue): Date => {
    if (value instanceof Date) return value;
    const isNumber = typeof value === 'bigint' || typeof value === 'number';
    const time = new Date(isNumber ? Number(value) * 1000 : now());
    if (Number.isNaN(time.getTime())) throw new StreamFailure('a time is out of range');
    return time;
  };
  const offsetOf = (time: Date, zone: string) => {
    if (zone === 'UTC' || zone === '') return 0;
    return zone === 'Local' ? offsetMinutes(time.getTime()) : zoneOffsetMinutes(zone, time.getTime());
  };
  const date = (layout: string, value: TemplateValue, zone = 'Local') => {
    const time = timeOf(value);
    return formatTime(time, offsetOf(time, zone), layout);
  };
  const replaced = (regex: string, text: string, make: (groups: readonly string[]) => string) => {
    let length = 0;
    return pattern(regex).replace(text, (groups) => {
      const part = make(groups);
      if ((length += part.length) > most) throw tooLong(most);
      return part;
    });
  };
  const dateInZone = fn('string any string', date);
  const moved = fn('string any', (duration: string, value: TemplateValue) => {
    const [, sign, rest] = /^([+-]?)(.*)$/s.exec(duration) as unknown as [string, string, string];
    const ms = parseDuration(rest);
    const time = timeOf(value);
    return ms === undefined ? time : timeOf((time.getTime() + (sign === '-' ? -ms : ms)) / 1000);
  });
  return {
    now: fn('', () => new Date(now())),
    date: fn('string any', (layout: string, value) => date(layout, value)),
    dateInZone,
    date_in_zone: dateInZone,
    htmlDate: fn('any', (value) => date('2006-01-02', value)),
    htmlDateInZone: fn('any string', (value, zone: string) => date('2006-01-02', value, zone)),
    dateModify: moved,
    date_modify: moved,
    unixEpoch: fn('any', (value) => String(Math.floor(timeOf(value).getTime() / 1000))),
    toDate: fn('string string', (_layout: string, text: string) => new Date(Date.parse(text) || 0)),
    uuidv4: fn('', () => randomUUID()),
    regexMatch: fn('string string', (regex: string, text: string) => pattern(regex).test(text)),
    regexFind: fn('string string', (regex: string, text: string) => found(pattern(regex), text)[0] ?? ''),
    regexFindAll: fn('string string int', (regex: string, text: string, count: number) => {
      const all = found(pattern(regex), text);
      return count < 0 ? all : all.slice(0, count);
    }),
    regexReplaceAll: fn('string string string', (regex: string, text: string, replacement: string) =>
      replaced(regex, text, (groups) => expanded(replacement, groups))
    ),
    regexReplaceAllLiteral: fn('string string string', (regex: string, text: string, replacement: string) =>
      replaced(regex, text, () => replacement)
    )
  };
}

function found(pattern: ReturnType<TemplateTools['pattern']>, text: string): string[] {
  const all: string[] = [];
  pattern.replace(text, ([match]) => {
    all.push(match);
    return '';
  });
  return all;
}

/** `$1` and `${1}` stand for groups. */
function expanded(replacement: string, groups: readonly string[]): string {
  return replacement.replace(/\$(?:\$|(\d+)|\{(\d+)\})/g, (whole, plain?: string, braced?: string) =>
    whole === '$$' ? '$' : (groups[Number(plain ?? braced)] ?? '')
  );
}
