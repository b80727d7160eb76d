import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type BanInput, BannedClients } from '../../lib/access/banned.ts';
import { FlappingDetector } from '../../lib/access/flapping.ts';
import { memoryStore } from '../../lib/index.ts';
import type { Ban } from '../../lib/records/ban.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { FaultyStore } from '../store/faulty-store.ts';
import { mapTable } from '../support/map-table.ts';
import { standingServices } from '../support/standing-services.ts';

/** Bans with a clock that stands still. */
function bans(pause: () => Promise<void> = nextTurn) {
  const made: Ban[] = [];
  const clock = { now: 1_000_000 };
  const table = mapTable<never>() as never;
  const services = standingServices(() => clock.now, pause);
  const banned = new BannedClients(services, table, (ban) => made.push(ban));
  return { banned, made, clock };
}

function client(clientId: string, username?: string, remoteAddress?: string) {
  return { clientId, username, transportInfo: { remoteAddress } };
}

describe('bans', () => {
  it('keeps out banned clients by client id, user name and address', async () => {
    const { banned, made } = bans();
    assert.equal(banned.find(client('c', 'u', '10.0.0.1')), undefined);
    await banned.create({ kind: 'clientId', who: 'c/1' });
    await banned.create({ kind: 'username', who: 'u' });
    await banned.create({ kind: 'address', who: '10.0.0.1' });
    await banned.create({ kind: 'address', who: '2001:db8::/32' });
    assert.equal(banned.find(client('c/1'))?.who, 'c/1');
    assert.equal(banned.find(client('x', 'u'))?.kind, 'username');
    assert.equal(banned.find(client('x', 'y', '10.0.0.1'))?.who, '10.0.0.1');
    assert.equal(banned.find(client('x', undefined, '2001:db8:1::5'))?.who, '2001:db8::/32');
    for (const other of [client('x'), client('u', 'c/1'), client('x', 'y', '10.0.0.2'), client('x', 'y', '2001:db9::')])
      assert.equal(banned.find(other), undefined);
    assert.equal(made.length, 4);
  });

  it('lists bans in parts, in the order in which they were added', async () => {
    const { banned } = bans();
    for (const who of ['b', 'c', 'a', 'd']) await banned.create({ kind: 'clientId', who });
    await banned.create({ kind: 'clientId', who: 'c', reason: 'again' });
    const names = async (skip: number, limit: number) => (await banned.list({ skip, limit })).map(({ who }) => who);
    assert.deepEqual([await names(0, 3), await names(3, 3), await names(4, 3)], [['b', 'c', 'a'], ['d'], []]);
  });

  it('lists bans in the same order after a restart', async () => {
    const store = memoryStore();
    for (const life of [1, 2]) {
      await using kit = await createTestBroker({ store });
      const { banned } = kit.broker.access;
      if (life === 1)
        for (const who of ['z', 'm', 'a']) await banned.create({ kind: 'clientId', who, until: Infinity });
      const pages: string[] = [];
      for (let skip = 0; skip < 3; skip++)
        pages.push((await banned.list({ skip, limit: 1 })).map(({ who }) => who).join());
      assert.deepEqual(pages, ['z', 'm', 'a'], `life ${life}`);
    }
  });

  it('enforces the ban of a network again after a deletion whose commit has failed', async () => {
    const store = new FaultyStore();
    await using kit = await createTestBroker({ store });
    const { banned } = kit.broker.access;
    const isKeptOut = () => banned.find(client('c', undefined, '10.1.1.1')) !== undefined;
    await banned.create({ kind: 'address', who: '10.0.0.0/8', until: Infinity });
    await banned.create({ kind: 'address', who: '192.168.0.0/16', until: Infinity });
    assert.equal(isKeptOut(), true);
    store.fault = 'refuses';
    const deletion = banned.delete('address', '10.0.0.0/8');
    assert.equal(isKeptOut(), false);
    await assert.rejects(deletion, { code: 'STORE_FAILED' });
    assert.equal(isKeptOut(), true);
    store.fault = undefined;
    await kit.clock.advance('20s');
    assert.equal(isKeptOut(), true);
  });

  it('ends a ban after five minutes, at a given time, or never', async () => {
    const { banned, clock } = bans();
    await banned.create({ kind: 'clientId', who: 'a' });
    await banned.create({ kind: 'clientId', who: 'b', until: clock.now + 10 });
    await banned.create({ kind: 'clientId', who: 'c', until: Infinity, by: 'me', reason: 'why', at: 5 });
    assert.deepEqual(banned.get('clientId', 'c'), {
      kind: 'clientId',
      who: 'c',
      by: 'me',
      reason: 'why',
      at: 5,
      until: Infinity
    });
    await banned.create({ kind: 'clientId', who: 'd', description: 'more' });
    assert.equal(banned.get('clientId', 'd')?.description, 'more');
    await banned.delete('clientId', 'd');
    clock.now += 10;
    assert.equal(banned.get('clientId', 'b'), undefined);
    assert.equal(banned.get('clientId', 'a')?.by, 'user');
    clock.now += 300_000;
    assert.deepEqual(
      ['a', 'b', 'c'].map((id) => banned.find(client(id)) !== undefined),
      [false, false, true]
    );
    assert.equal(banned.size, 3);
    await banned.sweep(() => false);
    assert.deepEqual(
      [...banned].map(({ who }) => who),
      ['c']
    );
  });

  it('deletes ended bans a few at a time, and stops when the broker stops', async () => {
    const left: number[] = [];
    const { banned, clock } = bans(async () => {
      left.push(banned.size);
    });
    for (let number = 0; number < 1_800; number++) await banned.create({ kind: 'clientId', who: `c${number}` });
    await banned.create({ kind: 'clientId', who: 'other', until: Infinity });
    clock.now += 300_000;
    await banned.sweep(() => left.length === 2);
    assert.deepEqual([left, banned.size], [[1_301, 801], 801]);
    await banned.sweep(() => false);
    assert.deepEqual([left, [...banned].map(({ who }) => who)], [[1_301, 801, 301], ['other']]);
  });

  it('replaces and lifts bans', async () => {
    const { banned } = bans();
    await banned.create({ kind: 'address', who: '10.0.0.0/8', reason: 'one' });
    await banned.create({ kind: 'address', who: '10.0.0.0/8', reason: 'two' });
    assert.equal(banned.find(client('c', undefined, '10.9.9.9'))?.reason, 'two');
    await banned.create({ kind: 'address', who: '10.9.0.0/16' });
    assert.equal(await banned.delete('address', '10.0.0.0/8'), true);
    assert.equal(await banned.delete('address', '10.0.0.0/8'), false);
    assert.equal(banned.find(client('c', undefined, '10.9.9.9'))?.who, '10.9.0.0/16');
    await banned.delete('address', '10.9.0.0/16');
    assert.equal(banned.find(client('c', undefined, '10.9.9.9')), undefined);
  });

  it('checks bans that are added', async () => {
    const { banned } = bans();
    const wrong: readonly (readonly [unknown, string])[] = [
      [{ kind: 'ip', who: 'a' }, 'kind'],
      [{ kind: 'clientId', who: '' }, 'who'],
      [{ kind: 'clientId', who: 'a\0' }, 'who'],
      [{ kind: 'username', who: 'x'.repeat(70_000) }, 'who'],
      [{ kind: 'address', who: 'localhost' }, 'who'],
      [{ kind: 'clientId', who: 'a', reason: 5 }, 'reason'],
      [{ kind: 'clientId', who: 'a', until: Number.NaN }, 'until'],
      [{ kind: 'clientId', who: 'a', at: 'now' }, 'at']
    ];
    for (const [input, field] of wrong)
      await assert.rejects(banned.create(input as BanInput), { code: 'BAN_INVALID', field }, JSON.stringify(input));
    await assert.rejects(banned.create({ kind: 'clientId', who: 'a', untill: 5 } as never), { code: 'OPTION_UNKNOWN' });
  });
});

describe('flapping', () => {
  it('detects flapping when a client id loses its connection too often within the window', () => {
    const detector = new FlappingDetector({ count: 3, windowMs: 100, banMs: 1 });
    assert.deepEqual(
      [0, 50, 99].map((at) => detector.lost('a', at)),
      [false, false, true]
    );
    assert.deepEqual(
      [100, 150, 200, 250, 299].map((at) => detector.lost('a', at)),
      [false, false, false, false, true]
    );
  });

  it('counts flapping for each client id, and discards clients that stay away', () => {
    const detector = new FlappingDetector({ count: 2, windowMs: 100, banMs: 1 });
    assert.equal(detector.lost('a', 0), false);
    assert.equal(detector.lost('b', 1), false);
    assert.equal(detector.size, 2);
    assert.equal(detector.lost('c', 200), false);
    assert.equal(detector.size, 1);
    for (let n = 0; n < 100_010; n++) detector.lost(`d${n}`, 201);
    assert.equal(detector.size, 100_000);
  });
});
