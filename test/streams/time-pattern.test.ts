import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatTime, parseTime, readTime } from '../../lib/streams/values/time-pattern.ts';
import { zoneOffsetMinutes } from '../../lib/streams/values/time-zone.ts';
import { StreamFailure } from '../../lib/streams/values/values.ts';
import { Random } from '../fuzz/random.ts';

const TIME = new Date('2006-01-02T22:04:05.070Z');

/** Pattern, offset in minutes, and the text of 2006-01-02T22:04:05.070Z. All of them are also parsed. */
const FORMATS: readonly (readonly [pattern: string, offsetMinutes: number, text: string])[] = [
  ['YYYY-MM-dd HH:mm:ssSSS Z', 0, '2006-01-02 22:04:05.070 +0000'],
  ['yyyy/MM/dd T HH:mm:ss.SSS XXX', -420, '2006/01/02 T 15:04:05.070 -07:00'],
  ['yy M d h:m:sSSSS a XX', 0, '06 1 2 10:4:5.0700 PM +0000'],
  ["EEE, dd MMM YYYY hh'h'mm:ssSSS a X", 60, 'Mon, 02 Jan 2006 11h04:05.070 PM +01'],
  ['EEEE d MMMM yyyy G HH:mm:ssSSS z', 0, 'Monday 2 January 2006 AD 22:04:05.070 UTC'],
  ["yyyy ''MM'' dd \\M HH:mm:ssSSSSSS XXX", 330, "2006 '01' 03 M 03:34:05.070000 +05:30"]
];

describe('time patterns', () => {
  for (const [pattern, offsetMinutes, text] of FORMATS)
    it(`formats and parses ${pattern}`, () => {
      assert.equal(formatTime(TIME, pattern, offsetMinutes), text);
      assert.equal(parseTime(text, pattern), TIME.getTime());
    });

  it('parses a fraction after the seconds that the pattern does not have', () => {
    assert.equal(parseTime('22:04:05.5', 'HH:mm:ss'), Date.UTC(1970, 0, 1, 22, 4, 5, 500));
  });

  it('parses years of two digits as 1969 to 2068', () => {
    assert.equal(parseTime('69', 'yy'), Date.UTC(1969, 0, 1));
    assert.equal(parseTime('68', 'yy'), Date.UTC(2068, 0, 1));
  });

  it('parses times without a zone as UTC, or by an offset', () => {
    assert.equal(parseTime('2024-01-01', 'yyyy-MM-dd'), Date.UTC(2024, 0, 1));
    assert.equal(
      parseTime('2024-01-01', 'yyyy-MM-dd', () => 480),
      Date.UTC(2023, 11, 31, 16)
    );
  });

  for (const [text, pattern] of [
    ['2024-02-30', 'yyyy-MM-dd'],
    ['2024-13-01', 'yyyy-MM-dd'],
    ['2024-1-01', 'yyyy-MM-dd'],
    ['2024-01-01x', 'yyyy-MM-dd'],
    ['25:00', 'HH:mm'],
    ['13:00 PM', 'hh:mm a'],
    ['10:60', 'HH:mm'],
    ['Foo', 'MMM'],
    ['10:00 XM', 'hh:mm a'],
    ['+8', 'X'],
    ['', 'yyyy'],
    ['6', 'yy']
  ])
    it(`returns nothing for ${text} by ${pattern}`, () => {
      assert.equal(parseTime(text, pattern), undefined);
    });

  for (const [pattern, message] of [
    ['YYY', 'invalid time format YYY for Y/y'],
    ['y', 'invalid time format y for Y/y'],
    ['H', 'invalid time format H of H, only HH is supported'],
    ['MMMMM', 'invalid time format MMMMM for M'],
    ['EE', 'invalid time format EE for E'],
    ['XXXX', 'invalid time format XXXX for X'],
    ["yyyy 'T", "invalid time format yyyy 'T: the quote at 6 is not closed"],
    ['yyyy\\', 'invalid time format yyyy\\: it ends with \\'],
    ['-'.repeat(1001), 'the time format has more than 1000 characters']
  ])
    it(`refuses the pattern ${pattern.slice(0, 20)}`, () => {
      assert.throws(() => formatTime(TIME, pattern, 0), new StreamFailure(message));
    });

  it('refuses invalid times', () => {
    assert.throws(() => formatTime(new Date(Number.NaN), 'yyyy', 0), StreamFailure);
    assert.throws(() => formatTime(new Date(8.64e15), 'yyyy', 60), StreamFailure);
  });

  it('parses a text in time proportional to its length', () => {
    assert.equal(parseTime('1'.repeat(100_000), 'dMdMdMdMdMdMdMdMdMdMdMdMdMdMdMdMdM'), undefined);
  });

  it('parses times that it has formatted', () => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    const random = new Random(seed);
    for (let round = 0; round < 1000; round++) {
      const timeMs = random.below(253_402_300_799) * 1000 + random.below(1000);
      const offsetMinutes = random.below(1600) - 800;
      for (const pattern of ['yyyy-MM-dd HH:mm:ssSSS XXX', 'd MMM yyyy h:mm:ssSSS a Z']) {
        const text = formatTime(new Date(timeMs), pattern, offsetMinutes);
        if (text.length < 40 && !/ \d{5}/.test(text))
          assert.equal(parseTime(text, pattern), timeMs, `seed ${seed}: ${text}`);
      }
    }
  });
});

describe('Common times', () => {
  for (const [text, iso] of [
    ['2019-09-19T00:55:15.000Z', '2019-09-19T00:55:15.000Z'],
    ['2019-09-19T00:55:15+08:00', '2019-09-18T16:55:15.000Z'],
    ['2019-09-19 00:55:15.1234567', '2019-09-18T22:55:15.123Z'],
    ['2019/9/1', '2019-08-31T22:00:00.000Z'],
    ['2019-09-19T00:55 -0130', '2019-09-19T02:25:00.000Z']
  ])
    it(`parses a common time such as ${text}`, () => {
      assert.equal(new Date(readTime(text, () => 120)?.timeMs ?? 0).toISOString(), iso);
    });

  it('refuses texts that are not common times', () => {
    for (const text of ['', 'now', '2019', '2019-13-01', '2019-01-01T25:00', `2019-01-01${' '.repeat(100)}`])
      assert.equal(readTime(text), undefined, text);
  });
});

describe('Offsets of time zones', () => {
  it('follows daylight saving time', () => {
    assert.equal(zoneOffsetMinutes('America/New_York', Date.UTC(2024, 0, 1)), -300);
    assert.equal(zoneOffsetMinutes('America/New_York', Date.UTC(2024, 6, 1)), -240);
    const change = Date.UTC(2024, 2, 31, 1);
    assert.equal(zoneOffsetMinutes('Europe/Berlin', change - 1), 60);
    assert.equal(zoneOffsetMinutes('Europe/Berlin', change), 120);
  });

  it('accepts an offset instead of a name', () => {
    assert.equal(zoneOffsetMinutes('-03:30', 0), -210);
    assert.equal(zoneOffsetMinutes('UTC', 0), 0);
  });

  it('requires a valid zone and a valid time', () => {
    assert.throws(() => zoneOffsetMinutes('Mars/Olympus', 0), /unknown time zone Mars\/Olympus/);
    assert.throws(() => zoneOffsetMinutes('UTC', Number.NaN), StreamFailure);
    assert.throws(() => zoneOffsetMinutes('UTC', 9e15), StreamFailure);
  });
});
