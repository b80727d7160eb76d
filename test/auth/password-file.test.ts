import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { argon2Check, nodeArgon2 } from '../../adapters/auth/hashes/argon2.ts';
import { editPasswordFile, passwordFile } from '../../adapters/auth/password-file/index.ts';
import type { ScramMethod, SourceContext } from '../../lib/adapter.ts';
import { type AuthenticateRequest, type Broker, BrokerError, createBroker } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { clientFinal } from '../support/scram-client.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'embermq-passwords-'));
  file = join(folder, 'passwords');
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Connect with MQTT 5.0. @returns 0, or the reason code of the refusal */
async function attempt(broker: Broker, username?: string, password?: string | Buffer): Promise<number> {
  try {
    await using _ = await broker.connect({ username, password, protocolVersion: 5 });
    return 0;
  } catch (error) {
    return (error as { reasonCode: number }).reasonCode;
  }
}

/** Connect with SCRAM. @returns 0, or the reason code of the refusal */
async function exchange(broker: Broker, name: string, password: string, method: ScramMethod): Promise<number> {
  const bare = `n=${name},r=nonce`;
  try {
    await using _ = await broker.connect({
      protocolVersion: 5,
      properties: { authenticationMethod: method, authenticationData: Buffer.from(`n,,${bare}`) },
      onAuth: ({ data }) => Buffer.from(clientFinal(password, bare, String(data), method))
    });
    return 0;
  } catch (error) {
    return (error as { reasonCode: number }).reasonCode;
  }
}

/** Hashes of the password "secret"; those of mosquitto were written by mosquitto_passwd. */
const MOSQUITTO = `sha512:$6$N/xBR+INT/N1vgGF$AKWbDaJRg4TRO3MGHkDKW2OpPbeUmR15Z5WtB6ik/pZsc3zJKzow6xIloKmQM0DCprcpIsvCClnf7CG7gjQO5A==
pbkdf2:$7$101$w8e6PMqud61OcLS0$NhN+yutGMPG8i5d7zCpbhmbbC2VcBpVxoWme/1RS4uZ5RrdGKmv0L0N+e8nuE+t/iNFqgt78vDDiojtNQlPrsQ==
`;
const BCRYPT = '$2b$04$';
const SCRYPT = '$scrypt$ln=10,r=8,p=1$c2FsdHNhbHQ$ohJpCxALoqEOLNROiN4NGGmhtOXo+cvi6xHxGl/1fVE';

describe('a password file', () => {
  it('accepts the users of the file with their passwords, and no others', async () => {
    writeFileSync(file, `\ufeff# users\r\n\r\n ann : ${SCRYPT} \r\n${MOSQUITTO}`);
    await using kit = await createTestBroker({ auth: [passwordFile({ file })] });
    for (const name of ['ann', 'sha512', 'pbkdf2']) {
      assert.equal(await attempt(kit.broker, name, 'secret'), 0, name);
      for (const wrong of ['Secret', '', undefined]) assert.equal(await attempt(kit.broker, name, wrong), 0x86, name);
    }
    assert.equal(await attempt(kit.broker, 'bob', 'secret'), 0x86);
    assert.equal(await attempt(kit.broker), 0x87);
    assert.deepEqual(kit.broker.access.sources, ['password-file']);
  });

  const hasProgram = spawnSync('mosquitto_passwd', ['-h']).error === undefined;
  it('accepts files of mosquitto unchanged', { skip: !hasProgram && 'mosquitto_passwd is not installed' }, async () => {
    execFileSync('mosquitto_passwd', ['-b', '-c', file, 'ann', 'a-secret']);
    execFileSync('mosquitto_passwd', ['-b', file, 'bob', 'b-secret']);
    await using kit = await createTestBroker({ auth: [passwordFile({ file })] });
    assert.equal(await attempt(kit.broker, 'ann', 'a-secret'), 0);
    assert.equal(await attempt(kit.broker, 'bob', 'b-secret'), 0);
    assert.equal(await attempt(kit.broker, 'bob', 'a-secret'), 0x86);
  });

  it('leaves users that it does not contain to the next source', async () => {
    writeFileSync(file, `ann:${SCRYPT}\n`);
    const next = { name: 'next', authenticate: () => true };
    await using kit = await createTestBroker({ auth: [passwordFile({ file }), next] });
    assert.equal(await attempt(kit.broker, 'bob', 'x'), 0);
    assert.equal(await attempt(kit.broker, 'ann', 'x'), 0x86);
  });

  it('checks as much for an unknown name as for a wrong password, and always the same for one name', async () => {
    const hash = (last: string) => `${BCRYPT}${'a'.repeat(52)}${last}`;
    const asked: string[] = [];
    const bcrypt = async (_: Buffer, one: string) => asked.push(one) < 0;
    writeFileSync(file, ['a', 'b', 'c'].map((name) => `${name}:${hash(name)}\n`).join(''));
    await using kit = await createTestBroker({ auth: [passwordFile({ file, bcrypt })] });
    assert.equal(await attempt(kit.broker, 'a', 'x'), 0x86);
    assert.deepEqual(asked.splice(0), [hash('a')]);
    for (const name of ['nobody', 'somebody']) {
      for (let n = 0; n < 3; n++) assert.equal(await attempt(kit.broker, name, 'x'), 0x86);
      const [first, ...others] = asked.splice(0);
      assert.deepEqual(others, [first, first]);
    }
  });

  it('lets a queued password wait for longer than hookTimeout', async () => {
    let answer = (_: boolean): void => {};
    const asked = withResolvers();
    const bcrypt = () => {
      asked.resolve();
      return new Promise<boolean>((resolve) => {
        answer = resolve;
      });
    };
    writeFileSync(file, `ann:${BCRYPT}${'a'.repeat(53)}\n`);
    await using kit = await createTestBroker({ auth: [passwordFile({ file, bcrypt })], hookTimeout: 1000 });
    const result = attempt(kit.broker, 'ann', 'x');
    await asked.promise;
    kit.clock.advance(3000);
    answer(true);
    assert.equal(await result, 0);
  });

  it('removes ended connections from the queue without an error', async () => {
    const asked = withResolvers();
    const bcrypt = () => {
      asked.resolve();
      return new Promise<boolean>((resolve) => answers.push(resolve));
    };
    const answers: ((isRight: boolean) => void)[] = [];
    writeFileSync(file, `ann:${BCRYPT}${'a'.repeat(53)}\n`);
    await using kit = await createTestBroker({ auth: [passwordFile({ file, bcrypt })] });
    const errors: Error[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error));
    const abort = new AbortController();
    const names = Array.from({ length: 200 }, (_, n) => (n % 2 === 0 ? 'ann' : `unknown${n}`));
    const attempts = names.map((username) =>
      kit.broker.connect({ username, password: 'x', protocolVersion: 5, signal: abort.signal })
    );
    await asked.promise;
    abort.abort(new Error('the client has gone'));
    for (const { status } of await Promise.allSettled(attempts)) assert.equal(status, 'rejected');
    while (answers.length > 0) answers.pop()?.(false);
    await kit.clock.settle();
    assert.deepEqual(errors, []);
    const more = attempt(kit.broker, 'ann', 'x');
    while (answers.length === 0) await new Promise((resolve) => setImmediate(resolve));
    answers.pop()?.(true);
    assert.equal(await more, 0);
  });

  it('answers that the broker is busy if too many passwords are queued, even for unknown names', async () => {
    writeFileSync(file, `ann:${SCRYPT}\n`);
    const source = passwordFile({ file });
    const full = new BrokerError('PASSWORD_QUEUE_FULL', 'too many');
    await source.open?.({ verifyPassword: () => Promise.reject(full) } as unknown as SourceContext);
    const { signal } = new AbortController();
    for (const username of ['ann', 'eve'])
      assert.deepEqual(await source.authenticate?.({ username, signal } as AuthenticateRequest), {
        allow: false,
        reasonCode: 0x89,
        reasonString: 'too many'
      });
  });

  it('reads the file again on reload, and keeps the previous users if it has an error', async () => {
    writeFileSync(file, `ann:${SCRYPT}\n`);
    await using kit = await createTestBroker({ auth: [passwordFile({ file, name: 'staff' })] });
    const { access } = kit.broker;
    writeFileSync(file, `ann:${SCRYPT}\nbob:plain\n`);
    await assert.rejects(access.reload('staff'), {
      code: 'PASSWORD_FILE_INVALID',
      message: `${file}: line 2: the format of the password hash is unknown; known are scrypt, PBKDF2, mosquitto PBKDF2, mosquitto SHA-512, bcrypt, argon2`
    });
    rmSync(file);
    await assert.rejects(access.reload('staff'), {
      code: 'FILE_UNREADABLE',
      message: /; "embermq passwd FILE USER" creates/
    });
    assert.equal(await attempt(kit.broker, 'ann', 'secret'), 0);
    writeFileSync(file, `bob:${SCRYPT}\n`);
    await access.reload('staff');
    assert.equal(await attempt(kit.broker, 'ann', 'secret'), 0x86);
    assert.equal(await attempt(kit.broker, 'bob', 'secret'), 0);
  });

  it('refuses a file with an error, with the number of the line and without the hash', async () => {
    const wrong: readonly (readonly [text: string, message: RegExp])[] = [
      ['\nann', /line 2: expected "name:HASH"/],
      ['ann:', /line 1: expected "name:HASH"/],
      [`:${SCRYPT}`, /line 1: expected "name:HASH"/],
      ['# x\nann:topsecret', /line 2: the format of the password hash is unknown/],
      [`ann:${SCRYPT}\nbob:${SCRYPT}\nann:${SCRYPT}`, /line 3: the user "ann" is already in line 1; remove one/],
      [`ann:${SCRYPT} SCRAM-SHA-256$x`, /line 1: expected SCRAM-SHA-256\$/],
      [`ann:$2x$04$${'a'.repeat(53)}`, /line 1: bcrypt hashes of the kind \$2x\$/],
      [`ann:$2b$31$${'a'.repeat(53)}`, /line 1: the cost of the bcrypt hash is 31/]
    ];
    for (const [text, message] of wrong) {
      writeFileSync(file, text);
      await assert.rejects(createBroker({ auth: [passwordFile({ file })] }).start(), (error: Error) => {
        assert.match(error.message, message);
        assert.ok(error.message.startsWith(file), error.message);
        assert.ok(!/topsecret|aaaa|c2FsdHNhbHQ/.test(error.message), error.message);
        return true;
      });
    }
    for (const options of ['./users', undefined, null])
      assert.throws(() => passwordFile(options as never), { code: 'OPTION_INVALID', message: /{ file: '.\/users' }/ });
    assert.throws(() => passwordFile({ file: '' }), { code: 'OPTION_INVALID', field: 'file' });
    assert.throws(() => passwordFile({ file, bcrypt: true as never }), { code: 'OPTION_INVALID', field: 'bcrypt' });
  });

  it('FILE_UNREADABLE: rejects a folder, a pipe, and a file that is not UTF-8', async () => {
    mkdirSync(file);
    const refused = (message: RegExp) =>
      assert.rejects(createBroker({ auth: [passwordFile({ file })] }).start(), { code: 'FILE_UNREADABLE', message });
    await refused(/it is a directory; use a regular file/);
    rmSync(file, { recursive: true });
    if (process.platform !== 'win32') {
      execFileSync('mkfifo', [file]);
      await refused(/it is a pipe, a socket or a device/);
      rmSync(file);
    }
    writeFileSync(file, Buffer.from('j\xf6rg:x', 'latin1'));
    await refused(/the text is not UTF-8/);
  });

  it('checks bcrypt hashes with the package bcryptjs, in a separate thread', async () => {
    const { hashSync } = await import('bcryptjs');
    writeFileSync(file, `ann:${hashSync('sécret', 4)}\nbob:${hashSync('\ufffd', 4)}\neve:${hashSync('e', 4)}\n`);
    await using kit = await createTestBroker({ auth: [passwordFile({ file })] });
    assert.equal(await attempt(kit.broker, 'ann', 'sécret'), 0);
    assert.equal(await attempt(kit.broker, 'ann', 'secret'), 0x86);
    assert.equal(await attempt(kit.broker, 'bob', Buffer.from([0xff])), 0x86, 'bytes that are not UTF-8');
    assert.equal(await attempt(kit.broker, 'bob', '\ufffd'), 0);
    await kit.broker.access.stop('password-file');
    await kit.broker.access.start('password-file');
    assert.equal(await attempt(kit.broker, 'eve', 'e'), 0, 'after the source was stopped and started');
  });

  /** The password is "password"; from the tests of the reference implementation. */
  const ARGON2 = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
  it('checks Argon2 hashes', {
    skip: nodeArgon2 === undefined && 'this version of Node has no crypto.argon2'
  }, async () => {
    writeFileSync(file, `ann:${ARGON2}\n`);
    await using kit = await createTestBroker({ auth: [passwordFile({ file })] });
    assert.equal(await attempt(kit.broker, 'ann', 'password'), 0);
    assert.equal(await attempt(kit.broker, 'ann', 'secret'), 0x86);
  });

  it('refuses Argon2 hashes that are too costly or that this version of Node cannot check', async () => {
    assert.throws(() => argon2Check(ARGON2, undefined), { message: /Argon2 hashes need Node 24\.7 or newer/ });
    const never = () => assert.fail('it is not called');
    for (const wrong of ['m=9999999,t=2,p=1', 'm=262144,t=99,p=1', 'm=64,t=0,p=1', 'm=64,t=1,p=0', 'm=8,t=1,p=2'])
      assert.throws(() => argon2Check(ARGON2.replace('m=65536,t=2,p=1', wrong), never), /outside the range/, wrong);
    for (const wrong of [
      '$argon2id$v=16$m=64,t=1,p=1$c29tZXNhbHQ$CTFhFdXP',
      '$argon2id$v=19$m=64$a$b',
      '$argon2id$v=19$m=64,t=1,p=1$c2hvcnQ$CTFhFdXP'
    ])
      assert.throws(() => argon2Check(wrong, never), /expected an Argon2 hash of version 19/);
  });
});

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

describe('SCRAM with a password file', () => {
  for (const method of ['SCRAM-SHA-256', 'SCRAM-SHA-512'] as const)
    it(`accepts users with credentials for ${method}, and refuses others as with a wrong password`, async () => {
      await editPasswordFile(file, 'ann', 'secret', { scram: true, cost: 10 });
      await editPasswordFile(file, 'bob', 'secret', { cost: 10 });
      await using kit = await createTestBroker({ auth: [passwordFile({ file })] });
      assert.equal(await exchange(kit.broker, 'ann', 'secret', method), 0);
      assert.equal(await exchange(kit.broker, 'ann', 'Secret', method), 0x86);
      assert.equal(await exchange(kit.broker, 'bob', 'secret', method), 0x8c, 'a user without SCRAM credentials');
      assert.equal(await exchange(kit.broker, 'eve', 'secret', method), 0x86, 'a user that does not exist');
      assert.equal(await attempt(kit.broker, 'ann', 'secret'), 0, 'the hash is there as well');
    });
});

describe('editPasswordFile', () => {
  it('adds, changes and deletes users, and keeps everything else', async () => {
    const before = `# staff\r\n\r\nann:${SCRYPT}\r\n  bob : not valid\r\n# end`;
    writeFileSync(file, before);
    assert.equal(await editPasswordFile(file, 'eve', 'x', { cost: 10 }), 'added');
    const [added] = /eve:.*\r\n$/.exec(readFileSync(file, 'utf8')) as RegExpExecArray;
    assert.equal(readFileSync(file, 'utf8'), `${before}\r\n${added}`);
    assert.equal(await editPasswordFile(file, 'bob', 'new', { cost: 10 }), 'changed');
    assert.equal(await editPasswordFile(file, 'ann', undefined), 'deleted');
    const text = readFileSync(file, 'utf8');
    assert.match(text, /^# staff\r\n\r\nbob:\$scrypt\$ln=10,r=8,p=1\$[^ \r\n]+\r\n# end\r\neve:.*\r\n$/);
    await using kit = await createTestBroker({ auth: [passwordFile({ file })] });
    assert.equal(await attempt(kit.broker, 'bob', 'new'), 0);
    await assert.rejects(editPasswordFile(file, 'ann', undefined), { code: 'USER_UNKNOWN' });
    assert.equal(readFileSync(file, 'utf8'), text);
  });

  it('removes SCRAM credentials of the previous password, unless new ones are requested', async () => {
    await editPasswordFile(file, 'ann', 'a', { scram: true, cost: 10 });
    assert.match(readFileSync(file, 'utf8'), /^ann:\S+ SCRAM-SHA-256\S+ SCRAM-SHA-512\S+\n$/);
    await editPasswordFile(file, 'ann', 'b', { cost: 10 });
    assert.match(readFileSync(file, 'utf8'), /^ann:\S+\n$/);
  });

  it('writes edits one after the other, and leaves no other files behind', async () => {
    const names = Array.from({ length: 8 }, (_, n) => `user${n}`);
    await Promise.all(names.map((name) => editPasswordFile(file, name, 'x', { cost: 10 })));
    const written = [...readFileSync(file, 'utf8').matchAll(/^(\w+):/gm)].map(([, name]) => name);
    assert.deepEqual(written.sort(), names);
    assert.deepEqual(readdirSync(folder), ['passwords']);
  });

  it('creates files readable only by their owner, and removes the access of others but not of the group', async () => {
    const modeOf = () => (statSync(file).mode & 0o777).toString(8);
    await editPasswordFile(file, 'ann', 'x', { cost: 10 });
    assert.equal(modeOf(), '600');
    for (const [before, after] of [
      [0o644, '640'],
      [0o660, '660'],
      [0o400, '600']
    ] as const) {
      chmodSync(file, before);
      await editPasswordFile(file, 'ann', 'x', { cost: 10 });
      assert.equal(modeOf(), after);
    }
  });

  it('changes the file behind a symbolic link', async () => {
    const link = join(folder, 'link');
    writeFileSync(file, '');
    symlinkSync(file, link);
    await editPasswordFile(link, 'ann', 'x', { cost: 10 });
    assert.ok(lstatSync(link).isSymbolicLink());
    assert.match(readFileSync(file, 'utf8'), /^ann:/);
  });

  it('refuses names that would break a line, empty passwords and costs outside the range', async () => {
    for (const name of ['', 'a:b', '#a', ' a', 'a ', 'a\nb', 'a\0'])
      await assert.rejects(editPasswordFile(file, name, 'x'), { code: 'NAME_INVALID' }, JSON.stringify(name));
    await assert.rejects(editPasswordFile(file, 'ann', ''), { code: 'PASSWORD_INVALID' });
    await assert.rejects(editPasswordFile(file, 'ann', 'x', { cost: 9 }), { code: 'OPTION_INVALID' });
    await assert.rejects(editPasswordFile(join(folder, 'none/file'), 'ann', 'x', { cost: 10 }), {
      code: 'FILE_UNWRITABLE',
      message: /^cannot write .*none.file: ENOENT/
    });
    assert.deepEqual(readdirSync(folder), []);
  });
});
