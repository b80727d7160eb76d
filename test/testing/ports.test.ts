import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { type EventEmitter, once as onceOf } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createTestBroker } from 'embermq/testing';
import mqtt from 'mqtt';
import { TestBroker } from '../../lib/testing/index.ts';

const run = promisify(execFile);
const skip = spawnSync('mosquitto_pub', ['--version']).error === undefined ? false : 'mosquitto_pub is not installed';

/** Clients and brokers have different types. */
function once(emitter: unknown, event: string): Promise<unknown[]> {
  return onceOf(emitter as EventEmitter, event);
}

describe('kit.listen', () => {
  it('receives messages of a program in another process', { skip }, async () => {
    await using kit = await createTestBroker({ leaks: 'error' });
    const { port } = await kit.listen();
    const args = ['-h', '127.0.0.1', '-p', `${port}`, '-t', 'doors/1', '-m', 'open', '-q', '1'];
    kit.clock.track(run('mosquitto_pub', args)); // virtual time stops until the program has ended
    assert.equal((await kit.expectMessage('doors/1')).text, 'open');
  });

  it('sends to a program in another process', { skip }, async () => {
    await using kit = await createTestBroker({ leaks: 'error' });
    const { port } = await kit.listen();
    const subscribed = once(kit.broker, 'session.subscribed');
    const args = ['-h', '127.0.0.1', '-p', `${port}`, '-t', 'doors/1', '-C', '1'];
    const program = spawn('mosquitto_sub', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(program, 'close');
    const printed = once(program.stdout, 'data');
    await subscribed;
    await kit.broker.publish('doors/1', 'open');
    assert.equal(String((await printed)[0]), 'open\n');
    assert.deepEqual(await ended, [0, null]);
  });

  for (const [name, webSocket, form] of [
    ['TCP', false, /^mqtt:\/\/127\.0\.0\.1:\d+$/],
    ['WebSocket', true, /^ws:\/\/127\.0\.0\.1:\d+\/mqtt$/],
    ['WebSocket with a path', '/devices', /^ws:\/\/127\.0\.0\.1:\d+\/devices$/]
  ] as const)
    it(`serves MQTT.js over ${name}, and closes with the kit`, async () => {
      const kit = await createTestBroker({ leaks: 'error' });
      const { url, port } = await kit.listen({ webSocket });
      assert.match(url, form);
      const client = await mqtt.connectAsync(url, { reconnectPeriod: 0 });
      const closed = once(client, 'close');
      await kit[Symbol.asyncDispose]();
      await closed;
      client.end(true);
      const socket = connect(port, '127.0.0.1');
      const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
      assert.equal(error.code, 'ECONNREFUSED');
    });

  it('disconnects a client whose keep alive passes in virtual time', async () => {
    await using kit = await createTestBroker();
    const { url } = await kit.listen();
    const client = await mqtt.connectAsync(url, { reconnectPeriod: 0, clientId: 'c', keepalive: 60 });
    const gone = once(kit.broker, 'client.disconnected');
    await kit.clock.advance('91s');
    assert.equal(((await gone)[0] as { reason: string }).reason, 'keepalive_timeout');
    client.end(true);
  });

  it('opens several ports, each of which can be closed earlier', async () => {
    await using kit = await createTestBroker();
    const [first, second] = [await kit.listen(), await kit.listen()];
    assert.notEqual(first.port, second.port);
    await first.close();
    assert.deepEqual(
      kit.broker.listeners().map(({ address }) => address?.port),
      [second.port]
    );
  });

  it('refuses to open a port after the kit has been disposed of, or its broker stopped', async () => {
    const disposed = await createTestBroker();
    await disposed[Symbol.asyncDispose]();
    await using stopped = await createTestBroker();
    await stopped.broker.stop();
    for (const kit of [disposed, stopped]) {
      await assert.rejects(kit.listen(), { name: 'StateError', code: 'BROKER_NOT_STARTED', message: /^kit\.listen: / });
      assert.deepEqual(kit.broker.listeners(), []);
    }
  });

  it('names a wrong option and a port in use', async () => {
    await using kit = await createTestBroker();
    await assert.rejects(kit.listen({ ws: true } as object), {
      code: 'OPTION_UNKNOWN',
      message: 'kit.listen: unknown option "ws"; it has port and webSocket'
    });
    for (const options of [null, 1883, 'localhost'])
      await assert.rejects(kit.listen(options as never), {
        code: 'OPTION_INVALID',
        message: `kit.listen: expected an object with port and webSocket, got ${JSON.stringify(options)}`
      });
    const { port } = await kit.listen();
    await assert.rejects(kit.listen({ port }), { code: 'LISTENER_BIND_FAILED' });
    await using bare = new TestBroker();
    await assert.rejects(bare.listen(), { code: 'PORTS_MISSING' });
  });
});
