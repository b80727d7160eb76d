// The test of the tutorial "Test a device" that lets a recorded pump do the same again. `record.sh` makes the recording.

// #region replay
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createTestBroker } from 'embermq/testing';

it('runs the motor of the recorded pump for one second', async () => {
  await using kit = await createTestBroker();
  const { deliveries } = await kit.replay('traffic.jsonl');
  const sent = deliveries.filter(({ clientId }) => clientId === 'app');
  assert.deepEqual(
    sent.map(({ topic, text }) => `${topic} ${text}`),
    ['pump/state ready', 'pump/run 1', 'pump/motor on', 'pump/motor off', 'pump/state lost']
  );
  const [, , on, off] = sent;
  assert.equal(Math.round((off.atMs - on.atMs) / 1_000), 1);
});

it('gives the same log each time', async () => {
  const logs = [];
  for (let n = 0; n < 2; n++) {
    await using kit = await createTestBroker();
    logs.push(String(await kit.replay('traffic.jsonl')));
  }
  assert.equal(logs[0], logs[1]);
});
// #endregion
