import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TopicAliases } from '../../lib/connection/topic-aliases.ts';
import { randomSource } from '../topics/slow-matcher.ts';

describe('TopicAliases', () => {
  it('sets an alias with the message that the option specifies, and uses it from the next one on', () => {
    for (const after of [1, 2, 3]) {
      const aliases = new TopicAliases(4, after);
      const expected = [...new Array(after - 1).fill(0), -1, 1, 1];
      assert.deepEqual(
        expected.map(() => aliases.choose('a')),
        expected
      );
    }
  });

  it('numbers aliases from 1 to the maximum', () => {
    const aliases = new TopicAliases(3, 1);
    const set = ['a', 'b', 'c', 'd', 'd', 'e', 'e'].map((topic) => Math.abs(aliases.choose(topic)));
    assert.deepEqual(set, [1, 2, 3, 0, 1, 0, 2]);
  });

  it('reassigns the least recently used alias to a topic that was used twice since', () => {
    const aliases = new TopicAliases(2, 1);
    for (const topic of ['a', 'b', 'a']) aliases.choose(topic);
    assert.equal(aliases.choose('c'), 0);
    assert.equal(aliases.choose('b'), 2, 'b was used in between');
    assert.equal(aliases.choose('c'), -1, 'a was not used since c');
    assert.equal(aliases.choose('b'), 2);
    assert.equal(aliases.choose('a'), 0, 'a no longer has an alias');
  });

  it('keeps its aliases if there are more topics in rotation than aliases', () => {
    for (const topics of [9, 12, 16, 17, 100]) {
      const aliases = new TopicAliases(8, 1);
      const choices = Array.from({ length: topics * 10 }, (_, at) => aliases.choose(`t${at % topics}`));
      assert.equal(choices.filter((choice) => choice < 0).length, 8, `${topics} topics`);
      assert.equal(choices.filter((choice) => choice > 0).length, 8 * 9, `${topics} topics`);
    }
  });

  it('reassigns the aliases when other topics are used instead', () => {
    const aliases = new TopicAliases(8, 1);
    for (let at = 0; at < 80; at++) aliases.choose(`old${at % 8}`);
    const choices = Array.from({ length: 24 }, (_, at) => Math.sign(aliases.choose(`new${at % 8}`)));
    assert.deepEqual(choices, [...new Array(8).fill(0), ...new Array(8).fill(-1), ...new Array(8).fill(1)]);
  });

  it('sets an alias again if the packet that was to set it was not sent', () => {
    const aliases = new TopicAliases(1, 1);
    assert.equal(aliases.choose('a'), -1);
    aliases.forget('a');
    assert.equal(aliases.choose('a'), -1);
    assert.equal(aliases.choose('a'), 1);
  });

  it('leaves the other aliases unchanged when one is removed', () => {
    const aliases = new TopicAliases(3, 1);
    for (const topic of ['a', 'b']) aliases.choose(topic);
    aliases.forget('a');
    assert.equal(aliases.choose('b'), 2);
    assert.equal(aliases.choose('c'), -1);
    assert.equal(aliases.choose('d'), -3);
    aliases.forget('never seen');
  });

  it('never uses an alias for a topic other than the one that the client knows', () => {
    const { below } = randomSource('TopicAliases');
    for (let round = 0; round < 50; round++) {
      const max = 1 + below(5);
      const aliases = new TopicAliases(max, 1 + below(3));
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
