import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { startConsole } from '../support/dashboard.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** The memory of the process outside of what can be collected, in bytes. */
async function memoryInUse(): Promise<number> {
  // what a collection frees outside of the heap is counted until the next one
  for (let times = 0; times < 2; times++) {
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    gc();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describe('A viewer who never reads', () => {
  it('costs at most 8 MB while a tail runs at its limit, and is disconnected after 90 seconds', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const browser = server.browser();
    await browser.login('ann');
    const watches = { tail: { kind: 'tail' }, topics: { kind: 'topics', topics: ['#'] }, now: { kind: 'overview' } };
    const open = async () => {
      const socket = connect(server.port, '127.0.0.1').on('error', () => {});
      let text = '';
      socket.on('data', (chunk) => {
        text = (text + chunk).slice(0, 10_000);
      });
      socket.write(`GET /live HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\ncookie: ${browser.cookie}\r\n\r\n`);
      await until(() => /"id":"[^"]+"/.test(text));
      const [, id] = /"id":"([^"]+)"/.exec(text) ?? [];
      assert.equal((await browser.send('PUT', `/live/${id}`, { watches })).status, 200);
      return socket;
    };
    const payload = Buffer.alloc(4_096, 'x');
    const publish = async (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        for (let at = 0; at < 500; at++) await server.broker.publish('a/b', payload);
        for (let tenth = 0; tenth < 10; tenth++) {
          clock.advance(100);
          await nextTurn();
        }
      }
    };
    const reader = await open(); // what a viewer uses is loaded
    await publish(5);
    reader.destroy();
    await publish(1);
    const before = await memoryInUse();
    const socket = await open();
    socket.pause();
    await publish(30); // 60 MB of payloads
    const grown = (await memoryInUse()) - before;
    assert.ok(grown < 8_388_608, `${Math.round(grown / 1024)} kB`);
    const isClosed = new Promise((resolve) => socket.on('close', resolve));
    await publish(100);
    socket.resume();
    await isClosed;
  });
});
