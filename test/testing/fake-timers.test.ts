import assert from 'node:assert/strict';
import { afterEach, describe, it, mock } from 'node:test';
import { type FakeMethod, install } from '@sinonjs/fake-timers';
import { createTestBroker, type RunnerTimers, setupBroker, VirtualClock } from 'embermq/testing';
import mqtt from 'mqtt';
import { TimerFollower } from '../../lib/testing/fake-timers.ts';

const START = Date.UTC(2026, 0, 1);
const { setTimeout: realSetTimeout, setImmediate: realSetImmediate, Date: RealDate } = globalThis;
const REAL_TIMERS = {
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval
};

/** Fake timers with the library and the calls of Vitest and Jest; runners.test.ts runs the runners themselves. */
function runnerTimers(): RunnerTimers & { readonly calls: object[] } {
  let clock: ReturnType<typeof install> | undefined;
  const calls: object[] = [];
  return {
    calls,
    useFakeTimers(config: object = {}) {
      calls.push(config);
      clock?.uninstall();
      const { now = RealDate.now(), toFake } = config as { now?: number; toFake?: FakeMethod[] };
      clock = install({ now, ...(toFake === undefined ? {} : { toFake }) });
    },
    useRealTimers() {
      clock?.uninstall();
      clock = undefined;
    },
    setSystemTime: (now: number) => clock?.setSystemTime(now),
    advanceTimersToNextTimer() {
      clock?.next();
      clock?.tick(0);
    },
    getTimerCount: () => clock?.countTimers() ?? 0,
    isFakeTimers: () => clock !== undefined
  } as RunnerTimers & { readonly calls: object[] };
}

const RUNNERS = [
  { name: 'the timers of Vitest and Jest', timers: runnerTimers(), exactMs: 0 },
  { name: 'mock.timers of node:test', timers: mock.timers, exactMs: 10 }
];

for (const { name, timers, exactMs } of RUNNERS)
  describe(`a kit with ${name}`, () => {
    afterEach(() => {
      assert.equal(globalThis.setTimeout, realSetTimeout, 'the kit restores the timers');
      for (const [name, real] of Object.entries(REAL_TIMERS))
        assert.equal(globalThis[name as keyof typeof REAL_TIMERS], real, name);
    });

    it('fires timers of both clocks in the order of their due times, with the date of the clock', async () => {
      await using kit = await createTestBroker({ timers });
      const log: string[] = [];
      const note = (name: string) => log.push(`${name} ${Date.now() - START} ${kit.clock.now() - START}`);
      assert.equal(Date.now(), kit.clock.now());
      setTimeout(() => note('fake'), 20);
      kit.clock.setTimeout(() => note('kit'), 30);
      setTimeout(() => note('fake'), 40);
      const every = setInterval(() => note('every'), 60);
      kit.clock.setTimeout(() => note('kit'), 70);
      await kit.clock.advance(125);
      clearInterval(every);
      assert.deepEqual(log, ['fake 20 20', 'kit 30 30', 'fake 40 40', 'every 60 60', 'kit 70 70', 'every 120 120']);
      assert.equal(Date.now() - START, 125);
      assert.equal(new Date().toISOString(), '2026-01-01T00:00:00.125Z');
    });

    it('fires timers that fake timers arm, directly and after a promise, within the same advance', async () => {
      await using kit = await createTestBroker({ timers });
      const times: number[] = [];
      const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
      setTimeout(() => setTimeout(() => times.push(Date.now() - START), 10), 10);
      const loop = (async () => {
        for (let i = 0; i < 3; i++) {
          await sleep(1_007);
          await kit.broker.publish('beat', String(i), { qos: 1 });
          times.push(Date.now() - START);
        }
      })();
      await kit.clock.advance('4s');
      await loop;
      assert.equal(times.length, 4);
      for (const [at, due] of [20, 1_007, 2_014, 3_021].entries())
        assert.ok(times[at] >= due && times[at] <= due + exactMs * (at || 1), `${times[at]} instead of ${due}`);
    });

    it('fires an interval no more that was cleared by its own function', async () => {
      await using kit = await createTestBroker({ timers });
      const counts = [0, 0, 0];
      const first = setInterval(() => {
        counts[0]++;
        clearInterval(first);
      }, 10);
      const second = setInterval(() => {
        if (++counts[1] === 2) clearTimeout(second);
      }, 10);
      const third = setInterval((by: number) => (counts[2] += by), 10, 2);
      await kit.clock.advance(100);
      clearInterval(third);
      await kit.clock.advance(100);
      assert.deepEqual(counts, [1, 2, 20]);
    });

    it('stops expectMessage at the message that a fake timer publishes', async () => {
      await using kit = await createTestBroker({ timers });
      setTimeout(() => void kit.broker.publish('door', 'open'), 500);
      const { at } = await kit.expectMessage('door', { within: '1h' });
      assert.equal(at - START, 500);
      assert.equal(Date.now() - START, 500);
      setTimeout(() => void kit.broker.publish('door', 'closed'), 2_000);
      await kit.expectNoMessage('door', { within: '1990ms' });
      assert.equal(Date.now() - START, 2_490);
    });

    it('settles what a fake timer causes that is due at the end of the time, and fires what that arms', async () => {
      await using kit = await createTestBroker({ timers });
      const client = await kit.connect();
      setTimeout(() => void client.publish('door', 'open'), 500);
      const { at } = await kit.expectMessage('door', { within: 500 });
      assert.equal(at - START, 500);
      let isDone = false;
      setTimeout(async () => {
        await client.publish('door', 'closed', { qos: 1 });
        setTimeout(async () => {
          await client.publish('door', 'locked', { qos: 1 });
          isDone = true;
        }, 0);
      }, 500);
      await kit.clock.advance(500);
      assert.equal(isDone, true);
      assert.equal(kit.clock.now() - START, 1_000);
    });

    it('rejects advance with the error of a fake timer, at its time', async () => {
      await using kit = await createTestBroker({ timers });
      const failing = setTimeout(() => {
        throw new Error('failed');
      }, 50);
      await assert.rejects(kit.clock.advance('1s'), /failed/);
      clearTimeout(failing);
      assert.equal(kit.clock.monotonic(), 50);
      await kit.clock.advance('1s');
      assert.equal(Date.now() - START, 1_050);
    });

    it('keeps a client of MQTT.js alive, and lets it reconnect with its offline queue', async () => {
      await using kit = await createTestBroker({ timers });
      const client = new mqtt.MqttClient(() => kit.stream(), { clientId: 'js', keepalive: 60, reconnectPeriod: 5_000 });
      await new Promise<void>((resolve) => client.once('connect', () => resolve()));
      await kit.clock.advance('5m');
      assert.equal(client.connected, true);
      assert.ok(kit.packets('js').filter(({ cmd }) => cmd === 'pingreq').length >= 4);
      kit.isReachable = false;
      kit.link('js').cut();
      client.on('error', () => {});
      await kit.clock.advance('1m');
      assert.equal(client.connected, false);
      const sent = client.publishAsync('queued', 'offline', { qos: 1 });
      kit.isReachable = true;
      assert.equal((await kit.expectMessage('queued', { within: '6s' })).text, 'offline');
      await sent;
      await kit.clock.advance('5m');
      assert.equal(kit.packets('js').filter(({ cmd }) => cmd === 'connect').length, 2);
      const ended = client.endAsync();
      await kit.clock.advance(20); // `end` waits 10 ms with a timer
      await ended;
    });

    it('moves the date with stepWall, without firing timers', async () => {
      await using kit = await createTestBroker({ timers });
      kit.clock.stepWall(-3_600_000);
      assert.equal(Date.now(), START - 3_600_000);
      await kit.clock.advance('1s');
      assert.equal(Date.now(), START - 3_599_000);
    });

    it('refuses a second kit while one moves the timers', async () => {
      await using _kit = await createTestBroker({ timers });
      await assert.rejects(createTestBroker({ timers }), { code: 'KIT_IN_USE' });
      assert.notEqual(globalThis.setTimeout, realSetTimeout, 'the first kit keeps them');
    });

    it('restores the timers if the broker cannot be created or started', async () => {
      await assert.rejects(createTestBroker({ timers, maxQoS: 1 } as object), { code: 'OPTION_UNKNOWN' });
      const store = { open: () => Promise.reject(new Error('locked')) };
      await assert.rejects(createTestBroker({ timers, store: store as never }));
    });
  });

describe('clock.runNext with fake timers', () => {
  it('returns when a timer of either clock has fired, also after days without one', async () => {
    const follower = new TimerFollower(runnerTimers());
    const clock = new VirtualClock();
    clock.lead(follower, follower.start(undefined, clock.now()));
    try {
      const log: string[] = [];
      const note = (name: string) => () => log.push(`${name} ${clock.monotonic()}`);
      const days = 3 * 86_400_000;
      setTimeout(note('fake'), 20);
      clock.setTimeout(note('kit'), 30);
      setTimeout(note('fake'), days);
      clock.setTimeout(note('kit'), 2 * days);
      for (const expected of ['fake 20', 'kit 30', `fake ${days}`, `kit ${2 * days}`]) {
        assert.equal(await clock.runNext(), true);
        assert.equal(log.splice(0).join(), expected);
      }
      assert.equal(await clock.runNext({ within: 2 * days }), false);
      assert.equal(await clock.runNext(), false);
    } finally {
      follower.stop();
    }
  });

  it('refuses mock.timers, which do not tell when their next timer is due', async () => {
    await using kit = await createTestBroker({ timers: mock.timers });
    const before = kit.clock.monotonic();
    await assert.rejects(kit.clock.runNext({ within: 25 }), {
      code: 'FAKE_TIMERS_UNSUITABLE',
      message: 'clock.runNext: mock.timers of node:test do not tell when the next timer is due; use clock.advance'
    });
    assert.equal(kit.clock.monotonic(), before);
  });
});

describe('a kit with fake timers that the test has installed', () => {
  const timers = runnerTimers();
  const FAKED = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'];
  afterEach(() => {
    timers.useRealTimers();
    mock.timers.reset();
  });

  it('begins at their date, and leaves them installed', async () => {
    const now = Date.UTC(2030, 5, 1);
    timers.useFakeTimers({ now, toFake: FAKED });
    let fired = 0;
    setTimeout(() => fired++, 1_000);
    const kit = await createTestBroker({ timers });
    assert.equal(kit.clock.now(), now);
    await kit.clock.advance('1s');
    assert.equal(fired, 1);
    await kit[Symbol.asyncDispose]();
    assert.notEqual(globalThis.setTimeout, realSetTimeout);
  });

  it('begins at the date of the option clock, if there is one', async () => {
    timers.useFakeTimers({ now: 0, toFake: FAKED });
    await using _kit = await createTestBroker({ timers, clock: { now: '2027-01-01T00:00:00Z' } });
    assert.equal(Date.now(), Date.UTC(2027, 0, 1));
  });

  it('moves timers that are installed after it', async () => {
    await using kit = await createTestBroker({ timers });
    timers.useFakeTimers({ toFake: FAKED });
    let fired = 0;
    setTimeout(() => fired++, 1_000);
    await kit.clock.advance('1s');
    assert.deepEqual([fired, Date.now()], [1, START + 1_000]);
  });

  it('names the functions that must not be faked, and the call that leaves them out', async () => {
    // Not `nextTick`: node:test itself needs it.
    timers.useFakeTimers({ toFake: [...FAKED, 'setImmediate', 'queueMicrotask'] });
    await assert.rejects(createTestBroker({ timers }), (error: Error & { code: string }) => {
      assert.equal(error.code, 'FAKE_TIMERS_UNSUITABLE');
      assert.match(error.message, /: setImmediate, queueMicrotask must not be faked/);
      assert.match(error.message, /vi\.useFakeTimers\(\{ toFake: \['setTimeout', .*'Date'\] \}\)/);
      return true;
    });
    timers.useRealTimers();
    mock.timers.enable();
    const remedy = /setImmediate must not be faked.* mock\.timers\.enable\(\{ apis: \['setTimeout'/;
    await assert.rejects(createTestBroker({ timers: mock.timers }), remedy);
    assert.notEqual(globalThis.setImmediate, realSetImmediate);
  });

  it('says that the date is not faked, or that nothing is, and does not advance', async () => {
    timers.useFakeTimers({ toFake: FAKED.slice(0, 4) });
    await assert.rejects(createTestBroker({ timers, clock: { now: 0 } }), /Date is not faked/);
    timers.useRealTimers();
    await using kit = await createTestBroker({ timers });
    timers.useRealTimers();
    await assert.rejects(kit.clock.advance('1s'), /no timers are faked/);
    assert.equal(kit.clock.monotonic(), 0);
  });

  it('refuses a value of timers that is not a runner', async () => {
    for (const value of [mock, {}, null, 'vi'])
      await assert.rejects(createTestBroker({ timers: value as never }), { code: 'OPTION_INVALID' });
  });
});

describe('setupBroker with fake timers', () => {
  const hooks: (() => Promise<void>)[] = [];
  it('fakes the timers of each test, and restores them after it', async () => {
    const timers = runnerTimers();
    const test = setupBroker({ beforeEach: (run) => hooks.push(run), afterEach: (run) => hooks.push(run) }, { timers });
    const [before, after] = hooks;
    for (let i = 0; i < 2; i++) {
      await before();
      assert.equal(Date.now(), test.clock.now());
      await after();
      assert.equal(globalThis.setTimeout, realSetTimeout);
    }
    assert.equal(timers.calls.length, 2);
  });
});
