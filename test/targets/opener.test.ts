import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Opener } from '../../lib/targets/opener.ts';
import { ManualClock } from '../support/manual-clock.ts';

const STOPPED = new Error('the broker has stopped');

/** An opener whose target does what a test says. */
class OpenerKit {
  readonly clock = new ManualClock();
  /** The targets that were opened and closed, by number. */
  readonly opened: number[] = [];
  readonly closed: number[] = [];
  readonly changes: (string | undefined)[] = [];
  readonly errors: string[] = [];
  open: () => unknown = () => undefined;
  check: (signal: AbortSignal) => unknown = () => undefined;
  close: () => unknown = () => undefined;
  readonly opener = new Opener<number>({
    ...{ what: 'the target', code: 'TOO_LATE', clock: this.clock },
    open: () => this.make(),
    check: async (_, signal) => void (await this.check(signal)),
    close: async (target) => {
      this.closed.push(target);
      await this.close();
    },
    changed: (reason) => void this.changes.push(reason?.message),
    during: () => undefined,
    failed: (error, during) => void this.errors.push(`${during}: ${(error as Error).message}`)
  });

  async make(): Promise<number> {
    await this.open();
    this.opened.push(this.opened.length + 1);
    return this.opened.length;
  }

  /** Let time pass, and let what it causes happen. */
  async advance(ms: number): Promise<void> {
    this.clock.advance(ms);
    await setImmediate();
  }
}

const never = () => new Promise(() => undefined);
const fail = () => {
  throw new Error('refused');
};

describe('the opener of targets', () => {
  it('opens a target once for concurrent calls, closes it once, and opens it again', async () => {
    const { opener, opened, closed, clock } = new OpenerKit();
    assert.deepEqual(await Promise.all([opener.open(), opener.open()]), [1, 1]);
    await Promise.all([opener.close(STOPPED), opener.close(STOPPED)]);
    assert.equal(await opener.open(), 2);
    assert.deepEqual([opened, closed, clock.pending], [[1, 2], [1], 0]);
  });

  it('fails to open with the reason of the type, and tries it again at the next call', async () => {
    const kit = new OpenerKit();
    kit.open = fail;
    await assert.rejects(kit.opener.open(), { message: 'refused' });
    kit.open = () => undefined;
    assert.equal(await kit.opener.open(), 1);
  });

  it('gives up a target that is not open after 30 s, and closes what opens later', async () => {
    const kit = new OpenerKit();
    let release: (value?: unknown) => void = () => undefined;
    kit.open = () => new Promise((resolve) => (release = resolve));
    const opening = kit.opener.open();
    kit.clock.advance(29_999);
    kit.clock.advance(1);
    await assert.rejects(opening, { code: 'TOO_LATE', message: 'the target is not open after 30000 ms' });
    release();
    await setImmediate();
    assert.deepEqual([kit.opened, kit.closed, kit.clock.pending], [[1], [1], 0]);
  });

  it('ends an opening when the target is closed, and closes what opens later', async () => {
    const kit = new OpenerKit();
    let release: (value?: unknown) => void = () => undefined;
    kit.open = () => new Promise((resolve) => (release = resolve));
    const opening = kit.opener.open();
    await Promise.all([assert.rejects(opening, STOPPED), kit.opener.close(STOPPED)]);
    release();
    await setImmediate();
    assert.deepEqual([kit.opened, kit.closed, kit.clock.pending], [[1], [1], 0]);
  });

  it('reports an error of closing', async () => {
    const kit = new OpenerKit();
    kit.close = fail;
    await kit.opener.open();
    await kit.opener.close(STOPPED);
    assert.deepEqual(kit.errors, ['closing the target: refused']);
  });

  it('waits 5 s for a target to close', async () => {
    const kit = new OpenerKit();
    kit.close = never;
    await kit.opener.open();
    const closing = kit.opener.close(STOPPED);
    await setImmediate();
    await kit.advance(5_000);
    await closing;
    assert.deepEqual(kit.errors, ['closing the target: the target is not closed after 5000 ms']);
  });

  it('opens a target to check it, and checks it every minute while it cannot be reached', async () => {
    const kit = new OpenerKit();
    let checks = 0;
    kit.check = () => {
      if (++checks < 3) fail();
    };
    assert.equal(await kit.opener.check(), false);
    assert.equal(kit.opener.lastError?.message, 'refused');
    await kit.advance(60_000);
    await kit.advance(60_000);
    assert.deepEqual([checks, kit.opener.isAlive, kit.opener.lastError], [3, true, undefined]);
    await kit.advance(600_000);
    assert.deepEqual([checks, kit.opened, kit.changes], [3, [1], ['refused', undefined]]);
  });

  it('gives up a check after 5 s, and lets concurrent checks share the result', async () => {
    const kit = new OpenerKit();
    const signals: AbortSignal[] = [];
    kit.check = (signal) => {
      signals.push(signal);
      return never();
    };
    const checks = [kit.opener.check(), kit.opener.check()];
    await setImmediate();
    await kit.advance(5_000);
    assert.deepEqual(await Promise.all(checks), [false, false]);
    assert.deepEqual([signals.map(({ aborted }) => aborted), kit.changes], [[true], ['no connection within 5000 ms']]);
  });

  it('checks nothing from a stop of the broker to its start', async () => {
    const kit = new OpenerKit();
    kit.check = never;
    const checking = kit.opener.check();
    await setImmediate();
    await kit.opener.halt(STOPPED);
    assert.deepEqual([await checking, await kit.opener.check(), kit.closed], [false, false, [1]]);
    assert.deepEqual([kit.changes, kit.clock.pending], [[], 0]);
    kit.opener.begin();
    kit.check = () => undefined;
    assert.equal(await kit.opener.check(), true);
  });

  it('changes to another target, unless that is not accepted', async () => {
    const kit = new OpenerKit();
    await kit.opener.check();
    await assert.rejects(
      kit.opener.change(() => kit.make(), fail),
      { message: 'refused' }
    );
    assert.deepEqual([await kit.opener.open(), kit.closed], [1, [2]]);
    await kit.opener.change(
      () => kit.make(),
      (target) => assert.equal(target, 3)
    );
    assert.deepEqual([await kit.opener.open(), kit.closed, kit.opener.isAlive], [3, [2, 1], true]);
  });
});
