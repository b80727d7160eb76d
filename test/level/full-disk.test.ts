import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import { type Broker, checkStore, createBroker } from '../../lib/index.ts';

const PERSISTENT = { clientId: 'reader', clean: false, sessionExpiry: '1h' } as const;

/** Payloads that wait for the reader; all of them are taken. */
async function waiting(broker: Broker, count: number): Promise<string[]> {
  const reader = await broker.connect(PERSISTENT);
  const got: string[] = [];
  for await (const { payload } of reader.messages()) {
    got.push(payload.toString('latin1', 0, 8).trim());
    if (got.length === count) break;
  }
  await reader.ping(); // what was acknowledged is taken
  await reader.disconnect();
  return got;
}

describe('a broker on a disk that fills up', () => {
  it('refuses what does not fit, goes on by itself when there is room, and has all that it accepted', async (t) => {
    const disk = mkdtempSync(join(tmpdir(), 'embermq-full-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', disk], { stdio: 'pipe' });
    } catch (error) {
      rmSync(disk, { recursive: true });
      t.skip(`no small disk can be mounted here: ${(error as Error).message.trim()}`);
      return;
    }
    const ballast = join(disk, 'ballast');
    const store = levelStore(join(disk, 'data'));
    const broker = createBroker({ store });
    const told: string[] = [];
    const alive = setInterval(() => {}, 1_000); // the broker's own timers keep no process alive
    broker.on('error', ({ error }) => told.push((error as Error & { code: string }).code));
    broker.on('store.failed', () => told.push('failed'));
    try {
      await broker.start();
      const reader = await broker.connect(PERSISTENT);
      await reader.subscribe({ topic: 'a', qos: 1 });
      await reader.disconnect();
      writeFileSync(ballast, Buffer.alloc(2_000_000));
      const accepted: string[] = [];
      const send = async (name: string) => {
        await broker.publish({ topic: 'a', payload: name.padEnd(60_000), qos: 1 });
        accepted.push(name);
      };
      await assert.rejects(
        async () => {
          for (let n = 0; n < 100; n++) await send(`n${n}`);
        },
        { code: 'STORE_FAILED', message: /No space left on device/ }
      );
      assert.ok(accepted.length > 3, `${accepted.length} were accepted`);
      await assert.rejects(send('refused'), { code: 'STORE_FAILED' });
      assert.deepEqual(told, ['STORE_FAILED', 'failed']);
      let live = 0;
      broker.subscribe('live', () => live++);
      await broker.publish({ topic: 'live', qos: 1 });
      assert.equal(live, 1, 'what nobody keeps goes on');
      const recovered = new Promise<void>((resolve) => broker.once('store.recovered', () => resolve()));
      rmSync(ballast);
      await recovered;
      await send('after');
      assert.deepEqual(await waiting(broker, accepted.length), accepted);
      await broker.stop();
      assert.deepEqual((await checkStore(store)).findings, []);
    } finally {
      await broker.stop().catch(() => undefined);
      clearInterval(alive);
      execFileSync('umount', ['-l', disk]);
      rmSync(disk, { recursive: true });
    }
  });
});
