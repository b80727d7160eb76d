import assert from 'node:assert/strict';
import { type StdioOptions, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { listen } from '../../adapters/net/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { joinedProgram } from '../support/programs.ts';
import { CommandProcess } from './process.ts';

/** Run a command whose standard streams include open files, which are closed afterwards. */
function runWith(args: readonly string[], stdio: StdioOptions & unknown[], input?: string) {
  const program = joinedProgram('adapters/cli/main.ts');
  const result = spawnSync(process.execPath, [program, ...args], { stdio, input, encoding: 'utf8' });
  for (const one of stdio) if (typeof one === 'number') closeSync(one);
  return result;
}

describe('the command in a separate process', () => {
  let broker: Broker;
  let port: string;

  before(async () => {
    broker = createBroker();
    const listener = listen(broker, 0);
    await broker.start();
    port = String(listener.port);
  });

  after(() => broker.stop());

  it('ends pub -l at SIGINT although standard input stays open', async () => {
    const connected = broker.nextEvent('client.connected');
    const pub = new CommandProcess(['pub', '-p', port, '-t', 'a', '-l']);
    await connected;
    const published = broker.nextEvent('message.publish');
    pub.child.stdin?.write('one\n');
    await published;
    pub.child.kill('SIGINT');
    assert.equal(await pub.end(), 130);
  });

  it('names the reason if standard output cannot be written to', { skip: !existsSync('/dev/full') }, () => {
    for (const args of [['decode', '-', '--hex', '--protocol', '4'], ['version']]) {
      const { status, stderr } = runWith(args, ['pipe', openSync('/dev/full', 'w'), 'pipe'], 'c000');
      assert.equal(status, 1);
      assert.match(stderr, /^embermq: cannot write to standard output: ENOSPC: .+\n$/);
    }
  });

  it('FILE_UNREADABLE: names the reason if standard input is a directory', {
    skip: process.platform === 'win32'
  }, () => {
    const { status, stdout, stderr } = runWith(['decode', '-'], [openSync(tmpdir(), 'r'), 'pipe', 'pipe']);
    assert.deepEqual([status, stdout], [1, '']);
    assert.equal(stderr, 'embermq: cannot read standard input: EISDIR: it is a directory\n');
  });

  it('ends sub when the reader of its output has ended', async () => {
    const subscribed = broker.nextEvent('session.subscribed');
    const sub = new CommandProcess(['sub', '-p', port, '-t', 'b']);
    await subscribed;
    sub.child.stdout?.destroy();
    await once(sub.child.stdout as NodeJS.ReadableStream, 'close');
    const gone = broker.nextEvent('client.disconnected');
    await broker.publish('b', 'into the void');
    await broker.publish('b', 'again');
    await gone;
    assert.equal(await sub.end(), 141);
    assert.equal(sub.stderr, '');
  });
});
