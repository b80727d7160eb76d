import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Message } from '../../lib/packets/message.ts';
import { Awaiting, Inflight } from '../../lib/session/messages/inflight.ts';
import type { Outlet } from '../../lib/session/messages/outlet.ts';
import { samples } from '../support/samples.ts';
import { randomSource } from '../topics/slow-matcher.ts';

const message = (topic: string) => Message.from({ topic, qos: 1 }, undefined, 0, 0);
const newInflight = () => new Inflight({} as Outlet);
const take = (inflight: Inflight, topic?: string) =>
  inflight.assignId(Awaiting.puback, topic === undefined ? undefined : message(topic), 1, undefined);

describe('Inflight', () => {
  it('allocates packet ids in sequence from 1, and continues after the last one when some are free again', () => {
    const inflight = newInflight();
    assert.deepEqual([take(inflight), take(inflight), take(inflight)], [1, 2, 3]);
    inflight.free(1);
    inflight.free(2);
    assert.equal(take(inflight), 4);
    assert.equal(inflight.count, 2);
  });

  it('stores with a packet id its state, its message, flags and subscription identifiers', () => {
    const inflight = newInflight();
    const kept = message('a');
    const id = inflight.assignId(Awaiting.pubrec, kept, 6, [3, 9]);
    assert.equal(inflight.stateOf(id), Awaiting.pubrec);
    assert.equal(inflight.messageOf(id), kept);
    assert.equal(inflight.flagsOf(id), 6);
    assert.deepEqual(inflight.subscriptionIdsOf(id), [3, 9]);
    assert.equal(inflight.stateOf(id + 1), Awaiting.nothing);
    assert.equal(inflight.free(id), kept);
    assert.equal(inflight.stateOf(id), Awaiting.nothing);
    assert.equal(inflight.messageOf(id), undefined);
    assert.equal(inflight.subscriptionIdsOf(id), undefined);
    assert.equal(inflight.count, 0);
  });

  it('distinguishes packet ids with the same low bits', () => {
    const inflight = newInflight();
    const id = take(inflight);
    for (const other of [id + 16, id + 32, id + 4096]) assert.equal(inflight.stateOf(other), Awaiting.nothing);
  });

  it('releases the message at PUBREC, and waits for PUBCOMP with the same packet id', () => {
    const inflight = newInflight();
    const kept = message('a');
    const id = inflight.assignId(Awaiting.pubrec, kept, 2, [1]);
    assert.equal(inflight.release(id), kept);
    assert.equal(inflight.stateOf(id), Awaiting.pubcomp);
    assert.equal(inflight.messageOf(id), undefined);
    assert.equal(inflight.subscriptionIdsOf(id), undefined);
    assert.equal(inflight.count, 1, 'the packet id is in use until PUBCOMP');
  });

  it('counts the bytes of its messages until they are acknowledged or released', () => {
    const inflight = newInflight();
    const [first, second] = [message('a'), message('a/longer/topic')];
    const id = inflight.assignId(Awaiting.puback, first, 1, undefined);
    const released = inflight.assignId(Awaiting.pubrec, second, 2, undefined);
    for (let i = 0; i < 40; i++) take(inflight); // without their messages
    assert.equal(inflight.bytes, first.bytes + second.bytes);
    inflight.release(released);
    assert.equal(inflight.bytes, first.bytes);
    inflight.free(released);
    inflight.free(id);
    assert.equal(inflight.bytes, 0);
  });

  it('counts a message for which a packet id is reserved until that is cancelled, even if it is unloaded in between', () => {
    const inflight = newInflight();
    take(inflight, 'a');
    inflight.reserve(9);
    inflight.unload();
    assert.deepEqual([inflight.count, inflight.bytes], [1, 9]);
    inflight.cancelReservation(9);
    assert.deepEqual([inflight.count, inflight.bytes], [0, 0]);
  });

  it('ignores packet ids that are not in use when they are freed or released', () => {
    const inflight = newInflight();
    const id = take(inflight, 'a');
    inflight.unload();
    assert.equal(inflight.free(id), undefined);
    assert.equal(inflight.release(id), undefined);
    const { count, unacknowledged, bytes } = inflight;
    assert.deepEqual({ count, unacknowledged, bytes }, { count: 0, unacknowledged: 0, bytes: 0 });
  });

  it('lists packet ids in the order their messages were sent, those with PUBREC in the order of PUBREC', () => {
    const inflight = newInflight();
    for (let i = 0; i < 5; i++) inflight.assignId(Awaiting.pubrec, undefined, 2, undefined);
    inflight.free(2);
    inflight.release(4);
    inflight.release(1);
    assert.deepEqual(inflight.inOrder(), [3, 5, 4, 1]);
  });

  it('lists only messages sent before a mark', () => {
    const inflight = newInflight();
    for (let i = 0; i < 3; i++) inflight.assignId(Awaiting.pubrec, undefined, 2, undefined);
    const { mark } = inflight;
    inflight.assignId(Awaiting.pubrec, undefined, 2, undefined);
    inflight.release(2);
    assert.deepEqual(inflight.inOrder(mark), [1, 3]);
    assert.deepEqual(inflight.inOrder(), [1, 3, 4, 2]);
  });

  it('keeps the order of sending when the packet ids wrap around to 1', () => {
    const inflight = newInflight();
    for (let i = 0; i < 65_533; i++) inflight.free(take(inflight));
    assert.deepEqual(
      [1, 2, 3, 4].map(() => take(inflight)),
      [65_534, 65_535, 1, 2]
    );
    assert.deepEqual(inflight.inOrder(), [65_534, 65_535, 1, 2]);
  });

  it('holds every packet id in flight at once, each of them once', () => {
    const inflight = newInflight();
    const ids = new Set<number>();
    for (let i = 0; i < 65_535; i++) ids.add(take(inflight));
    assert.equal(ids.size, 65_535);
    assert.ok(!ids.has(0));
    inflight.free(40_000);
    assert.equal(take(inflight), 40_000);
  });

  it('behaves like a Map, and never allocates a packet id that is in use', () => {
    const { below, pick } = randomSource('Inflight');
    const inflight = newInflight();
    const slow = new Map<number, { state: number; topic: string; ids: readonly number[] | undefined }>();
    for (let step = 0; step < samples(30_000); step++) {
      const bound = 1 + Math.floor((step * 234) / samples(30_000));
      if (slow.size === 0 || (slow.size < bound && below(2) === 0)) {
        const topic = `t${step}`;
        const ids = below(3) === 0 ? [step] : undefined;
        const state = pick([Awaiting.puback, Awaiting.pubrec]);
        const id = inflight.assignId(state, message(topic), 1, ids);
        assert.ok(id > 0 && id < 65_536 && !slow.has(id), `id ${id}`);
        slow.set(id, { state, topic, ids });
      } else {
        const id = pick([...slow.keys()].slice(0, 40));
        const known = slow.get(id)!;
        assert.equal(inflight.stateOf(id), known.state);
        assert.deepEqual(inflight.subscriptionIdsOf(id), known.ids);
        if (known.state === Awaiting.pubrec) {
          assert.equal(inflight.release(id)?.topic, known.topic);
          slow.delete(id);
          slow.set(id, { state: Awaiting.pubcomp, topic: '', ids: undefined });
        } else {
          assert.equal(inflight.free(id)?.topic ?? '', known.topic);
          slow.delete(id);
        }
      }
      assert.equal(inflight.count, slow.size);
      if (step % 500 === 0) assert.deepEqual(inflight.inOrder(), [...slow.keys()]);
    }
  });
});
