import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { LoginLimit, loginSourceOf } from '../../lib/adapter.ts';
import { type BrokerOptions, users as scramUsers } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { connectPacket, rawClient } from '../support/raw-client.ts';
import { clientFinal } from '../support/scram-client.ts';

const LIMITED = 0x9f;
const WRONG = 0x86;
const HERE = '192.0.2.1';

interface Login {
  readonly username?: string;
  readonly password?: string;
  readonly clientId?: string;
  readonly from?: string;
}

/** A broker with the user names ann and bob, whose passwords are "right". */
async function brokerWithUsers(options: Omit<BrokerOptions, 'clock'> = {}) {
  const kit = await createTestBroker({ leakCheck: false, allowAnonymous: false, ...options });
  for (const name of ['ann', 'bob']) await kit.broker.access.usernames.create(name, 'right');
  let clients = 0;
  /** @returns the reason code of the CONNACK */
  const login = async ({ username, password, clientId = `c${clients++}`, from = HERE }: Login): Promise<number> => {
    const meta = { remoteAddress: from };
    const secret = password === undefined ? undefined : Buffer.from(password);
    const client = await rawClient(kit.broker, { connect: false, meta });
    client.send({
      cmd: 'connect',
      protocolVersion: 5,
      bridge: false,
      clean: true,
      keepalive: 0,
      clientId,
      username,
      password: secret
    });
    const { reasonCode } = await client.next('connack');
    client.stream.destroy();
    return reasonCode;
  };
  /** @returns the reason code of the CONNACK */
  const loginByScram = async (name: string, password: string, { username }: Login): Promise<number> => {
    const method = 'SCRAM-SHA-256';
    const bare = `n=${name},r=nonce`;
    const client = await rawClient(kit.broker, { connect: false, meta: { remoteAddress: HERE } });
    const authenticationData = Buffer.from(`n,,${bare}`);
    const properties = { authenticationMethod: method, authenticationData };
    client.send({ ...connectPacket({ clientId: `c${clients++}`, username }), protocolVersion: 5, properties });
    let answer = await client.next();
    if (answer.cmd === 'auth') {
      const challenge = String(answer.properties?.authenticationData);
      const final = Buffer.from(clientFinal(password, bare, challenge, method));
      client.send({ cmd: 'auth', reasonCode: 0x18, properties: { ...properties, authenticationData: final } });
      answer = await client.next();
    }
    client.stream.destroy();
    return (answer as { reasonCode: number }).reasonCode;
  };
  const fail = async (times: number, given: Login) => {
    for (let n = 0; n < times; n++) assert.equal(await login({ password: 'wrong', ...given }), WRONG);
  };
  return { kit, login, loginByScram, fail, [Symbol.asyncDispose]: () => kit.broker.stop() };
}

describe('Failed logins of MQTT clients', () => {
  for (const name of ['ann', 'an unknown user'])
    it(`limits failed logins for each user name at an address for a minute: ${name}`, async () => {
      await using users = await brokerWithUsers();
      const { kit, login, fail } = users;
      await fail(10, { username: name });
      assert.equal(await login({ username: name, password: 'right' }), LIMITED);
      assert.equal(await login({ username: 'bob', password: 'right' }), 0, 'another name');
      const elsewhere = await login({ username: name, password: 'right', from: '192.0.2.2' });
      assert.equal(elsewhere, name === 'ann' ? 0 : WRONG, 'another address');
      await kit.clock.advance('1m');
      assert.equal(await login({ username: name, password: 'right' }), name === 'ann' ? 0 : WRONG);
    });

  it('limits failed logins for each client id, regardless of their user names', async () => {
    await using users = await brokerWithUsers();
    const { kit, login } = users;
    await kit.broker.access.clientIds.create('meter', 'right');
    for (let n = 0; n < 10; n++)
      assert.equal(await login({ clientId: 'meter', username: `u${n}`, password: 'wrong' }), WRONG);
    assert.equal(await login({ clientId: 'meter', password: 'right' }), LIMITED);
  });

  it('limits failed logins for all names of an address together', async () => {
    await using users = await brokerWithUsers();
    const { login, fail } = users;
    for (let n = 0; n < 100; n++) await fail(1, { username: `user ${n}` });
    assert.equal(await login({ username: 'ann', password: 'right' }), LIMITED);
    assert.equal(await login({ username: 'ann', password: 'right', from: '192.0.2.2' }), 0);
  });

  it('accepts a password that was right before, until it is changed', async () => {
    await using users = await brokerWithUsers();
    const { kit, login, fail } = users;
    assert.equal(await login({ username: 'ann', password: 'right' }), 0);
    await fail(10, { username: 'ann' });
    assert.equal(await login({ username: 'ann', password: 'another' }), LIMITED);
    assert.equal(await login({ username: 'ann', password: 'right' }), 0);
    await kit.broker.access.usernames.update('ann', 'new');
    assert.equal(await login({ username: 'ann', password: 'right' }), WRONG);
    assert.equal(await login({ username: 'ann', password: 'right' }), LIMITED, 'it is no longer remembered');
  });

  it('limits the guesses of a password that is in use at another address', async () => {
    await using users = await brokerWithUsers();
    const { login, fail } = users;
    assert.equal(await login({ username: 'ann', password: 'right' }), 0);
    await fail(10, { username: 'ann', from: '192.0.2.2' });
    assert.equal(await login({ username: 'ann', password: 'right', from: '192.0.2.2' }), LIMITED);
    assert.equal(await login({ username: 'ann', password: 'right' }), 0);
  });

  for (const given of [{}, { username: 'another' }])
    it(`limits failed logins for the user name of SCRAM, regardless of the client id, if the CONNECT has ${given.username ?? 'no'} user name`, async () => {
      await using users = await brokerWithUsers({ auth: [scramUsers([{ username: 'ann', password: 'secret' }])] });
      for (let n = 0; n < 10; n++) assert.equal(await users.loginByScram('ann', 'wrong', given), WRONG);
      assert.equal(await users.loginByScram('ann', 'secret', given), LIMITED);
      assert.equal(await users.login({ username: 'ann', password: 'right' }), LIMITED, 'without SCRAM');
      for (let n = 0; n < 10; n++) assert.equal(await users.loginByScram('eve', 'wrong', {}), WRONG);
      assert.equal(await users.loginByScram('eve', 'wrong', {}), LIMITED, 'a name that does not exist');
    });

  it('accepts a password that was right before, until its record is deleted', async () => {
    await using users = await brokerWithUsers();
    const { kit, login, fail } = users;
    assert.equal(await login({ username: 'ann', password: 'right' }), 0);
    await fail(10, { username: 'ann' });
    await kit.broker.access.usernames.delete('ann');
    assert.equal(await login({ username: 'ann', password: 'right' }), WRONG);
    assert.equal(await login({ username: 'ann', password: 'right' }), LIMITED);
  });

  it('counts failed logins before the next ones are checked, even if many arrive at once', async () => {
    let asked = 0;
    const answers: (() => void)[] = [];
    const authenticate = () => {
      asked++;
      return new Promise<boolean>((resolve) => answers.push(() => resolve(false)));
    };
    await using users = await brokerWithUsers({ auth: [{ name: 'slow', authenticate }] });
    const logins = Array.from({ length: 30 }, () => users.login({ username: 'eve', password: 'wrong' }));
    await users.kit.clock.advance(0);
    assert.equal(asked, 10);
    for (const answer of answers) answer();
    const codes = await Promise.all(logins);
    assert.equal(codes.filter((code) => code === WRONG).length, 10);
    assert.equal(codes.filter((code) => code === LIMITED).length, 20);
    assert.equal(asked, 10);
  });

  it('gives the turn of a waiting login to others if its connection is closed', async () => {
    let asked = 0;
    const answers: (() => void)[] = [];
    const authenticate = () => {
      asked++;
      return new Promise<boolean>((resolve) => answers.push(() => resolve(true)));
    };
    await using users = await brokerWithUsers({ auth: [{ name: 'slow', authenticate }] });
    const { broker, clock } = users.kit;
    const login = { username: 'eve', password: Buffer.from('x'), meta: { remoteAddress: HERE } };
    const clients = Array.from({ length: 10 }, () => rawClient(broker, login));
    await clock.advance(0);
    const left = await rawClient(broker, { connect: false, meta: login.meta });
    left.send(connectPacket(login));
    await clock.advance(0);
    clients.push(rawClient(broker, login));
    await clock.advance(0);
    left.stream.destroy();
    await clock.advance(0);
    assert.equal(asked, 10);
    answers[0]();
    await clock.advance(0);
    assert.equal(asked, 11);
    for (const answer of answers) answer();
    for (const client of clients) (await client).stream.destroy();
    assert.equal(asked, 11);
  });

  it('counts neither logins that a source could not check, nor clients without a password', async () => {
    const authenticate = () => {
      throw new Error('no connection to the database');
    };
    await using users = await brokerWithUsers({ auth: [{ name: 'broken', authenticate }] });
    users.kit.broker.on('error', () => {}); // those of the source
    for (let n = 0; n < 11; n++)
      assert.equal(await users.login({ clientId: 'c', username: 'eve', password: 'x' }), 0x80);
    for (let n = 0; n < 11; n++) assert.equal(await users.login({ clientId: 'd', username: 'ann' }), WRONG);
    assert.equal(await users.login({ username: 'ann', password: 'right' }), 0);
  });

  it('limits failed logins with enhanced authentication, too', async () => {
    let asked = 0;
    const authenticate = ({ method, data }: { method: string | undefined; data: Buffer | undefined }) => {
      if (method === undefined) return undefined;
      asked++;
      return data === undefined ? { challenge: Buffer.from('?') } : false;
    };
    await using users = await brokerWithUsers({ auth: [{ name: 'own', authenticate }] });
    const { broker } = users.kit;
    const codes: number[] = [];
    for (let n = 0; n < 12; n++) {
      const meta = { remoteAddress: HERE };
      const client = await rawClient(broker, { connect: false, meta });
      const authenticationMethod = 'own';
      const properties = { authenticationMethod };
      client.send({
        cmd: 'connect',
        protocolVersion: 5,
        bridge: false,
        clean: true,
        keepalive: 0,
        clientId: 'c',
        username: 'ann',
        properties
      });
      if (n < 10) {
        await client.next('auth');
        client.send({
          cmd: 'auth',
          reasonCode: 0x18,
          properties: { authenticationMethod, authenticationData: Buffer.from('x') }
        });
      }
      codes.push((await client.next('connack')).reasonCode);
      client.stream.destroy();
    }
    assert.deepEqual(codes, [...Array(10).fill(WRONG), LIMITED, LIMITED]);
    assert.equal(asked, 20);
  });

  it('does not limit failed logins in a zone with limitFailedLogins false', async () => {
    await using users = await brokerWithUsers({ limitFailedLogins: false });
    await users.fail(12, { username: 'ann' });
    assert.equal(await users.login({ username: 'ann', password: 'right' }), 0);
  });

  it('does not count failed logins if nothing checks passwords', async () => {
    const check = mock.method(LoginLimit.prototype, 'check');
    await using kit = await createTestBroker();
    const transportInfo = { remoteAddress: HERE };
    await kit.connect({ username: 'ann', password: 'x', transportInfo });
    assert.equal(check.mock.callCount(), 0);
    await kit.broker.access.usernames.create('bob', 'right');
    await assert.rejects(kit.connect({ username: 'bob', password: 'x' }));
    assert.equal(check.mock.callCount(), 0, 'in the same process');
    await assert.rejects(kit.connect({ username: 'bob', password: 'x', transportInfo }));
    assert.equal(check.mock.callCount(), 1);
    check.mock.restore();
  });
});

describe('The limit of failed logins', () => {
  const isRight = (answer: boolean) => answer;
  const reached = { code: 'LOGINS_LIMITED' };

  it('keeps a limited number of ids, and of correct credentials', () => {
    const limit = new LoginLimit(new ManualClock());
    const attempt = (id: string, source: string, secret: string, answer: boolean) =>
      limit.check({ source, ids: [id], secret }, () => answer, isRight);
    attempt('ann', 'here', 'right', true);
    for (let n = 0; n < 10; n++) attempt('ann', 'here', `wrong ${n}`, false);
    assert.equal(attempt('ann', 'here', 'right', true), true, 'remembered');
    for (let n = 0; n < 1_000; n++) attempt(`other ${n}`, 'elsewhere', 'right', true);
    assert.throws(() => attempt('ann', 'here', 'right', true), reached, 'no longer remembered');
    for (let n = 0; n < 10_000; n++) attempt('eve', `place ${n}`, 'wrong', false);
    assert.equal(attempt('ann', 'here', 'right', true), true, 'the failures are no longer remembered');
  });

  it('keeps the failures when refused logins use new ids each time', () => {
    const limit = new LoginLimit(new ManualClock());
    const attempt = (id: string, source: string) => limit.check({ source, ids: [id] }, () => false, isRight);
    for (let n = 0; n < 10; n++) attempt('ann', 'here');
    for (let n = 0; n < 100; n++) attempt(`id ${n}`, 'elsewhere');
    for (let n = 0; n < 20_000; n++) assert.throws(() => attempt(`refused ${n}`, 'elsewhere'), reached);
    assert.throws(() => attempt('ann', 'here'), reached);
  });

  it('checks waiting logins one after the other when earlier ones were right', async () => {
    const limit = new LoginLimit(new ManualClock());
    let running = 0;
    let most = 0;
    const ask = async () => {
      most = Math.max(most, ++running);
      await Promise.resolve();
      running--;
      return true;
    };
    const logins = Array.from({ length: 500 }, (_, n) =>
      limit.check({ source: 's', ids: [`id ${n % 3}`] }, ask, isRight)
    );
    assert.equal((await Promise.all(logins)).filter(Boolean).length, 500);
    assert.equal(most, 30);
  });

  it('continues after a check that throws or rejects, which is not a failure', async () => {
    const limit = new LoginLimit(new ManualClock());
    const attempt = { source: 's', ids: ['id'] };
    const fail = () => {
      throw new Error('unreachable');
    };
    for (let n = 0; n < 11; n++) assert.throws(() => limit.check(attempt, fail, isRight), /unreachable/);
    const logins = Array.from({ length: 11 }, () => limit.check(attempt, async () => fail(), isRight));
    for (const { status } of await Promise.allSettled(logins)) assert.equal(status, 'rejected');
    assert.equal(
      limit.check(attempt, () => true, isRight),
      true
    );
  });

  it('counts by the 64-bit network of IPv6, and by IPv4 addresses in either form', () => {
    assert.equal(loginSourceOf('2001:db8::1'), loginSourceOf('2001:0db8:0:0:ffff::2'));
    assert.notEqual(loginSourceOf('2001:db8:0:1::1'), loginSourceOf('2001:db8::1'));
    assert.equal(loginSourceOf('::ffff:192.0.2.1'), loginSourceOf('192.0.2.1'));
  });
});
