import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Message } from '../../lib/packets/message.ts';
import { type FeedEntries, type FeedEntry, RetainedFeed, RetainedFeeds } from '../../lib/retained/retained-feed.ts';
import type { Subscription } from '../../lib/routing/subscription.ts';

/** Retained messages on the topics 1 to 10, stored in this order, with QoS 1 for odd numbers. */
const ENTRIES = Array.from({ length: 10 }, (_, at): FeedEntry => {
  const topic = `${at + 1}`;
  return { topic, message: { topic, qos: (at + 1) % 2 } as Message, seq: at + 1, isLive: true };
});
/** The source at the time when 8 of them were stored. */
const SOURCE: FeedEntries = { next: 9, isOpen: true, find: () => ENTRIES, reaches: () => true };
const SUBSCRIPTION = { filter: '#', qos: 1 } as Subscription;

/** Returns the topics of the messages of each part of a feed. */
function sent(feed: RetainedFeed): string[][] {
  assert.equal(feed.search(false), true);
  return feed.parts().map((part) => Array.from({ length: part.waiting }, () => part.next()?.topic ?? 'none'));
}

/** Entries of QoS 1 for the topics a/0, a/1 and so on, and a source that returns them. */
function stored(count: number) {
  const entries = Array.from({ length: count }, (_, seq) => {
    const topic = `a/${seq}`;
    return { topic, seq, isLive: true, message: { topic, qos: 1 } as Message };
  });
  const source = { next: count, isOpen: true, find: () => entries, reaches: () => true };
  return { entries: entries as (FeedEntry & { isLive: boolean })[], source };
}

/** The feed that has looked up its entries. */
function loaded(feed: RetainedFeed): RetainedFeed {
  assert.ok(feed.search(false));
  const [part] = feed.parts();
  return part;
}

/** Take up to so many messages. @returns their topics */
function taken(feed: RetainedFeed, most = Infinity): string[] {
  const topics: string[] = [];
  for (let left = most; left > 0 && feed.waiting > 0; left--) topics.push(feed.next()?.topic ?? 'none');
  return topics;
}

describe('RetainedFeed', () => {
  it('returns the messages that were retained before the subscription, those of QoS 0 separately', () => {
    assert.deepEqual(sent(new RetainedFeed(SUBSCRIPTION, SOURCE)), [
      ['2', '4', '6', '8'],
      ['1', '3', '5', '7']
    ]);
  });

  it('continues at its stored position, without the messages that were sent ahead of their turn', () => {
    const pending = { filter: '#', from: 3, ahead: [5] };
    assert.deepEqual(sent(RetainedFeed.restored(SUBSCRIPTION, SOURCE, 9, pending)), [['3', '7']]);
  });

  it('returns each message once, also one that is taken ahead of its turn', () => {
    const { entries, source } = stored(5);
    const feed = loaded(new RetainedFeed(SUBSCRIPTION, source));
    assert.deepEqual(taken(feed, 1), ['a/0']);
    assert.equal(feed.takeAhead(entries[0]), undefined, 'it has been sent');
    assert.equal(feed.takeAhead(entries[3])?.topic, 'a/3');
    assert.equal(feed.takeAhead(entries[3]), undefined, 'it has been sent');
    assert.deepEqual(taken(feed), ['a/1', 'a/2', 'a/4']);
  });

  it('returns a message that is taken before the look-up, and omits it later', () => {
    const { entries, source } = stored(3);
    const feed = new RetainedFeed(SUBSCRIPTION, source);
    assert.equal(feed.takeAhead(entries[1])?.topic, 'a/1');
    assert.equal(feed.takeAhead({ ...entries[1], seq: 3 }), undefined, 'it was stored after the feed was created');
    assert.deepEqual(taken(loaded(feed)), ['a/0', 'a/2']);
  });

  it('omits messages that were replaced or deleted in the meantime', () => {
    const { entries, source } = stored(3);
    const feed = loaded(new RetainedFeed(SUBSCRIPTION, source));
    entries[1].isLive = false;
    assert.deepEqual(taken(feed), ['a/0', 'a/2']);
  });

  it('continues where it was after it was unloaded, without messages that were taken ahead', () => {
    const { entries, source } = stored(5);
    const feed = loaded(new RetainedFeed(SUBSCRIPTION, source));
    taken(feed, 2);
    feed.takeAhead(entries[3]);
    const rest = feed.unload();
    assert.deepEqual(rest.pending, { filter: '#', from: 2, ahead: [3] });
    const restored = RetainedFeed.restored(SUBSCRIPTION, source, 5, rest.pending);
    for (const next of [rest, restored]) assert.deepEqual(taken(loaded(next)), ['a/2', 'a/4']);
  });
});

describe('The feeds of a session', () => {
  it('sends nothing if the client unsubscribes before the look-up', () => {
    const { source } = stored(3);
    const feeds = new RetainedFeeds(() => assert.fail('nothing is sent'));
    feeds.ask(new RetainedFeed(SUBSCRIPTION, source));
    const count = feeds.load(() => false, false);
    assert.deepEqual([count, feeds.isDone], [0, true]);
  });

  it('reports the end of a subscription after its last message of QoS 1, which takes send quota', () => {
    const { source } = stored(3);
    const done: Subscription[] = [];
    const feeds = new RetainedFeeds((subscription) => done.push(subscription));
    feeds.ask(new RetainedFeed(SUBSCRIPTION, source));
    assert.equal(
      feeds.load(() => true, false),
      3
    );
    assert.equal(feeds.choose(false), undefined, 'there is no send quota');
    const topics: (string | undefined)[] = [];
    for (let left = 3; left > 0; left--) {
      assert.deepEqual([feeds.isDone, done], [false, []]);
      const feed = feeds.choose(true);
      topics.push(feed && feeds.next(feed)?.topic);
    }
    assert.deepEqual(topics, ['a/0', 'a/1', 'a/2']);
    assert.deepEqual([feeds.isDone, done], [true, [SUBSCRIPTION]]);
  });
});
