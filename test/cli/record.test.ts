import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { listen, tcp, ws } from '../../adapters/net/index.ts';
import { createTestBroker } from '../../adapters/testing/index.ts';
import { type Broker, connectClient, createBroker } from '../../lib/index.ts';
import { testShell } from './shell.ts';

const folder = mkdtempSync(join(tmpdir(), 'embermq-record-'));
let broker: Broker;
let port: number;
let wsPort: number;

before(async () => {
  broker = createBroker();
  const tcpListener = listen(broker, tcp({ port: 0, host: '127.0.0.1' }));
  const wsListener = listen(broker, ws({ port: 0, host: '127.0.0.1' }));
  await broker.start();
  port = tcpListener.port as number;
  wsPort = wsListener.port as number;
});

after(async () => {
  await broker.stop();
  rmSync(folder, { recursive: true });
});

/** Start the command. @returns the port for clients */
async function start(args: readonly string[], shell = testShell()) {
  const code = runCommand(['record', ...args], shell);
  const started = new Promise<number>((resolve) => {
    let text = '';
    shell.stderr.on('data', (part) => {
      text += part;
      const found = /recording mqtt:\/\/127\.0\.0\.1:(\d+) -> /.exec(text)?.[1];
      if (found !== undefined) resolve(Number(found));
    });
  });
  return { shell, code, port: await Promise.race([started, code]) };
}

describe('embermq record', () => {
  for (const [name, target] of [
    ['TCP', () => ['-p', String(port)]],
    ['WebSocket', () => ['-L', `ws://127.0.0.1:${wsPort}/mqtt`]]
  ] as const)
    it(`records what clients and a broker over ${name} send, until SIGINT, for kit.replay`, async () => {
      const file = join(folder, `${name}.jsonl`);
      const { shell, code, port: clientPort } = await start([file, '--listen', '0', ...target()]);
      const client = await connectClient(connect(clientPort, '127.0.0.1'), { clientId: 'pump' });
      await client.subscribe('a', { qos: 1 });
      const got = new Promise((resolve) => client.on('message', resolve));
      await client.publish('a', 'on', { qos: 1 });
      await got;
      await client.disconnect();
      shell.signal('SIGINT');
      assert.equal(await code, 0);
      assert.match(shell.out(), /(TCP|WebSocket)\.jsonl: 1 connections, \d+ packets\n$/);
      await using kit = await createTestBroker();
      const log = await kit.replay(file);
      assert.deepEqual(
        log.deliveries.map(({ clientId, topic, text }) => [clientId, topic, text]),
        [['pump', 'a', 'on']]
      );
    });

  it('ends after the time of -W', async () => {
    const file = join(folder, 'short.jsonl');
    const { code } = await start([file, '--listen', '127.0.0.1:0', '-W', '0.05']);
    assert.equal(await code, 0);
    assert.match(readFileSync(file, 'utf8'), /^\{"embermq":"recording","version":1,.*\n\{"ms":\d+,"connection":0\}\n$/);
  });

  it('reports a broker that cannot be reached, once for each client', async () => {
    const { shell, port: clientPort } = await start([join(folder, 'none.jsonl'), '-l', '0', '-L', 'unix:/nowhere']);
    let text = '';
    shell.stderr.on('data', (part) => (text += part));
    await new Promise((resolve) => connect(clientPort, '127.0.0.1').resume().once('close', resolve));
    assert.match(text, /cannot reach unix:\/nowhere/);
    shell.signal('SIGTERM');
  });

  it('refuses a missing file name, an invalid address, a file that exists and a port in use', async () => {
    const file = join(folder, 'exists.jsonl');
    const { shell, code, port: used } = await start([file, '-l', '0']);
    for (const [args, expected, text] of [
      [[], 2, /record needs one file/],
      [['a', 'b'], 2, /record needs one file/],
      [['a', '--listen', 'host'], 2, /--listen.*a port, or host:port/],
      [['a', '--listen', '70000'], 2, /--listen/],
      [[file, '-l', '0'], 1, /cannot write .*exists\.jsonl/],
      [
        [join(folder, 'other.jsonl'), '-l', `127.0.0.1:${used}`],
        1,
        /cannot listen on 127\.0\.0\.1:\d+.*choose another port/
      ]
    ] as const) {
      const failing = testShell();
      assert.equal(await runCommand(['record', ...args], failing), expected);
      assert.match(failing.err(), text);
    }
    shell.signal('SIGINT');
    assert.equal(await code, 0);
  });
});
