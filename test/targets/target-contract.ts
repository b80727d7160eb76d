// The promises of a target, as cases that every target runs: each sink of stream rules, each resource of broker rules,
// and webhooks. A target says what it is capable of by what it gives: a connection that can be interrupted, a receiver
// that refuses, `check`. A case that needs something else does not exist for it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { InvalidInput, SendError } from '../../lib/index.ts';
import type { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

/** A target in the hands of a test. */
export interface HeldTarget extends AsyncDisposable {
  readonly target: {
    /** Send a text as the only column of an output. Opens the target again if it is closed. */
    send(text: string): Promise<void>;
    check?(): Promise<void>;
    close(): Promise<void>;
  };
  /** The texts that have arrived. */
  received(): readonly string[] | Promise<readonly string[]>;
  readonly clock?: Pick<ManualClock, 'advance'>;
  /** The connection between target and receiver. Absent for targets in this process. */
  readonly line?: {
    stop(): Promise<unknown>;
    start(): Promise<unknown>;
    /** Number of open connections. */
    readonly connections?: number;
  };
  /** Let the receiver refuse the next text: for good, or for a time in milliseconds. */
  refuse?(how: { readonly isFinal: boolean; readonly pauseMs?: number }): void;
}

/** A target of the contract. */
export interface TargetCase {
  readonly name: string;
  readonly skip?: string | false;
  open(): Promise<HeldTarget>;
  /** False if `send` resolves before the receiver has the text, because the protocol knows no acknowledgement. */
  readonly isAcknowledged?: false;
  /** False if it is opened only once, by what sends to it, or if its receivers leave when it is closed. */
  readonly isReopened?: false;
  /** The abilities, for the names of the cases: the tests check that `open` gives them. */
  readonly has?: readonly ('line' | 'refuse' | 'pause' | 'check')[];
  /** Open it with settings that can never be used. */
  openInvalid?(): Promise<unknown>;
}

/** Run the cases of the contract for a target. */
export function targetContract(target: TargetCase): void {
  const { name, skip = false, open, isAcknowledged, isReopened, has = [], openInvalid } = target;
  describe(`the target ${name}`, { skip }, () => {
    it(`resolves a send of ${name} when the receiver has it, in the order of the sends`, async () => {
      await using held = await open();
      await sendUntilSent(held, 'a');
      for (const text of ['b', 'c ä "\n']) await held.target.send(text);
      if (isAcknowledged === false) await arrived(held, 3);
      assert.deepEqual(await held.received(), ['a', 'b', 'c ä "\n']);
      await held.target.close();
    });

    it(`closes ${name} once, after which nothing arrives and no connection is open`, async () => {
      await using held = await open();
      await sendUntilSent(held, 'a');
      await held.target.close();
      await until(() => (held.line?.connections ?? 0) === 0);
      held.clock?.advance(60_000);
      for (let turns = 0; turns < 5; turns++) await setImmediate();
      assert.equal(held.line?.connections ?? 0, 0);
      assert.deepEqual(await held.received(), ['a']);
    });

    if (isReopened !== false)
      it(`opens ${name} again after it was closed`, async () => {
        await using held = await open();
        await sendUntilSent(held, 'a');
        await held.target.close();
        await sendUntilSent(held, 'b');
        await arrived(held, 2);
        assert.deepEqual(await held.received(), ['a', 'b']);
        await held.target.close();
      });

    if (has.includes('line'))
      it(`opens ${name} without its server, rejects sends until there is one, and then sends again`, async () => {
        await using held = await open();
        const line = held.line ?? assert.fail('there is no line');
        await line.stop();
        const error = await held.target.send('lost').then(
          () => assert.fail('it is sent'),
          (error: Error) => error
        );
        assert.notEqual(error.message, '');
        assert.equal(error instanceof SendError && error.isFinal, false, error.message);
        await line.start();
        await sendUntilSent(held, 'a');
        await arrived(held, 1);
        assert.deepEqual(await held.received(), ['a']);
        await held.target.close();
      });

    if (has.includes('refuse'))
      it(`rejects a send of ${name} with a final SendError if the receiver will never accept it`, async () => {
        await using held = await open();
        await sendUntilSent(held, 'a');
        held.refuse?.({ isFinal: true });
        await assert.rejects(held.target.send('refused'), (error) => error instanceof SendError && error.isFinal);
        assert.deepEqual(await held.received(), ['a']);
        await held.target.close();
      });

    if (has.includes('pause'))
      it(`rejects a send of ${name} with the pause that the receiver asks for`, async () => {
        await using held = await open();
        held.refuse?.({ isFinal: false, pauseMs: 7000 });
        await assert.rejects(
          held.target.send('a'),
          (error) => error instanceof SendError && !error.isFinal && error.retryAfterMs === 7000
        );
        await held.target.close();
      });

    if (has.includes('check'))
      it(`checks ${name} without sending anything: it resolves only if the server can be reached`, async () => {
        await using held = await open();
        const { check = () => assert.fail('there is no check') } = held.target;
        await check();
        await held.line?.stop();
        const checkOften = async () => {
          for (;;) {
            await check(); // until it notices that its connection is closed
            await setImmediate();
          }
        };
        await assert.rejects(checkOften(), Error);
        assert.deepEqual(await held.received(), []);
        await held.target.close();
      });

    if (openInvalid !== undefined)
      it(`does not open ${name} if it can never be used, and names the setting`, () =>
        assert.rejects(
          openInvalid(),
          (error) => error instanceof InvalidInput && error.field !== '' && error.message.includes(error.field)
        ));
  });
}

/** Send a text, again until the target has found its receiver. */
async function sendUntilSent({ target, clock }: HeldTarget, text: string): Promise<void> {
  for (let left = 1000; ; left--) {
    try {
      await target.send(text);
      return;
    } catch (error) {
      if (left === 0) throw error;
      clock?.advance(500);
      await setImmediate();
    }
  }
}

async function arrived(held: HeldTarget, count: number): Promise<void> {
  while ((await held.received()).length < count) await setImmediate();
}
