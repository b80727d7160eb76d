import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { mqttSource } from '../../adapters/streams/mqtt/index.ts';
import { protobufFormat } from '../../adapters/streams/protobuf/index.ts';
import { streamsApi } from '../../adapters/streams-api/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { FakePlugins } from '../streams-api/fake-plugins.ts';
import { serve } from '../support/management.ts';
import { type TestShell, testShell } from './shell.ts';

let broker: Broker;
let server: Awaited<ReturnType<typeof serve>>;
let url: string;

before(async () => {
  broker = createBroker({ streams: { sources: [mqttSource()], formats: [await protobufFormat()] } });
  await broker.start();
  await broker.applications.create({ id: 'me', secret: 'secret-of-me' });
  server = await serve(streamsApi(broker, { plugins: new FakePlugins() }).node);
  url = `http://127.0.0.1:${server.port}`;
});

after(async () => {
  await server[Symbol.asyncDispose]();
  await broker.stop();
});

async function ctl(args: readonly string[], shell: TestShell = testShell()) {
  const code = await runCommand(['ctl', '--app', 'me:secret-of-me', '--rules-url', url, ...args], shell);
  return { code, out: shell.out(), err: shell.err() };
}

/** Run `embermq ctl stream` without an error. @returns what it prints */
async function out(args: readonly string[], shell?: TestShell): Promise<string> {
  const { code, out: text, err } = await ctl(['stream', ...args], shell);
  assert.deepEqual([code, err], [0, ''], args.join(' '));
  return text;
}

function withFile(text: string): TestShell {
  const shell = testShell();
  shell.files.set('a.json', text);
  shell.stdin.end(text);
  return shell;
}

describe('embermq ctl stream', () => {
  it('checks statements, and shows the samples of a rule', async () => {
    await broker.streams.create('CREATE STREAM sampled () WITH (DATASOURCE="sampled", FORMAT="json")');
    const [error] = (await out(['check', '--sql', 'SELECT nosuch(a) FROM sampled'])).split('\n');
    assert.deepEqual([JSON.parse(error).line, JSON.parse(error).column], [1, 8]);
    const checked = JSON.parse(await out(['check', 'a.json'], withFile('{"sql": "SELECT a FROM sampled"}')));
    assert.deepEqual(checked.columns, { sampled: ['a'] });
    const sql = 'SELECT a FROM sampled WHERE a > 5';
    await broker.streams.rules.create({ id: 'sampled', sql, actions: [() => undefined] });
    await broker.publish('sampled', '{"a": 3}');
    const samples = (await out(['samples', 'sampled'])).trim().split('\n');
    assert.deepEqual(
      samples.map((line) => JSON.parse(line).kind),
      ['input', 'rejected']
    );
    await broker.streams.rules.delete('sampled');
    await broker.streams.delete('stream', 'sampled');
  });

  it('executes statements, and shows streams and tables', async () => {
    assert.equal(
      await out(['sql', '--sql', 'CREATE STREAM demo () WITH (DATASOURCE="t")']),
      'Stream demo is created.\n'
    );
    assert.equal(
      await out(['sql', '-'], withFile('CREATE TABLE names () WITH (DATASOURCE="a")\n')),
      'Table names is created.\n'
    );
    assert.equal(await out(['streams']), '{"name":"demo"}\n');
    assert.equal(await out(['tables']), '{"name":"names"}\n');
    assert.equal(JSON.parse(await out(['stream', 'demo'])).Name, 'demo');
    const ddl = ['--sql', 'CREATE STREAM demo () WITH (DATASOURCE="u")'];
    assert.equal(await out(['replace-stream', 'demo', ...ddl]), 'Stream demo is replaced.\n');
    assert.equal(await out(['drop-table', 'names']), 'Table names is dropped.\n');
  });

  it('lists the functions of statements', async () => {
    const [first] = (await out(['sql-functions'])).split('\n', 1);
    const { name, kind, params, about } = JSON.parse(first);
    assert.equal(name, 'abs');
    assert.deepEqual([kind, params.length], ['scalar', 1]);
    assert.match(about, /without its sign/);
  });

  it('creates, shows and drops connections, sections and schemas', async () => {
    const connection = { id: 'plant', typ: 'mqtt', props: { server: 'tcp://plant', password: 'p' } };
    const file = () => withFile(JSON.stringify(connection));
    assert.equal(await out(['add-connection', 'a.json'], file()), 'Connection plant was created.\n');
    assert.equal(await out(['change-connection', 'plant', '-'], file()), 'Connection plant was updated.\n');
    assert.equal(JSON.parse(await out(['connection', 'plant'])).props.password, '******');
    const { id, status } = JSON.parse(await out(['connections']));
    assert.deepEqual([id, status], ['plant', 'disconnected']);
    const section = { connectionSelector: 'plant', qos: 1 };
    const saved = await out(['set-section', 'mqtt', 'a', 'a.json'], withFile(JSON.stringify(section)));
    assert.equal(saved, 'Configuration a of source mqtt was saved.\n');
    assert.deepEqual(JSON.parse(await out(['sections', 'mqtt'])), { a: section });
    assert.deepEqual(JSON.parse(await out(['section', 'mqtt', 'a'])), section);
    assert.match((await ctl(['stream', 'drop-connection', 'plant'])).err, /connection plant is used by section a/);
    assert.equal(await out(['drop-section', 'mqtt', 'a']), 'Configuration a of source mqtt is dropped.\n');
    assert.equal(await out(['drop-connection', 'plant']), 'Connection plant is dropped.\n');
    const proto = 'syntax = "proto3"; message Book { string title = 1; }';
    assert.equal(await out(['add-schema', 'book', 'a.json'], withFile(proto)), 'protobuf schema book is created\n');
    assert.equal(await out(['replace-schema', 'book', '-'], withFile(proto)), 'protobuf schema book is updated\n');
    assert.equal(await out(['schemas']), '{"name":"book"}\n');
    assert.equal(JSON.parse(await out(['schema', 'book'])).content, proto);
    assert.equal(await out(['drop-schema', 'book']), 'protobuf schema book is deleted\n');
  });

  it('creates rules from flags or a file, and controls them', async () => {
    const flags = ['--sql', 'SELECT * FROM demo', '--action', 'log', '--action', 'mqtt={"topic":"a"}'];
    assert.equal(await out(['add', 'r1', ...flags]), 'Rule r1 was created successfully.\n');
    const file = JSON.stringify({ sql: 'SELECT a FROM demo', actions: [{ log: {} }] });
    assert.equal(await out(['add', 'r2', 'a.json'], withFile(file)), 'Rule r2 was created successfully.\n');
    assert.equal(await out(['change', 'r2', '-'], withFile(file)), 'Rule r2 was updated successfully.\n');
    assert.deepEqual(JSON.parse(await out(['show', 'r1'])).actions, [{ log: {} }, { mqtt: { topic: 'a' } }]);
    assert.equal(await out(['stop', 'r1']), 'Rule r1 was stopped.\n');
    const rows = (await out(['list'])).trim().split('\n');
    assert.deepEqual(
      rows.map((row) => JSON.parse(row).status),
      ['Stopped: canceled manually.', 'Running']
    );
    assert.equal(await out(['restart', 'r1']), 'Rule r1 was restarted\n');
    assert.equal(JSON.parse(await out(['status', 'r1'])).status, 'running');
    assert.deepEqual(JSON.parse((await out(['topology', 'r1'])).split('\n')[0]).next, ['op_2_project']);
    assert.equal(JSON.parse(await out(['explain', 'r1'])).name, 'op_2_project');
    assert.deepEqual(JSON.parse(await out(['validate', 'r3', ...flags])), { sources: ['demo'], valid: true });
    const test = JSON.stringify({ sql: 'SELECT * FROM demo', rows: [{ stream: 'demo', values: { a: 1 } }] });
    assert.equal(await out(['test', 'a.json'], withFile(test)), '{"a":1}\n');
    assert.equal(await out(['remove', 'r2']), 'Rule r2 is dropped.\n');
  });

  it('exports and imports', async () => {
    const text = await out(['export']);
    assert.deepEqual(Object.keys(JSON.parse(text).rules), ['r1']);
    assert.equal(await out(['import', '-'], withFile(text)), 'imported 1 streams, 0 tables and 1 rules\n');
  });

  it('installs plugins and shows their contents', async () => {
    const file = 'http://127.0.0.1/p.zip';
    assert.equal(await out(['add-plugin', 'functions', 'p', file]), 'functions plugin p is created\n');
    assert.equal(await out(['register', 'p', 'f,g']), 'function plugin p function list is registered\n');
    assert.deepEqual(JSON.parse(await out(['plugins', 'functions'])), {
      name: 'p',
      version: '1.0.0',
      functions: ['f', 'g']
    });
    assert.equal((await out(['functions'])).split('\n')[0], '{"name":"f","plugin":"p"}');
    assert.match(await out(['drop-plugin', 'functions', 'p', '--force']), /will be stopped\n$/);
  });

  it('names the types of plugins if the given one is unknown', async () => {
    for (const args of [
      ['plugins', 'foo'],
      ['add-plugin', 'foo', 'p', 'http://127.0.0.1/p.zip'],
      ['drop-plugin', 'foo', 'p']
    ]) {
      const { code, err } = await ctl(['stream', ...args]);
      assert.deepEqual([code, err.split('\n')[0]], [2, 'embermq: TYPE: expected sources, sinks, functions, got "foo"']);
    }
  });

  it('prints refusals of the service, and what is missing on the command line', async () => {
    const refused = await ctl(['stream', 'show', 'x']);
    assert.deepEqual([refused.code, refused.err], [1, 'embermq: describe rule error: Rule x is not found.\n']);
    const missing = await ctl(['stream', 'add', 'x']);
    assert.equal(missing.code, 2);
    assert.match(missing.err, /"ctl stream add ID" needs FILE, or --sql and --action/);
    const unnamed = await ctl(['stream', 'add', 'x', '--sql', 'SELECT * FROM demo', '--action', '{"log":{}}']);
    assert.equal(unnamed.code, 2);
    assert.match(unnamed.err, /--action: expected NAME or NAME=JSON, .*, got \{"log":\{\}\}/);
    const help = testShell();
    await runCommand(['ctl', 'help', 'stream', 'add'], help);
    assert.match(help.out(), /--action NAME\[=JSON\] +a sink, with properties in JSON: mqtt=/);
    const without = testShell();
    await runCommand(['ctl', 'clients'], without);
    assert.match(without.err(), /ctl needs --app/);
    const shell = testShell();
    assert.equal(await runCommand(['ctl', '--rules-url', 'nonsense', 'stream', 'list'], shell), 2);
    assert.match(shell.err(), /--rules-url: expected a URL/);
  });
});
