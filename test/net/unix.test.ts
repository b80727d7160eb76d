import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { listen, unix } from '../../adapters/net/index.ts';
import type { BrokerError } from '../../lib/index.ts';
import { readBytes, StubBroker } from './stub-broker.ts';

let broker: StubBroker;
let directory: string;
let path: string;
const clients: Socket[] = [];

function client(): Socket {
  const socket = connect(path);
  socket.on('error', () => {});
  clients.push(socket);
  return socket;
}

beforeEach(() => {
  broker = new StubBroker();
  directory = mkdtempSync(join(tmpdir(), 'listener-'));
  path = join(directory, 'mqtt.sock');
});

afterEach(async () => {
  for (const socket of clients.splice(0)) socket.destroy();
  await broker.stop();
  rmSync(directory, { recursive: true });
});

describe('a Unix socket listener', () => {
  it('carries bytes, and deletes its file on close', async () => {
    const listener = await listen(broker, { path });
    assert.equal(listener.name, `unix:${path}`);
    assert.equal(listener.protocol, 'mqtt:unix');
    assert.deepEqual(listener.address, { path });
    assert.equal(listener.port, undefined);
    const socket = client();
    const { stream, meta } = await broker.next();
    assert.equal(meta.transport, 'unix');
    assert.equal(meta.remoteAddress, undefined);
    socket.write('there');
    assert.equal((await readBytes(stream, 5)).toString(), 'there');
    await listener.close();
    assert.equal(existsSync(path), false);
  });

  it('can be described by its path alone', async () => {
    assert.deepEqual(unix(path), unix({ path }));
    const listener = await listen(broker, unix(path));
    assert.deepEqual(listener.address, { path });
    client();
    await broker.next();
    assert.throws(() => unix({} as { path: string }), { code: 'OPTION_MISSING', field: 'path' });
  });

  it('gives the socket the mode of option mode, whatever the umask', async () => {
    const mask = process.umask();
    await listen(broker, unix({ path, mode: '620' }));
    assert.equal(statSync(path).mode & 0o777, 0o620);
    assert.equal(process.umask(), mask);
  });

  it('lets only the user of the process connect without option mode, whatever the umask', async () => {
    const mask = process.umask(0);
    try {
      await listen(broker, unix({ path }));
    } finally {
      process.umask(mask);
    }
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  it('replaces a socket left by a dead process', async () => {
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
    await once(spawn(process.execPath, ['-e', script]), 'exit');
    assert.equal(existsSync(path), true);
    await listen(broker, { path });
    client();
    await broker.next();
  });

  it('does not replace a socket that is in use', async () => {
    const other = createServer().listen(path);
    await once(other, 'listening');
    await assert.rejects(
      async () => await listen(broker, { path }),
      (error: BrokerError) => error.code === 'LISTENER_BIND_FAILED' && error.message.includes(path)
    );
    assert.equal(existsSync(path), true);
    const socket = client();
    await once(socket, 'connect');
    socket.destroy();
    other.close();
  });

  it('does not replace a file that is not a socket', async () => {
    writeFileSync(path, 'data of another program');
    await assert.rejects(
      async () => await listen(broker, { path }),
      /cannot listen on .*mqtt\.sock: there is a file that is not a socket/
    );
    assert.equal(statSync(path).size, 23);
  });

  it('reports a missing directory', async () => {
    await assert.rejects(
      async () => await listen(broker, { path: join(directory, 'absent', 'x.sock') }),
      /its directory does not exist or is not writable/
    );
  });

  it('refuses a path that the kernel would truncate', { skip: process.platform !== 'linux' }, async () => {
    for (const letter of ['x', 'ü']) {
      const room = 108 - Buffer.byteLength(`${directory}/`);
      const long = `${directory}/${letter.repeat(Math.ceil(room / Buffer.byteLength(letter)))}`;
      const bytes = Buffer.byteLength(long);
      await assert.rejects(
        async () => await listen(broker, { path: long }),
        (error: BrokerError) =>
          error.code === 'LISTENER_BIND_FAILED' &&
          error.message.includes(`${long}: `) &&
          error.message.includes(`${bytes} bytes`) &&
          error.message.includes('107')
      );
      assert.deepEqual(readdirSync(directory), []);
    }
    path = `${directory}/`.padEnd(107, 'x');
    await listen(broker, { path });
    assert.equal(existsSync(path), true);
  });
});
