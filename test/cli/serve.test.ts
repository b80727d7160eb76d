import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { connectAsync } from 'mqtt';
import { log } from '../../adapters/cli/command.ts';
import { runCommand } from '../../adapters/cli/commands.ts';
import { openOptional, places } from '../../adapters/cli/serve/listeners.ts';
import { serveLogger } from '../../adapters/cli/serve/log.ts';
import { serve } from '../../adapters/cli/serve/serve.ts';
import type { PlannedListener, ServeSettings } from '../../adapters/cli/serve/settings.ts';
import { listen, tcp, ws } from '../../adapters/net/index.ts';
import { createBroker } from '../../lib/index.ts';
import { mosquitto, withMosquitto } from './mosquitto.ts';
import { CommandProcess } from './process.ts';
import { readyPorts, testShell } from './shell.ts';

const PORTS = ['--mqtt-port', '0', '--ws-port', '0'];
/** The real time after which a command counts as hung. */
const PATIENCE_MS = 20_000;
const withProc = { skip: !existsSync('/proc/self') && 'no /proc here' };
const FREE = [...PORTS, '--memory'];

/** A URL that imports `code` as a module. */
function moduleUrl(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

/** Check whether a process handles SIGHUP (signal 1). */
function catchesHangup(pid: number): boolean {
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return (BigInt(`0x${caught}`) & 1n) === 1n;
}

describe('serve', () => {
  it('prints one line on standard output when all listeners accept connections: ready, the actual ports and the process id', async () => {
    const shell = testShell();
    const code = runCommand(['serve', ...FREE], shell);
    const ready = await readyPorts(shell, code);
    assert.deepEqual(Object.keys(ready), ['mqtt', 'ws', 'pid']);
    assert.equal(ready.pid, shell.pid);
    assert.ok(ready.mqtt > 0 && ready.ws > 0 && ready.mqtt !== ready.ws);
    const sent = testShell();
    assert.equal(
      await runCommand(['pub', '-L', `ws://localhost:${ready.ws}`, '-t', 'a', '-m', 'x', '-q', '2'], sent),
      0
    );
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
    assert.equal(shell.out(), '', 'nothing else goes there');
  });

  it('persists its state in --data-dir, prints the folder, and restores the state at the next start', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-serve-'));
    try {
      for (const life of [1, 2]) {
        const shell = testShell();
        const code = runCommand(['serve', ...PORTS, '--data-dir', join(folder, 'new/data')], shell);
        const { mqtt } = await readyPorts(shell, code);
        const port = ['-p', String(mqtt)];
        if (life === 1) await runCommand(['pub', ...port, '-t', 'a', '-m', 'kept', '-q', '1', '-r'], testShell());
        else {
          const sub = testShell();
          assert.equal(await runCommand(['sub', ...port, '-t', 'a', '-C', '1', '-W', '10'], sub), 0);
          assert.equal(sub.out(), 'kept\n');
        }
        shell.signal('SIGTERM');
        assert.equal(await code, 0);
        assert.ok(shell.err().includes(`state is persisted in ${join(folder, 'new/data')}\n`));
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('verifies the checksums of its files first, and with --no-verify-store starts despite damage that LevelDB does not detect', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-serve-'));
    const runOnce = async (...flags: string[]) => {
      const shell = testShell();
      const code = runCommand(['serve', ...PORTS, '--data-dir', folder, ...flags], shell);
      if ((await Promise.race([shell.line(/^ready /), code])) !== 1) shell.signal('SIGTERM');
      return { code: await code, err: shell.err() };
    };
    try {
      assert.equal((await runOnce()).code, 0);
      const log = readdirSync(folder).find((name) => name.endsWith('.log')) as string;
      rmSync(join(folder, log));
      const refused = await runOnce();
      assert.equal(refused.code, 1);
      assert.match(refused.err, new RegExp(`its file ${log} is missing`));
      assert.equal((await runOnce('--no-verify-store')).code, 0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('exits with code 1 and a message without a stack if pending changes cannot be written at the end', async (t) => {
    const home = mkdtempSync(join(tmpdir(), 'embermq-serve-'));
    const folder = join(home, 'data');
    const shell = testShell();
    const { stdout } = shell;
    const write = stdout.write.bind(stdout);
    t.mock.method(stdout, 'write', (text: string) => {
      rmSync(folder, { recursive: true }); // as soon as serve is ready, before it looks at the size of the file system
      return write(text);
    });
    const code = runCommand(['serve', ...PORTS, '--data-dir', folder], shell);
    try {
      const { mqtt } = await readyPorts(shell, code);
      const later = performance.now() + 2_000;
      t.mock.method(performance, 'now', () => later); // the broker checks the folder once a second
      const pub = ['pub', '-p', String(mqtt), '-t', 'a', '-m', 'lost', '-q', '1', '-r'];
      assert.equal(await runCommand(pub, testShell()), 1);
      shell.signal('SIGTERM');
      assert.equal(await code, 1);
      const told = shell.err();
      assert.match(told, /the folder was deleted or moved while it was open/);
      assert.ok(
        told.endsWith(
          `\nembermq: ${folder}: the last changes could not be written; none of them was acknowledged. Check the disk before the next start.\n`
        ),
        told
      );
    } finally {
      rmSync(home, { recursive: true });
    }
  });

  it('persists nothing with --memory', async () => {
    const shell = testShell();
    const code = runCommand(['serve', ...FREE], shell);
    await readyPorts(shell, code);
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
    assert.doesNotMatch(shell.err(), /state is persisted/);
  });

  it('exits with code 1 and names the folder and the remedy if another broker uses the folder', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-serve-'));
    const first = testShell();
    const firstCode = runCommand(['serve', ...PORTS, '--data-dir', folder], first);
    try {
      await readyPorts(first, firstCode);
      const second = testShell();
      assert.equal(await runCommand(['serve', ...PORTS, '--data-dir', folder], second), 1);
      const told = second.err();
      assert.ok(told.startsWith(`embermq: ${folder}: in use by another store of this process`), told);
      assert.match(told, /Stop it, or name another folder/);
      assert.equal(second.signalListeners.size, 0);
    } finally {
      first.signal('SIGTERM');
      await firstCode;
      rmSync(folder, { recursive: true });
    }
  });

  it('exits with code 1 and names the address if a port is in use, and leaves nothing open', async () => {
    const first = testShell();
    const firstCode = runCommand(['serve', ...FREE], first);
    const { mqtt } = await readyPorts(first, firstCode);
    const second = testShell();
    assert.equal(await runCommand(['serve', '--memory', '--mqtt-port', String(mqtt), '--ws-port', '0'], second), 1);
    assert.match(second.err(), new RegExp(`127\\.0\\.0\\.1:${mqtt}`));
    assert.equal(second.signalListeners.size, 0);
    first.signal('SIGINT');
    assert.equal(await firstCode, 0);
  });

  it('omits a listener on a default port that is in use, with a warning, unless no listener remains', async () => {
    await using broker = createBroker();
    const taken = listen(broker, 0);
    await broker.start();
    const shell = testShell();
    const plan = { label: 'ws', place: '', transport: ws({ port: taken.port as number }), isOptional: true };
    const other = { label: 'mqtt', place: '', transport: tcp({ port: 0 }) };
    const second = createBroker();
    const opened = [{ plan: other, listening: listen(second, other.transport) }];
    await second.start();
    const open = ({ transport }: PlannedListener) => listen(second, transport);
    await openOptional([plan, other], second, opened, { shell, open });
    assert.deepEqual(Object.keys(places([plan, other], opened)), ['mqtt']);
    const address = `127.0.0.1:${taken.port}`;
    assert.ok(shell.err().startsWith(`warning: continuing without the ws listener: cannot listen on ${address}: `));
    await assert.rejects(openOptional([plan, other], second, [], { shell, open }), { code: 'LISTENER_BIND_FAILED' });
    assert.equal(second.state, 'disconnected');
  });

  it('drops lines for standard error, instead of queuing them, while it is not read', async () => {
    const shell = testShell();
    const code = runCommand(['serve', ...FREE], shell);
    await readyPorts(shell, code);
    for (let n = 0; n < 20_000; n++) log(shell, 'x'.repeat(1000));
    assert.ok(shell.stderr.writableLength < 2_000_000, `${shell.stderr.writableLength} bytes`);
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  });

  it('reports at SIGHUP that there are no certificates to reload, and is never ended by SIGHUP', async () => {
    const shell = testShell();
    const code = serve.run(FREE, shell);
    shell.hangUp();
    await readyPorts(shell, code);
    shell.hangUp();
    shell.signal('SIGTERM');
    shell.hangUp();
    assert.equal(await code, 0);
    shell.hangUp();
    const told = shell.err().match(/^SIGHUP: there are no TLS listeners, so no certificates were reloaded$/gm);
    assert.equal(told?.length, 3);
  });

  it('exits immediately at a second signal', async () => {
    const shell = testShell();
    const code = runCommand(['serve', ...FREE], shell);
    await readyPorts(shell, code);
    shell.signal('SIGTERM');
    assert.deepEqual(shell.exits, []);
    shell.signal('SIGINT');
    assert.deepEqual(shell.exits, [130]);
    await code;
  });

  it('reports clients that connect and disconnect with --verbose', async () => {
    const shell = testShell();
    const code = runCommand(['serve', ...FREE, '-v'], shell);
    const { mqtt } = await readyPorts(shell, code);
    await runCommand(['pub', '-p', String(mqtt), '-i', 'visitor', '-t', 'a', '-m', 'x'], testShell());
    shell.signal('SIGTERM');
    await code;
    const told = shell.err();
    const visitor = 'clientId=visitor address=127\\.0\\.0\\.1:\\d+';
    const connected = `^info: client connected ${visitor} transport=tcp listener=\\S+ protocolVersion=5 sessionPresent=false$`;
    assert.match(told, new RegExp(connected, 'm'));
    assert.match(told, new RegExp(`^info: client disconnected ${visitor} reason=normal reasonCode=0$`, 'm'));
  });

  it('logs the levels of --log-level, and quotes values that could imitate a line', async () => {
    for (const [level, expected] of [
      ['error', /^$/],
      ['warn', /^$/],
      ['info', /^info: client connected clientId="a b\\"" .*\n.*client disconnected/],
      ['debug', /^debug: session created .*\ninfo: client connected clientId="a b\\""/]
    ] as const) {
      const shell = testShell();
      const code = runCommand(['serve', ...FREE, '--log-level', level], shell);
      const { mqtt } = await readyPorts(shell, code);
      await runCommand(['pub', '-p', String(mqtt), '-i', 'a b"', '-t', 'a', '-m', 'x'], testShell());
      shell.signal('SIGTERM');
      await code;
      const told = shell.err().replace('SIGTERM: draining\n', '');
      assert.match(told, expected, level);
    }
    const wrong = testShell();
    assert.equal(await runCommand(['serve', ...FREE, '--log-level', 'all'], wrong), 2);
    assert.match(wrong.err(), /--log-level.*"error", "warn", "info", "debug"|--log-level.*error, warn, info, debug/);
  });

  it('escapes characters that could change the lines of the log or their order on a terminal', async () => {
    const shell = testShell();
    const code = runCommand(['serve', ...FREE, '--log-level', 'debug', '--control-characters', 'allow'], shell);
    const { mqtt } = await readyPorts(shell, code);
    for (const name of ['a\u009b31m', 'b\u202egnp', 'c\u2028info: x', 'd\u001b[31m', 'e\u0085', 'f\u2066', 'g\u007f'])
      await runCommand(['pub', '-p', String(mqtt), '-i', name, '-t', 'a', '-m', 'x'], testShell());
    shell.signal('SIGTERM');
    await code;
    const told = shell.err();
    for (const name of [
      'a\\u009b31m',
      'b\\u202egnp',
      'c\\u2028info: x',
      'd\\u001b[31m',
      'e\\u0085',
      'f\\u2066',
      'g\\u007f'
    ])
      assert.ok(told.includes(`info: client connected clientId="${name}" `), name);
    assert.doesNotMatch(told, /[^\P{Cc}\n]|[\u2028\u2029\p{Bidi_Control}]/u);
  });

  it('logs errors with a code, such as those of sinks and sources, without their stack', () => {
    const shell = testShell();
    const own = { logLevel: 'error', verbose: false } as ServeSettings['own'];
    const logger = serveLogger(shell, own) as { error(message: string, fields: object): void };
    const error = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'HTTP_FAILED' });
    logger.error(`sink_rest_0: ${error.message}`, { event: 'error', during: 'sink_rest_0', error });
    assert.equal(shell.err(), 'error: sink_rest_0: connect ECONNREFUSED 127.0.0.1:1\n');
  });

  it('logs errors in one line, followed by their stack', () => {
    const shell = testShell();
    const own = { logLevel: 'error', verbose: false } as ServeSettings['own'];
    const logger = serveLogger(shell, own) as { error(message: string, fields: object): void };
    const during = 'asking the server of the source x';
    const logged = (error: Error) => {
      logger.error(`${during}: ${error.message}`, { event: 'error', during, error });
      return shell.err().trimEnd().split('\n');
    };
    const [line, ...calls] = logged(new Error('no\nwarn: forged\n    at forged \u001b[2J\u202e'));
    assert.equal(line, `error: ${during}: no warn: forged     at forged \\u001b[2J\\u202e`);
    assert.match(calls[0], /^ {4}at /);
    for (const call of calls) assert.match(call, /^ {4}at (?!forged)/);
    const bare = new Error('no');
    bare.stack = 'what\nwarn: forged\n    at here';
    assert.deepEqual(logged(bare), [`error: ${during}: no`, '    at here']);
    bare.stack = '';
    assert.deepEqual(logged(bare), [`error: ${during}: no`]);
  });

  it('writes a trace to standard error or to a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-serve-'));
    const file = join(folder, 't.jsonl');
    try {
      for (const [flags, packets] of [
        [
          ['--trace-client', 'visitor'],
          ['connect', 'connack', 'publish', 'disconnect']
        ],
        [['--trace-topic', 'a/#'], ['publish']],
        [
          ['--trace-address', '127.0.0.0/8', '--trace-file', file],
          ['connect', 'connack', 'publish', 'disconnect']
        ],
        [['--trace-address', '10.0.0.0/8'], []]
      ] as const) {
        const shell = testShell();
        const code = runCommand(['serve', ...FREE, ...flags], shell);
        const { mqtt } = await readyPorts(shell, code);
        await runCommand(['pub', '-p', String(mqtt), '-i', 'visitor', '-t', 'a/b', '-m', 'x'], testShell());
        shell.signal('SIGTERM');
        assert.equal(await code, 0);
        const told = shell.err();
        const text = flags.length > 2 ? readFileSync(file, 'utf8') : told;
        const records = text
          .split('\n')
          .filter((line) => line.startsWith('{'))
          .map((line) => JSON.parse(line));
        assert.deepEqual(
          records.flatMap(({ packet = 'ping' }) => (packet.startsWith('ping') ? [] : [packet])),
          packets
        );
      }
      const alone = testShell();
      assert.equal(await runCommand(['serve', ...FREE, '--trace-file', file], alone), 2);
      assert.match(alone.err(), /--trace-file needs --trace-client, --trace-topic or --trace-address/);
      for (const [flag, value, message] of [
        ['--trace-topic', 'a/#/b', 'topic filter "a/#/b": "#" may only be the last level'],
        ['--trace-address', '1.2.3', 'expected an IP address, or a network such as "192.0.2.0/24", got "1.2.3"']
      ]) {
        const wrong = testShell();
        assert.equal(await runCommand(['serve', ...FREE, flag, value, '--trace-file', file], wrong), 2);
        assert.equal(wrong.err(), `embermq: ${flag}: ${message}\n`);
      }
      const missing = testShell();
      const nowhere = join(folder, 'no', 't');
      assert.equal(await runCommand(['serve', ...FREE, '--trace-topic', '#', '--trace-file', nowhere], missing), 1);
      assert.match(missing.err(), /cannot write the trace file .*: the folder .* does not exist/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('opens the listeners of its config file under their configured names', async () => {
    const shell = testShell();
    const path = `/tmp/embermq-serve-${process.pid}.sock`;
    const listeners = [
      { kind: 'unix', path },
      { kind: 'tcp', port: 0, name: 'inner', zone: 'internal' }
    ];
    shell.files.set('c.json', JSON.stringify({ mqttPort: 'off', wsPort: 'off', memory: true, listeners }));
    const code = runCommand(['serve', '-c', 'c.json'], shell);
    const ready = await readyPorts(shell, code);
    assert.equal(ready[`unix:${path}`], path);
    assert.ok(ready.inner > 0);
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  });

  it('applies an option of the library', async () => {
    const shell = testShell();
    const code = runCommand(['serve', ...FREE, '--no-retain-available'], shell);
    const { mqtt } = await readyPorts(shell, code);
    const sent = testShell();
    assert.equal(await runCommand(['pub', '-p', String(mqtt), '-t', 'a', '-m', 'x', '-r', '-q', '1'], sent), 1);
    shell.signal('SIGTERM');
    await code;
  });
});

describe('serve in a separate process', () => {
  let command: CommandProcess | undefined;

  afterEach(() => command?.child.kill('SIGKILL'));

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`stops gracefully and exits with code 0 at ${signal}`, async () => {
      command = new CommandProcess(['serve', ...FREE]);
      const { mqtt } = await command.ready();
      const client = connect(mqtt, '127.0.0.1');
      client.on('error', () => {});
      command.child.kill(signal);
      assert.equal(await command.end(), 0);
      assert.match(command.stderr, new RegExp(`^${signal}: draining$`, 'm'));
    });
  }

  it('keeps running if standard error, or also standard output, can no longer be written to (EPIPE)', async () => {
    for (const gone of [['stderr'], ['stdout', 'stderr']] as const) {
      command = new CommandProcess(['serve', ...FREE, '--verbose']);
      const { mqtt } = await command.ready();
      for (const name of gone) {
        command.child[name]?.destroy();
        await once(command.child[name] as NodeJS.ReadableStream, 'close');
      }
      for (let n = 0; n < 3; n++) {
        const client = await connectAsync(`mqtt://127.0.0.1:${mqtt}`, { reconnectPeriod: 0 });
        await client.publishAsync('a', 'b', { qos: 1 });
        await client.endAsync();
      }
      command.child.kill('SIGTERM');
      assert.equal(await command.end(), 0, gone.join());
    }
  });

  it('keeps running when SIGHUP arrives while it starts, runs or stops', withProc, async () => {
    command = new CommandProcess(['serve', ...FREE]);
    const { child } = command;
    const ready = command.ready();
    // Wait until the process has a handler; before that, `serve` is not running yet.
    while (!catchesHangup(child.pid as number)) await new Promise((resolve) => setImmediate(resolve));
    child.kill('SIGHUP');
    const { mqtt } = await ready;
    child.kill('SIGHUP');
    const client = await connectAsync(`mqtt://127.0.0.1:${mqtt}`, { reconnectPeriod: 0 });
    await client.publishAsync('a', 'b', { qos: 1 });
    child.kill('SIGTERM');
    child.kill('SIGHUP');
    assert.equal(await command.end(), 0);
    assert.match(command.stderr, /SIGHUP: there are no TLS listeners/);
    await client.endAsync(true);
  });

  it('keeps running when SIGHUP arrives while its modules are being loaded', async () => {
    const load = `import { writeSync } from 'node:fs';
      export function load(url, context, next) {
        if (/\\/commands-\\w+\\.js$/.test(url)) {
          process.kill(process.pid, 'SIGHUP');
          writeSync(2, 'SIGHUP sent\\n');
        }
        return next(url, context);
      }`;
    const script = `import { register } from 'node:module'; register(${JSON.stringify(moduleUrl(load))});`;
    command = new CommandProcess(['serve', ...FREE], { NODE_OPTIONS: `--import=${moduleUrl(script)}` });
    await command.ready();
    command.child.kill('SIGTERM');
    assert.equal(await command.end(), 0);
    assert.match(command.stderr, /SIGHUP sent/);
  });

  it('ends at SIGTERM although standard error is not read and its buffers are full', async () => {
    command = new CommandProcess(['serve', ...FREE, '--verbose']);
    const { child } = command;
    const { mqtt } = await command.ready();
    child.stderr?.pause();
    for (let n = 0; n < 100; n++) {
      const clientId = String(n).padStart(4000, '0'); // two lines of 4 KB each: more than a pipe and the stream behind it hold
      const client = await connectAsync(`mqtt://127.0.0.1:${mqtt}`, { clientId, reconnectPeriod: 0 });
      await client.endAsync();
    }
    const exit = once(child, 'exit', { signal: AbortSignal.timeout(PATIENCE_MS) });
    child.kill('SIGTERM');
    assert.deepEqual(await exit, [0, null]);
  });

  it('prints its process id, whatever program started it', async () => {
    command = new CommandProcess(['serve', ...FREE]);
    process.kill((await command.ready()).pid, 'SIGKILL');
    assert.equal(await command.end(), 'SIGKILL');
  });

  it('exits with code 2 and a message on standard error if an option is invalid', async () => {
    command = new CommandProcess(['serve', '--mqtt-prot', '0']);
    assert.equal(await command.end(), 2);
    assert.equal(command.stdout, '');
    assert.equal(command.stderr, 'embermq: unknown flag --mqtt-prot; did you mean --mqtt-port?\n');
  });

  it('reports immediately that it cannot create its data folder, and names the remedy', withProc, async () => {
    for (const folder of ['/proc/embermq', '/proc/embermq/data']) {
      command = new CommandProcess(['serve', ...PORTS, '--data-dir', folder]);
      const guard = setTimeout(() => command?.child.kill('SIGKILL'), PATIENCE_MS);
      assert.equal(await command.end(), 1);
      clearTimeout(guard);
      assert.match(command.stderr, new RegExp(`^embermq: ${folder}: .*ENOENT.*name another folder\\.\n$`));
    }
  });

  it('serves MQTT.js in versions 3.1.1 and 5, over TCP and WebSocket', async () => {
    command = new CommandProcess(['serve', ...FREE]);
    const { mqtt, ws } = await command.ready();
    for (const protocolVersion of [4, 5] as const) {
      const places = [`mqtt://127.0.0.1:${mqtt}`, `ws://127.0.0.1:${ws}/mqtt`];
      const clients = await Promise.all(places.map((place) => connectAsync(place, { protocolVersion })));
      for (const [at, client] of clients.entries()) {
        const topic = `from/${protocolVersion}/${at}`;
        const received = once(clients[1 - at] as never, 'message');
        await clients[1 - at].subscribeAsync(topic, { qos: 2 });
        await client.publishAsync(topic, 'hello', { qos: 2 });
        assert.deepEqual((await received).slice(0, 2).map(String), [topic, 'hello']);
      }
      await Promise.all(clients.map((client) => client.endAsync()));
    }
  });

  it('serves mosquitto_pub and mosquitto_sub in all three versions', withMosquitto, async () => {
    command = new CommandProcess(['serve', ...FREE]);
    const port = String((await command.ready()).mqtt);
    for (const version of ['mqttv31', 'mqttv311', 'mqttv5']) {
      const topic = `m/${version}`;
      await mosquitto('pub', ['-p', port, '-V', version, '-t', topic, '-m', version, '-q', '2', '-r']);
      assert.equal(
        await mosquitto('sub', ['-p', port, '-V', version, '-t', topic, '-q', '2', '-C', '1', '-W', '10']),
        `${version}\n`
      );
    }
  });
});
