import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { ACTION_GROUPS } from '../../adapters/cli/ctl/actions.ts';
import { managementApi } from '../../adapters/management/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { serve } from '../support/management.ts';
import { type TestShell, testShell } from './shell.ts';

let broker: Broker;
let server: Awaited<ReturnType<typeof serve>>;
let url: string;

before(async () => {
  // The state of the machine would raise alarms, which some lists show.
  broker = createBroker({ cpuHighWatermark: 0, sysmemHighWatermark: 0 });
  await broker.start();
  await broker.applications.create({ id: 'me', secret: 'a:secret' });
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

/** Run it on a terminal. */
function onTerminal(args: readonly string[], columns = 200) {
  const shell = testShell();
  shell.stdout.isTTY = true;
  shell.stdout.columns = columns;
  return ctl(args, shell);
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

  it('prints tables on a terminal, with escapes for unprintable characters', async () => {
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
    const again = testShell();
    again.stdin.end('another password\n');
    assert.deepEqual(await ctl(['users', 'password', 'ann'], again), { code: 0, out: '', err: '' });
    assert.equal((await broker.users.verify('ann', 'another password'))?.role, 'administrator');
    assert.equal((await ctl(['users', 'password', 'ann', 'on the command line'], testShell())).code, 2);
    const last = await ctl(['users', 'remove', 'ann']);
    assert.deepEqual([last.code, /"ann" is the last administrator; make another user/.test(last.err)], [1, true]);
    await broker.users.create('bob', 'a password', 'administrator');
    await rows('users', 'remove', 'ann');
    const [{ secret }] = await rows('apps', 'add', 'reports', '--name', 'Reports');
    assert.equal((secret as string).length, 48);
    await rows('apps', 'remove', 'reports');
    assert.deepEqual(
      (await rows('apps', 'list')).map(({ app_id }) => app_id),
      ['me']
    );
  });

  it('shows alarms, nodes, counters and routes', async () => {
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

  it('escapes control characters and characters that change the direction of text in --json', async () => {
    const title = 'a\u007f\u009b2J\u202eb\u2066';
    broker.alarms.raise({ id: 'odd', title });
    const { out } = await ctl(['alarms', '--json']);
    broker.alarms.clear('odd');
    assert.match(out, /a\\u007f\\u009b2J\\u202eb\\u2066/);
    assert.doesNotMatch(out, /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    assert.equal(JSON.parse(out).desc.title, title);
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

  it('shows an option by each of its spellings, and sets it by those', async () => {
    const spellings = ['zone.external.max_inflight', 'zones.external.maxInflight', 'zones.external.max-inflight'];
    for (const key of spellings) {
      await rows('config', 'set', key, '17');
      for (const other of spellings) {
        const [{ key: documented, value }] = await rows('config', 'get', other);
        assert.deepEqual([documented, value], ['zone.external.max_inflight', 17], other);
      }
      await rows('config', 'reset', key);
    }
    for (const key of ['maxInflight', 'max_inflight', 'max-inflight', 'mqtt.max_inflight'])
      assert.equal((await rows('config', 'get', key))[0].key, 'max_inflight', key);
    for (const key of ['sysInterval', 'broker.sys_interval', 'sys_interval', 'sys-interval'])
      assert.equal((await rows('config', 'get', key))[0].key, 'broker.sys_interval', key);
    assert.deepEqual(await rows('config', '--source', 'override'), []);
  });

  it('shows sessions and their queued messages', async () => {
    const client = await broker.connect({ clientId: 'away', clean: false, sessionExpiry: '1h' });
    await client.subscribe('away/#', { qos: 1 });
    await client.disconnect();
    await broker.publish('away/1', 'one', { qos: 1 });
    const [session] = await rows('sessions', 'list', 'awa');
    assert.deepEqual([session.connected, session.mqueue_len], [false, 1]);
    const [{ queued }] = await rows('sessions', 'show', 'away');
    assert.equal(queued, 1);
    assert.deepEqual(
      (await rows('sessions', 'queue', 'away')).map(({ topic, payload }) => [topic, payload]),
      [['away/1', 'one']]
    );
    assert.deepEqual(await rows('sessions', 'clear', 'away'), [{ dropped: 1 }]);
    assert.ok((await rows('topics')).some(({ level }) => level === 'away'));
    assert.deepEqual(
      (await rows('topics', 'away')).map(({ topic, subscribed }) => [topic, subscribed]),
      [['away/#', true]]
    );
    const [rights] = await rows('rights', 'publish', 'away/1', '--client', 'away');
    assert.deepEqual([rights.access, rights.has_session], ['allow', true]);
    await rows('clients', 'kick', 'away');
  });

  it('counts the messages of topics, traces clients, and finds slow subscribers', async () => {
    await rows('topic-figures', 'add', 'counted/#');
    await broker.publish('counted/1', 'x');
    assert.equal((await rows('topic-figures'))[0]['messages.in.count'], 1);
    assert.equal((await rows('topic-figures', 'show', 'counted/#'))[0]['messages.qos0.in.count'], 1);
    await rows('topic-figures', 'remove', 'counted/#');
    assert.deepEqual(await rows('topic-figures', 'list'), []);

    const [{ id }] = await rows('traces', 'start', '--topic', 'traced/#', '--seconds', '60', '--payload', 'none');
    await broker.publish('traced/1', 'x');
    assert.equal((await rows('traces'))[0].topic, 'traced/#');
    assert.equal((await rows('traces', 'show', `${id}`))[0].status, 'active');
    assert.equal(((await rows('traces', 'lines', `${id}`))[0].record as { topic: string }).topic, 'traced/1');
    const { out } = await onTerminal(['traces', 'lines', `${id}`]);
    assert.equal(JSON.parse(out.split('\n')[0]).topic, 'traced/1');
    assert.equal((await rows('traces', 'end', `${id}`))[0].status, 'stopped');
    assert.equal((await rows('traces', 'lines', `${id}`)).length, 2, 'its lines are kept');
    await rows('traces', 'stop', `${id}`);
    assert.deepEqual(await rows('traces'), []);

    const off = await ctl(['slow', 'subscriptions']);
    assert.deepEqual([off.code, off.out], [0, '']);
    assert.match(off.err, /^latencies are not measured; start with embermq ctl slow start\n$/);
    await rows('slow', 'start', '--threshold', '100', '--places', '5');
    assert.deepEqual(await rows('slow', 'subscriptions'), []);
    await rows('slow', 'stop');
    assert.deepEqual(await rows('slow', 'consumers'), []);
    assert.deepEqual(await rows('store'), [{ has_store: false }]);
    assert.ok((await rows('drops', '--topic', 'traced/#', '--reason', 'no_subscribers')).length > 0);
    await rows('drops', 'clear');
    assert.deepEqual(await rows('drops'), []);
    for (const row of await rows('figures', 'connections.count')) assert.equal(typeof row.at, 'number');
  });

  it('explains why a message did not arrive, and shows the history of a client', async () => {
    await broker.publish('nobody/hears', 'x');
    const answer = await ctl(['why', '--topic', 'nobody/hears', '--publisher', '']);
    const cause = JSON.parse(answer.out.split('\n')[0]);
    assert.deepEqual([cause.code, cause.count], ['no_subscriber', 1]);
    const { out, err } = await onTerminal(['why', '--topic', 'nobody/hears', '--at', '2020-01-31T12:00:00Z']);
    assert.match(
      out,
      /^20\S+Z no_subscriber: No subscription matched topic "nobody\/hears"\. Subscribe to the topic before/
    );
    assert.match(err, /there may be other causes: records of that time are no longer kept/);
    assert.match(err, /all records about this question are kept since 20\S+Z\n/);
    assert.match((await ctl(['why', '--topic', 'other', '--publisher', ''])).err, /no cause was found/);
    assert.match((await ctl(['why', '--topic', 'other', '--at', 'noon'])).err, /--at.*a time such as/);
    assert.match((await ctl(['why'])).err, /topic/);
    await broker.connect({ clientId: 'seen' });
    await rows('clients', 'kick', 'seen');
    const codes = (await rows('clients', 'history', 'seen')).map(({ code }) => code);
    assert.deepEqual(codes, ['disconnected_kicked', 'connected']);
  });

  it('finds what has a name, and says if there is more', async () => {
    const found = await broker.connect({ clientId: 'wanted/1', sessionExpiry: 0 });
    await found.subscribe('wanted/#');
    await broker.publish('wanted/1', 'x', { retain: true });
    assert.deepEqual(
      (await rows('search', 'wanted')).map(({ kind, name, detail }) => [kind, name, detail]),
      [
        ['client', 'wanted/1', 'connected'],
        ['topic', 'wanted/1', '1 bytes'],
        ['subscription', 'wanted/#', '']
      ]
    );
    await broker.publish('wanted/2', 'x', { retain: true });
    const { out, err } = await onTerminal(['search', 'WANT*', '--each', '1']);
    assert.match(out, /^KIND +NAME +DETAIL\n/i);
    assert.match(err, /there are more/);
    assert.match((await ctl(['search', 'a'.repeat(257)])).err, /256/);
    assert.match((await ctl(['search'])).err, /TEXT/);
    const gone = broker.nextEvent('session.terminated');
    await rows('clients', 'kick', 'wanted/1');
    await gone;
    for (const topic of ['wanted/1', 'wanted/2']) await rows('retained', 'remove', topic);
  });

  it('prints the columns of an empty list and "(none)" on a terminal', async () => {
    assert.deepEqual((await onTerminal(['alarms'])).out.split('\n').slice(1), ['(none)', '']);
    assert.equal((await onTerminal(['call', 'GET', '/alarms/present/embermq@127.0.0.1'])).out, '(none)\n');
    assert.deepEqual(await rows('listeners'), []);
  });

  it('prints times as ISO times on a terminal, and the changed objects', async () => {
    const iso = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z';
    await rows('ban', 'add', 'thief', '--reason', 'stolen device', '--seconds', '90');
    const { out: bans } = await onTerminal(['ban']);
    assert.match(bans, new RegExp(`^thief +clientid +stolen device +\\S+ +${iso} +${iso}$`, 'm'));
    assert.ok(bans.includes(` ${new Date().getUTCFullYear()}-`));
    const { out: audit } = await onTerminal(['audit', 'create_banned']);
    assert.match(
      audit,
      new RegExp(
        `^${iso} +me +127\\.0\\.0\\.1 +create_banned +200 +1 +who=thief as=clientid reason="stolen device"`,
        'm'
      )
    );
    assert.equal(typeof (await rows('audit', '--limit', '1'))[0].at, 'number');
    await rows('ban', 'remove', 'thief');
    await ctl(['clients', 'kick', 'nobody']);
    for (const { status } of await rows('audit', '--failed')) assert.ok((status as number) >= 400);
  });

  it('truncates wide values to the width of the terminal, but not in JSON', async () => {
    const client = await broker.connect({ clientId: 'wide' });
    const topic = `${'a/very/long/topic/filter/'.repeat(8)}#`;
    await client.subscribe(topic);
    const { out } = await onTerminal(['subs'], 60);
    const [heads, row] = out.split('\n');
    assert.match(heads, /^clientid {2}topic +qos$/);
    assert.match(row, /^wide +a\/very\/.*… +0$/);
    assert.equal(heads.length, 60);
    assert.equal((await rows('subs', 'wide'))[0].topic, topic);
    await rows('clients', 'kick', 'wide');
  });

  it('follows events until it is interrupted', async () => {
    const shell = testShell();
    shell.stdout.isTTY = true;
    const ended = ctl(['events', 'client.connected', '--client', 'seen'], shell);
    const printed = shell.line(/client\.connected/);
    let line: string | undefined;
    void printed.then((found) => {
      line = found;
    });
    while (line === undefined) {
      // the stream may not have begun yet
      for (const clientId of ['unseen', 'seen']) await broker.connect({ clientId });
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.match(line, /^\d{4}-\d\d-\d\dT\S+Z client\.connected client\.clientid=seen /);
    shell.signal('SIGINT');
    assert.equal((await ended).code, 0);
    assert.ok(!line.includes('unseen'));
    for (const id of ['seen', 'unseen']) await rows('clients', 'kick', id);
  });

  it('prints messages as they are published, and what is wrong with a condition', async () => {
    const shell = testShell();
    shell.stdout.isTTY = true;
    const ended = ctl(['tail', 'plant/#', '--where', 'payload.t > 80'], shell);
    const printed = shell.line(/plant/);
    let line: string | undefined;
    void printed.then((found) => {
      line = found;
    });
    while (line === undefined) {
      // the stream may not have begun yet
      for (const t of [70, 90]) await broker.publish('plant/1', `{"t":${t}}`, { qos: 1 });
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.match(line, /^\d{4}-\d\d-\d\dT\S+Z plant\/1 payload="\{\\"t\\":90\}" qos=1 flags\.dup=false/);
    shell.signal('SIGINT');
    assert.equal((await ended).code, 0);
    const refused = await ctl(['tail', '--where', 'payload.t >']);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /line 1, column 12/);
  });

  it('sends any request', async () => {
    const body = '{"clientid":"x","topic":"t","payload":"y"}';
    assert.deepEqual(await rows('call', 'post', 'mqtt/publish', body), []);
    assert.equal((await rows('call', 'GET', '/brokers?_=1'))[0].node_status, 'Running');
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
    [['clients'], 'me:guess', 1, /^embermq: the id or the secret is wrong\n$/],
    [['clients'], '', 2, /^embermq: ctl needs --app ID:SECRET or EMBERMQ_APP=ID:SECRET/],
    [['clients'], 'nocolon', 2, /^embermq: EMBERMQ_APP: expected ID:SECRET, an id without ":" and a secret\n$/],
    [
      ['clients', '--app', 'me:'],
      undefined,
      2,
      /^embermq: --app: expected ID:SECRET, an id without ":" and a secret\n$/
    ],
    [['stream', 'connections'], 'nocolon', 2, /^embermq: EMBERMQ_APP: expected ID:SECRET/],
    [['clients', '--url', 'localhost:8081'], undefined, 2, /^embermq: --url: expected a URL such as http:/],
    [
      ['clients', '--url', 'http://127.0.0.1:1/api'],
      undefined,
      1,
      /^embermq: http:\/\/127\.0\.0\.1:1\/api cannot be reached: /
    ],
    [['clients', 'kick', 'nobody'], undefined, 1, /^embermq: there is no client "nobody"\n$/],
    [['clients', 'kick', '..'], undefined, 1, /^embermq: there is no client "\.\."\n$/],
    [['clients', 'show', '.'], undefined, 1, /^embermq: params: "clientid" .*\n$/],
    [['call', 'DELETE', '/clients/..'], undefined, 1, /^embermq: path: .*\n$/],
    [['clients', 'show', 'nobody'], undefined, 1, /^embermq: there is no client "nobody"\n$/],
    [['client'], undefined, 2, /^embermq: unknown action "client"; did you mean "clients"\?\n$/],
    [[], undefined, 2, /^embermq: ctl needs an action: one of clients, /],
    [['clients', 'kick'], undefined, 2, /^embermq: usage: embermq ctl clients kick ID\n$/],
    [
      ['clients', 'stop', 'x'],
      undefined,
      2,
      /^embermq: unknown action "clients stop"; .*The actions are clients list \[PART\], clients show ID,/
    ],
    [['clients', 'kik', 'x'], undefined, 2, /did you mean "clients kick"\?/],
    [['banned'], undefined, 2, /^embermq: unknown action "banned"; did you mean "ban"\?\n$/],
    [['topic-metrics'], undefined, 2, /did you mean "topic-figures"\?\n$/],
    [
      ['clients', '--qos', '1'],
      undefined,
      2,
      /^embermq: --qos is not a flag of "ctl clients list \[PART\]"; it has no specific flags\n$/
    ],
    [['ban', 'add', 'x', '--user', 'y'], undefined, 2, /it takes --as, --reason, --seconds, --disconnect\n$/],
    [['config', 'get', 'zone.external.max_inflite'], undefined, 1, /did you mean "zone\.external\.max_inflight"\?\n$/],
    [['config', 'get', 'broker.sys_intervall'], undefined, 1, /did you mean "broker\.sys_interval"\?\n$/],
    [['config', 'get', 'nothing like an option'], undefined, 1, /unknown option "nothing like an option"\n$/],
    [['clients', '--ca', 'ca.pem'], undefined, 2, /^embermq: --ca is for a --url with https\n$/],
    [['rights', 'read', 'a'], undefined, 2, /ACTION: expected pub, sub, got "read"/],
    [['clients', '--timeout', '0'], undefined, 2, /--timeout: expected a duration above 0/],
    [['clients', 'show', ''], undefined, 2, /^embermq: ID of "ctl clients show ID" must not be empty\n$/],
    [['help', 'rules', 'remov'], undefined, 2, /unknown action "rules remov"; did you mean "rules remove"\?/],
    [['help', 'stream', 'nosuch'], undefined, 2, /unknown action "stream nosuch"; the actions are stream list/],
    [['traces', 'show', '99'], undefined, 1, /^embermq: there is no trace "99"\n$/],
    [['acl', 'add', 'permit', 'pub', 'a'], undefined, 2, /ACCESS/],
    [['call', 'POST', '/x/backup'], undefined, 1, /^embermq: .*store/],
    [['call', 'POST', '/acl', '{'], undefined, 2, /^embermq: the body is not JSON: /]
  ] as const)
    it(`reports in one line the fault of "${args.join(' ')}"${env === undefined ? '' : ` and the credentials "${env}"`}`, async () => {
      const shell = testShell();
      if (env !== undefined) shell.env.EMBERMQ_APP = env;
      const found = await ctl(args, shell);
      assert.equal(found.code, code, found.err);
      assert.match(found.err, message);
      assert.equal(found.err.split('\n').length, 2);
      assert.ok(!found.err.includes('guess'));
    });

  it('names the remedy if no server listens at the URL', async () => {
    const server = await serve(() => {});
    await server[Symbol.asyncDispose]();
    const closed = `http://127.0.0.1:${server.port}`;
    for (const [action, urlFlag] of [
      ['clients', '--url'],
      ['stream', '--rules-url']
    ]) {
      const { code, err } = await ctl([action, 'list', urlFlag, closed]);
      assert.equal(code, 1);
      assert.match(err, / cannot be reached: .*ECONNREFUSED/);
      assert.ok(err.endsWith(`; start a broker with "embermq serve", or say with ${urlFlag} where it is\n`), err);
    }
  });

  for (const given of ['', '/', '/api', '/api/v4/'])
    it(`finds the interface below the URL http://host:port${given}, or explains the URL`, async () => {
      const base = url.replace('/api/v4', given);
      const { code, out, err } = await ctl(['apps', '--url', base]);
      if (given === '' || given === '/api/v4/') assert.deepEqual([code, JSON.parse(out).app_id, err], [0, 'me', '']);
      else {
        assert.equal(code, 1);
        assert.match(err, /; the URL must include the prefix of the interface, for example \/api\/v4\n$/);
      }
    });

  it('does not doubt the URL if the interface itself has answered with 404', async () => {
    const { code, err } = await ctl(['clients', 'kick', 'nobody']);
    assert.equal(code, 1);
    assert.doesNotMatch(err, /--url/);
  });

  it('reads "pub" and "sub" as the short forms of "publish" and "subscribe"', async () => {
    for (const word of ['pub', 'sub', 'publish', 'subscribe'])
      assert.equal((await rows('rights', word, 'a/b', '--client', 'one'))[0].access, 'allow', word);
    for (const word of ['publish', 'subscribe']) await rows('acl', 'add', 'allow', word, word);
    assert.deepEqual(
      (await rows('acl')).map(({ topic, action }) => [topic, action]),
      [
        ['publish', 'pub'],
        ['subscribe', 'sub']
      ]
    );
    for (const topic of ['publish', 'subscribe']) await rows('acl', 'remove', topic);
  });

  it('lists its actions in its help', async () => {
    const shell = testShell();
    assert.equal(await runCommand(['help', 'ctl'], shell), 0);
    assert.match(shell.out(), /clients kick ID +disconnect a client and end its session\n/);
    assert.match((await ctl(['help'])).out, /^usage: embermq ctl ACTION .*The exit code is 0/s);
    assert.match((await ctl(['--help'])).out, /^usage: embermq ctl ACTION /);
  });

  it('describes single actions with their flags', async () => {
    for (const args of [
      ['help', 'ban', 'add'],
      ['ban', 'add', '--help'],
      ['ban', 'add', '-h'],
      ['ban', 'add', 'x', '--reason', 'y', '--help']
    ]) {
      const { code, out, err } = await ctl(args);
      assert.deepEqual([code, err], [0, '']);
      assert.match(out, /ctl ban add WHO \[flags\]\n\n {2}ban a client id, .*\n\n +--as /);
      assert.ok(!out.includes('ban remove'), args.join(' '));
    }
    const { out } = await ctl(['traces', '--help']);
    assert.match(out, /ctl traces list\n.*ctl traces start \[flags\]\n/s);
    assert.equal((await ctl(['stream', 'help'])).out, (await ctl(['help', 'stream'])).out);
    assert.equal((await ctl(['help', 'clint'])).code, 2);
    assert.equal((await ctl(['clint', 'help'])).code, 2);
    for (const action of Object.values(ACTION_GROUPS).flat()) assert.match(action.about, /^[a-z]/, action.usage);
  });
});
