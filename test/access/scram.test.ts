import assert from 'node:assert/strict';
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { describe, it } from 'node:test';
import {
  formatScram,
  InventedScram,
  isScramMethod,
  parseScram,
  SCRAM_METHODS,
  type ScramCredentials,
  ScramExchange,
  ScramFailure,
  type ScramMethod,
  scramCredentialsOf
} from '../../lib/access/scram.ts';
import { type Broker, memoryStore, users } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { clientFinal } from '../support/scram-client.ts';

async function credentialsOf(password: string, method: ScramMethod): Promise<ScramCredentials> {
  const all = await scramCredentialsOf(password, 4096);
  return all.find((one) => one.method === method) as ScramCredentials;
}

/** Begin or complete a login by SCRAM. @returns the challenges, and the reason code that ended it (0: accepted) */
async function logIn(
  broker: Broker,
  name: string,
  method: ScramMethod,
  answer: (challenge: string, bare: string) => string
): Promise<{ challenges: string[]; code: number; text?: string }> {
  const bare = `n=${name},r=nonce`;
  const challenges: string[] = [];
  try {
    await using _ = await broker.connect({
      protocolVersion: 5,
      properties: { authenticationMethod: method, authenticationData: Buffer.from(`n,,${bare}`) },
      onAuth: ({ data }) => {
        challenges.push(String(data));
        return Buffer.from(answer(String(data), bare));
      }
    });
    return { challenges, code: 0 };
  } catch (error) {
    const { reasonCode, reasonString } = error as { reasonCode: number; reasonString?: string };
    return { challenges, code: reasonCode, text: reasonString };
  }
}

describe('SCRAM for users that do not exist', () => {
  for (const method of Object.keys(SCRAM_METHODS) as ScramMethod[])
    it(`${method} continues with invented credentials, and fails at the end like a wrong password`, async () => {
      await using kit = await createTestBroker({ auth: [users([{ username: 'ann', password: 'secret' }])] });
      const { broker } = kit;
      const right = (challenge: string, bare: string) => clientFinal('secret', bare, challenge, method);
      const wrong = (challenge: string, bare: string) => clientFinal('wrong', bare, challenge, method);
      assert.equal((await logIn(broker, 'ann', method, right)).code, 0);
      const ann = await logIn(broker, 'ann', method, wrong);
      const eve = await logIn(broker, 'eve', method, wrong);
      const again = await logIn(broker, 'eve', method, right);
      assert.deepEqual([eve.code, eve.text], [ann.code, ann.text]);
      assert.equal(eve.code, 0x86);
      assert.equal(eve.challenges.length, 1);
      const saltOf = (text: string) => /,s=(.*),i=4096$/.exec(text)?.[1];
      const [known, first, second] = [ann, eve, again].map(({ challenges }) => saltOf(challenges[0]) as string);
      assert.equal(first.length, known.length);
      assert.equal(first, second, 'the salt of a name stays the same');
      const bob = await logIn(broker, 'bob', method, wrong);
      assert.notEqual(saltOf(bob.challenges[0]), first);
      // messages that are not valid end both exchanges in the same way
      const broken = () => 'c=biws';
      assert.deepEqual(
        (await logIn(broker, 'eve', method, broken)).code,
        (await logIn(broker, 'ann', method, broken)).code
      );
    });

  it('keeps the salt of a name over a restart, and the key of the salts is not in any answer', async () => {
    const store = memoryStore();
    const salts: string[] = [];
    for (const _ of ['first', 'second'])
      for (const name of ['ann', 'eve']) {
        await using kit = await createTestBroker({ store, auth: [users([{ username: 'ann', password: 'secret' }])] });
        const { challenges } = await logIn(kit.broker, name, 'SCRAM-SHA-256', () => 'c=biws');
        salts.push(/,s=(.*),i=/.exec(challenges[0])?.[1] as string);
        await kit.broker.stop();
      }
    const [ann, eve, annAgain, eveAgain] = salts;
    assert.deepEqual([annAgain, eveAgain], [ann, eve]);
    await using other = await createTestBroker({ auth: [users([{ username: 'ann', password: 'secret' }])] });
    const { challenges } = await logIn(other.broker, 'eve', 'SCRAM-SHA-256', () => 'c=biws');
    assert.ok(!challenges[0].includes(eve), 'another broker has another key');
  });

  it('reports once that the key of the salts cannot be persisted, for any number of users', async () => {
    const failures: unknown[] = [];
    const full = new Error('the store is full');
    const table = { get: () => undefined, set: () => Promise.reject(full) };
    const invented = new InventedScram(table, (error) => failures.push(error));
    const saltOf = () => invented.credentialsOf('eve', 'SCRAM-SHA-256').salt;
    const [first, second] = [saltOf(), saltOf()];
    await new Promise(setImmediate);
    assert.deepEqual(second, first);
    assert.deepEqual(failures, [full]);
  });

  it('asks the later sources first, and refuses the method if none supports SCRAM', async () => {
    const asked: string[] = [];
    await using kit = await createTestBroker({
      auth: [
        users([{ username: 'ann', password: 'secret' }]),
        {
          name: 'other',
          authenticate: ({ data, round }) => {
            asked.push(`${round}`);
            return String(data).includes('n=eve') ? true : undefined;
          }
        }
      ]
    });
    const wrong = (challenge: string, bare: string) => clientFinal('wrong', bare, challenge, 'SCRAM-SHA-256');
    assert.equal((await logIn(kit.broker, 'eve', 'SCRAM-SHA-256', wrong)).code, 0);
    assert.equal((await logIn(kit.broker, 'bob', 'SCRAM-SHA-256', wrong)).code, 0x86);
    assert.deepEqual(asked, ['0', '0', '1']);
    await using bare = await createTestBroker({ auth: [{ name: 'none', authenticate: () => undefined }] });
    assert.equal((await logIn(bare.broker, 'eve', 'SCRAM-SHA-256', wrong)).code, 0x8c);
  });
});

describe('SCRAM', () => {
  it('exchanges the messages of the example in RFC 7677', () => {
    const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64');
    const salted = pbkdf2Sync('pencil', salt, 4096, 32, 'sha256');
    const hmac = (text: string) => createHmac('sha256', salted).update(text).digest();
    const storedKey = createHash('sha256').update(hmac('Client Key')).digest();
    const credentials = {
      method: 'SCRAM-SHA-256',
      salt,
      iterations: 4096,
      storedKey,
      serverKey: hmac('Server Key')
    } as const;
    const exchange = new ScramExchange(
      Buffer.from('n,,n=user,r=rOprNGfwEbeRWgbNEkqO'),
      '%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0'
    );
    assert.equal(exchange.username, 'user');
    assert.equal(
      exchange.challenge(credentials).toString(),
      'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096'
    );
    const final =
      'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=';
    assert.equal(exchange.finish(Buffer.from(final)).toString(), 'v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=');
  });

  for (const method of Object.keys(SCRAM_METHODS) as ScramMethod[]) {
    it(`accepts the right password and refuses a wrong one with ${method}`, async () => {
      const credentials = parseScram(formatScram(await credentialsOf('secret', method)));
      const bare = 'n=an=2Cn=3D,r=abc';
      for (const [password, isRight] of [
        ['secret', true],
        ['secreT', false]
      ] as const) {
        const exchange = new ScramExchange(Buffer.from(`n,,${bare}`));
        assert.equal(exchange.username, 'an,n=');
        const challenge = exchange.challenge(credentials).toString();
        const final = Buffer.from(clientFinal(password, bare, challenge, method));
        if (isRight) assert.match(exchange.finish(final).toString(), /^v=[\w+/]+=*$/);
        else assert.throws(() => exchange.finish(final), { message: 'the password is wrong', reasonCode: 0x86 });
      }
    });
  }

  it('refuses a client that asks to act as another user (authzid)', async () => {
    for (const own of ['n,a=an=2Cn=3D,', 'y,a=an=2Cn=3D,', 'n,a=,', 'n,,'])
      assert.equal(new ScramExchange(Buffer.from(`${own}n=an=2Cn=3D,r=a`)).username, 'an,n=', own);
    for (const foreign of ['log', 'an,n=', 'an', 'AN=2Cn=3D'])
      assert.throws(() => new ScramExchange(Buffer.from(`n,a=${foreign},n=an=2Cn=3D,r=a`)), ScramFailure, foreign);
    assert.throws(() => new ScramExchange(Buffer.from('n,a=log,n=rec,r=a')), {
      message: 'the client asks to act as another user (authzid)',
      reasonCode: 0x87
    });
    await using kit = await createTestBroker();
    await kit.broker.access.usernames.create('rec', 'secret');
    await kit.broker.access.usernames.create('log', 'secret');
    for (const name of ['rec', 'nobody']) {
      const authenticationData = Buffer.from(`n,a=log,n=${name},r=nonce`);
      const properties = { authenticationMethod: 'SCRAM-SHA-256', authenticationData };
      await assert.rejects(kit.connect({ protocolVersion: 5, properties }), { reasonCode: 0x87 }, name);
    }
  });

  it('refuses messages that are not valid', async () => {
    for (const first of [
      '',
      'n,,',
      'n,,n=,r=a',
      'p=tls-unique,,n=u,r=a',
      'n,,n=a=b,r=c',
      'n,,m=x,n=u,r=a',
      'n,,n=u,r=a b'
    ])
      assert.throws(() => new ScramExchange(Buffer.from(first)), { reasonCode: 0x82 }, first);
    assert.throws(() => new ScramExchange(undefined), { reasonCode: 0x82 });
    const credentials = await credentialsOf('secret', 'SCRAM-SHA-256');
    const exchange = new ScramExchange(Buffer.from('y,,n=u,r=a'), 'b');
    const challenge = exchange.challenge(credentials).toString();
    const right = clientFinal('secret', 'n=u,r=a', challenge, 'SCRAM-SHA-256', 'eSws');
    for (const final of [
      '',
      'p=AAAA',
      right.replace('r=ab', 'r=ax'),
      right.replace('c=eSws', 'c=biws'),
      right.replace(/p=.*/, 'p=AAAA'),
      'c=eSws,r=ab'
    ])
      assert.throws(() => exchange.finish(Buffer.from(final)), { reasonCode: 0x82 }, final);
    assert.throws(() => exchange.finish(undefined), { reasonCode: 0x82 });
    assert.match(exchange.finish(Buffer.from(right)).toString(), /^v=/);
  });

  it('reads stored credentials strictly', () => {
    assert.ok(isScramMethod('SCRAM-SHA-512') && !isScramMethod('SCRAM-SHA-1') && !isScramMethod(undefined));
    const wrong = [
      '',
      'SCRAM-SHA-1$1:AA==$AA==:AA==',
      'SCRAM-SHA-256$0:AA==$AA==:AA==',
      'SCRAM-SHA-256$4096:AA==$AA==:AA=='
    ];
    for (const text of wrong) assert.throws(() => parseScram(text), { code: 'SCRAM_INVALID' }, text);
  });
});
