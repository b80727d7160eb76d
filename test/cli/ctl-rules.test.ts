import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { managementApi } from '../../adapters/management/index.ts';
import { webhooks } from '../../adapters/webhook/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { serve } from '../support/management.ts';
import { RuleTargets } from '../support/rule-target.ts';
import { Receiver } from '../webhook/receiver.ts';
import { type TestShell, testShell } from './shell.ts';

const targets = new RuleTargets();
let broker: Broker;
let server: Awaited<ReturnType<typeof serve>>;
let url: string;

before(async () => {
  broker = createBroker({ connectors: [webhooks()], rules: { resources: [targets.type] } });
  await broker.start();
  await broker.applications.create({ id: 'me', secret: 'a:secret' });
  server = await serve(managementApi(broker, { prefix: '/api/v4' }).node);
  url = `http://127.0.0.1:${server.port}/api/v4`;
});

after(async () => {
  await server[Symbol.asyncDispose]();
  await broker.stop();
});

async function ctl(args: readonly string[], shell: TestShell = testShell()) {
  shell.env.EMBERMQ_APP = 'me:a:secret';
  const code = await runCommand(['ctl', '--url', url, ...args], shell);
  return { code, out: shell.out(), err: shell.err() };
}

/** Run `embermq ctl` without an error. @returns the lines of JSON that it prints */
async function rows(args: readonly string[], shell?: TestShell) {
  const { code, out, err } = await ctl(args, shell);
  assert.deepEqual([code, err], [0, ''], args.join(' '));
  const lines = out.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line));
}

/** A shell with a file, which is also its standard input. */
function withFile(content: unknown): TestShell {
  const shell = testShell();
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  shell.files.set('a.json', text);
  shell.stdin.end(text);
  return shell;
}

const SQL = 'SELECT payload.t AS t FROM "sensors/+" WHERE payload.t > 20';

describe('ctl rules', () => {
  it('makes, shows, lists, changes and deletes rules', async () => {
    const republish = 'republish={"target_topic":"a=b","target_qos":1,"payload_tmpl":""}';
    const flags = ['--sql', SQL, '--action', 'do_nothing', '--action', republish, '--description', 'hot', '--id', 'r1'];
    const [made] = await rows(['rules', 'add', ...flags]);
    assert.deepEqual([made.id, made.rawsql, made.description, made.state], ['r1', SQL, 'hot', 'connected']);
    const names = made.actions.map(({ name }: { name: string }) => name);
    assert.deepEqual([names, made.actions[1].params.target_topic], [['do_nothing', 'republish'], 'a=b']);
    assert.deepEqual(await rows(['rules', 'show', 'r1']), [made]);

    const file = { rawsql: 'SELECT * FROM "t"', actions: [{ name: 'do_nothing' }], description: 'of a file' };
    assert.equal((await rows(['rules', 'add', 'a.json', '--id', 'r2'], withFile(file)))[0].description, 'of a file');
    const [third] = await rows(['rules', 'add', '-', '--description', 'of both'], withFile(file));
    assert.match(third.id, /^rule:/);
    assert.equal(third.description, 'of both');

    await broker.publish('t', '');
    const listed = await rows(['rules']);
    assert.deepEqual(
      listed.map(({ id, matched, passed, failed }) => [id, matched, passed, failed]),
      [
        ['r1', 0, 0, 0],
        ['r2', 1, 1, 0],
        [third.id, 1, 1, 0]
      ]
    );
    assert.equal((await rows(['rules', 'list', 'r2'])).length, 1);

    assert.equal((await rows(['rules', 'disable', 'r2']))[0].enabled, false);
    assert.equal((await rows(['rules', 'enable', 'r2']))[0].enabled, true);
    assert.equal((await rows(['rules', 'change', 'r2', '--description', 'x']))[0].description, 'x');
    const change = { on_action_failed: 'stop' };
    assert.equal((await rows(['rules', 'change', 'r2', 'a.json'], withFile(change)))[0].on_action_failed, 'stop');
    assert.deepEqual(await rows(['rules', 'reset', 'r2']), []);
    assert.equal((await rows(['rules', 'show', 'r2']))[0].metrics[0].matched, 0);
    for (const id of ['r1', 'r2', third.id]) assert.deepEqual(await rows(['rules', 'remove', id]), []);
    assert.deepEqual(await rows(['rules', 'list']), []);
  });

  it('shows rules in a table on a terminal', async () => {
    await broker.rules.create({ id: 'r', sql: SQL, actions: [], description: 'hot' });
    const shell = testShell();
    shell.stdout.isTTY = true;
    const { out } = await ctl(['rules'], shell);
    assert.deepEqual(out.split('\n').slice(0, 2), [
      'id  enabled  state      for            matched  passed  failed  description',
      'r   true     connected  ["sensors/+"]  0        0       0       hot'
    ]);
    await broker.rules.delete('r');
  });

  it('checks statements, and shows functions and the samples of a rule', async () => {
    const [error] = await rows(['rules', 'validate', '--sql', 'SELECT a FROM "t" WHERE nosuch(a)']);
    assert.deepEqual([error.line, error.column, error.length], [1, 25, 6]);
    assert.deepEqual((await rows(['rules', 'validate', 'a.json'], withFile({ rawsql: SQL })))[0].columns, ['payload']);
    assert.equal((await rows(['rules', 'functions'])).find(({ name }) => name === 'abs').returns, 'number');
    await broker.rules.create({ id: 'r', sql: SQL, actions: [] });
    await broker.publish('sensors/1', '{"t": 19}');
    await broker.publish('sensors/2', '{"t": 21}');
    const samples = await rows(['rules', 'samples', 'r']);
    assert.deepEqual(
      samples.map(({ kind }) => kind).sort(),
      ['input', 'output', 'rejected'],
      'in the order of their times, which are equal here'
    );
    assert.deepEqual(samples.find(({ kind }) => kind === 'rejected')?.columns, { 'payload.t': 19 });
    const shell = testShell();
    shell.stdout.isTTY = true;
    const { out } = await ctl(['rules', 'samples', 'r'], shell);
    assert.match(out, /Z rejected .*topic=sensors\/1 .*payload\.t.*19/);
    await broker.rules.delete('r');
  });

  it('tests a statement in a flag or a file', async () => {
    const ctx = { topic: 'sensors/1', payload: { t: 30 } };
    assert.deepEqual(await rows(['rules', 'test', '--sql', SQL, '--ctx', JSON.stringify(ctx)]), [{ t: 30 }]);
    assert.deepEqual(await rows(['rules', 'test', 'a.json'], withFile({ rawsql: SQL, ctx })), [{ t: 30 }]);
    const each = 'FOREACH payload.list AS item FROM "t"';
    const list = JSON.stringify({ topic: 't', payload: { list: [1, { a: 2 }] } });
    assert.deepEqual(await rows(['rules', 'test', '--sql', each, '--ctx', list]), [{ value: 1 }, { a: 2 }]);
    const cold = await ctl(['rules', 'test', '--sql', SQL, '--ctx', '{"payload":{"t":3}}']);
    assert.deepEqual([cold.code, cold.err], [1, 'embermq: SQL Not Match\n']);
    assert.deepEqual(await broker.rules.list(), []);
  });

  it('lists events and actions', async () => {
    assert.ok((await rows(['rules', 'events'])).some(({ event }) => event === '$events/client_connected'));
    const names = async (...args: string[]) => (await rows(['actions', ...args])).map(({ name }) => name);
    const own = ['inspect', 'republish', 'do_nothing', 'send_to_target'];
    assert.deepEqual(await names(), [...own, 'log', 'memory', 'mqtt', 'nop'], 'and the sinks of streams');
    assert.deepEqual(await names('list', 'test_target'), ['send_to_target']);
    assert.ok('target_topic' in (await rows(['actions', 'show', 'republish']))[0].params);
  });

  for (const [args, code, message] of [
    [['rules', 'show', 'none'], 1, /^embermq: Rule none Not Found\n$/],
    [['rules', 'add'], 2, /^embermq: "ctl rules add" needs FILE or --sql and --action\n$/],
    [['rules', 'change', 'x'], 2, /^embermq: "ctl rules change ID" needs FILE or --sql, --action or --description\n$/],
    [['rules', 'add', '--sql', SQL], 2, /^embermq: "ctl rules add" needs --action\n$/],
    [
      ['rules', 'add', '--sql', 'SELECT', '--action', 'inspect'],
      1,
      /^embermq: Bad Arguments: parse_error: .*\n {2}SELECT\n +\^\n/
    ],
    [['rules', 'add', '--sql', SQL, '--action', 'inspekt'], 1, /did you mean "inspect"\?\n$/],
    [
      ['rules', 'add', '--sql', SQL, '--action', 'inspect={'],
      2,
      /^embermq: what follows "--action inspect=" is not JSON: /
    ],
    [
      ['rules', 'add', '--sql', SQL, '--action', '{"inspect":{}}'],
      2,
      /^embermq: --action: expected NAME or NAME=JSON, with the name of the action before the JSON, got \{"inspect":\{\}\}\n$/
    ],
    [['rules', 'test', '--sql', SQL, '--ctx', '{'], 2, /^embermq: --ctx is not JSON: /],
    [['rules', 'add', 'a.json', '--ctx', '{}'], 2, /--ctx is not a flag of "ctl rules add \[FILE\]"/],
    [['actions', 'show', 'none'], 1, /^embermq: Action none Not Found\n$/],
    [['resources', 'show', 'none'], 1, /^embermq: Resource none Not Found\n$/],
    [['resources', 'types', 'none'], 1, /^embermq: Resource Type none Not Found\n$/],
    [['rule'], 2, /did you mean "rules"\?\n$/]
  ] as const)
    it(`reports the fault of "${args.join(' ')}"`, async () => {
      const found = await ctl(args);
      assert.equal(found.code, code, found.err);
      assert.match(found.err, message);
    });

  for (const [args, file, code, message] of [
    [['rules', 'change', 'x'], '{}', 2, /"ctl rules change ID" needs FILE or --sql, --action or --description\n$/],
    [['rules', 'change', 'x'], 'null', 2, /"ctl rules change ID" needs FILE or --sql, --action or --description\n$/],
    [['rules', 'add'], '[]', 2, /"ctl rules add" needs FILE or --sql and --action\n$/],
    [['rules', 'add'], '"abc"', 1, /: the body must be object\n$/],
    [['rules', 'test'], '5', 1, /: the body must be object\n$/],
    [
      ['rules', 'test', '--sql', SQL],
      '[{}]',
      2,
      /: FILE must be a JSON object if flags or arguments give fields of it/
    ],
    [['rules', 'add', '--id', 'x'], 'null', 2, /: FILE must be a JSON object if flags or arguments give fields of it/],
    [
      ['resources', 'add', '--id', 'x'],
      '"a"',
      2,
      /: FILE must be a JSON object if flags or arguments give fields of it/
    ],
    [['webhooks', 'add'], '"abc"', 1, / the body must be object\n$/],
    [['import'], 'null', 1, / the body must be object\n$/]
  ] as const)
    it(`sends only objects together with fields, and refuses the file ${file} of "${args.join(' ')}"`, async () => {
      const at = args.findIndex((word) => word.startsWith('--'));
      const words = at < 0 ? [...args, 'a.json'] : [...args.slice(0, at), 'a.json', ...args.slice(at)];
      const found = await ctl(words, withFile(file));
      assert.equal(found.code, code, found.err);
      assert.match(found.err, message);
    });
});

describe('ctl resources', () => {
  it('makes, shows, lists, changes, tests, starts and deletes resources', async () => {
    const given = { type: 'test_target', config: { url: 'http://192.0.2.1/', token: 'a secret' }, description: 'd' };
    assert.deepEqual(await rows(['resources', 'test', 'a.json'], withFile(given)), []);
    const [made] = await rows(['resources', 'add', '-', '--id', 's'], withFile(given));
    assert.deepEqual([made.id, made.is_alive, made.config.token], ['s', true, '******']);
    assert.deepEqual(await rows(['resources']), [made]);
    assert.deepEqual(await rows(['resources', 'list', 'test_target']), [made]);
    assert.deepEqual(await rows(['resources', 'types']), await rows(['resources', 'types', 'test_target']));
    assert.deepEqual(await rows(['resources', 'change', 's', 'a.json'], withFile({ description: 'e' })), []);
    const empty = await ctl(['resources', 'change', 's', 'a.json'], withFile('null'));
    assert.deepEqual([empty.code, / the body must be object\n$/.test(empty.err)], [1, true]);
    const [shown] = await rows(['resources', 'show', 's']);
    assert.deepEqual([shown.description, shown.status[0].is_alive], ['e', true]);
    assert.deepEqual(await rows(['resources', 'start', 's']), []);
    targets.areReachable = false;
    const down = await ctl(['resources', 'start', 's']);
    assert.deepEqual([down.code, /^embermq: Start Resource s Failed: /.test(down.err)], [1, true]);
    const tested = await ctl(['resources', 'test', 'a.json'], withFile(given));
    assert.deepEqual([tested.code, /^embermq: Test Creating Resource Failed: /.test(tested.err)], [1, true]);
    targets.areReachable = true;
    assert.deepEqual(await rows(['resources', 'remove', 's']), []);
    assert.deepEqual(await rows(['resources']), []);
  });
});

describe('ctl webhooks test', () => {
  it('sends an event that is marked as a test and prints the result, or fails with the reason', async () => {
    await using receiver = await new Receiver().open();
    await rows(['webhooks', 'add', 'a.json'], withFile({ name: 'tested', url: receiver.url }));
    const [{ time_ms, ...result }] = await rows(['webhooks', 'test', 'tested']);
    assert.deepEqual([result, typeof time_ms], [{ delivered: true, status: 200 }, 'number']);
    assert.equal(receiver.bodies[0].action, 'webhook_test');
    receiver.answer = (_request, response) => response.writeHead(404).end();
    const refused = await ctl(['webhooks', 'test', 'tested']);
    assert.deepEqual([refused.code, refused.out], [1, '']);
    assert.match(refused.err, /^embermq: http:.*\/hook has answered with the status 404\n$/);
    await rows(['webhooks', 'remove', 'tested']);
    const unknown = await ctl(['webhooks', 'test', 'tested']);
    assert.deepEqual([unknown.code, unknown.err], [1, 'embermq: there is no webhook "tested"\n']);
  });
});
