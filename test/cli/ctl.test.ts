import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { managementApi } from '../../adapters/management/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { serve } from '../support/management.ts';
import { type TestShell, testShell } from './shell.ts';

let broker: Broker;
let server: Awaited<ReturnType<typeof serve>>;
let url: string;

before(async () => {
  broker = createBroker();
  await broker.start();
  await broker.applications.add({ id: 'me', secret: 'a:secret' });
  server = await serve(managementApi(broker, { prefix: '/api/v4' }).node);
  url = `http://127.0.0.1:${server.port}/api/v4`;
});

after(async () => {
  await server[Symbol.asyncDispose]();
  await broker.stop();
});

/** Run `embermq ctl` with the credentials of the application. */
async function ctl(args: readonly string[], shell: TestShell = testShell()) {
  shell.env.EMBERMQ_APP ??= 'me:a:secret';
  const code = await runCommand(['ctl', '--url', url, ...args], shell);
  return { code, out: shell.out(), err: shell.err() };
}

/** Run it without an error. @returns the lines of JSON that it prints */
async function rows(...args: readonly string[]): Promise<Record<string, unknown>[]> {
  const { code, out, err } = await ctl(args);
  assert.deepEqual([code, err], [0, ''], args.join(' '));
  return out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

describe('ctl', () => {
  it('lists, shows and disconnects clients', async () => {
    await broker.connect({ clientId: 'one', username: 'ann' });
    await broker.connect({ clientId: 'two' });
    const ids = async (...args: string[]) => (await rows('clients', ...args)).map(({ clientid }) => clientid);
    assert.deepEqual(await ids(), ['one', 'two']);
    assert.deepEqual(await ids('list', 'tw'), ['two']);
    assert.deepEqual(await ids('--limit', '1'), ['one']);
    assert.equal((await rows('clients', 'show', 'one'))[0].username, 'ann');
    assert.deepEqual(await rows('clients', 'kick', 'one'), []);
    assert.deepEqual(await ids('list'), ['two']);
    await rows('clients', 'kick', 'two');
  });

  it('prints tables on a terminal, with escapes for what a terminal would not print', async () => {
    const client = await broker.connect({ clientId: 'a\u202eb' });
    await client.subscribe('a/long/topic/filter', { qos: 1 });
    await client.subscribe('b');
    const shell = testShell();
    shell.stdout.isTTY = true;
    const { out } = await ctl(['subs'], shell);
    assert.deepEqual(out.split('\n'), [
      'clientid  topic                qos',
      'a\\u202eb  a/long/topic/filter  1',
      'a\\u202eb  b                    0',
      ''
    ]);
    const one = testShell();
    one.stdout.isTTY = true;
    const { out: shown } = await ctl(['clients', 'show', 'a\u202eb'], one);
    assert.match(shown, /^node +embermq@127\.0\.0\.1\nclientid +a\\u202eb\n/);
    const json = testShell();
    json.stdout.isTTY = true;
    const { out: lines } = await ctl(['subs', 'a\u202eb', '--json', '--limit', '1'], json);
    assert.equal(JSON.parse(lines).topic, 'a/long/topic/filter');
    await rows('clients', 'kick', 'a\u202eb');
  });

  it('subscribes and unsubscribes clients, publishes, and shows retained messages', async () => {
    const client = await broker.connect({ clientId: 'device' });
    await rows('sub', 'device', 'commands/#', '-q', '1');
    const message = new Promise<{ readonly payload: Buffer; readonly qos: number }>((resolve) =>
      client.on('message', resolve)
    );
    await rows('pub', 'commands/1', 'go', '-q', '1', '-r');
    const { payload, qos } = await message;
    assert.deepEqual([payload.toString(), qos], ['go', 1]);
    await rows('unsub', 'device', 'commands/#');
    assert.deepEqual(await rows('subs', 'device'), []);
    assert.equal((await rows('retained', 'list', 'commands/#'))[0].topic, 'commands/1');
    assert.equal((await rows('retained', 'show', 'commands/1'))[0].payload, 'go');
    await rows('retained', 'remove', 'commands/1');
    assert.deepEqual(await rows('retained', 'list', 'commands/#'), []);
    await rows('clients', 'kick', 'device');
  });

  it('manages bans, rules, users and applications', async () => {
    await rows('ban', 'add', '192.0.2.0/24', '--as', 'peerhost', '--reason', 'scans', '--seconds', '60');
    assert.equal((await rows('ban'))[0].reason, 'scans');
    await rows('ban', 'remove', '192.0.2.0/24', '--as', 'peerhost');
    assert.deepEqual(await rows('ban', 'list'), []);
    await rows('acl', 'add', 'allow', 'pub', 'a/#', '--client', 'one');
    await rows('acl', 'add', 'deny', 'sub', 'b/#', '--user', 'ann');
    await rows('acl', 'add', 'allow', 'pubsub', '#');
    assert.deepEqual(
      (await rows('acl')).map(({ topic }) => topic),
      ['a/#', 'b/#', '#']
    );
    await rows('acl', 'remove', 'a/#', '--client', 'one');
    await rows('acl', 'remove', 'b/#', '--user', 'ann');
    await rows('acl', 'remove', '#');
    assert.deepEqual(await rows('acl'), []);
    const shell = testShell();
    shell.stdin.end('a password\n');
    assert.equal((await ctl(['users', 'add', 'ann', '--tags', 'administrator'], shell)).code, 0);
    assert.deepEqual(await rows('users'), [{ username: 'ann', tags: 'administrator' }]);
    assert.equal((await broker.users.verify('ann', 'a password'))?.name, 'ann');
    await rows('users', 'remove', 'ann');
    const [{ secret }] = await rows('apps', 'add', 'reports', '--name', 'Reports');
    assert.equal((secret as string).length, 48);
    await rows('apps', 'remove', 'reports');
    assert.deepEqual(
      (await rows('apps', 'list')).map(({ app_id }) => app_id),
      ['me']
    );
  });

  it('shows alarms, nodes, figures and routes', async () => {
    broker.alarms.raise({ id: 'low', title: 'Low pressure' });
    const shell = testShell();
    shell.stdout.isTTY = true;
    const { out } = await ctl(['alarms'], shell);
    assert.match(out, /^id +desc\.severity .*\nlow +warning +Low pressure/);
    broker.alarms.clear('low');
    assert.equal((await rows('alarms', 'history'))[0].id, 'low');
    assert.equal((await rows('nodes'))[0].node, 'embermq@127.0.0.1');
    assert.equal(typeof (await rows('stats'))[0]['connections.max'], 'number');
    assert.equal(typeof (await rows('metrics'))[0]['messages.received'], 'number');
    for (const list of ['listeners', 'routes']) assert.deepEqual(await rows(list), []);
    await broker.publish('nobody', 'x');
    for (const list of ['drops', 'audit']) assert.ok((await rows(list)).length > 0, list);
  });

  it('sets and resets options, and stops and starts plugins', async () => {
    const interval = async () => (await rows('config', 'get', 'broker.sys_interval'))[0].value;
    const before = await interval();
    await rows('config', 'set', 'broker.sys_interval', '90s');
    assert.notEqual(await interval(), before);
    await rows('config', 'reset', 'broker.sys_interval');
    assert.equal(await interval(), before);
    assert.equal((await rows('config', '--limit', '5')).length, 5);
    const isActive = async () => (await rows('plugins')).find(({ name }) => name === 'retainer')?.active;
    assert.equal(await isActive(), true);
    await rows('plugins', 'unload', 'retainer');
    assert.equal(await isActive(), false);
    await rows('plugins', 'load', 'retainer');
    await rows('plugins', 'reload', 'retainer');
    assert.equal(await isActive(), true);
  });

  it('sends any request', async () => {
    const body = '{"clientid":"x","topic":"t","payload":"y"}';
    assert.deepEqual(await rows('call', 'post', 'mqtt/publish', body), []);
    assert.equal((await rows('call', 'GET', '/brokers?x=1'))[0].node_status, 'Running');
    assert.ok((await rows('call', 'GET', '/')).length > 50);
    await rows('call', 'POST', '/mqtt/publish', '{"clientid":"x","topic":"q?","payload":"y","retain":true}');
    assert.equal((await rows('call', 'DELETE', '/x/retained?topic=q?&confirm=q?'))[0].deleted, 1);
    const [exported] = await rows('call', 'GET', '/x/export');
    assert.equal(exported.format, 'embermq-configuration');
    assert.equal((await rows('call', 'POST', '/x/import', JSON.stringify(exported))).length, 1);
    const events = await ctl(['call', 'GET', '/x/events', '--limit', '1']);
    assert.deepEqual([events.code, events.out.split('\n').length], [0, 2]);
  });

  for (const [args, env, code, message] of [
    [['clients'], 'me:guess', 1, /^embermq: HTTP Basic credentials /],
    [['clients'], '', 2, /^embermq: ctl needs --app ID:SECRET or EMBERMQ_APP=ID:SECRET/],
    [['clients', '--url', 'localhost:8081'], undefined, 2, /^embermq: --url: expected a URL such as http:/],
    [
      ['clients', '--url', 'http://127.0.0.1:1/api'],
      undefined,
      1,
      /^embermq: http:\/\/127\.0\.0\.1:1\/api cannot be reached: /
    ],
    [['clients', 'kick', 'nobody'], undefined, 1, /^embermq: there is no client "nobody"\n$/],
    [['clients', 'kick', '..'], undefined, 1, /^embermq: params: "clientid" .*\n$/],
    [['clients', 'show', '.'], undefined, 1, /^embermq: params: "clientid" .*\n$/],
    [['call', 'DELETE', '/clients/..'], undefined, 1, /^embermq: path: .*\n$/],
    [['clients', 'show', 'nobody'], undefined, 1, /^embermq: there is no client "nobody"\n$/],
    [['client'], undefined, 2, /^embermq: unknown action "client"; did you mean "clients"\?\n$/],
    [[], undefined, 2, /^embermq: ctl needs an action: one of clients, /],
    [['clients', 'kick'], undefined, 2, /^embermq: usage: embermq ctl clients kick ID\n$/],
    [['clients', 'stop', 'x'], undefined, 2, /^embermq: ctl clients stop x: expected clients list/],
    [['acl', 'add', 'permit', 'pub', 'a'], undefined, 2, /ACCESS/],
    [['call', 'POST', '/x/backup'], undefined, 1, /^embermq: .*store/],
    [['call', 'POST', '/acl', '{'], undefined, 2, /^embermq: the body is not JSON: /]
  ] as const)
    it(`says in one line what is wrong with "${args.join(' ')}"${env === undefined ? '' : ` and the credentials "${env}"`}`, async () => {
      const shell = testShell();
      if (env !== undefined) shell.env.EMBERMQ_APP = env;
      const found = await ctl(args, shell);
      assert.equal(found.code, code, found.err);
      assert.match(found.err, message);
      assert.equal(found.err.split('\n').length, 2);
      assert.ok(!found.err.includes('guess'));
    });

  it('is described by its help', async () => {
    const shell = testShell();
    assert.equal(await runCommand(['help', 'ctl'], shell), 0);
    assert.match(shell.out(), /clients kick ID +disconnect a client and end its session\n/);
  });
});
