import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Message } from '../../lib/packets/message.ts';
import { type FeedEntries, type FeedEntry, RetainedFeed } from '../../lib/retained/retained-feed.ts';
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
});
