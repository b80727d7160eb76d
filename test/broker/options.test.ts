import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/base/clock.ts';
import { InvalidInput } from '../../lib/base/errors.ts';
import {
  documentedName,
  durationMs,
  type FieldTable,
  nearest,
  type OptionTable,
  optionName,
  optionRow,
  parseDuration,
  parseSize,
  readOptions
} from '../../lib/base/fields.ts';
import { readBrokerOptions } from '../../lib/broker/configuration/option-reading.ts';
import { BROKER_OPTIONS, type BrokerOptions } from '../../lib/broker/configuration/options.ts';
import { ZONE_OPTIONS } from '../../lib/records/zone.ts';
import { cpuMs } from '../support/cpu.ts';
import { ManualClock } from '../support/manual-clock.ts';

const read = (given: object) => readBrokerOptions(given as BrokerOptions);
const external = (given: object) => read(given).zones.get('external') as unknown as Record<string, unknown>;

const refuses = (given: object, field: string, message: RegExp, code = 'OPTION_INVALID') => {
  assert.throws(
    () => read(given),
    (error) => {
      assert.ok(error instanceof InvalidInput, String(error));
      assert.equal(error.code, code);
      assert.equal(error.field, field);
      assert.match(error.message, message);
      return true;
    }
  );
};

describe('option tables', () => {
  for (const [title, table] of [
    ['ZONE_OPTIONS', ZONE_OPTIONS],
    ['BROKER_OPTIONS', BROKER_OPTIONS]
  ] as [string, FieldTable][]) {
    it(`${title}: every default is accepted by its own row, and every row has a description and a unit`, () => {
      for (const [name, row] of Object.entries(table)) {
        assert.ok(row.about.length > 10 && row.about.endsWith('.'), `${name}: about`);
        if (row.type === 'duration') assert.ok(row.unit === 'ms' || row.unit === 's', `${name}: unit`);
        if (row.type === 'size') assert.equal(row.unit, 'bytes', `${name}: unit`);
        if (row.default === undefined) continue;
        if (row.type === 'choice') assert.ok(row.choices?.includes(row.default as string), `${name}: choices`);
        assert.deepEqual(readOptions(table, { [name]: row.default }, '')[name], row.default, name);
      }
    });
  }

  it('shares no name, alias or documented spelling between tables', () => {
    const seen = new Set<string>();
    for (const [name, { aliases = [] }] of Object.entries({ ...ZONE_OPTIONS, ...BROKER_OPTIONS } as FieldTable)) {
      for (const spelling of new Set([name, documentedName(name), ...aliases])) {
        assert.ok(!seen.has(spelling), spelling);
        seen.add(spelling);
      }
    }
    assert.equal(Object.keys(ZONE_OPTIONS).filter((name) => name in BROKER_OPTIONS).length, 0);
  });
});

describe('option tables of 0.2', () => {
  const table: OptionTable = { userRules: optionRow('object', {}, 'Rules.') };

  it('accept an array as an object if they have no check', () => {
    assert.deepEqual(readOptions(table, { userRules: ['a'] }, ''), { userRules: ['a'] });
    assert.throws(() => readOptions(table, { userRules: 'a' }, ''), /userRules: expected an object/);
  });

  it('know the name of an option by its documented spelling', () => {
    assert.equal(optionName(table, 'user_rules'), 'userRules');
  });
});

describe('readBrokerOptions', () => {
  it('returns a default for every option', () => {
    const settings = readBrokerOptions();
    assert.equal(settings.clock, systemClock);
    assert.equal(settings.node, 'embermq@127.0.0.1');
    assert.equal(settings.sharedSubscriptionStrategy, 'random');
    assert.deepEqual([...settings.zones.keys()], ['external', 'internal']);
    assert.deepEqual([settings.rewrite, settings.autoSubscriptions, settings.hooks], [[], [], {}]);
    for (const [name, { default: value }] of Object.entries(ZONE_OPTIONS)) {
      assert.deepEqual(external({})[name], value, name);
    }
  });

  // Documented item, a value for it as in a settings file, and the value that is read.
  const documented: [item: string, written: unknown, value: unknown][] = [
    ['idle_timeout', '15s', 15_000],
    ['allow_anonymous', 'true', true],
    ['acl_deny_action', 'disconnect', 'disconnect'],
    ['publish_limit', '100,10s', { amount: 100, perMs: 10_000 }],
    ['rate_limit', '1MB,10s', { amount: 1_048_576, perMs: 10_000 }],
    ['max_packet_size', '1MB', 1_048_576],
    ['max_clientid_len', '65535', 65_535],
    ['max_topic_levels', 0, 0],
    ['max_qos_allowed', 2, 2],
    ['max_topic_alias', 65_535, 65_535],
    ['retain_available', 'false', false],
    ['wildcard_subscription', 'off', false],
    ['shared_subscription', 'on', true],
    ['ignore_loop_deliver', 'true', true],
    ['server_keepalive', 60, 60],
    ['keepalive_backoff', '0.75', 0.75],
    ['max_subscriptions', 0, 0],
    ['upgrade_qos', 'on', true],
    ['max_inflight', 32, 32],
    ['retry_interval', '30s', 30_000],
    ['max_awaiting_rel', 100, 100],
    ['await_rel_timeout', '300s', 300_000],
    ['session_expiry_interval', '2h', 7200],
    ['max_mqueue_len', 1000, 1000],
    [
      'mqueue_priorities',
      'topic/1=10,topic/2=8',
      new Map([
        ['topic/1', 10],
        ['topic/2', 8]
      ])
    ],
    ['mqueue_default_priority', 'highest', 'highest'],
    ['mqueue_store_qos0', 'false', false],
    ['mountpoint', 'dev/%c/', 'dev/%c/'],
    ['use_username_as_clientid', 'true', true],
    ['bypass_auth_plugins', 'true', true]
  ];
  for (const [item, written, value] of documented) {
    it(`accepts ${item} at the top level, in a zone and under the names of a settings file`, () => {
      const name = item.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
      const key = Object.keys(ZONE_OPTIONS).find((known) => known.toLowerCase() === name.toLowerCase()) as string;
      assert.ok(key, `${item} has no option`);
      for (const spelling of [item, key, `mqtt.${item}`, `zone.external.${item}`]) {
        assert.deepEqual(external({ [spelling]: written })[key], value, spelling);
      }
      assert.deepEqual(external({ zones: { external: { [item]: written } } })[key], value);
    });
  }

  const broker: [item: string, written: unknown, name: keyof typeof BROKER_OPTIONS, value: unknown][] = [
    ['broker.sys_interval', '1m', 'sysInterval', 60_000],
    ['broker.sys_heartbeat', '30s', 'sysHeartbeat', 30_000],
    ['broker.shared_subscription_strategy', 'round_robin', 'sharedSubscriptionStrategy', 'round_robin'],
    ['broker.shared_dispatch_ack_enabled', 'true', 'sharedDispatchAckEnabled', true],
    ['module.presence.qos', 2, 'presenceQos', 2],
    ['node.name', 'emqx@127.0.0.1', 'node', 'emqx@127.0.0.1'],
    ['retainer.max_retained_messages', 10, 'maxRetainedMessages', 10],
    ['retainer.max_payload_size', '1MB', 'maxRetainedPayloadSize', 1_048_576],
    ['retainer.expiry_interval', '1h', 'retainedExpiryInterval', 3600],
    ['sys_interval', 0, 'sysInterval', 0]
  ];
  for (const [item, written, name, value] of broker) {
    it(`accepts ${item}`, () => assert.deepEqual(read({ [item]: written })[name], value));
  }

  it('lets a zone override the top level for itself only, in every spelling', () => {
    const { zones } = read({
      maxInflight: 10,
      max_mqueue_len: 50,
      zones: { external: { max_inflight: 20 }, lab: { maxMqueueLen: '60', maxInflight: undefined } }
    });
    const counters = [...zones.values()].map(({ name, maxInflight, maxMqueueLen }) => [
      name,
      maxInflight,
      maxMqueueLen
    ]);
    assert.deepEqual(counters, [
      ['external', 20, 50],
      ['internal', 10, 50],
      ['lab', 10, 60]
    ]);
  });

  it('returns options that have no row in a table unchanged', () => {
    const clock = new ManualClock();
    const hooks = { deliver: () => true };
    const rewrite = ['a ^a$ b'];
    const autoSubscriptions = [{ topic: 'to/%c', qos: 1 as const }];
    const settings = readBrokerOptions({ clock, hooks, rewrite, autoSubscriptions });
    assert.deepEqual(
      [settings.clock, settings.hooks, settings.rewrite, settings.autoSubscriptions],
      [clock, hooks, rewrite, autoSubscriptions]
    );
  });

  it('treats undefined as not given', () => {
    assert.equal(external({ maxInflight: undefined }).maxInflight, 128);
    assert.equal(external({ maxInflight: undefined, max_inflight: 5 }).maxInflight, 5);
  });

  it('refuses an unknown option and suggests the most similar name', () => {
    const code = 'OPTION_UNKNOWN';
    refuses({ maxInflght: 5 }, 'maxInflght', /unknown option "maxInflght"; did you mean "maxInflight"\?/, code);
    refuses({ hook: {} }, 'hook', /did you mean "hooks"/, code);
    refuses({ sysIntervall: 1 }, 'sysIntervall', /did you mean "sysInterval"/, code);
    refuses(
      { port: 1883 },
      'port',
      /unknown option "port"; open ports with listen\(broker, 1883\) of embermq\/net/,
      code
    );
    refuses(
      { authenticate: () => true },
      'authenticate',
      /"authenticate"; it is a hook: hooks: { authenticate }/,
      code
    );
    refuses({ completelyDifferent: 1 }, 'completelyDifferent', /^unknown option "completelyDifferent"$/, code);
    refuses({ zones: { a: { max_inflght: 5 } } }, 'max_inflght', /in zones\.a; did you mean "max_inflight"/, code);
    refuses({ 'zone.a.max_inflght': 5 }, 'max_inflght', /in zones\.a/, code);
    refuses({ zones: { a: { sysInterval: 5 } } }, 'sysInterval', /in zones\.a/, code);
    const subscriptions = [{ topic: 'a' }, { topic: 'a', qoss: 1 }];
    refuses({ autoSubscriptions: subscriptions }, 'qoss', /in autoSubscriptions\.1; did you mean "qos"/, code);
    refuses({ toString: 1 }, 'toString', /unknown option/, code);
    refuses({ ['__proto__']: 1 }, '__proto__', /unknown option/, code);
  });

  const wrong: [given: object, field: string, message: RegExp][] = [
    [
      { store: './data' },
      'store',
      /expected a store, such as levelStore\("\.\/data"\) of embermq\/level, got "\.\/data"$/
    ],
    [{ maxInflight: -1 }, 'maxInflight', /expected a whole number from 0 to 65535 messages, got -1/],
    [{ maxInflight: 1.5 }, 'maxInflight', /whole number/],
    [{ maxInflight: NaN }, 'maxInflight', /got NaN/],
    [{ maxInflight: '' }, 'maxInflight', /got ""/],
    [{ maxInflight: [5] }, 'maxInflight', /got \[5\]/],
    [{ max_inflight: 70_000 }, 'max_inflight', /to 65535 messages, got 70000/],
    [{ maxSessions: 'many' }, 'maxSessions', /a whole number of at least 0 sessions, got "many"/],
    [{ keepaliveBackoff: 0.1 }, 'keepaliveBackoff', /a number from 0\.5 to 10, got 0\.1/],
    [{ connectTimeout: 0 }, 'connectTimeout', /a duration of at least 1 ms, such as "90s", got 0/],
    [{ connectTimeout: 'soon' }, 'connectTimeout', /a duration .* got "soon"/],
    [{ connectTimeout: Infinity }, 'connectTimeout', /got Infinity/],
    [{ serverKeepalive: '1500ms' }, 'serverKeepalive', /from 0 to 65535 s/],
    [{ maxPacketSize: '5 MiBi' }, 'maxPacketSize', /a size from 16 to 268435460 bytes, such as "64KB", got "5 MiBi"/],
    [{ maxPacketSize: 8 }, 'maxPacketSize', /got 8/],
    [{ allowAnonymous: 'maybe' }, 'allowAnonymous', /expected true or false/],
    [{ cpuHighWatermark: 50, cpuLowWatermark: 60 }, 'cpuLowWatermark', /at most 50 .*cpuHighWatermark.*, got 60/],
    [{ aclDenyAction: 'shout' }, 'aclDenyAction', /one of ignore, disconnect/],
    [{ publishLimit: '100' }, 'publishLimit', /a rate such as "100,10s"/],
    [{ publishLimit: '0,10s' }, 'publishLimit', /a rate/],
    [{ publishLimit: '10,0s' }, 'publishLimit', /a rate/],
    [{ publishLimit: { amount: Infinity, perMs: 1 } }, 'publishLimit', /a rate/],
    [{ publishLimit: { amount: 1, perMs: -1 } }, 'publishLimit', /a rate/],
    [{ publishLimit: null }, 'publishLimit', /a rate/],
    [{ mountpoint: 5 }, 'mountpoint', /expected a string, got 5/],
    [{ protocolVersions: [] }, 'protocolVersions', /a list of 3, 4 and 5/],
    [{ protocolVersions: [6] }, 'protocolVersions', /a list of 3, 4 and 5/],
    [{ mqueuePriorities: { a: 256 } }, 'mqueuePriorities', /priorities from 0 to 255/],
    [{ mqueuePriorities: 'a' }, 'mqueuePriorities', /priorities from 0 to 255/],
    [{ mqueuePriorities: 5 }, 'mqueuePriorities', /priorities from 0 to 255/],
    [{ mqueuePriorities: 'a=' }, 'mqueuePriorities', /priorities from 0 to 255/],
    [{ mqueuePriorities: { 'a/#': 5 } }, 'mqueuePriorities', /topic name "a\/#": the wildcard "#" is not allowed/],
    [{ node: '' }, 'node', /one level of a topic name, .* got ""/],
    [{ node: 'a/b' }, 'node', /one level of a topic name/],
    [{ node: 'a+' }, 'node', /one level of a topic name/],
    [{ sharedSubscriptionStrategy: 'fair' }, 'sharedSubscriptionStrategy', /random, round_robin, sticky, hash/],
    [{ zones: { lab: { maxInflight: 'x' } } }, 'zones.lab.maxInflight', /^zones\.lab\.maxInflight: /],
    [{ autoSubscriptions: [{ topic: 'a/#/b' }] }, 'autoSubscriptions.0.topic', /"#" may only be the last/],
    [{ autoSubscriptions: [{ topic: 'a' }, { topic: 'a', qos: 3 }] }, 'autoSubscriptions.1.qos', /0, 1 or 2, got 3/],
    [{ autoSubscriptions: [{}] }, 'autoSubscriptions.0.topic', /topic filter/],
    [
      { autoSubscriptions: [{ topic: '$share/g/a', noLocal: true }] },
      'autoSubscriptions.0.noLocal',
      /No Local is not allowed on a shared subscription/
    ],
    [5 as never, 'options', /expected an object, got 5/],
    [null as never, 'options', /expected an object, got null/],
    [[], 'options', /expected an object, got \[\]/],
    [{ zones: [] }, 'zones', /expected an object/],
    [{ zones: null }, 'zones', /expected an object/],
    [{ zones: { lab: 5 } }, 'zones.lab', /expected an object, got 5/],
    [{ hooks: null }, 'hooks', /expected an object/],
    [{ hooks: () => true }, 'hooks', /expected an object, got a function/],
    [{ clock: null }, 'clock', /now, monotonic, setTimeout, clearTimeout, got null/],
    [{ clock: Date }, 'clock', /an object with now/],
    [{ memoryUsage: 5 }, 'memoryUsage', /expected a function/],
    [{ mqueuePriorities: [5] }, 'mqueuePriorities', /priorities from 0 to 255/],
    [{ autoSubscriptions: [{ topic: 'a', rh: 3 }] }, 'autoSubscriptions.0.retainHandling', /0, 1 or 2, got 3/],
    [{ autoSubscriptions: 'a' }, 'autoSubscriptions', /expected a list of \{ topic, .* got "a"/],
    [{ autoSubscriptions: { topic: 'a' } }, 'autoSubscriptions', /a list/],
    [{ autoSubscriptions: null }, 'autoSubscriptions', /a list/],
    [{ autoSubscriptions: ['a'] }, 'autoSubscriptions.0', /expected an object, got "a"/],
    [{ autoSubscriptions: [null] }, 'autoSubscriptions.0', /got null/],
    [{ autoSubscriptions: [{ topic: 'a', noLocal: 1 }] }, 'autoSubscriptions.0.noLocal', /true or false, got 1/],
    [
      { autoSubscriptions: [{ topic: 'a', retainAsPublished: 'no' }] },
      'autoSubscriptions.0.retainAsPublished',
      /true or false, got "no"/
    ]
  ];
  for (const [given, field, message] of wrong) {
    it(`refuses ${JSON.stringify(given)} and names ${field}`, () => refuses(given, field, message));
  }
});

describe('parseDuration', () => {
  const cases: [text: string, ms: number | undefined][] = [
    ['250ms', 250],
    ['90s', 90_000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
    ['2 h', 7_200_000],
    [' 7D ', 604_800_000],
    ['1w', 604_800_000],
    ['infinity', Infinity],
    ['10', undefined],
    ['s', undefined],
    ['-5s', undefined],
    ['5 parsecs', undefined],
    ['', undefined]
  ];
  for (const [text, ms] of cases) it(`reads "${text}" as ${ms}`, () => assert.equal(parseDuration(text), ms));

  it('refuses a long invalid string quickly', () => {
    const before = cpuMs();
    assert.equal(parseDuration(`${'1s'.repeat(50_000)}x`), undefined);
    assert.ok(cpuMs() - before < 500);
  });
});

describe('durationMs', () => {
  it('reads plain numbers in the requested unit, and names what it expects in errors', () => {
    assert.equal(durationMs(5, 'within'), 5);
    assert.equal(durationMs(5, 'within', 's'), 5000);
    assert.equal(durationMs('5m', 'within', 's'), 300_000);
    assert.throws(() => durationMs('soon', 'within'), /within: expected a duration such as "250ms"/);
    assert.throws(() => durationMs(-1, 'within'), { code: 'DURATION_INVALID' });
  });
});

describe('parseSize', () => {
  const cases: [text: string, bytes: number | undefined][] = [
    ['100', 100],
    ['64KB', 65_536],
    ['64 kb', 65_536],
    ['1.5MB', 1_572_864],
    ['2GB', 2_147_483_648],
    ['10b', 10],
    ['x', undefined],
    ['-1', undefined],
    ['', undefined]
  ];
  for (const [text, bytes] of cases) it(`reads "${text}" as ${bytes}`, () => assert.equal(parseSize(text), bytes));
});

describe('nearest', () => {
  it('finds the known name with the fewest changes, and none if no name is similar', () => {
    const known = ['maxInflight', 'maxMqueueLen', 'node'];
    assert.equal(nearest('maxinflight', known), 'maxInflight');
    assert.equal(nearest('nod', known), 'node');
    assert.equal(nearest('something', known), undefined);
  });

  it('counts two letters in the wrong order as one change', () => {
    assert.equal(nearest('secert', ['cert', 'secret']), 'secret');
    assert.equal(nearest('flie', ['flee', 'file']), 'flee', 'of equal ones the first');
    assert.equal(nearest('kye', ['bye1', 'key']), 'key');
  });
});
