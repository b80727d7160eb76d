// The package embermq-aedes, as it is installed beside embermq. `.ci/full ported` installs it by npm in place of aedes.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import mqtt from 'mqtt';
import type { Aedes, AedesOptions } from '../../adapters/aedes/index.ts';
import { JOINED } from '../support/programs.ts';

const root = join(import.meta.dirname, '../..');
const source = join(root, 'adapters/aedes/package');
const manifest = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/** The exports of the package: the function of 0.5x with the class of 1.x. */
interface Exports {
  (options?: object): Aedes;
  new (options?: object): Aedes;
  readonly createBroker: (options?: object) => Aedes;
  readonly Server: new (options?: object) => Aedes;
  readonly Aedes: { new (options?: object): Aedes; createBroker(options?: object): Promise<Aedes> };
}

let folder: string;
let aedes: Exports;

before(() => {
  folder = mkdtempSync(join(root, 'dist-test-'));
  cpSync(source, join(folder, 'node_modules/aedes'), { recursive: true });
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(JOINED, join(folder, 'node_modules/embermq'), 'junction');
  aedes = createRequire(join(folder, 'app.js'))('aedes');
});

after(() => rmSync(folder, { recursive: true, force: true }));

const closing = (broker: Aedes) => new Promise<void>((resolve) => broker.close(() => resolve()));

describe('The package embermq-aedes', () => {
  it('needs the version of embermq that it is published with', () => {
    const { version } = manifest(root);
    assert.equal(manifest(source).version, version);
    assert.equal(manifest(source).dependencies.embermq, `^${version}`);
    assert.equal(readFileSync(join(source, 'LICENSE'), 'utf8'), readFileSync(join(root, 'LICENSE'), 'utf8'));
  });

  it('declares the same types for CommonJS and for ES modules', () => {
    const [forCommonJs, forModules] = ['cts', 'mts'].map((kind) =>
      readFileSync(join(source, `index.d.${kind}`), 'utf8')
    );
    assert.equal(forCommonJs, forModules);
  });

  const ways: Readonly<Record<string, (options?: AedesOptions) => Aedes>> = {
    "require('aedes')()": (options) => aedes(options),
    "new (require('aedes'))()": (options) => new aedes(options),
    "require('aedes').createBroker()": (options) => aedes.createBroker(options),
    "new (require('aedes').Server)()": (options) => new aedes.Server(options)
  };
  for (const [name, make] of Object.entries(ways))
    it(`serves clients that connect in the turn in which ${name} makes a broker`, async () => {
      const broker = make({ id: 'site' });
      assert.ok(broker instanceof aedes);
      assert.equal(broker.id, 'site');
      assert.equal(broker.closed, false);
      const published = new Promise((resolve) => broker.publish({ topic: 'a', payload: 'b', retain: true }, resolve));
      const { port, server } = await listening(broker);
      assert.equal(await published, null);
      const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0 });
      const message = new Promise((resolve) => client.on('message', (_topic, payload) => resolve(String(payload))));
      await client.subscribeAsync('a');
      assert.equal(await message, 'b');
      await client.endAsync();
      await closing(broker);
      assert.equal(broker.closed, true);
      server.close();
    });

  it('serves a connection that is handed over before the broker has started', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const accepted = new Promise<import('node:net').Socket>((resolve) => server.on('connection', resolve));
    const client = mqtt.connect(`mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`, { reconnectPeriod: 0 });
    const socket = await accepted;
    const broker = aedes(); // starts in later turns
    assert.equal(broker.broker.state, 'idle');
    const connDetails = { ipAddress: '10.0.0.1' }; // as aedes-server-factory passes them
    const handled = broker.handle(socket, { connDetails } as never);
    await new Promise((resolve) => client.on('connect', resolve));
    assert.equal((handled as { connDetails?: object }).connDetails, connDetails);
    assert.equal(broker.broker.sessions.get(handled.id).transportInfo.transport, 'tcp');
    await client.endAsync();
    await closing(broker);
    server.close();
  });

  it('can be extended, and closed in the turn in which it was made', async () => {
    class Mine extends aedes {
      hello() {
        return this.id;
      }
    }
    const mine = new Mine({ id: 'mine' });
    assert.equal(mine.hello(), 'mine');
    await closing(mine);
  });

  it('exports the class of 1.x to CommonJS and to ES modules', async () => {
    const module = await import(pathToFileURL(join(folder, 'node_modules/aedes/index.mjs')).href);
    assert.equal(module.Aedes, aedes.Aedes);
    assert.equal(module.default, aedes);
    assert.equal(module.createBroker, aedes.createBroker);
    const broker = await aedes.Aedes.createBroker({ id: 'site' });
    assert.ok(broker instanceof aedes.Aedes);
    assert.equal(broker.closed, false);
    await closing(broker);
  });

  it('ignores modules that keep everything in memory, with a warning, and refuses all others', async () => {
    class MQEmitter {}
    class MemoryPersistence {}
    class MongoPersistence {}
    const warnings: string[] = [];
    const listener = ({ message, code }: Error & { code?: string }) => {
      if (code === 'EMBERMQ_AEDES_IGNORED') warnings.push(message);
    };
    process.on('warning', listener);
    const brokers = [
      aedes({ mq: new MQEmitter(), persistence: new MemoryPersistence() }),
      await aedes.Aedes.createBroker({ persistence: { asyncPersistence: new MemoryPersistence() } })
    ];
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', listener);
    assert.deepEqual(
      warnings.map((text) => text.split(' is ')[0]),
      ['the option mq', 'the option persistence', 'the option persistence']
    );
    assert.throws(() => aedes({ persistence: new MongoPersistence() }), {
      code: 'OPTION_INVALID',
      message: /levelStore/
    });
    for (const broker of brokers) await closing(broker);
  });

  it('sets client.broker to the Aedes broker, and client.connDetails to what the server has found', async (t) => {
    for (const broker of [aedes(), await aedes.Aedes.createBroker()]) {
      t.after(() => closing(broker));
      for (const request of [undefined, {}, { connDetails: { ipAddress: '192.0.2.1' } }]) {
        const client = broker.handle(new PassThrough(), request as never) as unknown as Record<string, unknown>;
        assert.equal(client.broker, broker);
        assert.deepEqual(client.connDetails, request === undefined ? null : request.connDetails);
      }
    }
  });

  it('emits an error if the broker cannot start', async () => {
    const persistence = { open: () => Promise.reject(new Error('no disk')), commit() {}, read() {}, close() {} };
    const broker = aedes({ persistence });
    const error = await new Promise<Error>((resolve) => broker.on('error', resolve));
    assert.match(String(error.message), /no disk/);
  });
});

async function listening(broker: Aedes) {
  const server = createServer(broker.handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}
