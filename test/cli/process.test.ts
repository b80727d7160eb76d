import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { listen } from '../../adapters/net/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { CommandProcess } from './process.ts';

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
