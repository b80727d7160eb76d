import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { describe, it, mock } from 'node:test';
import { pino } from 'pino';
import winston from 'winston';
import { listen, tcp } from '../../adapters/net/index.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import {
  acl,
  type BrokerOptions,
  ConnectionRefused,
  createBroker,
  LOG_LEVELS,
  type Logger,
  type LogLevel,
  memoryStore,
  users
} from '../../lib/index.ts';
import { createTestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';

interface Line {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A logger that collects its lines. */
function collector() {
  const lines: Line[] = [];
  const methods = LOG_LEVELS.map((level) => [
    level,
    (message: string, fields: Line['fields']) => lines.push({ level, message, fields })
  ]);
  return { lines, logger: Object.fromEntries(methods) as Logger };
}

function brief(lines: readonly Line[]): string[] {
  return lines.map(({ level, message }) => `${level}: ${message}`);
}

/** A stream that collects lines of JSON. */
function jsonLines() {
  const records: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      for (const line of String(chunk).trim().split('\n')) records.push(JSON.parse(line));
      done();
    }
  });
  return { records, stream };
}

/** A session of a client with a broker that logs to this logger. */
async function session(logger: Logger): Promise<void> {
  await using kit = await createTestBroker({ logger });
  const client = await kit.connect({ clientId: 'c', username: 'ann', transportInfo: { remoteAddress: '192.0.2.1' } });
  await client.disconnect();
  await kit.broker.stop();
}

describe('the logger', () => {
  it('passes the fields first to pino', async () => {
    const { records, stream } = jsonLines();
    await session(pino(stream));
    assert.deepEqual(
      records.map(({ level, msg }) => [level, msg]),
      [
        [30, 'broker started'],
        [30, 'client connected'],
        [30, 'client disconnected'],
        [30, 'broker stopped']
      ]
    );
    const { event, clientId, username, address, protocolVersion } = records[1];
    assert.deepEqual(
      [event, clientId, username, address, protocolVersion],
      ['client.connected', 'c', 'ann', '192.0.2.1', 5]
    );
    assert.equal(records[2].reason, 'normal');
  });

  it('accepts a child of pino', async () => {
    const { records, stream } = jsonLines();
    await session(pino(stream).child({ part: 'mqtt' }));
    assert.deepEqual([records[0].part, records[0].msg, records[0].event], ['mqtt', 'broker started', 'broker.started']);
  });

  it('passes the message first to winston', async () => {
    const { records, stream } = jsonLines();
    await session(winston.createLogger({ level: 'debug', transports: [new winston.transports.Stream({ stream })] }));
    assert.deepEqual(
      records.map(({ level, message }) => `${level}: ${message}`),
      [
        'info: broker started',
        'debug: session created',
        'info: client connected',
        'info: client disconnected',
        'debug: session terminated',
        'info: broker stopped'
      ]
    );
    assert.deepEqual([records[2].event, records[2].clientId], ['client.connected', 'c']);
  });

  it('accepts console', async () => {
    const info = mock.method(console, 'info', () => {});
    const debug = mock.method(console, 'debug', () => {});
    try {
      await session(console);
      assert.deepEqual(
        info.mock.calls.map(({ arguments: [message] }) => message),
        ['broker started', 'client connected', 'client disconnected', 'broker stopped']
      );
      assert.equal((info.mock.calls[1].arguments[1] as { clientId: string }).clientId, 'c');
      assert.equal(debug.mock.callCount(), 2);
    } finally {
      info.mock.restore();
      debug.mock.restore();
    }
  });

  it('checks whether a level is enabled before fields are built', async () => {
    for (const logger of [pino({ level: 'silent' }), winston.createLogger({ silent: true, level: 'error' })]) {
      const info = mock.method(logger as unknown as { info(): void }, 'info');
      await session(logger);
      assert.equal(info.mock.callCount(), 0);
    }
    const { lines, logger } = collector();
    let level = 'info';
    await session({ ...logger, isLevelEnabled: (one) => one === level });
    assert.ok(lines.length > 0 && lines.every((line) => line.level === 'info'));
    level = 'debug';
    lines.length = 0;
    await session({ ...logger, isLevelEnabled: (one) => one === level });
    assert.deepEqual(brief(lines), ['debug: session created', 'debug: session terminated']);
  });

  it('refuses a logger without the four methods', () => {
    for (const logger of [{}, { info() {}, warn() {}, error() {} }, 'console', null])
      assert.throws(() => createBroker({ logger } as unknown as BrokerOptions), {
        code: 'OPTION_INVALID',
        message: /error, warn, info, debug/
      });
  });

  it('reports a logger that throws or rejects once, and affects nothing else', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const fail = () => {
      throw new Error('no space for logs');
    };
    const reject = async () => fail();
    try {
      await session({ error: fail, warn: fail, info: fail, debug: fail });
      await session({ error: reject, warn: reject, info: reject, debug: reject });
      await new Promise((resolve) => setImmediate(resolve));
    } finally {
      process.off('warning', onWarning);
    }
    const ours = warnings.filter((warning) => (warning as { code?: string }).code === 'LOGGER_FAILED');
    assert.deepEqual(
      ours.map(({ message }) => message),
      Array(2).fill('the logger has failed: no space for logs (further failures are not reported)')
    );
  });

  it('logs nothing by default, without listeners', () => {
    const { heard } = engineOf(createBroker()).services.events;
    assert.deepEqual([heard['broker.started'], heard['client.connack'], heard.error], [false, false, false]);
  });

  it('keeps the fast path open', async () => {
    await using kit = await createTestBroker({ logger: collector().logger });
    assert.equal(engineOf(kit.broker).publishing.hooks.isFastPathOpen, true);
  });
});

describe('the log', () => {
  it('names the listeners, including those that are added and removed later', async () => {
    const { lines, logger } = collector();
    const broker = createBroker({ logger });
    const first = listen(broker, tcp({ port: 0, host: '127.0.0.1' }));
    await broker.start();
    const second = await listen(broker, tcp({ port: 0, host: '127.0.0.1', name: 'second' }));
    await second.close();
    await broker.stop();
    assert.deepEqual(brief(lines), [
      'info: broker started',
      'info: listener added',
      'info: listener removed',
      'info: broker stopped'
    ]);
    assert.match((lines[0].fields.listeners as string[])[0], /^tcp:.* \(127\.0\.0\.1:\d+\)$/);
    assert.equal(lines[1].fields.listener, 'second');
    assert.ok(first);
  });

  it('logs refused clients, with the reason', async () => {
    const { lines, logger } = collector();
    await using kit = await createTestBroker({ logger, auth: [users([{ username: 'ann', password: 'right' }])] });
    await assert.rejects(kit.connect({ clientId: 'c', username: 'ann', password: 'wrong' }));
    const refused = lines.find(({ fields }) => fields.event === 'client.rejected');
    assert.equal(refused?.level, 'warn');
    assert.equal(refused?.message, 'client rejected: records: the password is wrong');
    assert.deepEqual(
      [refused?.fields.clientId, refused?.fields.username, refused?.fields.reason, refused?.fields.reasonCode],
      ['c', 'ann', 'not_authorized', 0x86]
    );
  });

  it('logs refused connections, one for each address and reason in a minute, and the others at the level debug', async () => {
    const { lines, logger } = collector();
    await using kit = await createTestBroker({ logger });
    const refuse = (reason: string, peer: string) =>
      kit.broker.failed(new ConnectionRefused(reason, `because of ${reason}`, peer), 'accepting a connection');
    refuse('tls_failed', '192.0.2.1');
    refuse('tls_failed', '192.0.2.1');
    refuse('no_username', '192.0.2.2');
    await kit.clock.advance('61s');
    refuse('tls_failed', '192.0.2.3');
    const fields = { event: 'client.rejected', address: '192.0.2.1', reason: 'tls_failed' };
    assert.deepEqual(lines.find(({ fields }) => fields.event === 'client.rejected')?.fields, fields);
    assert.deepEqual(
      lines.filter(({ fields }) => fields.event === 'client.rejected').map(({ level, message }) => [level, message]),
      [
        ['warn', 'client rejected: because of tls_failed'],
        ['debug', 'client rejected: because of tls_failed'],
        ['warn', 'client rejected: because of no_username'],
        ['warn', 'client rejected: because of tls_failed']
      ]
    );
  });

  it('logs a refused subscription, regardless of how many clients are rejected in the same minute', async () => {
    const { lines, logger } = collector();
    const auth = [acl([{ access: 'allow', topic: 'mine/#' }])];
    await using kit = await createTestBroker({ logger, auth });
    const refuse = (peer: string) =>
      kit.broker.failed(
        new ConnectionRefused('tls_failed', 'the handshake has failed', peer),
        'accepting a connection'
      );
    for (let n = 0; n < 2000; n++) refuse(`client ${n}`);
    const client = await kit.connect({ clientId: 'c' });
    await client.subscribe('other/a').catch(() => undefined);
    const levels = (event: string) => lines.filter(({ fields }) => fields.event === event).map(({ level }) => level);
    assert.equal(levels('client.rejected').filter((level) => level === 'warn').length, 1000);
    assert.deepEqual(levels('client.suback'), ['info']);
  });

  it('logs refused messages and subscriptions, one for each client in a minute, and the others at the level debug', async () => {
    const { lines, logger } = collector();
    const auth = [acl([{ access: 'allow', topic: 'mine/#' }])];
    await using kit = await createTestBroker({ logger, auth });
    assert.equal(engineOf(kit.broker).publishing.hooks.isFastPathOpen, true);
    const transportInfo = { remoteAddress: '192.0.2.1' };
    const [first, second] = [
      await kit.connect({ clientId: 'one', username: 'ann', transportInfo }),
      await kit.connect({ clientId: 'two' })
    ];
    const refused = () =>
      lines
        .filter(({ message }) => message.endsWith(' refused'))
        .map(({ level, message, fields: { clientId, topic, filters } }) => [
          level,
          message,
          clientId,
          topic ?? filters
        ]);
    for (const qos of [0, 1, 2] as const) await first.publish(`other/${qos}`, 'secret', { qos }).catch(() => undefined);
    await second.publish('other/3', 'secret', { qos: 1 }).catch(() => undefined);
    await first.publish('mine/1', 'x', { qos: 1 });
    assert.deepEqual(refused(), [
      ['info', 'message refused', 'one', 'other/0'],
      ['debug', 'message refused', 'one', 'other/1'],
      ['debug', 'message refused', 'one', 'other/2'],
      ['info', 'message refused', 'two', 'other/3']
    ]);
    const line = lines.find(({ message }) => message === 'message refused');
    assert.deepEqual(line?.fields, {
      event: 'message.dropped',
      clientId: 'one',
      username: 'ann',
      address: '192.0.2.1',
      topic: 'other/0',
      qos: 0,
      reason: 'not_authorized'
    });
    lines.length = 0;
    await second.subscribe(['mine/#', 'other/#']);
    await second.subscribe('mine/a');
    await second.subscribe('other/a');
    await kit.clock.advance('61s');
    await second.publish('other/4', 'secret', { qos: 1 }).catch(() => undefined);
    assert.deepEqual(refused(), [
      ['info', 'subscription refused', 'two', ['other/#']],
      ['debug', 'subscription refused', 'two', ['other/a']],
      ['info', 'message refused', 'two', 'other/4']
    ]);
    assert.ok(!JSON.stringify(lines).includes('secret'));
  });

  it('does not log messages that are dropped for another reason', async () => {
    const { lines, logger } = collector();
    await using kit = await createTestBroker({ logger, hooks: { publish: () => true } });
    await kit.broker.publish('nobody/subscribes', 'x');
    assert.ok(lines.every(({ fields }) => fields.event !== 'message.dropped'));
  });

  it('does not show a token that is banned as a user name', async () => {
    const { lines, logger } = collector();
    await using kit = await createTestBroker({ logger });
    await kit.broker.access.banned.create({ kind: 'username', who: 'eyJhbGciOiJub25lIn0.e30.c2ln' });
    assert.equal(lines.find(({ fields }) => fields.event === 'client.banned')?.fields.who, '(token)');
  });

  it('logs bans, alarms, slow consumers, and errors with their code', async () => {
    const { lines, logger } = collector();
    await using kit = await createTestBroker({ logger });
    const { access, alarms } = kit.broker;
    await access.banned.create({ kind: 'clientId', who: 'bad', reason: 'test' });
    for (const severity of ['notice', 'warning', 'error', 'critical'] as const) {
      alarms.raise({ id: severity, severity, title: 'T' });
      alarms.clear(severity);
    }
    kit.broker.failed(Object.assign(new Error('broken'), { code: 'E', secret: 'top secret' }), 'doing it');
    const client = await rawClient(kit.broker, { clientId: 'c' });
    client.stream.write(Buffer.from([0xf0, 0]));
    await kit.clock.settle();
    const events = lines.filter(({ fields }) => !/^(session|broker)/.test(String(fields.event)));
    assert.deepEqual(brief(events), [
      'warn: clients banned',
      'info: alarm raised: T',
      'info: alarm cleared: T',
      'warn: alarm raised: T',
      'info: alarm cleared: T',
      'error: alarm raised: T',
      'info: alarm cleared: T',
      'error: alarm raised: T',
      'info: alarm cleared: T',
      'error: doing it: broken',
      'info: client connected',
      ...brief(events.slice(11))
    ]);
    const { error, during } = events[9].fields as { error: Record<string, unknown>; during: string };
    assert.deepEqual([during, error.code, error.message], ['doing it', 'E', 'broken']);
    assert.equal('secret' in error, false);
    assert.ok(events.slice(11).some(({ message }) => message === 'client disconnected'));
  });

  it('logs sources that were reloaded, and those that could not be', async () => {
    const { lines, logger } = collector();
    let isGood = true;
    const source = {
      name: 'mine',
      authenticate: () => true as const,
      reload: () => {
        if (!isGood) throw new Error('line 3 is wrong');
      }
    };
    await using kit = await createTestBroker({ logger, auth: [source] });
    lines.length = 0;
    await kit.broker.access.reload('mine');
    isGood = false;
    await assert.rejects(kit.broker.access.reload('mine'), /line 3/);
    assert.deepEqual(brief(lines), [
      'info: source of authentication reloaded',
      'error: source of authentication could not be reloaded; its previous content remains valid'
    ]);
    assert.equal((lines[1].fields.error as Error).message, 'line 3 is wrong');
  });

  it('logs rules that cannot run, including those of the options', async () => {
    const { lines, logger } = collector();
    const rules = [{ id: 'hot', sql: 'SELECT * FROM "a"', actions: ['inspec'] }];
    await using _ = await createTestBroker({ logger, rules: { rules } });
    const [line] = lines.filter(({ fields }) => fields.event === 'rule.disconnected');
    assert.deepEqual(brief([line]), ['warn: rule cannot run']);
    assert.equal(line.fields.rule, 'hot');
    assert.match(String(line.fields.reason), /unknown action "inspec"/);
  });

  it('logs a store that fails and recovers', async () => {
    const { lines, logger } = collector();
    const store = memoryStore();
    let isBroken = false;
    const commit = store.commit.bind(store);
    store.commit = (...batch) => (isBroken ? Promise.reject(new Error('disk full')) : commit(...batch));
    await using kit = await createTestBroker({ logger, store });
    isBroken = true;
    await assert.rejects(kit.broker.publish('t', 'x', { qos: 1, retain: true }));
    isBroken = false;
    await kit.clock.advance('1m');
    const about = lines.filter(({ fields }) => String(fields.event).startsWith('store.'));
    assert.deepEqual(brief(about), ['error: the store cannot be written', 'warn: the store can be written again']);
  });
});

describe('the first record that is added without a source', () => {
  it('logs once that a record was added without a source, and how to refuse unknown clients', async () => {
    const { lines, logger } = collector();
    await using kit = await createTestBroker({ logger });
    const { usernames, clientIds } = kit.broker.access;
    lines.length = 0;
    await usernames.create('ann', 'pw');
    await clientIds.create('c', 'pw');
    const [line, ...rest] = lines;
    assert.equal(line.level, 'warn');
    assert.match(line.message, /user name.*next CONNECT.*unknown clients still get in.*allowAnonymous to false/);
    assert.deepEqual(rest, []);
    await (await kit.connect({ clientId: 'unknown' })).disconnect();
  });

  it('does not log the first record if there is a source, or allowAnonymous is set', async () => {
    const cases: readonly TestBrokerOptions[] = [
      { auth: [users([])] },
      { allowAnonymous: false },
      { allowAnonymous: true },
      { hooks: { authenticate: () => undefined } }
    ];
    for (const options of cases) {
      const { lines, logger } = collector();
      await using kit = await createTestBroker({ ...options, logger });
      lines.length = 0;
      await kit.broker.access.logins.create('ann', 'pw');
      assert.deepEqual(lines, []);
    }
  });

  it('logs the first record if the only source has only rules', async () => {
    const { lines, logger } = collector();
    await using kit = await createTestBroker({
      logger,
      auth: [acl([{ access: 'allow', action: 'pubsub', topic: '#' }])]
    });
    lines.length = 0;
    await kit.broker.access.usernames.create('ann', 'pw');
    assert.equal(lines.length, 1);
  });
});

describe('secrets', () => {
  it('writes no secret to the log, for any part of a session that has one', async () => {
    const { lines, logger } = collector();
    const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJTRUNSRVQtdG9rZW4ifQ.U0VDUkVUc2lnbmF0dXJl';
    await using kit = await createTestBroker({
      logger,
      auth: [
        users([{ username: 'ann', password: 'SECRET-user' }]),
        {
          name: 'other',
          authenticate: ({ method, round, data }) => {
            if (method === undefined) return undefined;
            return round === 0 ? { challenge: Buffer.from('SECRET-challenge') } : String(data) === 'SECRET-answer';
          }
        }
      ],
      hooks: {
        authenticate: ({ username }) =>
          username === token ? { allow: true, clientData: { key: 'SECRET-data' } } : undefined
      }
    });
    const { access, applications, users: managers } = kit.broker;
    await access.usernames.create('bob', 'SECRET-bob');
    await access.usernames.update('bob', 'SECRET-bob2');
    await access.clientIds.create('c9', 'SECRET-c9');
    await managers.create('root', 'SECRET-manager');
    await applications.create({ id: 'app', name: 'app', secret: 'SECRET-app' });
    const transportInfo = {
      remoteAddress: '192.0.2.1',
      remotePort: 1,
      headers: { authorization: 'Bearer SECRET-header', cookie: 'SECRET-cookie' }
    };
    const good = await kit.connect({ clientId: 'a', username: 'ann', password: 'SECRET-user', transportInfo });
    await good.publish('t', 'SECRET-payload', { qos: 1 });
    await good.disconnect();
    await assert.rejects(kit.connect({ clientId: 'b', username: 'ann', password: 'SECRET-wrong', transportInfo }));
    const withToken = await kit.connect({
      clientId: 'd',
      username: token,
      will: { topic: 'w', payload: 'SECRET-will' },
      properties: { userProperties: [['key', 'SECRET-property']] }
    });
    await withToken.disconnect();
    await assert.rejects(kit.connect({ clientId: 'e', username: `${token}x` }));
    for (const answer of ['SECRET-answer', 'SECRET-wrong-answer']) {
      const connecting = kit.connect({
        clientId: 'f',
        properties: { authenticationMethod: 'm', authenticationData: Buffer.from('SECRET-first') },
        onAuth: () => Buffer.from(answer)
      });
      await connecting.then((client) => client.disconnect()).catch(() => {});
    }
    const broken = await rawClient(kit.broker, { connect: false });
    broken.stream.write(
      Buffer.concat([Buffer.from([0x10, 30, 0, 4]), Buffer.from('MQTT\x05\xc3SECRET-in-a-bad-packet')])
    );
    await kit.clock.settle();
    await kit.broker.stop();
    assert.ok(lines.filter(({ message }) => message === 'client connected').length >= 3);
    const text = JSON.stringify(lines);
    assert.doesNotMatch(text, /SECRET|eyJ|Bearer/);
    for (const secret of ['SECRET', 'SECRET-user'])
      for (const encoding of ['hex', 'base64'] as const)
        assert.ok(!text.includes(Buffer.from(secret).toString(encoding).slice(0, 8)), `${secret} in ${encoding}`);
  });
});
