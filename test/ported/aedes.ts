// Programs for Aedes 0.5x and 1.x, unchanged, with Aedes and with embermq-aedes, which npm installs in its place.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import mqtt from 'mqtt';
import ts from 'typescript';
import { makeCertificates } from '../support/certificates.ts';
import { freePorts } from '../support/free-ports.ts';
import { installed, outputOf, packed } from './installed.ts';

const VERSIONS = { '0': '^0.51.3', '1': '^1.2.0' };
type Version = keyof typeof VERSIONS;

/** Packages that serve connections for Aedes, or depend on it. */
const AROUND = { mqtt: '5', ws: '8', 'aedes-server-factory': '0.2', 'websocket-stream': '5' };

const originals = {} as Record<Version, string>;
let replaced: string;
using certificates = makeCertificates();
const running = new Set<ChildProcess>();

before(() => {
  for (const [version, range] of Object.entries(VERSIONS))
    originals[version as Version] = installed(`aedes-${version}`, { dependencies: { aedes: range, ...AROUND } });
  replaced = installed('aedes-replaced', {
    dependencies: {
      aedes: packed('adapters/aedes/package'),
      embermq: packed(),
      'node-red-contrib-aedes': '0.6.0', // depends on aedes 0.46
      ...AROUND,
      '@types/node': '20'
    },
    overrides: { aedes: '$aedes' }
  });
});

after(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Writes a program into the folder of an app. */
function written(folder: string, code: string, name: string): string {
  const programs = join(folder, 'programs');
  mkdirSync(programs, { recursive: true });
  writeFileSync(join(programs, 'YOUR_PRIVATE_KEY_FILE.pem'), certificates.server.key);
  writeFileSync(join(programs, 'YOUR_PUBLIC_CERT_FILE.pem'), certificates.server.cert);
  const file = join(programs, `${name}.${/^import /m.test(code) ? 'mjs' : 'cjs'}`);
  writeFileSync(file, code);
  return file;
}

/** The programs in the documentation of a version that can run alone. */
function documented(version: Version): string[] {
  const page = readFileSync(join(originals[version], 'node_modules/aedes/docs/Examples.md'), 'utf8');
  const found = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
  // CommonJS has no `await` outside of functions
  return found.map((code) =>
    /^import /m.test(code) || !code.includes('await ') ? code : `void (async () => {\n${code}\n})()\n`
  );
}

/** Runs a server until it has printed a line, and lets a client publish to itself. Returns what both have seen. */
async function serve(folder: string, code: string, name: string): Promise<string[]> {
  const [port] = await freePorts(1);
  const file = written(folder, code.replace(/1883|8883|8888/, String(port)), name);
  const child = spawn(process.execPath, [file], { cwd: join(file, '..'), stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  const seen: string[] = [];
  const errors: string[] = [];
  child.stderr.on('data', (data) => errors.push(String(data)));
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', (data) => {
      seen.push(String(data).trim().replace(String(port), 'PORT'));
      resolve();
    });
    child.once('exit', () => reject(new Error(errors.join(''))));
  });
  const scheme = code.includes('tls') ? 'mqtts' : code.includes('8888') ? 'ws' : 'mqtt';
  const client = await mqtt.connectAsync(`${scheme}://localhost:${port}`, {
    ca: certificates.ca.cert,
    rejectUnauthorized: false,
    reconnectPeriod: 0
  });
  const message = new Promise<void>((resolve) =>
    client.on('message', (topic, payload) => {
      seen.push(`${topic} ${payload}`);
      resolve();
    })
  );
  await client.subscribeAsync('a/#', { qos: 1 });
  await client.publishAsync('a/b', 'c', { qos: 2 });
  await message;
  await client.endAsync();
  child.kill();
  await new Promise((resolve) => child.once('exit', resolve));
  running.delete(child);
  return seen;
}

/** Returns an app that uses handlers and events of Aedes, publishes and subscribes. @param start makes the broker, `aedes` */
const app = (start: string) => `
${start}
  const { connectAsync } = mqtt
  const lines = []
  const log = (...parts) => lines.push(parts.join(' '))
  aedes.authenticate = (client, username, password, done) => {
    if (username === 'ann' && String(password) === 'secret') return done(null, true)
    const error = new Error('wrong password')
    error.returnCode = 4
    done(error, null)
  }
  aedes.authorizePublish = (client, packet, callback) => {
    if (packet.topic === 'forbidden') return callback(new Error('forbidden topic'))
    if (packet.topic === 'changed') packet.payload = Buffer.from('by the handler')
    callback(null)
  }
  aedes.authorizeSubscribe = (client, sub, callback) => callback(null, sub.topic === 'hidden' ? null : sub)
  aedes.authorizeForward = (client, packet) => (packet.topic === 'dropped' ? null : packet)
  aedes.on('client', (client) => log('client', client.id))
  aedes.on('clientReady', (client) => log('clientReady', client.id))
  aedes.on('clientError', (client, error) => log('clientError', client.id, error.message))
  aedes.on('subscribe', (subscriptions, client) => log('subscribe', client.id, JSON.stringify(subscriptions)))
  aedes.on('unsubscribe', (topics, client) => log('unsubscribe', client.id, topics.join()))
  aedes.on('publish', (packet, client) => client && log('publish', client.id, packet.topic, packet.payload))
  aedes.on('connackSent', (packet, client) => log('connackSent', client.id, packet.returnCode))
  const gone = new Promise((resolve) => aedes.on('clientDisconnect', (client) => {
    log('clientDisconnect', client.id)
    resolve()
  }))
  const server = require('net').createServer(aedes.handle)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = 'mqtt://127.0.0.1:' + server.address().port
  const ann = { clientId: 'device', username: 'ann', password: 'secret', reconnectPeriod: 0 }
  await connectAsync(url, { ...ann, password: 'guess', clientId: 'stranger' }).catch((error) => log(error.message))
  await new Promise((resolve) => aedes.subscribe('up/#', (packet, done) => { log('app', packet.topic, packet.payload); done() }, resolve))
  await new Promise((resolve) => aedes.publish({ topic: 'kept', payload: 'retained', retain: true, qos: 1 }, resolve))
  const device = await connectAsync(url, ann)
  device.on('message', (topic, payload) => log('device', topic, payload))
  const until = (text) => new Promise((resolve) => device.on('message', (topic, payload) => String(payload) === text && resolve()))
  const last = until('last')
  log(JSON.stringify(await device.subscribeAsync(['kept', 'changed', 'dropped', 'own', 'down']).catch((error) => error.message)))
  await device.publishAsync('changed', 'by the device', { qos: 1 })
  await device.publishAsync('dropped', 'x', { qos: 1 })
  await device.publishAsync('up/1', '21.5', { qos: 2 })
  await new Promise((resolve) => aedes.clients.device.publish({ topic: 'own', payload: 'for one', qos: 0 }, resolve))
  log(aedes.connectedClients, aedes.closed)
  await device.unsubscribeAsync('own')
  aedes.publish({ topic: 'down', payload: 'last' })
  await last
  await device.endAsync()
  await gone
  await new Promise((resolve) => aedes.close(resolve))
  log(aedes.closed)
  server.close()
  console.log(lines.sort().join('\\n'))
`;

const APPS: Record<Version, string> = {
  '0': `void (async () => {${app("const mqtt = require('mqtt')\nconst aedes = require('aedes')()")}})()`,
  '1': `import { createRequire } from 'node:module'\nimport { Aedes } from 'aedes'\nimport mqtt from 'mqtt'
const require = createRequire(import.meta.url)${app('const aedes = await Aedes.createBroker()')}`
};

describe('embermq-aedes in place of aedes', () => {
  it('replaces Aedes everywhere, also for packages that depend on it', () => {
    const copies = readdirSync(join(replaced, 'node_modules'), { recursive: true, encoding: 'utf8' })
      .filter((path) => /(^|\/)aedes\/package\.json$/.test(path))
      .map((path) => JSON.parse(readFileSync(join(replaced, 'node_modules', path), 'utf8')).name);
    assert.deepEqual(copies, ['embermq-aedes']);
  });

  for (const version of ['0', '1'] as const) {
    it(`runs the programs in the documentation of Aedes ${VERSIONS[version]} as Aedes does`, async () => {
      const programs = documented(version);
      assert.ok(programs.length >= 5);
      for (const [at, code] of programs.entries()) {
        const name = `documented-${version}-${at}`;
        assert.deepEqual(await serve(replaced, code, name), await serve(originals[version], code, name), code);
      }
    });

    it(`runs an app for Aedes ${VERSIONS[version]} as Aedes does`, async () => {
      const [own, original] = await Promise.all(
        [replaced, originals[version]].map((folder) => {
          const file = written(folder, APPS[version], `app-${version}`);
          return outputOf(process.execPath, file, join(file, '..'));
        })
      );
      assert.ok(original.split('\n').length > 20, original);
      assert.equal(own, original);
    });
  }

  it('compiles apps in TypeScript for both generations, as CommonJS and as ES modules', () => {
    const text = `
      import Aedes, { Aedes as Modern, createBroker, type AedesOptions, type Client, type AedesPublishPacket } from 'aedes';
      const options: AedesOptions = { id: 'a', persistence: {}, authenticate: (client, username, password, done) => done(null, true) };
      const old: Aedes = new Aedes(options);
      old.on('client', (client: Client) => console.log(client.id));
      old.subscribe('a', (packet: AedesPublishPacket, done) => done(), () => {});
      createBroker().close();
      export async function start(): Promise<Modern> {
        return Modern.createBroker(options);
      }
    `;
    const files = ['cts', 'mts'].map((extension) => {
      const file = written(replaced, text, 'typed').replace(/\w+$/, extension);
      writeFileSync(file, text);
      return file;
    });
    const program = ts.createProgram(files, {
      module: ts.ModuleKind.NodeNext,
      strict: true,
      esModuleInterop: true,
      noEmit: true,
      types: []
    });
    const faults = ts.getPreEmitDiagnostics(program).filter(({ file }) => !file?.fileName.includes('mqtt-packet'));
    assert.deepEqual(
      faults.map(({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`),
      []
    );
  });

  it('runs the example of Aedes 0.5x, which serves TCP and WebSocket', async () => {
    const example = readFileSync(join(originals['0'], 'node_modules/aedes/example.js'), 'utf8');
    const code = example.replace("require('./aedes')", "require('aedes')");
    for (const other of ['8888', '1883']) {
      const [port] = await freePorts(1);
      const seen = await serve(replaced, code.replace(other, String(port)), `example-${other}`);
      assert.equal(seen.at(-1), 'a/b c');
    }
  });
});
