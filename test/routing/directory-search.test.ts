import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from 'embermq';
import { Pace } from '../../lib/base/pace.ts';
import { type SearchedKinds, search, searched } from '../../lib/routing/directory-search.ts';
import { NamePattern } from '../../lib/routing/name-pattern.ts';
import { randomSource } from '../topics/slow-matcher.ts';

const matching = (text: string, ...names: string[]) => names.filter((name) => new NamePattern(text).matches(name));

/** Kinds of the given names. `examined` has how many names each walk has read. */
function kindsOf(names: Partial<Record<keyof SearchedKinds, readonly string[]>>) {
  const examined: Partial<Record<string, number>> = {};
  const of = (kind: keyof SearchedKinds) =>
    searched<string>({
      get: (name) => names[kind]?.find((one) => one === name),
      *all() {
        for (const name of names[kind] ?? []) {
          examined[kind] = (examined[kind] ?? 0) + 1;
          yield name;
        }
      },
      nameOf: String,
      detailOf: () => ''
    });
  const kinds: SearchedKinds = {
    client: of('client'),
    topic: of('topic'),
    subscription: of('subscription'),
    rule: of('rule'),
    streamRule: of('streamRule')
  };
  return { kinds, examined };
}

/** Search, and count the slices. */
async function run(kinds: SearchedKinds, text: string, limit = 10, maxExamined?: number) {
  let slices = 0;
  const pace = new Pace(async () => void slices++);
  await pace.next();
  const { entries, isComplete } = await search(kinds, { text, limit }, pace, maxExamined);
  return { found: entries.map(({ kind, name }) => `${kind} ${name}`), isComplete, slices };
}

describe('A pattern of names', () => {
  it('matches the beginning of a name, with A to Z in either case', () => {
    assert.deepEqual(matching('Pump', 'pump', 'PUMPS', 'a pump', 'pum'), ['pump', 'PUMPS']);
    assert.deepEqual(matching('\u00c4', '\u00c4rger', '\u00e4rger'), ['\u00c4rger']);
    assert.deepEqual(matching('[', '[', '{'), ['[']);
  });

  it('matches whole names if it has an asterisk', () => {
    assert.deepEqual(matching('a*', 'a', 'ab', 'ba'), ['a', 'ab']);
    assert.deepEqual(matching('*a', 'a', 'ba', 'ab'), ['a', 'ba']);
    assert.deepEqual(matching('a*a', 'a', 'aa', 'aba', 'abab'), ['aa', 'aba']);
    assert.deepEqual(matching('*b*', 'abc', 'b', 'ac'), ['abc', 'b']);
    assert.deepEqual(matching('a**c', 'ac', 'abc'), ['ac', 'abc']);
    assert.deepEqual(matching('*', '', 'a', '*'), ['', 'a', '*']);
    assert.deepEqual(matching('a*b*b', 'ab', 'abb', 'axbxb'), ['abb', 'axbxb']);
  });

  it('takes the characters of topic filters and of expressions as they are', () => {
    assert.deepEqual(matching('a/+/#', 'a/+/#', 'a/b/c'), ['a/+/#']);
    assert.deepEqual(matching('a.c*', 'abc', 'a.c'), ['a.c']);
    assert.deepEqual(matching('<img onerror=*>', '<img onerror=alert(1)>'), ['<img onerror=alert(1)>']);
  });

  it('matches the same names as a regular expression', () => {
    const random = randomSource('patterns');
    const some = (letters: string, most: number) =>
      Array.from({ length: random.below(most + 1) }, () => letters[random.below(letters.length)]).join('');
    let matched = 0;
    for (let count = 0; count < 20_000; count++) {
      const [text, name] = [`${some('ab*', 7)}*`, some('abB', 10)];
      const expected = new RegExp(`^${text.replace(/\*+/g, '.*')}$`, 'i').test(name);
      assert.equal(new NamePattern(text).matches(name), expected, `${text} ${name}`);
      if (expected) matched++;
    }
    assert.ok(matched > 1000, `${matched}`);
  });

  it('reads each character of a hostile name a few times at most', () => {
    const pattern = new NamePattern(`*${'a'.repeat(200)}b*a*a*a*c`);
    const name = 'a'.repeat(65_535);
    let reads = 0;
    const counted = {
      length: name.length,
      charCodeAt(at: number) {
        reads++;
        return name.charCodeAt(at);
      }
    };
    assert.equal(pattern.matches(`${name}c`), false);
    const open = new NamePattern(`*${'a'.repeat(200)}b*`);
    assert.equal(open.matches(counted as string), false);
    assert.ok(reads <= 2 * name.length, `${reads}`);
  });
});

describe('A search', () => {
  it('finds each kind, and an exact name first even if others fill its limit', async () => {
    const names = [...Array.from({ length: 50 }, (_, at) => `a${at}`), 'a'];
    const { kinds } = kindsOf({
      client: names,
      topic: ['a/b'],
      subscription: ['b'],
      rule: ['rule:a', 'A'],
      streamRule: ['a']
    });
    const { found, isComplete } = await run(kinds, 'a', 2);
    assert.deepEqual(found, ['client a', 'client a0', 'topic a/b', 'rule A', 'streamRule a']);
    assert.equal(isComplete, false);
  });

  it('reports a complete result if there are as many entries as the limit', async () => {
    const { kinds } = kindsOf({ client: ['a', 'ab'] });
    assert.equal((await run(kinds, 'a', 2)).isComplete, true);
    assert.equal((await run(kinds, 'a', 1)).isComplete, false);
    assert.deepEqual((await run(kinds, 'x', 1)).found, []);
  });

  it('reads at most the given number of names, and some of each kind, in slices', async () => {
    const many = Array.from({ length: 300_000 }, (_, at) => `n${at}`);
    const { kinds, examined } = kindsOf({
      client: many,
      topic: many,
      subscription: many,
      rule: ['x1'],
      streamRule: many
    });
    const { found, isComplete, slices } = await run(kinds, 'x', 10, 200_000);
    assert.deepEqual([found, isComplete], [['rule x1'], false]);
    const [client, topic, subscription, rule, streamRule] = [
      'client',
      'topic',
      'subscription',
      'rule',
      'streamRule'
    ].map((kind) => examined[kind] ?? 0);
    // one more of each is taken from the list, and not looked at
    assert.equal(client + topic + subscription + rule + streamRule, 200_000 + 4);
    assert.ok(Math.min(client, topic, subscription) >= 40_000);
    assert.ok(slices >= 100, `${slices}`);
  });

  it('takes more slices for long names', async () => {
    const { kinds } = kindsOf({ topic: Array.from({ length: 100 }, () => 'a'.repeat(65_535)) });
    assert.ok((await run(kinds, '*b*')).slices >= 10);
    assert.equal((await run(kinds, 'b')).slices, 1);
  });

  it('refuses a text or a limit that is not valid', async () => {
    await using broker = await createBroker().start();
    const { directory } = broker;
    for (const query of [
      { text: '' },
      { text: 'a'.repeat(257) },
      { text: 'a', limit: 101 },
      { text: 'a', limit: 0 },
      { text: 1 }
    ])
      await assert.rejects(directory.search(query as { text: string }), { code: 'OPTION_INVALID' });
    await assert.rejects(directory.search({ text: 'a', most: 1 } as { text: string }), { code: 'OPTION_UNKNOWN' });
  });

  it('finds no rules before the start and does not load their engines', async () => {
    await using broker = createBroker();
    assert.deepEqual((await broker.directory.search({ text: '*' })).entries, []);
  });
});
