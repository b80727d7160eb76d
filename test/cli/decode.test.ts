import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import type { PacketTap, ProtocolVersion } from '../../lib/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { connectPacket } from '../support/raw-client.ts';
import { publish } from '../support/wire.ts';
import { testShell } from './shell.ts';

/** Run `embermq decode`. @returns the exit code, and the lines of both outputs */
async function run(args: readonly string[], files: Record<string, Buffer | string> = {}, input?: Buffer | string) {
  const shell = testShell();
  for (const [name, content] of Object.entries(files)) shell.files.set(name, content);
  shell.stdin.end(input);
  const parts: string[] = [];
  shell.stdout.on('data', (part) => parts.push(String(part)));
  const code = await runCommand(['decode', ...args], shell);
  await new Promise((resolve) => setImmediate(resolve));
  const lines = parts
    .join('')
    .split('\n')
    .filter((line) => line !== '');
  return { code, lines, err: shell.err() };
}

/** The bytes that a client and the broker send each other. */
async function captured(protocolVersion: ProtocolVersion): Promise<{ client: Buffer; server: Buffer }> {
  const sides = { client: [] as Buffer[], server: [] as Buffer[] };
  await using kit = await createTestBroker();
  const take = (parts: Buffer[]) => (tap: unknown) => {
    const { broker, bytes } = tap as PacketTap;
    if (broker === kit.broker) parts.push(Buffer.from(bytes));
  };
  const received = take(sides.client);
  const sent = take(sides.server);
  subscribe('embermq:packet:received', received);
  subscribe('embermq:packet:sent', sent);
  try {
    const client = await kit.connect({ clientId: 'pump', protocolVersion, username: 'ann', password: 'secret' });
    await client.subscribe('a/+', { qos: 1 });
    await client.publish('a/b', 'on', { qos: 1 });
    await kit.clock.settle();
    await client.unsubscribe('a/+');
    await client.disconnect();
    await kit.clock.settle();
  } finally {
    unsubscribe('embermq:packet:received', received);
    unsubscribe('embermq:packet:sent', sent);
  }
  return { client: Buffer.concat(sides.client), server: Buffer.concat(sides.server) };
}

const PING = Buffer.from([0xc0, 0]);
const CONNECT = encode(connectPacket({ clientId: 'a', version: 4 }), 4);

describe('embermq decode', () => {
  for (const version of [3, 4, 5] as const) {
    it(`prints each packet that a client of version ${version} has sent, without its password`, async () => {
      const { client } = await captured(version);
      const { code, lines, err } = await run(['sent.bin'], { 'sent.bin': client });
      assert.deepEqual([code, err], [0, '']);
      assert.deepEqual(
        lines.map((line) => line.split(' ')[1]),
        ['connect', 'subscribe', 'publish', 'puback', 'unsubscribe', 'disconnect']
      );
      assert.ok(lines[0].startsWith(`0 connect clientId=pump username=ann protocolVersion=${version} `), lines[0]);
      assert.match(lines[0], / hasPassword=true/);
      assert.match(lines[2], / topic=a\/b qos=1 retain=false dup=false packetId=\d+ .*payload=on payloadBytes=2$/);
      assert.ok(!lines.join().includes('secret'));
    });

    it(`prints each packet that the broker has sent to a client of version ${version}`, async () => {
      const { server } = await captured(version);
      const flags = version === 3 ? ['--protocol', '3'] : [];
      const { code, lines } = await run([...flags, 'got.bin'], { 'got.bin': server });
      assert.equal(code, 0, lines.join('\n'));
      assert.deepEqual(lines.map((line) => line.split(' ')[1]).sort(), [
        'connack',
        'puback',
        'publish',
        'suback',
        'unsuback'
      ]);
    });
  }

  it('begins each line with the offset of the packet in the file', async () => {
    const { lines } = await run(['f'], { f: Buffer.concat([CONNECT, PING, PING]) });
    assert.deepEqual(
      lines.map((line) => Number(line.split(' ')[0])),
      [0, CONNECT.length, CONNECT.length + 2]
    );
    assert.equal(lines[1], `${CONNECT.length} pingreq`);
  });

  it('reads each connection of a file in the version of its CONNECT', async () => {
    const later = encode(connectPacket({ clientId: 'b', version: 5 }), 5);
    const message = { ...publish('t', 'x'), properties: { contentType: 'text' } };
    const f = Buffer.concat([CONNECT, encode(publish('t', 'x'), 4), later, encode(message, 5)]);
    const { code, lines } = await run(['f'], { f });
    assert.equal(code, 0);
    assert.match(lines[3], / publish topic=t .*properties.contentType=text payload=x/);
  });

  it('reads standard input if the file is -', async () => {
    const { code, lines } = await run(['-'], {}, CONNECT);
    assert.equal(code, 0);
    assert.match(lines[0], /^0 connect clientId=a /);
  });

  it('reads hexadecimal with --hex, also with spaces, colons, 0x and a byte order mark', async () => {
    for (const text of ['c000', 'C0 00\n', 'c0:00', '0xc0, 0x00', '\ufeffc000', '\ufeff0xc0 00']) {
      const { code, lines } = await run(['--hex', '--protocol', '4', '-'], {}, text);
      assert.deepEqual([code, lines], [0, ['0 pingreq']], text);
    }
  });

  it('HEX_INVALID: refuses --hex for a file that is not hexadecimal, with the position', async () => {
    for (const [text, fault] of [
      ['c0 0g', 'line 1, column 5: "g" is not a hexadecimal digit'],
      ['c0 00,\n\n  0xc0 é', 'line 3, column 8: U+00E9 is not a hexadecimal digit'],
      ['c0 \ufeff00', 'line 1, column 4: U+FEFF is not a hexadecimal digit'],
      ['c0 \u0000', 'line 1, column 4: U+0000 is not a hexadecimal digit'],
      ['c0 😀', 'line 1, column 4: U+1F600 is not a hexadecimal digit'],
      ['c00x00', 'line 1, column 4: "x" is not a hexadecimal digit'],
      ['0x0x12', 'line 1, column 4: "x" is not a hexadecimal digit'],
      ['c0 0x', 'line 1, column 5: "x" is not a hexadecimal digit'],
      ['c00', 'the number of hexadecimal digits is odd']
    ]) {
      const { code, err } = await run(['--hex', '-'], {}, text);
      assert.deepEqual([code, err], [1, `embermq: standard input: ${fault}\n`]);
    }
  });

  it('prints a line of JSON for each packet with --json, with the whole payload', async () => {
    const f = Buffer.concat([CONNECT, encode(publish('t', 'x'.repeat(5_000)), 4), Buffer.from([0x30, 0])]);
    const { code, lines } = await run(['--json', 'f'], { f });
    const [connect, message, wrong] = lines.map((line) => JSON.parse(line));
    assert.equal(code, 1);
    assert.deepEqual([connect.offset, connect.packet, connect.clientId], [0, 'connect', 'a']);
    assert.deepEqual([message.topic, message.payload.length, message.error], ['t', 5_000, undefined]);
    assert.deepEqual([wrong.bytes, wrong.hex], [2, '3000']);
    assert.equal(typeof wrong.error, 'string');
    assert.equal(wrong.truncated, undefined);
  });

  it('prints at most 64 kB of bytes that cannot be read with --json', async () => {
    const { code, lines } = await run(['--json', 'f'], { f: Buffer.alloc(100_000) });
    const [wrong] = lines.map((line) => JSON.parse(line));
    assert.deepEqual([code, wrong.bytes, wrong.hex.length, wrong.truncated], [1, 100_000, 2 * 65_536, true]);
  });

  it('does not print the bytes of a CONNECT or AUTH that cannot be read, which may have a password', async () => {
    const login = encode(
      { ...connectPacket({ clientId: 'a', version: 5 }), username: 'u', password: Buffer.from('secret') },
      5
    );
    const auth = encode({ cmd: 'auth', reasonCode: 24, properties: { authenticationData: Buffer.from('secret') } }, 5);
    for (const packet of [login, auth]) {
      const damaged = Buffer.from(packet).fill(0xff, 2, 6);
      for (const f of [packet.subarray(0, -1), damaged])
        for (const flags of [[], ['--json']]) {
          const { code, lines } = await run([...flags, '--protocol', '5', 'f'], { f });
          assert.deepEqual([code, lines.length], [1, 1]);
          assert.ok(!lines[0].includes(Buffer.from('secre').toString('hex')), lines[0]);
          assert.ok(lines[0].includes(flags.length > 0 ? `"bytes":${f.length}` : `; ${f.length} bytes`), lines[0]);
        }
    }
  });

  /** Assert that no three characters of a password are in lines, neither as text nor in hexadecimal. */
  function assertHidden(lines: readonly string[], about: string, password = 'Zq7#Wk9!Vx2%'): void {
    const text = lines.join('\n');
    for (let at = 0; at + 3 <= password.length; at++) {
      const part = password.slice(at, at + 3);
      assert.ok(
        !text.includes(part) && !text.includes(Buffer.from(part).toString('hex')),
        `${about}: ${part} in ${text}`
      );
    }
  }

  it('does not print parts of a password if one byte before it is wrong', async () => {
    for (const version of [3, 4, 5] as const) {
      const login = {
        ...connectPacket({ clientId: 'a', version }),
        username: 'u',
        password: Buffer.from('Zq7#Wk9!Vx2%')
      };
      const connect = encode(login, version);
      const passwordAt = connect.indexOf('Zq7#');
      for (let at = 1; at < passwordAt; at++)
        for (const change of [-9, -3, -1, 1, 9, 64])
          for (const flags of [[], ['--json']]) {
            const wrong = Buffer.from(connect);
            wrong[at] += change;
            const f = Buffer.concat([wrong, PING, connect, PING]);
            const { lines } = await run([...flags, '--protocol', `${version}`, 'f'], { f });
            assertHidden(lines, `version ${version}, byte ${at} ${change}`);
          }
    }
  });

  it('does not print parts of authentication data if the length of the AUTH or of the packet before it is wrong', async () => {
    const properties = { authenticationMethod: 'm', authenticationData: Buffer.from('Zq7#Wk9!Vx2%') };
    const auth = encode({ cmd: 'auth', reasonCode: 24, properties }, 5);
    for (const change of [-9, -3, -1, 1, 9, 64]) {
      const wrong = Buffer.from(auth);
      wrong[1] += change;
      const ping = Buffer.from([0xc0, Math.abs(change)]);
      for (const f of [Buffer.concat([wrong, PING, auth]), Buffer.concat([ping, auth])])
        for (const flags of [[], ['--json']]) {
          const { lines } = await run([...flags, '--protocol', '5', 'f'], { f });
          assertHidden(lines, `length ${change}`);
        }
    }
  });

  it('does not print the rest of a file in hexadecimal if a CONNECT is in it or begins in a packet before it', async () => {
    const login = {
      ...connectPacket({ clientId: 'a', version: 4 }),
      username: 'u',
      password: Buffer.from('Zq7#Wk9!Vx2%')
    };
    const connect = encode(login, 4);
    const before = [
      [0x00], // of unknown length
      [0xc0, 0xff, 0xff, 0xff, 0xff],
      [0xc0, 3], // ends in the protocol name
      [0xc0, 9],
      [0x30, 20, 0, 1, 0x74] // without an error
    ];
    for (const bytes of before)
      for (const flags of [[], ['--json']]) {
        const f = Buffer.concat([PING, Buffer.from(bytes), connect]);
        const { code, lines } = await run([...flags, '--protocol', '4', 'f'], { f });
        assert.equal(code, 1);
        assertHidden(lines, `after ${bytes}`);
      }
  });

  it('hides what is refused after a refused CONNECT, with its reason, and prints what is not', async () => {
    const long = Buffer.from(CONNECT);
    long[1] += 2;
    const wildcard = Buffer.from('3005000361232f', 'hex');
    const subscribe = Buffer.from('8208000100034123217f', 'hex');
    const f = Buffer.concat([long, PING, wildcard, subscribe, Buffer.from([0x40, 1, 0]), PING]);
    const { code, lines } = await run(['f'], { f });
    assert.equal(code, 1);
    assert.match(lines[0], /^0 connect bytes=\d+ refused: CONNECT: 2 bytes after the last field/);
    assert.match(lines[1], /^\d+ publish bytes=7 refused: topic name: must not be empty/);
    assert.match(lines[2], /^\d+ (subscribe bytes=10 refused|not a packet): subscription to "...": /);
    assert.match(lines[3], /^\d+ not a packet: .+; 3 bytes$/);
    assert.match(lines[4], /^\d+ pingreq$/);
    const json = (await run(['--json', 'f'], { f })).lines.map((line) => JSON.parse(line));
    assert.deepEqual(json.map(({ packet, bytes, hex }) => [packet, bytes, hex]).slice(0, 2), [
      ['connect', long.length + 2, undefined],
      ['publish', 7, undefined]
    ]);
  });

  it('prints the beginning of a long payload only, and bytes that are not text in hexadecimal', async () => {
    const f = Buffer.concat([encode(publish('t', 'x'.repeat(100)), 4), encode(publish('t', Buffer.of(0xff)), 4)]);
    const { lines } = await run(['--protocol', '4', 'f'], { f });
    assert.match(lines[0], / payload=x{64} payloadBytes=100$/);
    assert.match(lines[1], / payloadHex=ff payloadBytes=1$/);
  });

  it('escapes control characters of topics, payloads and reasons', async () => {
    const f = encode(publish('t/\u001b[2J\u009b', 'a\u001b]0;x\u0007\n\u202eb'), 5);
    const { lines } = await run(['--protocol', '5', 'f'], { f });
    assert.equal(lines.length, 1);
    assert.match(lines[0], / topic=t\/\\u001b\[2J\\u009b /);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal would obey
    assert.doesNotMatch(lines[0], /[\u0000-\u001f\u007f-\u009f\u202e]/);
  });

  it('escapes control characters and characters that change the direction of text in --json', async () => {
    const topic = 't/\u007f\u0085\u009b\u202e\u2066\u2069';
    const { lines } = await run(['--json', '--protocol', '5', 'f'], { f: encode(publish(topic, topic), 5) });
    assert.match(lines[0], /"topic":"t\/\\u007f\\u0085\\u009b\\u202e\\u2066\\u2069"/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal would obey
    assert.doesNotMatch(lines[0], /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    assert.deepEqual([JSON.parse(lines[0]).topic, JSON.parse(lines[0]).payload], [topic, topic]);
  });

  it('writes many packets together', async () => {
    const shell = testShell();
    const parts: string[] = [];
    shell.stdout.on('data', (part) => parts.push(String(part)));
    shell.files.set('f', Buffer.alloc(40_000, PING));
    assert.equal(await runCommand(['decode', '--protocol', '4', 'f'], shell), 0);
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(parts.length < 10, `${parts.length} writes`);
    const lines = parts.join('').split('\n');
    assert.deepEqual([lines.length, lines[19_999]], [20_001, '39998 pingreq']);
  });

  it('prints the reason for which embermq refuses a packet that can be read, and the packets after it', async () => {
    const wildcard = Buffer.from('3005000361232f', 'hex');
    const { code, lines } = await run(['f'], { f: Buffer.concat([CONNECT, wildcard, PING]) });
    assert.equal(code, 1);
    assert.match(lines[1], / publish topic=a#\/ .* refused: topic name: must not be empty or contain "#" or "\+"/);
    assert.match(lines[2], / pingreq$/);
  });

  it('prints bytes that cannot be read in hexadecimal with the reason, and the packets after them', async () => {
    const half = Buffer.from([0x40, 1, 0]); // PUBACK with half a packet id
    const { code, lines } = await run(['f'], { f: Buffer.concat([CONNECT, half, PING]) });
    assert.equal(code, 1);
    assert.match(lines[1], new RegExp(`^${CONNECT.length} not a packet: .+; 3 bytes: 400100$`));
    assert.match(lines[2], / pingreq$/);
  });

  it('reports where a packet is cut off, at any length', async () => {
    for (let length = 1; length < CONNECT.length; length++) {
      const { code, lines } = await run(['--protocol', '4', 'f'], {
        f: Buffer.concat([PING, CONNECT.subarray(0, length)])
      });
      assert.equal(code, 1);
      assert.equal(lines.length, 2);
      assert.match(lines[1], new RegExp(`^2 not a packet: .+; ${length} bytes$`));
      if (length > 1) assert.match(lines[1], new RegExp(`cut off: ${length} of its ${CONNECT.length} bytes`));
    }
  });

  it('reports garbage of any kind with exit code 1', async () => {
    const garbage = ['plain text, no packets', Buffer.alloc(1_000), Buffer.alloc(1_000, 0xff)];
    for (const f of garbage) {
      const { code, lines, err } = await run(['f'], { f });
      assert.deepEqual([code, err, lines.length], [1, '', 1]);
      assert.match(lines[0], /^0 not a packet: /);
      assert.ok(lines[0].length < 300, lines[0]);
    }
  });

  it('prints nothing for an empty file, and notes that it is empty', async () => {
    assert.deepEqual(await run(['f'], { f: '' }), { code: 0, lines: [], err: 'f is empty\n' });
    assert.deepEqual(await run(['-'], {}, ''), { code: 0, lines: [], err: 'standard input is empty\n' });
  });

  it('reports a CONNECT of an unknown protocol, and reads the packets after it as version 5', async () => {
    for (const [hex, start] of [
      ['100d00044d5154540602003c000161', 'not a packet: '],
      ['100e00044d5154548502003c00000161', 'connect bytes=16 refused: '],
      ['100e00044d5154580502003c00000161', 'not a packet: '],
      ['100300044d', 'not a packet: ']
    ]) {
      const f = Buffer.from(hex, 'hex');
      const { code, lines, err } = await run(['f'], { f: Buffer.concat([f, encode(publish('t', 'x'), 5)]) });
      assert.deepEqual([code, err, lines.length], [1, '', 2], hex);
      assert.ok(lines[0].startsWith(`0 ${start}`), lines[0]);
      assert.match(lines[0], /unsupported|cut off|truncated|protocol/i);
      assert.ok(lines[1].startsWith(`${f.length} publish topic=t `), lines[1]);
    }
  });

  it('OPTION_MISSING: asks for --protocol if no packet tells the version', async () => {
    const { code, lines, err } = await run(['f'], { f: PING });
    assert.deepEqual([code, lines], [2, []]);
    assert.match(err, /^embermq: f has neither a CONNECT nor a CONNACK.*--protocol 3, 4 or 5\n$/);
  });

  it('refuses other arguments than one file, and other versions', async () => {
    for (const args of [[], ['a', 'b'], ['--protocol', '6', 'f'], ['--binary', 'f']]) {
      const { code, err } = await run(args, { f: PING });
      assert.equal(code, 2, args.join(' '));
      assert.match(err, /^embermq: .+\n$/);
    }
  });

  it('FILE_UNREADABLE: names a file that cannot be read', async () => {
    const { code, err } = await run(['/nowhere/f']);
    assert.equal(code, 1);
    assert.match(err, /^embermq: cannot read \/nowhere\/f: /);
  });

  it('escapes a line feed in the name of a file in all messages', async () => {
    const { err } = await run(['/nowhere/a\nb']);
    assert.match(err, /^embermq: cannot read \/nowhere\/a\\nb: .+\n$/);
    assert.equal((await run(['--hex', 'a\nb'], { 'a\nb': 'x' })).err.split('\n').length, 2);
    assert.equal((await run(['a\nb'], { 'a\nb': PING })).err.split('\n').length, 2);
  });
});
