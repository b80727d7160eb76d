import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hasLost, isSubscribed, stateAt, statesBetween, statesOf } from '../../../lib/broker/reasons/client-states.ts';
import { RECORDED, type RecordedCode } from '../../../lib/index.ts';
import { KeptRecord } from '../../../lib/monitor/reasons/kept-record.ts';

/** Records of a client, a second apart, the latest first. */
function recordsOf(...events: readonly (readonly [RecordedCode, string?])[]): KeptRecord[] {
  return events
    .map(([code, topic], index) => {
      const record = new KeptRecord();
      record.fill(code, RECORDED[code], topic, 0, undefined, 'c', undefined, undefined, undefined);
      record.begin(index + 1, 1, index * 1_000, index * 1_000, false);
      return record;
    })
    .reverse();
}

describe('The states of a client', () => {
  it('replays what the records of a client say: connected, away with a session, without one, and back', () => {
    const states = statesOf(
      recordsOf(
        ['connected'],
        ['subscribed', 'a/#'],
        ['disconnected_closed'],
        ['resumed'],
        ['disconnected_kicked'],
        ['session_ended'],
        ['connected'],
        ['subscribed', 'a/#']
      )
    );
    const topics = ['a/1'];
    const shown = states.map((state) => [
      state.awayBy?.code,
      state.hasSession,
      isSubscribed(state, topics),
      hasLost(state, topics)
    ]);
    assert.deepEqual(shown, [
      [undefined, false, false, false],
      [undefined, true, false, false],
      [undefined, true, true, false],
      ['disconnected_closed', true, true, false],
      [undefined, true, true, false],
      ['disconnected_kicked', true, true, false],
      ['disconnected_kicked', false, false, true],
      [undefined, true, false, true],
      [undefined, true, true, false]
    ]);
    assert.equal(stateAt(states, 5_500).hasSession, false);
    assert.deepEqual(
      [...stateAt(states, 5_500).subscriptions.keys()],
      ['a/#'],
      'the subscriptions of the last session'
    );
    const isSubscribedIn = (from: number, until: number) =>
      statesBetween(states, from, until).some((state) => isSubscribed(state, topics) !== false);
    assert.equal(isSubscribedIn(-1_000, 500), false, 'before the subscription');
    assert.equal(isSubscribedIn(500, 1_500), true);
    assert.equal(isSubscribedIn(5_500, 6_500), false, 'between the sessions');
  });

  it('says nothing about the time before the first record, unless that record begins a session', () => {
    const states = statesOf(recordsOf(['disconnected_normal'], ['resumed'], ['unsubscribed', 'a'], ['connected']));
    assert.deepEqual(
      states.map((state) => isSubscribed(state, ['a'])),
      [undefined, undefined, undefined, undefined, false]
    );
    assert.deepEqual(
      states.map((state) => hasLost(state, ['a'])),
      [false, false, false, true, true]
    );
    assert.equal(isSubscribed(stateAt(statesOf([]), 0), ['a']), undefined);
  });
});
