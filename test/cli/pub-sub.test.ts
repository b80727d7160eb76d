import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { listen, unix, ws } from '../../adapters/net/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { type TestShell, testShell } from './shell.ts';

let broker: Broker;
let port: number;
let wsPort: number;

before(async () => {
  broker = createBroker();
  const tcpListener = listen(broker, 0);
  const wsListener = listen(broker, ws({ port: 0 }));
  await broker.start();
  port = tcpListener.port as number;
  wsPort = wsListener.port as number;
});

after(() => broker.stop());

/** Start `sub` and wait until the broker has its subscription. */
async function startSub(args: string[], shell = testShell()): Promise<{ shell: TestShell; code: Promise<number> }> {
  const subscribed = broker.nextEvent('session.subscribed');
  const code = runCommand(['sub', '-p', String(port), ...args], shell);
  await Promise.race([subscribed, code]);
  return { shell, code };
}

function pub(args: string[], shell = testShell()): Promise<number> {
  return runCommand(['pub', '-p', String(port), ...args], shell);
}

describe('pub and sub', () => {
  for (const version of ['3.1', '3.1.1', '5']) {
    for (const qos of ['0', '1', '2']) {
      it(`transfers a message with QoS ${qos} over MQTT ${version}`, async () => {
        const topic = `a/${version}/${qos}`;
        const { shell, code } = await startSub(['-t', topic, '-q', qos, '-V', version, '-C', '1', '-v']);
        assert.equal(await pub(['-t', topic, '-m', 'hello', '-q', qos, '-V', version]), 0);
        assert.equal(await code, 0);
        assert.equal(shell.out(), `${topic} hello\n`);
      });
    }
  }

  it('transfers every line of standard input, in order', async () => {
    const { shell, code } = await startSub(['-t', 'lines', '-q', '1', '-C', '300']);
    const feeder = testShell();
    const lines = Array.from({ length: 300 }, (_, at) => `line ${at}`);
    feeder.stdin.end(`${lines.join('\n')}\n`);
    assert.equal(await pub(['-t', 'lines', '-q', '1', '-l'], feeder), 0);
    await code;
    assert.equal(shell.out(), `${lines.join('\n')}\n`);
  });

  it('transfers a file, all of standard input, and an empty payload', async () => {
    const { shell, code } = await startSub(['-t', 'b', '-C', '3', '-N']);
    const feeder = testShell();
    feeder.files.set('payload', 'from file,');
    feeder.stdin.end('from\nstdin');
    await pub(['-t', 'b', '-f', 'payload'], feeder);
    await pub(['-t', 'b', '-s'], feeder);
    await pub(['-t', 'b', '-n']);
    await code;
    assert.equal(shell.out(), 'from file,from\nstdin');
  });

  it('transfers properties, which sub prints as JSON', async () => {
    const { shell, code } = await startSub(['-t', 'p', '-C', '1', '--json']);
    const properties = [
      '--user-property',
      'a=1',
      '--user-property',
      'a=2=3',
      '--content-type',
      'text',
      '--correlation-data',
      'c'
    ];
    await pub(['-t', 'p', '-m', 'x', '-r', '--response-topic', 'r', '--message-expiry', '60', ...properties]);
    await code;
    assert.deepEqual(JSON.parse(shell.out()), {
      topic: 'p',
      payload: 'x',
      qos: 0,
      retain: false,
      dup: false,
      properties: {
        messageExpiryInterval: 60,
        contentType: 'text',
        responseTopic: 'r',
        correlationData: Buffer.from('c').toString('base64'),
        userProperties: [
          ['a', '1'],
          ['a', '2=3']
        ]
      }
    });
  });

  it('publishes what sub --json has printed', async () => {
    const lines = [
      {
        topic: 'j/1',
        payload: 'x',
        qos: 1,
        retain: true,
        properties: {
          userProperties: [
            ['a', '1'],
            ['a', '2']
          ]
        }
      },
      { topic: 'j/2', payloadBase64: '/wA=', qos: 2, properties: { correlationData: 'AAE=', contentType: 'b' } },
      { topic: 'j/3', payload: { t: [1, 'ü'] } },
      { topic: 'j/4', payload: '', dup: true, properties: { subscriptionIdentifier: [7], messageExpiryInterval: 60 } }
    ];
    const seen = await startSub(['-t', 'j/#', '-q', '2', '-C', '4', '--json', '--retain-as-published']);
    const feeder = testShell();
    feeder.stdin.end(`${lines.map((line) => JSON.stringify(line)).join('\r\n\n')}\n`);
    assert.equal(await pub(['--json'], feeder), 0, feeder.err());
    assert.equal(await seen.code, 0);
    const printed = seen.shell.out();
    const shown = printed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      shown.map(({ topic, payload, payloadBase64, qos, retain }) => [topic, payload ?? payloadBase64, qos, retain]),
      [
        ['j/1', 'x', 1, true],
        ['j/2', '/wA=', 2, false],
        ['j/3', '{"t":[1,"ü"]}', 0, false],
        ['j/4', '', 0, false]
      ]
    );
    await broker.publish({ topic: 'j/1', payload: '', retain: true });
    const again = await startSub(['-t', 'j/#', '-q', '2', '-C', '4', '--json', '--retain-as-published']);
    const pipe = testShell();
    pipe.stdin.end(printed);
    assert.equal(await pub(['--json', '-l'], pipe), 0, pipe.err());
    assert.equal(await again.code, 0);
    assert.equal(again.shell.out(), printed);
  });

  it('publishes messages of -m, a file and all of standard input as JSON, with flags as defaults', async () => {
    const { shell, code } = await startSub(['-t', 'd/#', '-q', '1', '-C', '6', '--json']);
    const feeder = testShell();
    feeder.files.set('one.json', '{\n  "payload": "one"\n}');
    feeder.files.set('lines.json', '{"payload":"two"}\n\n{"topic":"d/3","payload":3,"qos":0}\n');
    feeder.stdin.end('{ "topic": "d/4",\n "payload": "four" }\n');
    const flags = ['--json', '-t', 'd/1', '-q', '1', '--content-type', 'text'];
    assert.equal(await pub([...flags, '-f', 'one.json'], feeder), 0, feeder.err());
    assert.equal(await pub([...flags, '-f', 'lines.json'], feeder), 0, feeder.err());
    assert.equal(await pub([...flags, '-s'], feeder), 0, feeder.err());
    const own = '{"payload":"own","properties":{"contentType":"own"}}';
    assert.equal(await pub([...flags, '-m', own, '--repeat', '2'], feeder), 0, feeder.err());
    await code;
    const lines = shell
      .out()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      lines.map(({ topic, payload, qos, properties }) => [topic, payload, qos, properties.contentType]),
      [
        ['d/1', 'one', 1, 'text'],
        ['d/1', 'two', 1, 'text'],
        ['d/3', '3', 0, 'text'],
        ['d/4', 'four', 1, 'text'],
        ['d/1', 'own', 1, 'own'],
        ['d/1', 'own', 1, 'own']
      ]
    );
  });

  it('names the line of a message that is not valid, after the messages before it', async () => {
    const { shell, code } = await startSub(['-t', 'ok', '-q', '1', '-C', '12']);
    const wrong: [string, RegExp][] = [
      ['{"topic":"a"', /^embermq: line 2: not valid JSON: /],
      ['[1]', /^embermq: line 2: expected an object such as \{"topic":"a","payload":"b"\}/],
      ['{"topic":"a","payload":"b","quos":1}', /^embermq: unknown option "quos" in line 2; did you mean "qos"\?/],
      ['{"topic":"a","payload":"b","qos":3}', /^embermq: line 2\.qos: expected a whole number from 0 to 2, got 3/],
      ['{"topic":"a/#","payload":"b"}', /^embermq: line 2\.topic: .*"#"/],
      ['{"payload":"b"}', /^embermq: line 2: the field "topic" is missing, and there is no -t TOPIC/],
      ['{"topic":"a"}', /^embermq: line 2: the field "payload" is missing; "" is an empty payload/],
      ['{"topic":"a","payloadBase64":"x"}', /^embermq: line 2\.payloadBase64: expected Base64, got "x"/],
      ['{"topic":"a","payload":"b","payloadBase64":""}', /^embermq: line 2: it has both/],
      ['{"topic":"a","payload":"","properties":{"userProperties":{"a":"b"}}}', /^embermq: line 2\.properties\.user/],
      [
        '{"topic":"a","payload":"","properties":{"contentTyp":"b"}}',
        /"contentTyp" in line 2\.properties; did you mean/
      ],
      [
        '{"topic":"a","payload":"","properties":{"correlationData":"%"}}',
        /^embermq: line 2\.properties\.correlationData/
      ]
    ];
    for (const [line, message] of wrong) {
      const feeder = testShell();
      feeder.stdin.end(`{"topic":"ok","payload":"o","qos":1}\n${line}\n{"topic":"never","payload":"n"}\n`);
      assert.equal(await pub(['--json'], feeder), 2, line);
      assert.match(feeder.err(), message);
    }
    assert.equal(await code, 0);
    assert.equal(shell.out(), 'o\n'.repeat(12));
    const old = testShell();
    assert.equal(
      await pub(['--json', '-V', '4', '-m', '{"topic":"a","payload":"b","properties":{"contentType":"c"}}'], old),
      2
    );
    assert.match(old.err(), /^embermq: -m: message properties need MQTT 5\.0 \(-V 5\)/);
    assert.equal(await pub(['--json', '-n'], old), 2);
    assert.match(old.err(), /--json and -n/);
  });

  it('names the line of a message that the broker refuses', async () => {
    const unhook = broker.hook('authorizePublish', ({ message }) => message.topic !== 'secret');
    const feeder = testShell();
    feeder.stdin.end('{"topic":"a","payload":""}\n{"topic":"secret","payload":"","qos":1}\n');
    assert.equal(await pub(['--json'], feeder), 1);
    unhook();
    assert.match(feeder.err(), /^embermq: line 2: PUBLISH to "secret" was refused: not authorized/);
  });

  it('prints a payload that is not valid UTF-8 in base64', async () => {
    const { shell, code } = await startSub(['-t', 'binary', '-C', '1', '--json']);
    await broker.publish({ topic: 'binary', payload: Buffer.from([0xff, 0]) });
    await code;
    assert.equal(JSON.parse(shell.out()).payloadBase64, '/wA=');
  });

  it('connects over WebSocket and Unix sockets by URL', async () => {
    const path = `/tmp/embermq-test-${process.pid}.sock`;
    const unixListener = await listen(broker, unix({ path }));
    const { shell, code } = await startSub(['-t', 'url', '-C', '1', '-L', `ws://localhost:${wsPort}`]);
    assert.equal(await pub(['-t', 'url', '-m', 'x', '--url', `unix:${path}`]), 0);
    assert.equal(await code, 0);
    assert.equal(shell.out(), 'x\n');
    await unixListener.close();
  });

  it('sends the path and the query of a WebSocket URL unchanged', async () => {
    const urls: (string | undefined)[] = [];
    const origins = (_origin: string | undefined, { url }: { url?: string }) => urls.push(url) > 0;
    const listener = await listen(broker, ws({ port: 0, path: '/a%20b', origins }));
    const url = `ws://localhost:${listener.port}/a%20b?token=x`;
    assert.equal(await pub(['-t', 'url', '-m', 'x', '-L', url]), 0);
    assert.deepEqual(urls, ['/a%20b?token=x']);
    await listener.close();
  });

  it('keeps a session with -c and resumes it', async () => {
    const args = ['-t', 'kept', '-q', '1', '-c', '-i', 'keeper'];
    const first = await startSub(args);
    first.shell.signal('SIGINT');
    assert.equal(await first.code, 0);
    await pub(['-t', 'kept', '-q', '1', '-m', 'while away']);
    const second = testShell();
    assert.equal(await runCommand(['sub', '-p', String(port), ...args, '-C', '1'], second), 0);
    assert.equal(second.out(), 'while away\n');
  });

  it('causes the will to be published when the connection is lost, and not when pub ends normally', async () => {
    const { shell, code } = await startSub(['-t', 'wills', '-C', '1']);
    const feeder = testShell();
    const will = ['--will-topic', 'wills', '--will-payload'];
    assert.equal(await pub(['-t', 'x', '-m', 'y', ...will, 'must not come']), 0);
    const connected = broker.nextEvent('client.connected');
    const dying = pub(['-i', 'dying', '-t', 'x', '-l', ...will, 'came'], feeder);
    await connected;
    await broker.sessions.get('dying').kick();
    assert.equal(await dying, 1);
    assert.match(feeder.err(), /the connection was closed|is closed/);
    await code;
    assert.equal(shell.out(), 'came\n');
  });
});

describe('sub', () => {
  it('does not print retained messages with -R', async () => {
    await broker.publish({ topic: 'r/1', payload: 'old', retain: true });
    const { shell, code } = await startSub(['-t', 'r/#', '-R', '-C', '1']);
    await broker.publish({ topic: 'r/2', payload: 'new' });
    await code;
    assert.equal(shell.out(), 'new\n');
  });

  it('exits with code 27 when its time has elapsed, and with 0 at SIGINT', async () => {
    assert.equal(await runCommand(['sub', '-p', String(port), '-t', 'q', '-W', '0.01'], testShell()), 27);
    const { shell, code } = await startSub(['-t', 'q']);
    shell.signal('SIGINT');
    assert.equal(await code, 0);
    assert.equal(shell.signalListeners.size, 0, 'a second signal would end the process');
  });

  it('exits with code 1 if the broker disconnects it permanently', async () => {
    const { shell, code } = await startSub(['-t', 'q', '-i', 'cut']);
    await broker.sessions.get('cut').kick();
    assert.equal(await code, 1);
    assert.match(shell.err(), /^embermq: the connection was closed/);
    assert.deepEqual(shell.delays, []);
  });

  for (const version of ['3.1.1', '5']) {
    it(`reconnects when the broker is back, with increasing delays, over MQTT ${version}`, async () => {
      const path = `/tmp/embermq-test-sub-${process.pid}-${version}.sock`;
      const away = createBroker();
      listen(away, unix({ path }));
      await away.start();
      const subscribed = away.nextEvent('session.subscribed');
      const shell = testShell();
      const code = runCommand(['sub', '-L', `unix:${path}`, '-t', 'a', '-V', version, '-C', '2'], shell);
      await subscribed;
      await away.publish('a', 'before');
      await shell.line(/before/);
      await away.stop();
      while (shell.delays.length < 7) await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(
        shell.delays.slice(0, 7),
        [1, 2, 4, 8, 16, 30, 30].map((seconds) => seconds * 1000)
      );
      await away.start();
      await away.nextEvent('session.subscribed');
      await away.publish('a', 'afterwards');
      assert.equal(await code, 0);
      assert.equal(shell.out(), 'afterwards\n');
      const lines = shell.err().split('\n');
      assert.match(lines[0], /^embermq: the connection was closed: .+; trying again in 1 s$/);
      assert.match(lines[1], /^embermq: cannot reach unix:.+; trying again in 2 s$/);
      assert.equal(lines.at(-2), 'embermq: connected again');
      await away.stop();
    });
  }

  it('resumes its session after a reconnect and does not subscribe again', async () => {
    const { shell, code } = await startSub(['-t', 'kept/#', '-q', '1', '-c', '-i', 'again', '-C', '2', '-V', '3.1.1']);
    const acked = broker.nextEvent('message.acked', { where: ({ client }) => client.clientId === 'again' });
    await broker.publish({ topic: 'kept/old', payload: 'retained', retain: true, qos: 1 });
    await shell.line(/retained/);
    await acked;
    const back = broker.nextEvent('client.connected');
    broker.sessions.get('again').kick({ session: 'keep' }); // MQTT 3.1.1 has no DISCONNECT from the server, so this looks like a lost connection
    await back;
    await broker.publish({ topic: 'kept/new', payload: 'new', qos: 1 });
    assert.equal(await code, 0);
    assert.equal(shell.out(), 'new\n');
    await broker.publish({ topic: 'kept/old', payload: '', retain: true });
    await broker.sessions.get('again').discard();
  });

  it('prints all messages received before the connection was lost', async () => {
    const shell = testShell();
    const { code } = await startSub(['-t', 'many', '-q', '1', '-i', 'many'], shell);
    const payload = 'x'.repeat(1000);
    const acked = new Promise<void>((resolve) => {
      let left = 100;
      broker.on('message.acked', ({ client }) => client.clientId === 'many' && --left === 0 && resolve());
    });
    for (let at = 0; at < 100; at++) await broker.publish({ topic: 'many', payload, qos: 1 });
    await acked;
    await broker.sessions.get('many').kick();
    let received = '';
    shell.stdout.on('data', (chunk) => {
      received += chunk;
    });
    assert.equal(await code, 1);
    assert.equal(received.length, 100 * 1001);
  });

  it('gives up if the broker refuses the reconnect', async () => {
    const { shell, code } = await startSub(['-t', 'q', '-i', 'refused', '-V', '3.1.1']);
    const remove = broker.hook('authenticate', () => ({ allow: false, reasonCode: 0x86 }));
    await broker.sessions.get('refused').kick();
    assert.equal(await code, 1);
    assert.match(shell.err(), /trying again in 1 s\nembermq: CONNECT was refused/);
    remove();
  });

  it('ends at SIGINT while it connects, waits to reconnect, or cannot write its output', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const connecting = testShell();
    const accepted = once(silent, 'connection');
    const address = silent.address() as AddressInfo;
    const first = runCommand(['sub', '-h', '127.0.0.1', '-p', String(address.port), '-t', 'a'], connecting);
    const [socket] = await accepted;
    connecting.signal('SIGINT');
    assert.equal(await first, 0);
    socket.destroy();
    silent.close();

    const waiting = await startSub(['-t', 'q', '-i', 'waiting', '-V', '3.1.1']);
    const asleep = new Promise<void>((resolve) => {
      waiting.shell.delay = (_ms, signal) => {
        resolve();
        return new Promise((wake) => signal.addEventListener('abort', () => wake()));
      };
    });
    await broker.sessions.get('waiting').kick();
    await asleep;
    waiting.shell.signal('SIGINT');
    assert.equal(await waiting.code, 0);

    const full = await startSub(['-t', 'full', '-i', 'full']);
    await broker.publish('full', Buffer.alloc(200_000));
    while (full.shell.stdout.writableLength === 0) await new Promise((resolve) => setImmediate(resolve));
    full.shell.signal('SIGINT');
    assert.equal(await full.code, 0);
  });

  it('stops reading while its output is full', async () => {
    const { shell, code } = await startSub(['-t', 'big', '-C', '40', '-q', '1']);
    for (let at = 0; at < 40; at++) await broker.publish({ topic: 'big', payload: Buffer.alloc(100_000, 'x'), qos: 1 });
    let bytes = 0;
    shell.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    await code;
    assert.equal(bytes, 40 * 100_001);
  });
});

describe('an error of pub or sub', () => {
  const refusals: [string[], RegExp][] = [
    [['pub', '-m', 'x'], /pub needs -t TOPIC/],
    [['pub', '-t', 'a/#', '-m', 'x'], /topic name "a\/#"/],
    [['pub', '-t', '', '-m', 'x'], /topic name ""/],
    [['pub', '-t', 'a'], /one of -m, -f, -l, -s and -n/],
    [['pub', '-t', 'a', '-m', 'x', '-n'], /one of -m, -f, -l, -s and -n/],
    [['pub', '-t', 'a', '-m', 'x', '-V', '3.1.1', '--content-type', 'x'], /message properties need MQTT 5\.0/],
    [['pub', '-t', 'a', '-m', 'x', '--user-property', 'x'], /NAME=VALUE/],
    [['pub', '-t', 'a', '-m', 'x', '--will-payload', 'x'], /a will needs --will-topic/],
    [['pub', '-t', 'a', '-m', 'x', '-V', '6'], /--mqtt-version: expected 3\.1, 3\.1\.1 or 5/],
    [['pub', '-t', 'a', '-m', 'x', '-L', 'http://x'], /expected a URL such as mqtt/],
    [['pub', '-t', 'a', '-m', 'hello', 'world'], /pub accepts only flags, not "world"/],
    [['pub', 'a', '-m', 'x'], /pub accepts only flags, not "a"/],
    [['sub', 'a'], /sub accepts only flags, not "a"/],
    [['sub'], /sub needs -t FILTER/],
    [['sub', '-t', 'ok', '-t', 'a/#/b'], /topic filter "a\/#\/b": "#" may only be the last level/],
    [['sub', '-t', ''], /topic filter ""/],
    [['sub', '-t', 'a', '-c'], /-c needs -i ID/],
    [['sub', '-t', 'a', '-V', '3.1', '--no-local'], /--no-local.* need MQTT 5\.0/],
    [['subb'], /unknown command "subb"; did you mean "sub"/]
  ];
  for (const [args, message] of refusals) {
    it(`reports an error before connecting: ${args.join(' ')}`, async () => {
      const shell = testShell();
      assert.equal(await runCommand(args, shell), 2);
      assert.match(shell.err(), message);
    });
  }

  it('exits with code 1 instead of 2 if the broker is unreachable', async () => {
    const shell = testShell();
    const free = listen(createBroker(), 0);
    await free.close();
    assert.equal(await runCommand(['pub', '-t', 'a', '-m', 'x', '-L', 'unix:/nowhere.sock'], shell), 1);
    assert.match(shell.err(), /^embermq: cannot reach unix:\/nowhere\.sock: /);
  });

  it('reports a refused connection', async () => {
    const remove = broker.hook('authenticate', () => ({ allow: false, reasonCode: 0x86 }));
    const shell = testShell();
    assert.equal(await pub(['-t', 'a', '-m', 'x'], shell), 1);
    assert.match(shell.err(), /CONNECT was refused: Bad User Name or Password/i);
    remove();
  });
});

describe('a subscription that the broker refuses', () => {
  it('reports the reason, and exits sub with code 1 if there is no other subscription', async () => {
    const remove = broker.hook('authorizeSubscribe', () => false);
    const shell = testShell();
    assert.equal(await runCommand(['sub', '-t', 'a', '-p', String(port)], shell), 1);
    assert.match(shell.err(), /^embermq: subscription to "a" was refused: not authorized$/m);
    remove();
  });
});

describe('a message that the broker refuses', () => {
  for (const version of ['3.1', '3.1.1', '5']) {
    it(`exits pub with code 1 and a message, including QoS 0 over MQTT ${version}`, async () => {
      const shell = testShell();
      shell.files.set('large', 'x'.repeat(2_000_000));
      assert.equal(await pub(['-t', 'a', '-f', 'large', '-V', version], shell), 1);
      assert.match(shell.err(), /^embermq: .+\n$/);
    });
  }
});

describe('help', () => {
  for (const name of [[], ['serve'], ['pub'], ['sub'], ['bench'], ['options']]) {
    it(`prints the help of ${name[0] ?? 'the whole command'}`, async () => {
      const shell = testShell();
      assert.equal(await runCommand(['help', ...name], shell), 0);
      assert.match(shell.out(), /^(embermq|usage|options)/);
    });
  }

  it('prints the help for --help', async () => {
    const shell = testShell();
    assert.equal(await runCommand(['pub', '--help'], shell), 0);
    assert.match(shell.out(), /^usage: embermq pub/);
  });

  for (const name of ['serve', 'pub', 'sub', 'ctl', 'bench', 'passwd', 'store'])
    it(`prints the help for ${name} -h`, async () => {
      const shell = testShell();
      assert.deepEqual([await runCommand([name, '-h'], shell), shell.err()], [0, '']);
      assert.match(shell.out(), new RegExp(`^usage: embermq ${name} `));
    });

  it('prints the help for -h behind other flags, unless -h names a host', async () => {
    const shell = testShell();
    assert.equal(await runCommand(['serve', '--memory', '-h'], shell), 0);
    assert.match(shell.out(), /^usage: embermq serve/);
    assert.equal(await runCommand(['pub', '-t', 'a', '-h'], shell), 2);
    assert.equal(shell.err(), 'embermq: -h needs a value: host of the broker\n');
  });
});
