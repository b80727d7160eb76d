import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { WebSocket } from 'ws';
import { runCommand } from '../../adapters/cli/commands.ts';
import type { Opened } from '../../adapters/cli/serve/listeners.ts';
import { type PlannedListener, readServeSettings } from '../../adapters/cli/serve/settings.ts';
import { streamTypes } from '../../adapters/cli/serve/streams-parts.ts';
import { followStreams } from '../../adapters/cli/serve/streams-port.ts';
import type { SinkType } from '../../lib/adapter.ts';
import type { Broker } from '../../lib/index.ts';
import { openSink } from '../streams/sink-bench.ts';
import { freePort } from '../support/free-ports.ts';
import { functionModule } from '../support/plugins.ts';
import { type ZipEntry, zip } from '../support/zip.ts';
import { readyPorts, type TestShell, testShell } from './shell.ts';

/** Credentials of the application of `serve`. Other requests of this machine need none here. */
const APP = 'me:secret-of-me';
const SIGNED = { authorization: `Basic ${Buffer.from(APP).toString('base64')}` };
const LOCAL = ['--rules-credentials', 'remote', '--app', APP];
const FLAGS = ['serve', '--memory', '--mqtt-port', '0', '--ws-port', 'off'];

/** Run `serve` while `use` runs. @returns what it has written to standard error */
async function serving(args: readonly string[], use: (ready: Record<string, number>) => unknown): Promise<string> {
  const shell = testShell();
  const code = runCommand([...FLAGS, ...LOCAL, ...args], shell);
  const ready = await readyPorts(shell, code);
  try {
    await use(ready);
  } finally {
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  }
  return shell.err();
}

/** Run `serve` with a data folder, for plugins. @param end the exit code when `use` is over; undefined: a signal ends it, with 0 */
async function servingPlugins(
  args: readonly string[],
  use: (url: string, archive: (...entries: readonly ZipEntry[]) => string) => Promise<void>,
  end?: number
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-serve-plugins-'));
  const shell = testShell();
  const data = ['--data-dir', join(folder, 'data'), '--reserve', '0'];
  const code = runCommand(
    ['serve', '--mqtt-port', '0', '--ws-port', 'off', '--rules-port', '0', ...LOCAL, ...data, ...args],
    shell
  );
  try {
    const { rules } = await readyPorts(shell, code);
    await use(`http://127.0.0.1:${rules}`, (...entries) => {
      const path = join(folder, `a${entries.length}.zip`);
      writeFileSync(path, zip(...entries));
      return pathToFileURL(path).href;
    });
    if (end === undefined) shell.signal('SIGTERM');
    assert.equal(await code, end ?? 0);
  } finally {
    shell.signal('SIGTERM');
    await code;
    rmSync(folder, { recursive: true });
  }
}

/** The first line of what `serve` says of a config file. */
async function refusal(config: object, ...flags: string[]): Promise<string> {
  const shell: TestShell = testShell();
  shell.files.set('c.json', JSON.stringify(config));
  assert.equal(await runCommand([...FLAGS, '--config', 'c.json', ...flags], shell), 2);
  return shell.err().split('\n')[0];
}

describe('The options of serve for streams', () => {
  const MODULE = { name: 'Echo@v1.js', content: functionModule('Echo', 1) };
  const create = (url: string, file: string) =>
    fetch(`${url}/plugins/functions`, {
      method: 'POST',
      headers: SIGNED,
      body: JSON.stringify({ name: 'echo', file })
    });

  it('passes on the hosts of plugins, and refuses scripts of archives', async () => {
    const host = createHttpServer((_, response) => response.end('<a href="none.zip">')).listen(0, '127.0.0.1');
    await once(host, 'listening');
    after(() => host.close());
    const hosts = `http://127.0.0.1:${(host.address() as AddressInfo).port}/`;
    await servingPlugins(['--plugin-hosts', hosts, '--no-install-scripts'], async (url, archive) => {
      assert.deepEqual(await (await fetch(`${url}/plugins/functions/prebuild`)).json(), {});
      const refused = await create(url, archive(MODULE, { name: 'install.sh', content: 'exit 0' }));
      assert.match(await refused.text(), /the archive has install\.sh, and the option installScripts is false/);
      assert.equal((await create(url, archive(MODULE))).status, 201);
    });
    const shell = testShell();
    assert.equal(await runCommand([...FLAGS, '--plugin-hosts', 'ftp://x'], shell), 2);
    assert.match(shell.err(), /^embermq: --plugin-hosts: expected URLs that begin with http/);
    assert.match(await refusal({ pluginHosts: ['x'] }), /c\.json: pluginHosts/);
    assert.match(await refusal({ installScripts: 'maybe' }), /c\.json: installScripts/);
  });

  it('loads libraries that were put manually into the folder of plugins only if configured', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-serve-plugins-'));
    mkdirSync(join(folder, 'streams/plugins/functions'), { recursive: true });
    const library = join(folder, 'streams/plugins/functions/Echo@v1.js');
    writeFileSync(library, functionModule('Echo', 1));
    const run = async (...flags: string[]) => {
      const shell = testShell();
      const data = ['--data-dir', folder, '--reserve', '0', '--rules-port', '0'];
      const code = runCommand(['serve', '--mqtt-port', '0', '--ws-port', 'off', ...LOCAL, ...data, ...flags], shell);
      const { rules } = await readyPorts(shell, code);
      const names = await (await fetch(`http://127.0.0.1:${rules}/plugins/functions`)).json();
      shell.signal('SIGTERM');
      assert.equal(await code, 0);
      return { names, log: shell.err() };
    };
    const without = await run();
    assert.deepEqual(without.names, []);
    const text = `${library} was put there manually and is not loaded; remove it, or allow it with --auto-load-plugins`;
    assert.equal(without.log.split(text).length, 2);
    assert.match(
      without.log,
      /^warn: the library Echo@v1\.js of the folder of plugins: .* is not loaded; remove it, or/m
    );
    assert.doesNotMatch(without.log, /^error: /m);
    const loaded = await run('--auto-load-plugins');
    assert.deepEqual(loaded.names, ['echo']);
    assert.deepEqual((await run()).names, ['echo'], 'it is installed');
    rmSync(folder, { recursive: true });
  });

  it('refuses folders of rules that are not a list', async () => {
    assert.match(await refusal({ streams: { folders: '/var/log' } }), /c\.json: streams\.folders: .*a list of folders/);
  });

  it('ends the process with code 100 after the deletion of a plugin, if configured', async () => {
    const drop = async (url: string, archive: (...entries: readonly ZipEntry[]) => string) => {
      await create(url, archive(MODULE));
      const dropped = await fetch(`${url}/plugins/functions/echo?restart=1`, { method: 'DELETE' });
      assert.equal(dropped.status, 200, await dropped.text());
    };
    await servingPlugins(['--exit-on-plugin-drop'], drop, 100);
    await servingPlugins([], drop);
  });

  it('lets pages of the origins of streamsApi connect to paths of websocket, like pushing rows', async () => {
    const origins = ['https://app.example'];
    const port = await freePort();
    const types = await streamTypes(port, { folders: [] }, { origins });
    const sink = types.sinks.find(({ name }) => name === 'websocket') as SinkType;
    const { emitter } = await openSink(sink, { path: '/out' });
    const statusFor = async (origin: string) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/out`, { origin }).on('error', () => undefined);
      const status = await new Promise((resolve) => {
        socket.on('open', () => resolve(101)).on('unexpected-response', (_, { statusCode }) => resolve(statusCode));
      });
      socket.terminate();
      return status;
    };
    assert.equal(await statusFor('https://app.example'), 101);
    assert.equal(await statusFor('https://evil.example'), 403);
    await emitter.close();
  });

  it('opens the port of streams of the type httppush while a rule uses one', async () => {
    const free = createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    await serving(['--rules-port', '0', '--http-push-port', String(port)], async ({ rules }) => {
      const post = (at: string | number, path: string, body: object) =>
        fetch(`http://127.0.0.1:${at}${path}`, { method: 'POST', body: JSON.stringify(body) });
      await post(rules, '/streams', {
        sql: 'CREATE STREAM pushed () WITH (DATASOURCE="/in", TYPE="httppush", FORMAT="json")'
      });
      await assert.rejects(post(port, '/in', { a: 1 }), TypeError);
      const rule = { id: 'r1', sql: 'SELECT * FROM pushed', actions: [{ nop: {} }] };
      assert.equal((await post(rules, '/rules', rule)).status, 201);
      assert.equal((await post(port, '/in', { a: 1 })).status, 200);
    });
    await serving(['--rules-port', '0', '--http-push-port', 'off'], async ({ rules }) => {
      const list = (await (await fetch(`http://127.0.0.1:${rules}/metadata/sources`)).json()) as { name: string }[];
      assert.equal(
        list.some(({ name }) => name === 'httppush'),
        false
      );
    });
  });
});

describe('The format protobuf of serve', () => {
  const BOOK = 'syntax = "proto3"; import "parts/author.proto"; message Book { string title = 1; Author author = 2; }';
  const AUTHOR = 'syntax = "proto3"; message Author { string name = 1; }';
  let streams = 0;
  /** The answer to a rule over a stream with a SCHEMAID. */
  const use = async (port: number, schemaId: string) => {
    const post = async (path: string, body: object) => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body: JSON.stringify(body) });
      return `${answer.status} ${await answer.text()}`;
    };
    const name = `demo${++streams}`;
    const sql = `CREATE STREAM ${name} () WITH (DATASOURCE="t", FORMAT="protobuf", SCHEMAID="${schemaId}")`;
    assert.match(await post('/streams', { sql }), /^201 /);
    return post('/rules', { id: name, sql: `SELECT * FROM ${name}`, actions: [{ nop: {} }] });
  };

  it('offers the schemas of the data folder, which may import each other, and those of the config file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-serve-schemas-'));
    after(() => rmSync(folder, { recursive: true }));
    const schemas = join(folder, 'streams', 'schemas', 'protobuf');
    mkdirSync(join(schemas, 'parts'), { recursive: true });
    writeFileSync(join(schemas, 'book.proto'), BOOK);
    writeFileSync(join(schemas, 'parts', 'author.proto'), AUTHOR);
    const shell = testShell();
    shell.files.set('own.proto', AUTHOR);
    shell.files.set('c.json', JSON.stringify({ streamsSchemas: { own: { fromFile: 'own.proto' } } }));
    const data = ['--data-dir', folder, '--reserve', '0', '--config', 'c.json'];
    const code = runCommand(['serve', ...FLAGS.slice(2), ...LOCAL, '--rules-port', '0', ...data], shell);
    try {
      const { rules } = await readyPorts(shell, code);
      assert.match(await use(rules, 'book.Journal'), /^400 .*known: book\.Book, book\.Author; got/);
      assert.match(await use(rules, 'book.Book'), /^201 /);
      assert.match(await use(rules, 'own.Book'), /known: own\.Author/);
    } finally {
      shell.signal('SIGTERM');
      assert.equal(await code, 0);
    }
    writeFileSync(join(schemas, 'wrong.proto'), 'message {');
    const again = testShell();
    assert.notEqual(await runCommand(['serve', ...FLAGS.slice(2), '--data-dir', folder, '--reserve', '0'], again), 0);
    assert.match(again.err(), /schema "wrong" of the format protobuf: illegal/);
  });

  it('names the expected place of schemas if there are none', async () => {
    await serving(['--rules-port', '0'], async ({ rules }) => {
      assert.match(await use(rules, 'a.A'), /^400 .*has no schemas: set .?"streamsSchemas.?" in the config file/);
    });
    assert.match(await refusal({ streamsSchemas: [] }), /c\.json: streamsSchemas: expected an object/);
    assert.match(await refusal({ streamsSchemas: { a: 5 } }), /c\.json: streamsSchemas\.a: expected/);
  });
});

describe('The port of stream rules of serve', () => {
  it('appears in the ready line, and answers this machine without credentials', async () => {
    await serving(['--rules-port', '0'], async ({ rules }) => {
      const answer = await fetch(`http://127.0.0.1:${rules}/ping`);
      assert.deepEqual([answer.status, await answer.text()], [200, '']);
      const unknown = await fetch(`http://127.0.0.1:${rules}/api/v4/clients`);
      assert.equal(await unknown.text(), '404 page not found\n');
    });
  });

  it('offers the types of sources and sinks that need an adapter, and no plugins without a data folder', async () => {
    await serving(['--rules-port', '0'], async ({ rules }) => {
      const get = (path: string) => fetch(`http://127.0.0.1:${rules}${path}`);
      const names = async (what: string) =>
        ((await (await get(`/metadata/${what}`)).json()) as { readonly name: string }[]).map(({ name }) => name);
      const sources = await names('sources');
      for (const name of ['file', 'httppull', 'httppush', 'kafka', 'mqtt', 'websocket'])
        assert.ok(sources.includes(name), name);
      const sinks = await names('sinks');
      for (const name of ['file', 'kafka', 'mqtt', 'rest', 'websocket']) assert.ok(sinks.includes(name), name);
      assert.equal((await get('/plugins/sources')).status, 404);
    });
  });

  it('writes warnings of sinks to standard error', async () => {
    const err = await serving(['--rules-port', '0'], async ({ rules }) => {
      const post = async (path: string, body: object) => {
        const answer = await fetch(`http://127.0.0.1:${rules}${path}`, { method: 'POST', body: JSON.stringify(body) });
        assert.equal(answer.status, 201, await answer.text());
      };
      await post('/streams', { sql: 'CREATE STREAM demo () WITH (DATASOURCE="t")' });
      await post('/rules', { id: 'r1', sql: 'SELECT * FROM demo', actions: [{ log: { lgo: 1 } }] });
    });
    assert.match(err, /warning: stream rule r1: log sink: the unknown property "lgo" has no effect/);
  });

  it('defaults to 9081 on loopback, and is left out if it is in use, unless it was configured', async () => {
    const shell = testShell();
    delete shell.env.EMBERMQ_RULES_PORT;
    const planOf = async (args: string[]) =>
      (await readServeSettings(args, shell)).listeners.find(({ label }) => label === 'rules') as PlannedListener;
    const plan = await planOf([]);
    const { port: planned, host } = plan.transport.place as { port: number; host: string };
    assert.deepEqual([planned, host], [9081, '127.0.0.1']);
    assert.equal(plan.isOptional, true);
    assert.equal((await planOf(['--rules-port', '9081'])).isOptional, false);
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    const { port } = taken.address() as AddressInfo;
    const other = testShell();
    assert.equal(await runCommand([...FLAGS, '--rules-port', String(port)], other), 1);
    assert.match(other.err(), new RegExp(`${port}`));
    taken.close();
  });

  it('refuses options that open it to everyone, and those that are determined by the port', async () => {
    const exposed = await refusal(
      { streamsApi: { credentials: 'none' } },
      '--http-host',
      '0.0.0.0',
      '--rules-port',
      '0'
    );
    assert.match(exposed, /c\.json: streamsApi\.credentials: with "none", anyone who can reach 0\.0\.0\.0/);
    assert.match(await refusal({ streamsApi: { prefix: '/a' } }), /c\.json: streamsApi\.prefix/);
    assert.match(
      await refusal({ streamsApi: { credentials: 'host' } }),
      /c\.json: streamsApi\.credentials: expected "applications", .*"remote", "none", got "host"/
    );
    assert.match(await refusal({ streamsApi: { origin: 'any' } }), /c\.json: streamsApi.*origin/);
    assert.match(await refusal({ streamsApi: [] }), /c\.json: streamsApi: expected an object/);
    assert.match(await refusal({ streams: { sinks: [] } }), /c\.json: streams\.sinks/);
  });

  it('stays independent of the port of the management interface, even if one of them requires no credentials', async () => {
    const shell = testShell();
    const settingsOf = (config: object, ...flags: string[]) => {
      shell.files.set('c.json', JSON.stringify(config));
      return readServeSettings(['--config', 'c.json', '--http-host', '0.0.0.0', ...flags], shell);
    };
    const off = ['--http-port', 'off', '--http-earlier-port', 'off', '--rules-port', '0'];
    await settingsOf({ management: { credentials: 'none' } }, ...off);
    await settingsOf({ streamsApi: { credentials: 'none' } }, '--http-port', '0', '--rules-port', 'off');
    await assert.rejects(settingsOf({ streamsApi: { credentials: 'none' } }, ...off), { code: 'MANAGEMENT_EXPOSED' });
  });

  it('closes while the stream service is stopped, and opens again with it', async () => {
    const events = new EventEmitter();
    const broker = { state: 'connected', on: events.on.bind(events) } as unknown as Broker;
    const calls: string[] = [];
    const listening = { close: async () => calls.push('close'), open: async () => calls.push('open') };
    const of = (http: string) => ({ plan: { http }, listening }) as unknown as Opened;
    const shell = testShell();
    followStreams(broker, [of('rules'), of('later')], shell);
    events.emit('streams.stopped');
    events.emit('streams.started');
    let err = '';
    while (!err.includes('runs again')) {
      await new Promise((resolve) => setImmediate(resolve));
      err += shell.err();
    }
    assert.deepEqual(calls, ['close', 'open']);
    assert.match(err, /the stream service has stopped; its port is closed until it is started again/);
  });
});
