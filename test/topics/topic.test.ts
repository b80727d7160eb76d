import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  checkTopicBytes,
  checkTopicFilter,
  checkTopicName,
  filterFault,
  isWildcard,
  levelCount,
  matches,
  mountedFilter,
  mountedName,
  parseSharedFilter,
  unmountedFilter
} from '../../lib/topics/topic.ts';
import { randomFilter, randomName, randomSource, slowMatches } from './slow-matcher.ts';

describe('checkTopicName', () => {
  it('accepts every name that MQTT allows [MQTT-4.7.3-1, MQTT-4.7.3-4]', () => {
    for (const name of [
      'a',
      '/',
      '//',
      'a/b',
      ' a',
      'A/é/😀',
      '$SYS/x',
      '$share/x',
      'a'.repeat(65_535),
      '/'.repeat(65_535)
    ]) {
      assert.equal(checkTopicName(name), undefined);
    }
  });

  it('returns an error message for every invalid name [MQTT-4.7.0-1, MQTT-4.7.3-1, -2, -3]', () => {
    const faults: [name: string, message: string][] = [
      ['', 'topic name "": must have at least one character'],
      ['a/+', 'topic name "a/+": the wildcard "+" is not allowed in topic names'],
      ['a#', 'topic name "a#": the wildcard "#" is not allowed in topic names'],
      ['a\0', 'topic name "a\\u0000": may not contain U+0000'],
      ['a\ud800b', 'topic name "a\\ud800b": contains a lone surrogate, which UTF-8 cannot encode'],
      ['\udc00', 'topic name "\\udc00": contains a lone surrogate, which UTF-8 cannot encode'],
      ['\ud83d', 'topic name "\\ud83d": contains a lone surrogate, which UTF-8 cannot encode']
    ];
    for (const [name, message] of faults) assert.equal(checkTopicName(name), message);
  });

  it('counts bytes of UTF-8, not characters', () => {
    assert.equal(checkTopicName('é'.repeat(32_767)), undefined);
    assert.match(checkTopicName('é'.repeat(32_768))!, /longer than the 65535 bytes allowed$/);
    assert.match(checkTopicName('a'.repeat(65_536))!, /^topic name "a{77}\.\.\.": is longer/);
    assert.match(checkTopicName('abcd', { maxBytes: 3 })!, /longer than the 3 bytes allowed$/);
    assert.equal(checkTopicName('abc', { maxBytes: 3 }), undefined);
  });

  it('refuses more levels than the limit, and any number is allowed if the limit is 0', () => {
    assert.equal(checkTopicName('a/b', { maxLevels: 2 }), undefined);
    assert.equal(checkTopicName('a/b/', { maxLevels: 2 }), 'topic name "a/b/": has 3 levels, at most 2 are allowed');
    assert.equal(checkTopicName('a/b/c', { maxLevels: 0 }), undefined);
  });
});

describe('checkTopicFilter', () => {
  it('accepts wildcards that fill a level, and "#" only as the last level [MQTT-4.7.1-1, -2]', () => {
    for (const filter of [
      '#',
      '+',
      '/',
      '+/+',
      '/+',
      '+/',
      'a/#',
      '+/#',
      '/#',
      'a/+/b',
      '$SYS/#',
      '$share',
      '$queue',
      '/'.repeat(65_535)
    ]) {
      assert.equal(checkTopicFilter(filter), undefined, filter);
    }
  });

  it('returns an error message for every invalid filter', () => {
    const faults: [filter: string, message: string][] = [
      ['', 'topic filter "": must have at least one character'],
      ['a/#/b', 'topic filter "a/#/b": "#" may only be the last level'],
      ['#/', 'topic filter "#/": "#" may only be the last level'],
      ['a#', 'topic filter "a#": "#" must fill a whole level'],
      ['a/#b', 'topic filter "a/#b": "#" must fill a whole level'],
      ['##', 'topic filter "##": "#" must fill a whole level'],
      ['+a/b', 'topic filter "+a/b": "+" must fill a whole level'],
      ['a/b+/c', 'topic filter "a/b+/c": "+" must fill a whole level'],
      ['++', 'topic filter "++": "+" must fill a whole level'],
      ['+#', 'topic filter "+#": "+" must fill a whole level'],
      ['a/\0', 'topic filter "a/\\u0000": may not contain U+0000']
    ];
    for (const [filter, message] of faults) assert.equal(checkTopicFilter(filter), message);
  });

  it('checks the filter inside a shared filter and does not count the prefix as a level', () => {
    assert.equal(checkTopicFilter('$share/g/#'), undefined);
    assert.equal(checkTopicFilter('$queue/+/b', { maxLevels: 2 }), undefined);
    assert.equal(checkTopicFilter('$share/g/a/b', { maxLevels: 2 }), undefined);
    assert.equal(
      checkTopicFilter('$share/g/a/b/c', { maxLevels: 2 }),
      'topic filter "$share/g/a/b/c": has 3 levels, at most 2 are allowed'
    );
    assert.equal(checkTopicFilter('$share/g/a/#/b'), 'topic filter "$share/g/a/#/b": "#" may only be the last level');
    assert.equal(
      checkTopicFilter('$share/a+/b'),
      'topic filter "$share/a+/b": the name of a share group may not contain "+" or "#"'
    );
    assert.match(checkTopicFilter(`$share/g/${'a'.repeat(65_530)}`)!, /65535 bytes/);
  });
});

describe('filterFault', () => {
  it('refuses only strings that are not topic filters at all [MQTT-4.7.1-1, -2, MQTT-4.7.3-1, MQTT-4.8.2-1, -2]', () => {
    const bad = ['', 'a#', 'ab/+e', 'a/#/b', '$queue/a+', '$share/g/a#', '$share/g/+a', '$share/g+/a'];
    for (const filter of bad) {
      assert.match(filterFault(filter, true) ?? '', /^topic filter ".*": /, filter);
      assert.match(filterFault(filter, false) ?? '', /^topic filter ".*": /, filter);
    }
    const good = ['#', '+', '/', 'a/+/#', '$share/g/a', '$share/g//', '$share', '$queue/', '$share/g/$share/h/a'];
    for (const filter of good) {
      assert.equal(filterFault(filter, true), undefined, filter);
      assert.equal(filterFault(filter, false), undefined, filter);
    }
  });

  it('gives "$share/" no special meaning before MQTT 5.0', () => {
    for (const filter of ['$share/', '$share//a', '$share/g', '$share/g/', '$share/+/a', '$share/#']) {
      assert.match(filterFault(filter, true) ?? '', /"\$share\/" must be followed by/, filter);
      assert.equal(filterFault(filter, false), undefined, filter);
    }
  });
});

describe('parseSharedFilter', () => {
  it('splits a shared filter into group and filter', () => {
    assert.deepEqual(parseSharedFilter('$share/g/a/+/#'), { group: 'g', filter: 'a/+/#' });
    assert.deepEqual(parseSharedFilter('$share/g//'), { group: 'g', filter: '/' });
    assert.deepEqual(parseSharedFilter('$queue/a'), { group: '$queue', filter: 'a' });
    assert.deepEqual(parseSharedFilter('$share/$queue/a'), { group: '$queue', filter: 'a' });
    assert.deepEqual(parseSharedFilter('$share/g/$SYS/a'), { group: 'g', filter: '$SYS/a' });
  });

  it('returns undefined for filters that are not shared', () => {
    for (const filter of ['a', '$share', '$shared/a/b', '$queue', '$queues/a', '/$share/g/a', '$SYS/#']) {
      assert.equal(parseSharedFilter(filter), undefined, filter);
    }
  });

  it('refuses a missing group, a wildcard in the group, a missing filter and a nested shared filter [MQTT-4.8.2-1, MQTT-4.8.2-2]', () => {
    const faults: [filter: string, reason: RegExp][] = [
      ['$share/', /followed by the name of a group/],
      ['$share//a', /followed by the name of a group/],
      ['$share/+/a', /may not contain/],
      ['$share/#', /may not contain/],
      ['$share/g#/a', /may not contain/],
      ['$share/g', /needs a filter/],
      ['$share/g/', /needs a filter/],
      ['$queue/', /needs a filter/],
      ['$share/g/$share/h/a', /another shared filter/],
      ['$share/g/$queue/a', /another shared filter/],
      ['$queue/$share/h/a', /another shared filter/],
      ['$queue/$queue/a', /another shared filter/]
    ];
    for (const [filter, reason] of faults) {
      const got = parseSharedFilter(filter);
      assert.ok(typeof got === 'string', filter);
      assert.match(got, reason);
      assert.ok(got.startsWith(`topic filter "${filter}": `));
    }
  });
});

describe('matches', () => {
  it('follows the examples of the specification', () => {
    const rows: [filter: string, name: string, expected: boolean][] = [
      ['sport/tennis/player1/#', 'sport/tennis/player1', true],
      ['sport/tennis/player1/#', 'sport/tennis/player1/score/wimbledon', true],
      ['sport/#', 'sport', true],
      ['sport/#', 'sports', false],
      ['sport/tennis/+', 'sport/tennis/player1/ranking', false],
      ['sport/+', 'sport', false],
      ['sport/+', 'sport/', true],
      ['+/+', '/finance', true],
      ['/+', '/finance', true],
      ['+', '/finance', false],
      ['+/#', 'a', true],
      ['a/+/#', 'a', false],
      ['a', 'a/', false],
      ['a/', 'a', false],
      ['ACCOUNTS', 'Accounts', false]
    ];
    for (const [filter, name, expected] of rows) assert.equal(matches(filter, name), expected, `${filter} ${name}`);
  });

  it('does not match names with "$" against filters that begin with a wildcard [MQTT-4.7.2-1]', () => {
    assert.equal(matches('#', '$SYS/a'), false);
    assert.equal(matches('+/a', '$SYS/a'), false);
    assert.equal(matches('+', '$SYS'), false);
    assert.equal(matches('$SYS/#', '$SYS/a'), true);
    assert.equal(matches('$SYS/#', '$SYS'), true);
    assert.equal(matches('a/+', 'a/$SYS'), true);
  });

  it('agrees with the slow matcher on random filters and names', () => {
    const source = randomSource('matches');
    let hits = 0;
    for (let i = 0; i < 50_000; i++) {
      const filter = randomFilter(source);
      const name = randomName(source);
      const expected = slowMatches(filter, name);
      if (expected) hits++;
      assert.equal(matches(filter, name), expected, `${filter} against ${name}`);
    }
    assert.ok(hits > 500, `only ${hits} hits: the names do not meet`);
  });
});

describe('A mount point', () => {
  it('prefixes a topic name, and the topic inside a delayed one', () => {
    assert.equal(mountedName('a/b', 'm/'), 'm/a/b');
    assert.equal(mountedName('$delayed/5/a', 'm/'), '$delayed/5/m/a');
    assert.equal(mountedName('$delayed/5/', 'm/'), '$delayed/5/');
    assert.equal(mountedName('a', ''), 'a');
  });

  it('makes no topic that is longer than MQTT allows', () => {
    assert.equal(mountedName('a'.repeat(65_533), 'm/')?.length, 65_535);
    assert.equal(mountedName('a'.repeat(65_534), 'm/'), undefined);
    assert.equal(mountedName('\u20ac'.repeat(21_845), 'm/'), undefined);
  });

  it('prefixes the filter of a shared subscription, and is removed from it again', () => {
    for (const [filter, mounted] of [
      ['a/#', 'm/a/#'],
      ['$share/g/a/#', '$share/g/m/a/#'],
      ['$queue/a', '$queue/m/a']
    ]) {
      assert.equal(mountedFilter(filter, 'm/'), mounted);
      assert.equal(unmountedFilter(mounted, 'm/'), filter);
      for (const change of [mountedFilter, unmountedFilter]) assert.equal(change(mounted, ''), mounted);
    }
  });

  it('disappears only from filters that begin with it', () => {
    for (const filter of ['a/m/b', '$share/m/a', 'm']) assert.equal(unmountedFilter(filter, 'm/'), filter);
  });
});

describe('isWildcard, levelCount and checkTopicBytes', () => {
  it('recognizes a filter with wildcards', () => {
    for (const filter of ['#', '+', 'a/#', '+/a', 'a/+/b']) assert.equal(isWildcard(filter), true, filter);
    for (const filter of ['a', '/', 'a/b', '$SYS']) assert.equal(isWildcard(filter), false, filter);
  });

  it('counts the levels of a topic', () => {
    assert.equal(levelCount('a'), 1);
    assert.equal(levelCount('/'), 2);
    assert.equal(levelCount('a//b'), 3);
    assert.equal(levelCount('/'.repeat(65_535)), 65_536);
  });

  it('checks the bytes of a topic name inside a packet [MQTT-4.7.0-1, MQTT-4.7.3-1, -2]', () => {
    const bytes = Buffer.from('+a/b é!"$%#\0');
    assert.equal(checkTopicBytes(bytes, 1, bytes.length - 2), true);
    assert.equal(checkTopicBytes(bytes, 1, 1), false);
    assert.equal(checkTopicBytes(bytes, 0, 2), false);
    assert.equal(checkTopicBytes(bytes, 1, bytes.length - 1), false);
    assert.equal(checkTopicBytes(bytes, bytes.length - 1, bytes.length), false);
  });
});
