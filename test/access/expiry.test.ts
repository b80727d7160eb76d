import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';

/** Starts a broker whose clients' authentication expires after the seconds in their password, or in the data of a re-authentication. */
async function start(): Promise<{ kit: TestBroker; ends: string[] }> {
  const kit = await createTestBroker();
  kit.broker.hook('authenticate', ({ password, data, client }) => {
    const text = String(data ?? password ?? '');
    assert.equal(client.data, undefined);
    return text === '' ? true : { allow: true, expiresAt: kit.clock.now() + Number(text) * 1000 };
  });
  const ends: string[] = [];
  kit.broker.on('client.disconnected', ({ client, reason, reasonCode }) =>
    ends.push(`${client.clientId} ${reason} ${reasonCode}`)
  );
  return { kit, ends };
}

describe('an authentication that expires', () => {
  it('ends a connection whose authentication expires, and neither its session nor other clients', async () => {
    const { kit, ends } = await start();
    await using _ = kit;
    await kit.connect({ clientId: 'c', password: '600', clean: false, sessionExpiry: '1h', protocolVersion: 5 });
    await kit.connect({ clientId: 'other', protocolVersion: 5 });
    await kit.clock.advance('599s');
    assert.deepEqual(ends, []);
    await kit.clock.advance('2s');
    assert.deepEqual(ends, ['c expired_token 135']);
    assert.equal(kit.broker.sessions.get('c')?.client.connectedAt, undefined);
    await kit.clock.advance('59m');
    assert.equal(kit.broker.sessions.has('c'), true);
    await kit.clock.advance('2m');
    assert.equal(kit.broker.sessions.has('c'), false);
    assert.equal(kit.broker.sessions.has('other'), true);
  });

  it('expires an authentication independently of keep alive, and of the time that the session was away', async () => {
    const { kit, ends } = await start();
    await using _ = kit;
    const session = { clientId: 'c', clean: false, sessionExpiry: '1d', keepalive: 60 };
    const first = await kit.connect({ ...session, password: '100' });
    await kit.clock.advance('50s');
    await first.disconnect();
    await kit.clock.advance('1h');
    await kit.connect({ ...session, password: '200' });
    await kit.clock.advance('199s');
    assert.deepEqual(ends, ['c normal 0']);
    await kit.clock.advance('2s');
    assert.deepEqual(ends, ['c normal 0', 'c expired_token 135']);
    await kit.connect(session);
    await kit.clock.advance('2h');
    assert.equal(ends.length, 2, 'without a time it does not expire');
  });

  it('keeps the connection of a client that has taken over the session of an expiring authentication', async () => {
    const { kit, ends } = await start();
    await using _ = kit;
    const session = { clientId: 'c', clean: false, sessionExpiry: '1d' };
    await kit.connect({ ...session, password: '100' });
    await kit.connect({ ...session, password: '1000' });
    await kit.clock.advance('900s');
    assert.deepEqual(ends, ['c takeovered 142']);
    await kit.clock.advance('101s');
    assert.deepEqual(ends, ['c takeovered 142', 'c expired_token 135']);
  });

  it('moves the expiry with a re-authentication, which may also remove it', async () => {
    const { kit, ends } = await start();
    await using _ = kit;
    const client = await kit.connect({
      clientId: 'c',
      protocolVersion: 5,
      properties: { authenticationMethod: 'M', authenticationData: Buffer.from('100') }
    });
    await client.reauthenticate(Buffer.from('300'));
    await kit.clock.advance('299s');
    assert.deepEqual(ends, []);
    await client.reauthenticate(Buffer.from('50'));
    await kit.clock.advance('49s');
    await client.reauthenticate();
    await kit.clock.advance('1h');
    assert.deepEqual(ends, []);
    await assert.rejects(client.reauthenticate(Buffer.from('-1')));
    await kit.clock.settle();
    assert.deepEqual(ends, ['c reauthentication_failed 135']);
    const [cause] = (await kit.broker.monitor.why({ topic: 'a', clientId: 'c' })).causes;
    assert.deepEqual([cause.code, cause.kind], ['reauthentication_failed', 'recorded']);
    assert.match(
      cause.text,
      /^The re-authentication of client "c" was refused, and its connection was closed: .*expired/
    );
  });

  it('follows corrections of the wall clock', async () => {
    const { kit, ends } = await start();
    await using _ = kit;
    await kit.connect({ clientId: 'c', password: '100' });
    kit.clock.stepWall(-50_000);
    await kit.clock.advance('149s');
    assert.deepEqual(ends, []);
    await kit.clock.advance('2s');
    assert.deepEqual(ends, ['c expired_token 135']);
  });

  it('refuses a client whose authentication has expired already', async () => {
    const { kit } = await start();
    await using _ = kit;
    await assert.rejects(kit.connect({ clientId: 'c', password: '-1', protocolVersion: 5 }), { reasonCode: 0x87 });
    await assert.rejects(kit.connect({ clientId: 'c', password: '0', protocolVersion: 5 }), { reasonCode: 0x87 });
    assert.equal(kit.broker.sessions.has('c'), false);
  });

  it('refuses an expiry that is not a number', async () => {
    await using kit = await createTestBroker();
    kit.broker.hook('authenticate', () => ({ allow: true, expiresAt: '2026' as never }));
    const errors: string[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error.message));
    await assert.rejects(kit.broker.connect({ clientId: 'c' }));
    assert.match(errors.join(), /expiresAt of the hook authenticate: expected a number of milliseconds since 1970/);
  });
});
