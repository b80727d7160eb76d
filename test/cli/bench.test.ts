import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { Spread } from '../../adapters/cli/spread.ts';
import { listen } from '../../adapters/net/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { testShell } from './shell.ts';

describe('bench', () => {
  let broker: Broker;
  let port: string;

  before(async () => {
    broker = createBroker();
    const listener = listen(broker, 0);
    await broker.start();
    port = String(listener.port);
  });

  after(() => broker.stop());

  /** The JSON that a benchmark prints. */
  async function measured(args: string[]): Promise<Record<string, number & Record<string, number>>> {
    const shell = testShell();
    assert.equal(await runCommand(['bench', ...args, '-p', port], shell), 0, shell.err());
    return JSON.parse(shell.out());
  }

  it('makes the given number of connections and reports the time to CONNACK', async () => {
    const { count, latencyMs, perSecond } = await measured(['connect', '--count', '20', '-n', '3']);
    assert.equal(count, 20);
    assert.ok(latencyMs.p50 > 0 && latencyMs.p50 <= latencyMs.max && perSecond > 0);
  });

  it('publishes for the given duration', async () => {
    const { count, seconds, latencyMs } = await measured(['publish', '-n', '2', '-d', '0.2', '-q', '1']);
    assert.ok(count > 0 && seconds >= 0.19 && latencyMs.mean > 0);
    assert.equal((await measured(['publish', '-n', '1', '-d', '0.1'])).latencyMs, null, 'QoS 0 is not acknowledged');
  });

  it('counts the messages that subscribers receive, and those that are lost or out of order', async () => {
    const { count, lost, outOfOrder } = await measured([
      'subscribe',
      '-n',
      '4',
      '-d',
      '0.2',
      '--rate',
      '200',
      '-q',
      '1'
    ]);
    assert.ok(count > 0 && count % 4 === 0);
    assert.deepEqual([lost, outOfOrder], [0, 0]);
  });

  it('measures the latency from publisher to subscriber at a rate', async () => {
    const { count, latencyMs, lost } = await measured(['latency', '-n', '2', '-d', '0.3', '--rate', '300']);
    assert.ok(count > 20 && count <= 110, String(count));
    assert.ok(latencyMs.p99 > 0);
    assert.equal(lost, 0);
  });

  it('connects many clients without a warning from Node', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on('warning', note);
    await measured(['connect', '--count', '24', '-n', '12']);
    process.off('warning', note);
    assert.deepEqual(warnings, []);
  });

  it('prints readable text on a terminal, and JSON with --json', async () => {
    const shell = testShell();
    shell.stdout.isTTY = true;
    await runCommand(['bench', 'connect', '--count', '2', '-p', port], shell);
    assert.match(shell.out(), /^connect: mqtt:\/\/localhost:\d+, 10 clients\n2 connections in /);
    await runCommand(['bench', 'connect', '--count', '2', '-p', port, '--json'], shell);
    assert.equal(JSON.parse(shell.out()).count, 2);
  });

  it('ends early at SIGINT and prints the results so far', async () => {
    const shell = testShell();
    const connected = broker.nextEvent('client.connected');
    const code = runCommand(['bench', 'publish', '-n', '1', '-d', '10m', '-p', port], shell);
    await connected;
    shell.signal('SIGINT');
    assert.equal(await code, 130);
    assert.equal(JSON.parse(shell.out()).bench, 'publish');
  });

  it('ends at SIGINT while it connects', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const accepted = once(silent, 'connection');
    const shell = testShell();
    const { port: deaf } = silent.address() as AddressInfo;
    const code = runCommand(['bench', 'connect', '-n', '1', '-h', '127.0.0.1', '-p', String(deaf)], shell);
    const [socket] = await accepted;
    shell.signal('SIGINT');
    assert.equal(await code, 130);
    assert.equal(JSON.parse(shell.out()).count, 0);
    socket.destroy();
    silent.close();
  });

  for (const name of ['latency', 'subscribe', 'publish']) {
    it(`exits ${name} with code 1 and leaves no connection open if a message is refused`, {
      timeout: 20_000
    }, async () => {
      const shell = testShell();
      const args = ['bench', name, '-n', '2', '-d', '10m', '-s', '2000000', '-p', port];
      assert.equal(await runCommand(args, shell), 1);
      assert.match(shell.err(), /packet of \d+ bytes: the server accepts at most 1048576 bytes/);
      assert.equal(broker.metrics.gauges()['connections.count'], 0);
    });
  }

  it('refuses an unknown benchmark with a suggestion, and payloads that are too small for a timestamp and a number', async () => {
    const shell = testShell();
    assert.equal(await runCommand(['bench', 'publsh', '-p', port], shell), 2);
    assert.match(shell.err(), /unknown bench "publsh": did you mean publish/);
    assert.equal(await runCommand(['bench', 'latency', '-s', '4', '-p', port], shell), 2);
    assert.match(shell.err(), /--size: expected at least 12 bytes/);
  });
});

describe('Spread', () => {
  it('returns quantiles that are accurate to two percent', () => {
    const spread = new Spread();
    for (let ms = 1; ms <= 10_000; ms++) spread.add(ms);
    for (const share of [0.1, 0.5, 0.9, 0.99, 1]) {
      const found = spread.quantile(share);
      assert.ok(Math.abs(found / (share * 10_000) - 1) < 0.02, `${share}: ${found}`);
    }
    assert.equal(spread.summary().mean, 5000);
  });

  it('returns zeros while it is empty', () => {
    assert.deepEqual(new Spread().summary(), { mean: 0, p50: 0, p90: 0, p99: 0, max: 0 });
  });
});
