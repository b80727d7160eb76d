import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TimingWheel } from '../../lib/base/timing-wheel.ts';
import { Peer, turns } from '../fuzz/wire.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { client, connect, isServed, publish, startTestBed, subscribe } from './support.ts';

describe('A suspended process', () => {
  it('[MQTT-3.1.2-22] keeps a client whose PINGREQ waits in its socket, and closes one that is silent', async () => {
    await using it = await startTestBed();
    const { broker, clock, reasons } = it;
    const alive = await client(broker, { clientId: 'alive', keepalive: 10 });
    const silent = await client(broker, { clientId: 'silent', keepalive: 10 });
    clock.stall(30_000); // nothing runs
    clock.advance(0); // the timers, which are due before the sockets are read
    alive.say({ cmd: 'pingreq' });
    await turns(3);
    assert.ok(!alive.isClosed);
    assert.ok(alive.take().some(({ cmd }) => cmd === 'pingresp'));
    assert.ok(silent.isClosed);
    assert.equal(reasons.get('silent'), 'keepalive_timeout');
    await it.pass(15_000);
    assert.equal(reasons.get('alive'), 'keepalive_timeout', 'afterwards the keep alive timeout applies again');
  });

  it('accepts a CONNECT that waits in its socket, and gives a slow reader that reads again its full time', async () => {
    await using it = await startTestBed({
      connectTimeout: '5s',
      idleTimeout: '3s',
      slowConsumerTimeout: '10s',
      outputHighWaterMark: 1_000
    });
    const { broker, clock, reasons } = it;
    const newcomer = new Peer(broker, 5);
    const slow = await client(broker, { clientId: 'slow' });
    slow.say(subscribe(1, 0, 'a'));
    await turns(2);
    slow.wire.listen(false);
    const publisher = await client(broker);
    for (let at = 0; at < 20; at++) publisher.say(publish('a', Buffer.alloc(1_000)));
    await turns(3);
    clock.stall(30_000);
    clock.advance(0);
    newcomer.say(connect({ clientId: 'newcomer', keepalive: 0 }));
    slow.wire.listen(true);
    await turns(3);
    assert.deepEqual(
      newcomer.take().map(({ cmd }) => cmd),
      ['connack']
    );
    assert.equal(reasons.get('slow'), undefined);
    assert.ok(await isServed(slow));
  });
});

describe('A TimingWheel that can catch up', () => {
  it('defers a late turn once, and calls the timers that are still due', () => {
    const clock = new ManualClock();
    const rung: string[] = [];
    const waiting: (() => void)[] = [];
    const wheel = new TimingWheel(
      clock,
      10,
      (error) => assert.fail(String(error)),
      (run) => waiting.push(run)
    );
    const alarm = (name: string) => ({
      dueMs: Infinity,
      slot: undefined,
      previous: undefined,
      next: undefined,
      ring: () => rung.push(name)
    });
    const [moved, due] = [alarm('moved'), alarm('due')];
    wheel.arm(moved, 1_000);
    wheel.arm(due, 1_000);
    clock.stall(60_000);
    clock.advance(0);
    assert.deepEqual([rung, waiting.length], [[], 1]);
    wheel.arm(moved, 500); // the timer has been armed again
    clock.advance(0);
    assert.equal(waiting.length, 1);
    waiting[0]();
    assert.deepEqual(rung, ['due']);
    clock.advance(500);
    assert.deepEqual([rung, waiting.length], [['due', 'moved'], 1]);
  });
});
