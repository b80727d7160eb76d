import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { ROWS } from '../../bench/rows.ts';
import { isMeasured, otherBrokers } from '../../bench/support/brokers.ts';

const peers = mkdtempSync(join(tmpdir(), 'embermq-peers-'));
after(() => rmSync(peers, { recursive: true }));

function described(...entries: readonly object[]) {
  writeFileSync(join(peers, 'brokers.json'), JSON.stringify(entries));
  return otherBrokers(peers);
}

describe('Other brokers of the benchmark', () => {
  it('starts a broker with its command in brokers.json, with the port and folders in it', () => {
    const [broker] = described({
      name: 'other',
      version: [process.execPath, '-p', '"other 3.4.5-beta (x)"'],
      command: ['{peers}/other', '--listen=127.0.0.1:{port}', '{folder}', '{unknown}']
    });
    assert.equal(broker.version, '3.4.5-beta');
    const command = broker.command(1883, '/new');
    assert.deepEqual(command, [`${peers}/other`, '--listen=127.0.0.1:1883', '/new', '{unknown}']);
  });

  it('measures other brokers where it measures mosquitto, without bridges, and over MQTT 5.0 if they have it', () => {
    const [five, four] = described(
      { name: 'five', version: '1', command: ['five'] },
      { name: 'four', version: '1', command: ['four'], v5: false }
    );
    const names = (kind: typeof five) => ROWS.filter((row) => isMeasured(kind, row)).map(({ name }) => name);
    const expected = ROWS.filter((row) => row.brokers.includes('mosquitto') && !row.isBridged);
    assert.deepEqual(
      names(five),
      expected.map(({ name }) => name)
    );
    assert.deepEqual(
      names(four),
      expected.filter(({ task }) => task.v5 !== true).map(({ name }) => name)
    );
    assert.ok(names(four).length > 10 && names(five).length > names(four).length);
  });

  it('finds no other brokers without the file, and refuses an entry that lacks something', () => {
    assert.deepEqual(otherBrokers(join(peers, 'none')), []);
    assert.throws(() => described({ name: 'other', command: ['x'] }), {
      message: `${join(peers, 'brokers.json')}: expected name, version and command in each entry`
    });
  });
});
