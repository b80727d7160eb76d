import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decoded } from '../../adapters/cli/ctl/trace-lines.ts';

async function decode(record: Record<string, unknown>): Promise<object> {
  for await (const line of decoded([{ number: 1, record }])) return line.record;
  return assert.fail('no line');
}

describe('ctl traces lines', () => {
  const head = { clientId: 'c', direction: 'in', bytes: 7, error: 'topic name: must not contain "#"' };

  it('prints the fields of a packet that the broker has refused, with the reason', async () => {
    const line = await decode({ ...head, packet: 'publish', protocolVersion: 4, hex: '3005000361232f' });
    const { topic, payloadBytes, ...rest } = line as Record<string, unknown>;
    assert.deepEqual([topic, payloadBytes], ['a#/', 0]);
    assert.deepEqual(rest, { ...head, packet: 'publish', qos: 0, retain: false, dup: false, payload: '' });
  });

  it('prints bytes in hexadecimal if they cannot be read or are cut off', async () => {
    for (const hex of ['300500', '400100', '']) {
      const record = { ...head, packet: 'publish', protocolVersion: 5, hex };
      assert.deepEqual(await decode(record), record);
    }
  });

  it('leaves other lines as the broker has written them', async () => {
    for (const record of [{ event: 'client.connected' }, { packet: 'publish', topic: 't', payloadHex: 'ff' }])
      assert.deepEqual(await decode(record), record);
  });
});
