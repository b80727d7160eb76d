// The parts of the web page that need no browser: addresses, texts of numbers and names, payloads, the live stream.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { settingsOf, textsOf } from '../../adapters/dashboard/page/model/connectors.ts';
import { ctlText, curlText, flagWords, quoted } from '../../adapters/dashboard/page/model/copy.ts';
import { diffOf, numbersIn } from '../../adapters/dashboard/page/model/diff.ts';
import {
  agoText,
  countText,
  durationText,
  instantOf,
  namePartsOf,
  plainText,
  rateText,
  shortTimeText,
  sizeText,
  timeText
} from '../../adapters/dashboard/page/model/format.ts';
import { withRates, withSamples } from '../../adapters/dashboard/page/model/history.ts';
import { type OptionRow, optionsIn, placesOf } from '../../adapters/dashboard/page/model/options.ts';
import { bytesOf, formOf, hexText, jsonText, shortText, utf8Of } from '../../adapters/dashboard/page/model/payload.ts';
import { addressOf, isSameView, isSendable, placeOf, VIEWS } from '../../adapters/dashboard/page/model/places.ts';
import { EMPTY_TAIL, emptied, resumed, type TailRow, withPart } from '../../adapters/dashboard/page/model/tail.ts';
import { placed } from '../../adapters/dashboard/page/model/topology.ts';
import {
  countBelow,
  inOrder,
  isExtended,
  type Level,
  latelyPublished,
  nextPageTo,
  prefixesAbove,
  sharedParts,
  shownRows,
  type TopicRow,
  watchable,
  watchedFilter,
  withPage,
  withPublished
} from '../../adapters/dashboard/page/model/tree.ts';
import { askedText, ruleText } from '../../adapters/dashboard/page/pages/access/words.ts';
import { evidenceLabel, evidenceText } from '../../adapters/dashboard/page/pages/why/evidence.ts';
import { T } from '../../adapters/dashboard/page/texts.ts';

describe('Addresses of views', () => {
  it('takes another client or rule for another view, and another tab or filter for the same', () => {
    const at = (view: keyof typeof VIEWS, choices = {}) => ({ view, choices });
    assert.equal(isSameView(at('client', { id: 'a' }), at('client', { id: 'a', tab: 'queue' })), true);
    assert.equal(isSameView(at('client', { id: 'a' }), at('client', { id: 'b' })), false);
    assert.equal(isSameView(at('webhooks'), at('webhooks', { name: 'a' })), false);
    assert.equal(isSameView(at('websocket', { id: 'a' }), at('websocket', { id: 'ab' })), true);
    assert.equal(isSameView(at('topics'), at('clients')), false);
  });

  it('finds the view and the choices in an address, whatever characters they contain', () => {
    const choices = { id: '../a b%2F&=+?#', empty: '', missing: undefined, 'right-to-left': '\u202Eabc' };
    for (const view of Object.keys(VIEWS) as (keyof typeof VIEWS)[]) {
      const url = new URL(`/base/console/${addressOf(view, choices)}`, 'http://host');
      assert.deepEqual(placeOf(url.pathname, url.search, '/base/console/'), {
        view,
        choices: { id: '../a b%2F&=+?#', 'right-to-left': '\u202Eabc' }
      });
    }
  });

  it('finds the overview at the mount, with or without a slash', () => {
    for (const path of ['/console', '/console/']) assert.equal(placeOf(path, '', '/console/').view, 'overview');
    assert.equal(placeOf('/', '', '/').view, 'overview');
  });

  it('places choices that are too long for servers behind the hash, which browsers do not send, in characters that are drawn quickly', () => {
    for (const id of ['a/é '.repeat(16_000), '\u{1F600}%&=+#\n'.repeat(6_000)]) {
      const url = new URL(`/console/${addressOf('client', { id, tab: 'chart' })}`, 'http://host');
      assert.equal(url.search, '');
      assert.match(url.hash, /^#~[\w-]+$/);
      assert.deepEqual(placeOf(url.pathname, url.search, '/console/', url.hash), {
        view: 'client',
        choices: { id, tab: 'chart' }
      });
    }
  });

  it('reads choices behind the hash as a query, and none from a hash that was cut', () => {
    const choicesIn = (hash: string) => placeOf('/console/client', '', '/console/', hash).choices;
    assert.deepEqual(choicesIn('#id=%C3%A9+x&tab=chart'), { id: 'é x', tab: 'chart' });
    assert.deepEqual(choicesIn('#~a'), {});
    assert.deepEqual(choicesIn(''), {});
  });

  it('tells the paths that cannot be the URL of a request', () => {
    for (const path of ['api/clients/.', 'api/clients/../acl_cache', `api/clients/${'x'.repeat(2_000)}`])
      assert.equal(isSendable(path), false, path.slice(0, 40));
    for (const path of ['api/clients/...', 'api/clients/a.b', 'api/x/why?topic=../a/..'])
      assert.equal(isSendable(path), true, path);
  });

  it('finds no view for unknown addresses and those outside of the mount', () => {
    for (const path of ['/other', '/console/none', '/console/../x', '/consoles'])
      assert.equal(placeOf(path, '', '/console/').view, undefined);
  });
});

describe('Numbers', () => {
  it('shows numbers with separators and units, and at most four digits of scaled ones', () => {
    assert.deepEqual([0, 999, 12_345.4, undefined].map(countText), ['0', '999', '12,345', '–']);
    assert.deepEqual([0, 999, 1_000, 1_234, 999_960, 12_345_678, 5e12].map(sizeText), [
      '0 B',
      '999 B',
      '1 kB',
      '1.2 kB',
      '1 MB',
      '12.3 MB',
      '5 TB'
    ]);
    assert.deepEqual([0.25, 12, 4_560, 1e6].map(rateText), ['0.3/s', '12/s', '4.6k/s', '1M/s']);
  });

  it('shows durations in their two largest units', () => {
    assert.deepEqual([0, 20, 1_000, 61_000, 3_600_000, 90_061_000, 259_500_000].map(durationText), [
      '0 ms',
      '20 ms',
      '1 s',
      '1 min 1 s',
      '1 h',
      '1 d 1 h',
      '3 d'
    ]);
    assert.deepEqual(
      [0, 1_500, 120_000, -5].map((ms) => agoText(1e6 - ms, 1e6, T.time)),
      ['now', '1 s ago', '2 min ago', 'now']
    );
  });

  it('shows times in the zone of the reader', () => {
    const at = new Date(2026, 10, 30, 9, 5, 7, 42).getTime();
    assert.equal(timeText(at), '2026-11-30 09:05:07');
    assert.equal(timeText(at, { ms: true }), '2026-11-30 09:05:07.042');
    assert.equal(shortTimeText(at, at + 1_000), '09:05:07.042');
    assert.equal(shortTimeText(at, at + 86_400_000), '2026-11-30 09:05:07.042');
    assert.equal(timeText('never'), 'never');
    assert.equal(timeText(undefined), '–');
  });
});

describe('Names that clients have chosen', () => {
  const shown = (name: string, max?: number) =>
    namePartsOf(name, max).parts.map(({ text, code }) => (code === undefined ? text : `[${text}]`));

  it('marks blanks at the ends of names, controls, and characters that change the direction', () => {
    assert.deepEqual(shown('a b'), ['a b']);
    assert.deepEqual(shown('   '), ['[···]']);
    assert.deepEqual(shown(' a  b '), ['[·]', 'a', '[··]', 'b', '[·]']);
    assert.deepEqual(shown('a\u202Ecba\n'), ['a', '[U+202E]', 'cba', '[U+000A]']);
    assert.deepEqual(shown('\u200bя\ufeff'), ['[U+200B]', 'я', '[U+FEFF]']);
    assert.deepEqual(shown('<img onerror=alert(1)>'), ['<img onerror=alert(1)>']);
  });

  it('cuts names between two characters, and says how much is hidden', () => {
    const { parts, hidden } = namePartsOf('x'.repeat(65_536), 100);
    assert.deepEqual([parts[0].text.length, hidden], [100, 65_436]);
    assert.deepEqual(namePartsOf('😀😀', 3), { parts: [{ text: '😀', code: undefined }], hidden: 2 });
  });
});

describe('Sentences of the broker', () => {
  it('loses the backticks around options and commands, and keeps those in names', () => {
    assert.equal(
      plainText('the feature `rules` is stopped: start it with `embermq ctl plugins load rules`'),
      'the feature rules is stopped: start it with embermq ctl plugins load rules'
    );
    assert.equal(plainText('"a/`b`/c" is not `x`'), '"a/`b`/c" is not x');
    assert.equal(plainText('"a\\"`b`" and `x`'), '"a\\"`b`" and x');
    assert.equal(plainText('one ` alone'), 'one ` alone');
  });
});

describe('A decision on a right', () => {
  it('names the participants in words, and the rule as a phrase', () => {
    assert.equal(askedText({ by: 'records' }), 'access rules set at run time');
    assert.equal(askedText({ by: 'source', source: 'http' }), 'source: http');
    assert.equal(
      ruleText({ access: 'deny', action: 'publish', topic: 'plant/#', clientid: 'c"1' }),
      'deny publish to "plant/#" for client "c\\"1"'
    );
    assert.equal(
      ruleText({ access: 'allow', action: 'pubsub', topic: 'a', exact: true, has_username: true, ip_address: ['::1'] }),
      'allow publish and subscribe to exactly "a" for clients with a user name from ::1'
    );
    assert.equal(
      ruleText({ access: 'deny', action: 'subscribe', username: 'u' }),
      'deny subscribe to all topics for user "u"'
    );
  });
});

describe('Payloads', () => {
  const utf8 = (text: string) => new TextEncoder().encode(text);

  it('chooses JSON, text or hexadecimal by the content of a payload', () => {
    assert.equal(formOf(utf8('{"a":[1]}')), 'json');
    assert.equal(formOf(utf8('[1')), 'text');
    assert.equal(formOf(utf8('21.5')), 'text');
    assert.equal(formOf(utf8('a\nb\tü')), 'text');
    assert.equal(formOf(utf8('a\0')), 'hex');
    assert.equal(formOf(new Uint8Array([0xff, 0xfe])), 'hex');
  });

  it('keeps the digits of numbers in JSON', () => {
    assert.equal(
      jsonText('{"a":12345678901234567890,"b":[1.0,{}, []],"c":"x, {\\"y\\": 1}"}'),
      '{\n  "a": 12345678901234567890,\n  "b": [\n    1.0,\n    {},\n    []\n  ],\n  "c": "x, {\\"y\\": 1}"\n}'
    );
    assert.equal(jsonText('{'), undefined);
    const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
    assert.equal(jsonText(deep), deep);
  });

  it('shows sixteen bytes a line in hexadecimal', () => {
    assert.equal(
      hexText(utf8('0123456789abcdef\0')),
      `000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n000010  00${' '.repeat(45)}  .`
    );
  });

  it('reads base64, and gives no text for bytes that are not UTF-8', () => {
    assert.deepEqual(bytesOf('AP8='), new Uint8Array([0, 255]));
    assert.equal(bytesOf('!'), undefined);
    assert.equal(utf8Of(new Uint8Array([0xc3])), undefined);
  });
});

describe('Local times of the broker', () => {
  it('converts local times of the broker to those of the reader, also on the day on which the clocks change', () => {
    const iso = (text: string, zone?: string) => new Date(instantOf(text, zone) as number).toISOString();
    assert.equal(iso('2026-11-30 14:05:09', 'UTC'), '2026-11-30T14:05:09.000Z');
    assert.equal(iso('2026-11-30 14:05:09', 'Asia/Kolkata'), '2026-11-30T08:35:09.000Z');
    assert.equal(iso('2026-03-29 01:59:59', 'Europe/Berlin'), '2026-03-29T00:59:59.000Z');
    assert.equal(iso('2026-03-29 03:00:00', 'Europe/Berlin'), '2026-03-29T01:00:00.000Z');
    assert.equal(instantOf('undefined', 'UTC'), undefined);
    assert.equal(instantOf('2026-11-30 14:05:09'), new Date(2026, 10, 30, 14, 5, 9).getTime());
  });
});

describe('Copied commands', () => {
  it('quotes names for a shell, and lets curl ask for the password', () => {
    assert.equal(
      curlText('http://host:18083/api', "o'neill", {
        path: '/clients',
        query: { _like_clientid: 'a b', zone: undefined }
      }),
      `curl -u 'o'\\''neill' 'http://host:18083/api/clients?_like_clientid=a+b'`
    );
    assert.equal(
      curlText('http://host/api', 'ann', { method: 'POST', path: '/banned', body: { who: '$(reboot)' } }),
      `curl -u ann -X POST -H 'Content-Type: application/json' -d '{"who":"$(reboot)"}' http://host/api/banned`
    );
    assert.equal(ctlText(['clients', 'kick', '--', '-x `id`']), "embermq ctl clients kick -- '-x `id`'");
    assert.deepEqual(flagWords({ as: 'clientid', reason: '', seconds: undefined }), ['--as=clientid']);
  });

  it('sends a request that cannot be a URL in the body of another one', () => {
    assert.equal(
      curlText('http://host/console/api', 'ann', { method: 'DELETE', path: '/clients/..' }),
      `curl -u ann -H 'Content-Type: application/json' -d '{"method":"DELETE","path":"/api/clients/.."}' http://host/console/requests`
    );
    assert.match(
      curlText('http://host/api', 'ann', { path: `/clients/${'x'.repeat(2_000)}` }),
      /http:\/\/host\/requests$/
    );
  });

  it('passes hostile names through a shell unchanged', { skip: process.platform === 'win32' }, () => {
    const hostile = ["a'b", '$HOME', '`id`', 'a\nb', '!x', '*', ' ', '', '<img src=x>', '\u202Ex'];
    for (const name of hostile) {
      const printed = execFileSync('sh', ['-c', `printf %s ${quoted(name)}`], { encoding: 'utf8' });
      assert.equal(printed, name);
    }
  });
});

describe('The history of the overview', () => {
  it('leaves out the first sample of a stream, which has no rates, also after the tab was hidden', () => {
    const samples = [0, 1_000, 2_000, 60_000, 61_000].map((at) => ({ at, values: {} }));
    assert.deepEqual(
      withRates(samples).map(({ at }) => at),
      [1_000, 2_000, 61_000]
    );
    const begun = [0, 300, 1_300].map((at) => ({ at, hasRates: at > 1_000, values: {} }));
    assert.deepEqual(
      withRates(begun).map(({ at }) => at),
      [1_300]
    );
  });

  it('continues the history with newer samples', () => {
    const history = { at: [10, 20], series: { a: [1, 2] } };
    const samples = [15, 25, 26].map((at) => ({ at, values: { a: at } }));
    assert.deepEqual(withSamples(history, samples, ['a']), { at: [10, 20, 25, 26], series: { a: [1, 2, 25, 26] } });
    assert.deepEqual(withSamples({ at: [], series: {} }, samples.slice(2), ['a', 'b']), {
      at: [26],
      series: { a: [26], b: [0] }
    });
    assert.deepEqual(withSamples({ at: [10], series: { b: [7] } }, samples.slice(2), ['b']).series, { b: [7, 7] });
  });
});

describe('The evidence of a cause', () => {
  it('shows evidence with labels, times and units', () => {
    assert.deepEqual(['clientId', 'oldestSince', 'retainedAt', 'limitBytes'].map(evidenceLabel), [
      'Receiver',
      'Oldest since',
      'Retained',
      'Limit'
    ]);
    const at = new Date(2026, 0, 31, 12, 0, 0, 5).getTime();
    assert.equal(evidenceText('since', at), '2026-01-31 12:00:00.005');
    assert.equal(evidenceText('limitBytes', 2_000), '2 kB');
    assert.equal(evidenceText('delayMs', 2_000), '2 s');
    assert.equal(evidenceText('isBlocked', false), 'no');
    assert.equal(evidenceText('waiting', 1_000), '1,000');
    assert.equal(evidenceText('clientId', 'since'), undefined);
  });
});

describe('The topic tree', () => {
  it('takes the share group of a subscription from its topic filter', () => {
    assert.deepEqual(sharedParts('$share/g/a/#'), ['g', 'a/#']);
    assert.deepEqual(sharedParts('$share/g//'), ['g', '/']);
    for (const filter of ['a/#', '$share/g', '$shared/g/a']) assert.deepEqual(sharedParts(filter), [undefined, filter]);
  });

  const row = (topic: string, below = 0): TopicRow => ({
    level: topic.split('/').at(-1) as string,
    topic,
    prefix: `${topic}/`,
    retained: true,
    subscribed: false,
    retained_below: below,
    subscribed_below: 0
  });

  it('shows the rows of opened levels below theirs, and a row for those that are not loaded', () => {
    const levels = new Map([
      ['', { rows: [row('a', 2), row('b', 1), row('c')], cursor: 'x', isLoading: false, error: undefined }],
      ['a/', { rows: [row('a/1'), row('a/2')], cursor: undefined, isLoading: false, error: undefined }],
      ['b/', { rows: [], cursor: undefined, isLoading: true, error: undefined }]
    ]);
    const shown = shownRows(levels, new Set(['a/', 'b/', 'c/', 'closed/']));
    assert.deepEqual(
      shown.map((one) => (one.kind === 'topic' ? `${one.depth} ${one.row.topic}` : `${one.depth} ${one.kind}`)),
      ['0 a', '1 a/1', '1 a/2', '0 b', '1 loading', '0 c', '0 more']
    );
  });

  it('adds topics that were published to the loaded levels, in natural order, and at the end of a longer level', () => {
    const row = (level: string, prefix: string): TopicRow => ({
      level,
      topic: prefix + level,
      prefix: `${prefix + level}/`,
      retained: true,
      subscribed: false,
      retained_below: 0,
      subscribed_below: 0
    });
    const loaded = (rows: readonly TopicRow[]) => ({ rows, cursor: undefined, isLoading: false, error: undefined });
    const levels = new Map([
      ['', loaded([row('a', ''), row('b', '')])],
      ['a/', loaded([row('x', 'a/')])]
    ]);
    const merged = withPublished(levels, ['a/x', 'a/0/z', 'a/0', 'b', '/c']);
    const shown = (prefix: string) =>
      merged.get(prefix)?.rows.map(({ topic, published, published_below }) => [topic, published, published_below]);
    assert.deepEqual(shown(''), [
      ['', undefined, 1],
      ['a', undefined, 3],
      ['b', true, undefined]
    ]);
    assert.deepEqual(shown('a/'), [
      ['a/0', true, 1],
      ['a/x', true, undefined]
    ]);
    const orderOf = (level: Level) =>
      withPublished(new Map([['', level]]), ['9', '10'])
        .get('')
        ?.rows.map((one) => one.level);
    assert.deepEqual(orderOf(loaded([row('2', ''), row('11', '')])), ['2', '9', '10', '11']);
    const ofBroker = [row('11', ''), row('2', '')];
    assert.deepEqual(orderOf({ ...loaded(ofBroker), cursor: 'next' }), ['11', '2', '9', '10']);
    const long = Array.from({ length: 101 }, (_, index) => row(`x${index}`, ''));
    assert.deepEqual(orderOf(loaded(long))?.slice(-3), ['x100', '9', '10']);
    assert.equal(merged.get('a/0/'), undefined);
    assert.equal(withPublished(levels, []), levels);
    const before = latelyPublished([], ['a', 'a', '']);
    assert.deepEqual(before, ['a']);
    assert.equal(latelyPublished(before, ['a', 'x'.repeat(1_024)]), before);
    assert.equal(
      latelyPublished(
        before,
        Array.from({ length: 2_900 }, (_, index) => `${index}`)
      ).length,
      2_000
    );
  });

  it('counts a topic below a row once that is retained and was published', () => {
    const below = (retained_below: number, subscribed_below: number, published_below?: number) =>
      countBelow({
        ...row('a'),
        retained_below,
        subscribed_below,
        ...(published_below !== undefined && { published_below })
      });
    assert.deepEqual([below(1, 0, 1), below(2, 1), below(1, 1, 3), below(0, 0)], [1, 3, 4, 0]);
  });

  it('sorts the rows of a whole level naturally, and leaves the pages of a longer one as they are', () => {
    const rows = ['10', '#', 'b', 'B', 'a10', 'a9', '2', '\u200b', '', '1'].map((level) => row(level));
    const levels = (isWhole: boolean) => inOrder(rows, isWhole).map(({ level }) => level);
    assert.deepEqual(levels(true), ['', '\u200b', '#', '1', '2', '10', 'a9', 'a10', 'b', 'B']);
    assert.deepEqual(
      levels(false),
      rows.map(({ level }) => level)
    );
  });

  it('knows whether new rows would move those that are shown', () => {
    assert.equal(isExtended(['a', 'b'], ['a', 'b', 'c']), true);
    assert.equal(isExtended(['a', 'b'], ['a', 'c', 'b']), false);
    assert.equal(isExtended(['a', 'b'], ['a']), false);
  });

  it('watches as many rows as the server allows, without those whose topics are too long together', () => {
    assert.equal(watchable(Array.from({ length: 300 }, (_, index) => `${index}`)).length, 200);
    const long = 'x'.repeat(60_000);
    assert.deepEqual(watchable(['a', long, `${long}y`, 'b']), ['a', long, 'b']);
  });

  it('adds a page to the rows that it follows, and drops it if the first page has come again in the meantime', () => {
    const names = ({ rows }: Level) => rows.map(({ level }) => level);
    const first = withPage(undefined, undefined, [row('a')], 'after a');
    const second = withPage(first, 'after a', [row('b')], 'after b');
    assert.deepEqual(names(second), ['a', 'b']);
    const again = withPage(second, undefined, [row('a')], 'after a');
    assert.deepEqual(names(again), ['a']);
    assert.equal(withPage(again, 'after b', [row('c')], undefined), again);
    assert.deepEqual(names(withPage(again, 'after a', [row('b')], undefined)), ['a', 'b']);
  });

  it('opens the levels above a topic, also those without a name', () => {
    assert.deepEqual(prefixesAbove('a/b/c'), ['a/', 'a/b/']);
    assert.deepEqual(prefixesAbove('/a//'), ['/', '/a/', '/a//']);
    assert.deepEqual(prefixesAbove('a'), []);
  });

  it('loads further pages of a level until it has the topic that is shown, and at most 2,000 rows', () => {
    const level = (topics: readonly string[], cursor?: string) => ({
      rows: topics.map((topic) => row(topic)),
      cursor,
      isLoading: false,
      error: undefined
    });
    const many = Array.from({ length: 2_000 }, (_, at) => `b${at}`);
    const next = (levels: Readonly<Record<string, ReturnType<typeof level>>>) =>
      nextPageTo(new Map(Object.entries(levels)), 'z/1');
    assert.deepEqual(next({ '': level(['a', 'b'], 'c1') }), { prefix: '', cursor: 'c1' });
    assert.equal(next({ '': level(['a', 'b']) }), undefined);
    assert.equal(next({ '': { ...level(['a'], 'c1'), isLoading: true } }), undefined);
    assert.equal(next({ '': level(many, 'c1') }), undefined);
    assert.equal(next({ '': level(['a', 'z'], 'c1') }), undefined); // the level below is not loaded yet
    assert.deepEqual(next({ '': level(['z']), 'z/': level(['z/0'], 'c2') }), { prefix: 'z/', cursor: 'c2' });
    assert.equal(next({ '': level(['z']), 'z/': level(['z/1'], 'c2') }), undefined);
  });

  it('counts the messages of a topic and of those below it, but not those of a topic filter', () => {
    assert.equal(watchedFilter(row('a/b'), true), 'a/b');
    assert.equal(watchedFilter(row('a'), false), 'a/#');
    for (const filter of ['#', 'a/+', '+/b', 'a/#', '$share/g/a'])
      assert.equal(watchedFilter(row(filter), true), undefined);
    assert.equal(watchedFilter(row('a+/b#'), true), 'a+/b#');
  });
});

describe('Two values of a topic', () => {
  it('finds the lines that only one of two values has', () => {
    const lines = diffOf('{\n  "a": 1,\n  "b": 2\n}', '{\n  "a": 1,\n  "b": 3,\n  "c": 4\n}');
    assert.deepEqual(
      lines.map(({ of, text }) => `${of[0]}${text}`),
      ['b{', 'b  "a": 1,', 'f  "b": 2', 's  "b": 3,', 's  "c": 4', 'b}']
    );
    const long = Array.from({ length: 5_000 }, (_, line) => `${line}`).join('\n');
    assert.equal(diffOf(long, `${long}\nx`).length, 10_001);
  });

  it('finds the numbers in a value for a chart', () => {
    assert.deepEqual(numbersIn('21.5'), { '': 21.5 });
    assert.deepEqual(numbersIn('{"a":{"b":[1,"x",null]},"c":2}'), { 'a.b.0': 1, c: 2 });
    assert.deepEqual(numbersIn('21.5 C'), {});
  });

  it('shows a value in one line, cut between characters', () => {
    const utf8 = (text: string) => new TextEncoder().encode(text);
    assert.equal(shortText(utf8('{\n  "a": 1\n}')), '{ "a": 1 }');
    assert.equal(shortText(utf8('ü'.repeat(1_000))), 'ü'.repeat(120));
    assert.equal(shortText(new Uint8Array([0, 255])), '00 ff');
  });
});

describe('A live tail', () => {
  const row = (number: number, clientid: string): TailRow => ({
    number,
    at: 0,
    event: 'message.publish',
    columns: { clientid }
  });

  it('keeps the last thousand rows, and holds those that come while it is paused', () => {
    const many = Array.from({ length: 1_500 }, (_, at) => row(at, 'a'));
    const running = withPart(EMPTY_TAIL, { rows: many, skipped: 3, overflowed: 2 }, false);
    assert.deepEqual([running.rows.length, running.rows[0].number, running.skipped], [1_000, 500, 5]);
    const paused = withPart(running, { rows: [row(1_500, 'b')], failed: 1, error: 'no number' }, true);
    assert.equal(paused.rows, running.rows);
    assert.deepEqual([paused.held.length, paused.failed, paused.error], [1, 1, 'no number']);
    const again = resumed(paused);
    assert.deepEqual([again.rows.length, again.rows.at(-1)?.number, again.held.length], [1_000, 1_500, 0]);
  });

  it('numbers rows itself, and marks where rows are missing', () => {
    const part = (...numbers: number[]) => ({ rows: numbers.map((number) => row(number, 'a')) });
    const first = withPart(EMPTY_TAIL, part(1, 2), false);
    const slow = withPart(first, part(5, 6), false);
    const again = withPart(slow, part(1), true);
    assert.deepEqual(
      [...again.rows, ...again.held].map(({ number, missing }) => [number, missing]),
      [
        [0, undefined],
        [1, undefined],
        [2, { count: 2 }],
        [3, undefined],
        [4, { count: undefined }]
      ]
    );
    const next = withPart(emptied(again), part(2), false);
    assert.deepEqual([next.rows[0].number, next.rows[0].missing], [5, undefined]);
  });

  it('keeps the busiest names while it is paused or cleared', () => {
    const busiest = (events: number) => ({
      busiest: { events, publishers: [{ name: 'a', count: events }], topics: [] }
    });
    const before = withPart(EMPTY_TAIL, busiest(3), false);
    assert.equal(withPart(before, busiest(4), true).busiest.events, 3);
    assert.equal(withPart(emptied(before), { rows: [] }, false).busiest.publishers[0].name, 'a');
    assert.equal(withPart(before, busiest(4), false).busiest.events, 4);
  });
});

describe('The topology of a stream rule', () => {
  it('places each node after all of those before it, also if there is a cycle', () => {
    const nodes = placed({
      sources: ['a', 'b'],
      edges: { a: ['join'], b: ['filter'], filter: ['join'], join: ['sink'] }
    });
    assert.deepEqual(
      nodes.map(({ name, layer, row }) => `${name} ${layer} ${row}`),
      ['a 0 0', 'b 0 1', 'filter 1 0', 'join 2 0', 'sink 3 0']
    );
    assert.equal(placed({ sources: [], edges: { a: ['b'], b: ['a'] } }).length, 2);
  });
});

describe('Options', () => {
  const option = (name: string, more: Partial<OptionRow> = {}): OptionRow => ({
    key: name,
    name,
    value: 1,
    default: 1,
    kind: 'integer',
    source: 'default',
    takes_effect: 'now',
    about: `About ${name}.`,
    ...more
  });
  const all = [
    option('maxInflight'),
    option('maxInflight', { key: 'zone.external.max_inflight', zone: 'external', value: 5, source: 'option' }),
    option('maxInflight', { key: 'zone.internal.max_inflight', zone: 'internal' }),
    option('node', { takes_effect: 'restart' })
  ];
  const keys = (conditions: Partial<Parameters<typeof optionsIn>[1]>) =>
    optionsIn(all, { q: '', source: '', when: '', zone: '', ...conditions }).map(({ key }) => key);

  it('lists an option once, and again for the zones whose value differs', () => {
    assert.deepEqual(keys({}), ['maxInflight', 'zone.external.max_inflight', 'node']);
    assert.deepEqual(keys({ zone: 'internal' }), ['zone.internal.max_inflight']);
  });

  it('finds options by a part of the name or of the description, by source, and by the time of a change', () => {
    assert.deepEqual(keys({ q: ' about NODE' }), ['node']);
    assert.deepEqual(keys({ source: 'option' }), ['zone.external.max_inflight']);
    assert.deepEqual(keys({ when: 'restart' }), ['node']);
    assert.deepEqual(keys({ q: 'nothing' }), []);
  });

  it('spells an option as a flag and as a variable of the environment', () => {
    const { flag, variable } = placesOf('maxTotalMqueueBytes');
    assert.deepEqual([flag, variable], ['--max-total-mqueue-bytes', 'EMBERMQ_MAX_TOTAL_MQUEUE_BYTES']);
  });
});

describe('Webhooks and bridges', () => {
  it('writes the options of a connector to fields and reads them back unchanged, with its secrets kept', () => {
    const bridge = {
      url: 'mqtt://host',
      password: '******',
      out: [{ filter: 'a b/#' }, { filter: 'c', qos: 0 }, { filter: '{x}' }],
      version: 4,
      isPersisted: true,
      maxQueue: 5,
      key: '******'
    };
    const texts = textsOf('bridge', { name: 'central', ...bridge });
    assert.equal(texts.out, 'a b/#\n{"filter":"c","qos":0}\n{"filter":"{x}"}');
    assert.deepEqual(settingsOf('bridge', texts, bridge), bridge);
    const webhook = {
      url: 'http://host',
      rules: [{ event: 'client.connected' }, { event: 'message.publish', topic: 'a b/#' }],
      headers: '******'
    };
    assert.deepEqual(settingsOf('webhook', textsOf('webhook', webhook), webhook), webhook);
  });

  it('reads headers line by line, and reports text that is not JSON', () => {
    const { headers } = settingsOf('webhook', { url: 'x', headers: 'Authorization: Bearer a:b\n\n x-y : z' });
    assert.deepEqual(headers, { Authorization: 'Bearer a:b', 'x-y': 'z' });
    for (const more of ['{', '[]', '1']) assert.throws(() => settingsOf('bridge', { more }), SyntaxError);
  });
});
