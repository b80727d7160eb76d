// This file is not part of the test suite: leak-report.test.ts runs it with node:test and reads the report.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createTestBroker } from '../../lib/testing/index.ts';

it('fails with a client of the kit still connected', async () => {
  await using kit = await createTestBroker();
  const client = await kit.connect();
  assert.equal(client.isConnected, true);
  assert.equal(1, 2);
});

it('fails with a client of the application still connected', async () => {
  await using kit = await createTestBroker();
  await kit.broker.connect({ clientId: 'forgotten' });
  assert.equal(3, 4);
});

it('fails with leaks that are errors', async () => {
  await using kit = await createTestBroker({ leaks: 'error' });
  await kit.broker.connect({ clientId: 'forgotten' });
  assert.equal(5, 6);
});
