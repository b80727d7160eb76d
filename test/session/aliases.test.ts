import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TopicAliases } from '../../lib/session/aliases.ts';
import { randomSource } from '../topics/slow-matcher.ts';

describe('TopicAliases', () => {
  it('sends a topic alone at first, sets an alias the second time, and uses it from the third on', () => {
    const aliases = new TopicAliases(4);
    assert.deepEqual(
      [1, 2, 3, 4].map(() => aliases.choose('a')),
      [0, -1, 1, 1]
    );
  });

  it('numbers aliases from 1 to the maximum and no further', () => {
    const aliases = new TopicAliases(3);
    const set = ['a', 'b', 'c', 'd', 'e'].map((topic) => {
      aliases.choose(topic);
      return -aliases.choose(topic);
    });
    assert.deepEqual(set, [1, 2, 3, 1, 2]);
  });

  it('gives away the alias that has not been used for longest', () => {
    const aliases = new TopicAliases(2);
    for (const topic of ['a', 'a', 'b', 'b', 'a']) aliases.choose(topic);
    aliases.choose('c');
    assert.equal(aliases.choose('c'), -2, 'that of b');
    assert.equal(aliases.choose('a'), 1);
    assert.equal(aliases.choose('b'), 0, 'b begins again');
  });

  it('sets an alias anew when the packet that was to set it was not sent', () => {
    const aliases = new TopicAliases(1);
    aliases.choose('a');
    assert.equal(aliases.choose('a'), -1);
    aliases.forget('a');
    assert.equal(aliases.choose('a'), 0);
    assert.equal(aliases.choose('a'), -1);
    assert.equal(aliases.choose('a'), 1);
  });

  it('keeps the other aliases where they are when one is forgotten', () => {
    const aliases = new TopicAliases(3);
    for (const topic of ['a', 'a', 'b', 'b']) aliases.choose(topic);
    aliases.forget('a');
    assert.equal(aliases.choose('b'), 2);
    aliases.choose('c');
    assert.equal(aliases.choose('c'), -3);
    aliases.forget('never seen');
  });

  it('never means another topic than the client would take it for', () => {
    const { below } = randomSource('TopicAliases');
    for (let round = 0; round < 50; round++) {
      const max = 1 + below(5);
      const aliases = new TopicAliases(max);
      const client = new Map<number, string>();
      for (let step = 0; step < 400; step++) {
        const topic = `t${below(9)}`;
        const choice = aliases.choose(topic);
        assert.ok(Math.abs(choice) <= max, `alias ${choice} of ${max}`);
        if (choice > 0) assert.equal(client.get(choice), topic);
        else if (choice < 0 && below(5) === 0) aliases.forget(topic);
        else if (choice < 0) client.set(-choice, topic);
      }
    }
  });
});
