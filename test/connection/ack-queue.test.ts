import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AckQueue } from '../../lib/connection/ack-queue.ts';
import { Pause, type PausedConnection } from '../../lib/connection/pause.ts';
import { PUBACK, PUBCOMP, PUBREC, PUBREL } from '../../lib/packets/acks.ts';
import type { Ledger } from '../../lib/store/ledger.ts';

/** A queue for a store whose commits are complete up to 5, and a list of its actions, such as `sent 1` for the packet id 1. */
function makeQueue() {
  const actions: string[] = [];
  const reader = {
    pauses: 0,
    pause: (why: number) => void (reader.pauses |= why),
    resume: (why: number) => void (reader.pauses &= ~why)
  };
  const ledger = { settled: 5, ticket: 9, wait: () => undefined } as unknown as Ledger;
  const queue = new AckQueue<PausedConnection>({ isClosed: false, reader }, ledger, {
    send: (_connection, _first, id) => void actions.push(`sent ${id}`),
    refuse: (_connection, _first, id) => void actions.push(`refused ${id}`),
    withdraw: (_connection, id) => actions.push(`withdrawn ${id}`) > 0
  });
  const add = (ticket: number, first: number, id: number) => queue.add(ticket, first, id, 0, false);
  const mustQueue = () => [PUBACK, PUBREC, PUBREL, PUBCOMP].map((first) => queue.mustQueue(first));
  return { queue, add, mustQueue, actions, reader };
}

describe('The queue of acknowledgements that wait for a commit', () => {
  it('delays later acknowledgements that need no commit, but no PUBACK or PUBREC because of a PUBREL or PUBCOMP', () => {
    for (const first of [PUBACK, PUBREC, PUBREL, PUBCOMP]) {
      const { queue, add, mustQueue } = makeQueue();
      assert.deepEqual(mustQueue(), [false, false, false, false]);
      add(6, first, 1);
      const isOfPublish = first === PUBACK || first === PUBREC;
      assert.deepEqual(mustQueue(), [isOfPublish, isOfPublish, true, true]);
      queue.commitSucceeded(6);
      assert.deepEqual(mustQueue(), [false, false, false, false]);
    }
  });

  it('sends acknowledgements in the order in which they were added, as far as the commits are complete', () => {
    const { queue, add, actions } = makeQueue();
    add(6, PUBACK, 1);
    add(0, PUBACK, 2);
    add(8, PUBREC, 3);
    add(0, PUBACK, 4);
    assert.equal(queue.commitSucceeded(7), true);
    assert.deepEqual(actions.splice(0), ['sent 1', 'sent 2']);
    assert.equal(queue.length, 2);
    assert.equal(queue.commitSucceeded(8), false);
    assert.deepEqual(actions, ['sent 3', 'sent 4']);
  });

  it('refuses messages whose commit fails, and sends PUBREL and PUBCOMP after the next commit', () => {
    const { queue, add, actions, mustQueue } = makeQueue();
    add(6, PUBACK, 1);
    add(0, PUBACK, 2);
    add(7, PUBCOMP, 3);
    add(7, PUBREC, 4);
    assert.equal(queue.commitFailed(), true);
    assert.deepEqual(actions.splice(0), ['refused 1', 'sent 2', 'withdrawn 4', 'refused 4']);
    assert.deepEqual(mustQueue(), [false, false, true, true]);
    assert.equal(queue.commitSucceeded(8), true);
    assert.equal(queue.commitSucceeded(9), false);
    assert.deepEqual(actions, ['sent 3']);
  });

  it('pauses reading while more than 5,000 acknowledgements wait, until half of them have been sent', () => {
    const { queue, add, reader } = makeQueue();
    const pauses: number[] = [];
    for (let id = 1; id <= 5_001; id++) {
      pauses.push(reader.pauses);
      add(id, PUBACK, id);
    }
    assert.deepEqual([Math.max(...pauses), reader.pauses], [0, Pause.commit]);
    queue.commitSucceeded(2_500);
    assert.equal(reader.pauses, Pause.commit);
    queue.commitSucceeded(2_501);
    assert.equal(reader.pauses, 0);
  });
});
