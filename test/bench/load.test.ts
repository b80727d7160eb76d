import assert from 'node:assert/strict';
import type { AddressInfo, Server } from 'node:net';
import { describe, it } from 'node:test';
import { runTask } from '../../bench/load/main.ts';
import type { Outcome, Task } from '../../bench/load/task.ts';
import { createMinRelay, createRawRelay } from '../../bench/support/relay.ts';

/** Both ends run in this process, because these tests check what the generator detects, not what it measures. */
async function against(server: Server, task: Partial<Task>): Promise<Outcome> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    return await runTask({
      mode: 'pairs',
      port,
      pid: process.pid,
      publishers: 3,
      warmMs: 20,
      measureMs: 60,
      patienceMs: 200,
      ...task
    });
  } finally {
    server.close();
  }
}

const CLEAN = { lost: 0, duplicated: 0, reordered: 0, disconnected: 0, badAcks: 0, unacknowledged: 0, idsReused: 0 };

describe('the load generator', () => {
  const clean: Record<string, Partial<Task>> = {
    'pairs at QoS 0': {},
    'pairs at QoS 1': { qos: 1 },
    'pairs one message at a time': { window: 1 },
    'pairs over version 5': { v5: true, qos: 1 },
    'payloads of 1 KiB': { payloadBytes: 1024 },
    'many to one': { mode: 'fanin' },
    'one to many': { mode: 'fanout', subscribers: 20, window: 10 },
    'many wildcard filters': { mode: 'wild', filters: 100, hotTopics: 30, subscribers: 4 },
    'a fixed rate': { rate: 2000 }
  };
  for (const [what, task] of Object.entries(clean)) {
    it(`reports no errors for a correct relay: ${what}`, async () => {
      const { figures: counters, faults } = await against(createMinRelay(), task);
      assert.deepEqual(faults, CLEAN);
      assert.ok(counters.messages > 0, 'no message came');
    });
  }

  it('reports no errors for the blind relay', async () => {
    const { faults } = await against(createRawRelay(), {});
    assert.deepEqual(faults, CLEAN);
  });

  it('counts messages that a relay drops', async () => {
    const { faults } = await against(createMinRelay({ dropEach: 100 }), { rate: 5000 });
    assert.ok(faults.lost > 0, 'nothing was missed');
    assert.deepEqual({ ...faults, lost: 0 }, CLEAN);
  });

  it('counts messages that a relay duplicates', async () => {
    const { faults } = await against(createMinRelay({ doubleEach: 100 }), { rate: 5000 });
    assert.ok(faults.duplicated > 0, 'nothing came twice');
    assert.deepEqual({ ...faults, duplicated: 0 }, CLEAN);
  });

  it('counts messages that a relay reorders', async () => {
    const { faults } = await against(createMinRelay({ swapEach: 50 }), { publishers: 1, rate: 5000 });
    assert.ok(faults.reordered > 0, 'nothing was out of order');
    assert.equal(faults.duplicated, 0);
  });

  it('rejects if the broker refuses the connection', async () => {
    const { createServer } = await import('node:net');
    const refusing = createServer((socket) => socket.on('data', () => socket.end(Buffer.from([0x20, 2, 0, 5]))));
    await assert.rejects(against(refusing, {}), /was refused with 5/);
  });
});
