import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TimingWheel } from '../../lib/base/timing-wheel.ts';
import { Presence } from '../../lib/broker/features/presence.ts';
import { EVENT_NAMES, EVENTS } from '../../lib/events/catalogue.ts';
import { Events } from '../../lib/events/events.ts';
import { COUNTERS, GAUGES, type GaugeReaders, Metric, Metrics, PLAIN_GAUGES } from '../../lib/events/metrics.ts';
import type { DisconnectReason } from '../../lib/events/reasons.ts';
import { NOTICES } from '../../lib/monitor/presence.ts';
import { dateTimeText, SYSTEM_DESCRIPTION, type SysSettings, SysTopics, uptimeText } from '../../lib/monitor/sys.ts';
import type { QoS } from '../../lib/packets/types.ts';
import type { ClientInfo } from '../../lib/records/client.ts';
import { matches } from '../../lib/topics/topic.ts';
import { clientInfo } from '../support/client-info.ts';
import { ManualClock } from '../support/manual-clock.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const START = Date.UTC(2026, 0, 2, 3, 4, 5);
const PREFIX = '$SYS/brokers/n1@host/';

interface Published {
  readonly topic: string;
  readonly payload: string;
  readonly qos: number;
  readonly retain: boolean;
}

/** Creates SysTopics with subscribers of the given filters, and records what they receive. */
const setUp = (filters: string[], changes: Partial<SysSettings['settings']> = {}, presenceQos: QoS = 1) => {
  const clock = new ManualClock(START);
  const wheel = new TimingWheel(clock, 100, (error) => assert.fail(error as Error));
  const gauges = Object.fromEntries([...GAUGES, ...PLAIN_GAUGES].map((name, at) => [name, at + 10]));
  const readers = Object.fromEntries(Object.keys(gauges).map((name) => [name, () => gauges[name]])) as GaugeReaders;
  const metrics = new Metrics(readers);
  COUNTERS.forEach((_, at) => {
    metrics.counts[at] = at + 1000;
  });
  let published: Published[] = [];
  const asked: string[] = [];
  const nodes = ['n1@host'];
  const settings = { sysInterval: MINUTE_MS, sysHeartbeat: 30_000, sysDottedTopics: false };
  const sys = new SysTopics({
    node: 'n1@host',
    version: '1.2.3',
    clock,
    wheel,
    metrics,
    settings: { ...settings, ...changes },
    publish: (topic, payload, { qos, retain }) => published.push({ topic, payload, qos, retain }),
    hasSubscribers: (topic) => {
      asked.push(topic);
      return filters.some((filter) => matches(filter, topic));
    },
    isHeard: () => filters.length > 0,
    nodes: () => nodes,
    startedAtMs: 0
  });
  const events = new Events();
  const presence = new Presence({ clock, events, notices: sys, settings: { presenceQos } });
  presence.start();
  const connected = (client: ClientInfo) => events.emit('client.connected', { client, sessionPresent: false });
  const disconnected = (client: ClientInfo, reason: DisconnectReason) =>
    events.emit('client.disconnected', { client, reason, reasonCode: 0x80 });
  /** Returns what was published since the last call. */
  const take = () => {
    const taken = published;
    published = [];
    return taken;
  };
  const texts = () => Object.fromEntries(take().map(({ topic, payload }) => [topic.replace(PREFIX, ''), payload]));
  return { clock, wheel, metrics, gauges, nodes, filters, asked, sys, presence, connected, disconnected, take, texts };
};

describe('SysTopics periods', () => {
  it('publishes the node list, version and description, retained, at the start', () => {
    const { sys, take } = setUp([]);
    sys.start();
    assert.deepEqual(take(), [
      { topic: '$SYS/brokers', payload: 'n1@host', qos: 0, retain: true },
      { topic: `${PREFIX}version`, payload: '1.2.3', qos: 0, retain: true },
      { topic: `${PREFIX}sysdescr`, payload: SYSTEM_DESCRIPTION, qos: 0, retain: true }
    ]);
  });

  it('publishes uptime and datetime with every heartbeat, not retained, the first time one period after the start', () => {
    const { sys, take, clock } = setUp(['$SYS/#']);
    sys.start();
    take();
    clock.advance(29_999);
    assert.deepEqual(take(), []);
    clock.advance(1);
    assert.deepEqual(take(), [
      { topic: `${PREFIX}uptime`, payload: '30 seconds', qos: 0, retain: false },
      { topic: `${PREFIX}datetime`, payload: dateTimeText(START + 30_000), qos: 0, retain: false }
    ]);
  });

  it('publishes all other topics with every interval', () => {
    const { sys, take, clock } = setUp(['$SYS/brokers', '$SYS/brokers/+/version', '$SYS/brokers/+/stats/#']);
    sys.start();
    take();
    clock.advance(MINUTE_MS);
    const published = take();
    assert.deepEqual(
      published.slice(0, 2).map(({ topic, retain }) => [topic, retain]),
      [
        ['$SYS/brokers', true],
        [`${PREFIX}version`, true]
      ]
    );
    assert.equal(published.length, 2 + 2 * GAUGES.length);
    assert.ok(published.slice(2).every(({ qos, retain }) => qos === 0 && !retain));
  });

  it('publishes the node list again when it changes, even without subscribers', () => {
    const { sys, take, clock, nodes } = setUp([]);
    sys.start();
    take();
    clock.advance(MINUTE_MS);
    assert.deepEqual(take(), []);
    nodes.push('n2@host');
    clock.advance(MINUTE_MS);
    assert.deepEqual(take(), [{ topic: '$SYS/brokers', payload: 'n1@host,n2@host', qos: 0, retain: true }]);
  });

  it('keeps its periods without drift, and does not make up for missed ones after a standstill', () => {
    const { sys, take, clock } = setUp([`${PREFIX}uptime`], { sysHeartbeat: 10_050, sysInterval: 0 });
    sys.start();
    // Every second timer rings half a tick late; counting from there would give 199.
    clock.advance(200 * 10_050);
    assert.equal(take().length, 200);
    clock.stall(DAY_MS);
    clock.advance(0);
    clock.advance(10_000);
    assert.equal(take().length, 1);
    clock.advance(100);
    assert.equal(take().length, 1);
  });

  it('publishes no topics whose interval is 0', () => {
    const off = setUp(['$SYS/#'], { sysInterval: 0, sysHeartbeat: 0 });
    off.sys.start();
    off.clock.advance(DAY_MS);
    assert.deepEqual(off.take(), []);
    assert.equal(off.clock.pending, 0);
    const beat = setUp(['$SYS/#'], { sysInterval: 0 });
    beat.sys.start();
    beat.clock.advance(MINUTE_MS);
    assert.deepEqual(Object.keys(beat.texts()), ['uptime', 'datetime']);
  });

  it('publishes nothing once stopped, and starts again when started again', () => {
    const { sys, take, clock } = setUp(['$SYS/#']);
    sys.start();
    sys.stop();
    take();
    clock.advance(DAY_MS);
    assert.deepEqual(take(), []);
    sys.start();
    assert.equal(take().length, 3);
    clock.advance(30_000);
    assert.equal(take().length, 2);
  });

  it('creates no message without subscribers', () => {
    const { sys, asked, clock, metrics } = setUp([]);
    let reads = 0;
    metrics.gauge = () => reads++;
    sys.start();
    asked.length = 0;
    clock.advance(DAY_MS);
    assert.deepEqual(asked, []);
    assert.equal(reads, 0);
  });
});

describe('SysTopics statistics', () => {
  const figures = (changes: Partial<SysSettings['settings']> = {}) => {
    const { sys, clock, texts, take } = setUp([`${PREFIX}stats/#`, `${PREFIX}metrics/#`], changes);
    sys.start();
    take();
    clock.advance(MINUTE_MS);
    return texts();
  };

  it('publishes every documented topic in the documented spelling, as decimal strings', () => {
    const published = figures();
    const documented = `
      stats/connections stats/sessions stats/sessions/persistent stats/suboptions stats/subscribers stats/subscriptions
      stats/subscriptions/shared stats/topics stats/routes`
      .trim()
      .split(/\s+/)
      .flatMap((topic) => [`${topic}/count`, `${topic}/max`]);
    const oneWay = 'connect connack subscribe suback unsubscribe unsuback pingreq pingresp auth'.split(' ');
    const acks = ['puback', 'pubrec', 'pubrel', 'pubcomp'].flatMap((packet) =>
      ['received', 'sent', 'missed'].map((what) => `${packet}/${what}`)
    );
    const bothWays = ['publish', 'disconnect'].flatMap((packet) => [`${packet}/received`, `${packet}/sent`]);
    for (const packet of ['received', 'sent', ...oneWay, ...acks, ...bothWays]) {
      documented.push(`metrics/packets/${packet}`);
    }
    documented.push('metrics/bytes/received', 'metrics/bytes/sent');
    const messages = `
      received sent expired retained dropped forward qos0/received qos0/sent qos1/received qos1/sent qos2/received
      qos2/sent qos2/expired qos2/dropped`;
    for (const name of messages.trim().split(/\s+/)) documented.push(`metrics/messages/${name}`);
    for (const topic of documented) assert.match(published[topic] ?? 'missing', /^\d+$/, topic);
  });

  it('publishes each value from its own counter or gauge', () => {
    const published = figures();
    const at = (name: keyof typeof Metric) => String(Metric[name] + 1000);
    assert.equal(published['metrics/bytes/received'], at('bytesReceived'));
    assert.equal(published['metrics/packets/connect'], at('packetsConnectReceived'));
    assert.equal(published['metrics/packets/connack'], at('packetsConnackSent'));
    assert.equal(published['metrics/packets/connack/auth_error'], at('packetsConnackAuthError'));
    assert.equal(published['metrics/packets/auth'], String(Metric.packetsAuthReceived + Metric.packetsAuthSent + 2000));
    assert.equal(published['metrics/messages/qos2/expired'], at('messagesQos2Expired'));
    assert.equal(published['metrics/messages/retained'], String(GAUGES.length + 10));
    GAUGES.forEach((name, index) => {
      assert.equal(published[`stats/${name.replaceAll('.', '/')}/count`], String(index + 10));
    });
  });

  it('publishes the current and the highest value of a gauge', () => {
    const { sys, clock, texts, gauges } = setUp([`${PREFIX}stats/connections/+`]);
    sys.start();
    gauges.connections = 50;
    clock.advance(MINUTE_MS);
    gauges.connections = 20;
    clock.advance(MINUTE_MS);
    const published = texts();
    assert.equal(published['stats/connections/count'], '20');
    assert.equal(published['stats/connections/max'], '50');
  });

  it('adds the later spellings only on request', () => {
    const [plain, dotted] = [figures(), figures({ sysDottedTopics: true })];
    const later = [
      'stats/connections.count',
      'stats/subscriptions.shared.max',
      'metrics/packets/connect/received',
      'metrics/packets/connack/sent',
      'metrics/packets/auth/received',
      'metrics/packets/auth/sent'
    ];
    for (const topic of later) {
      assert.ok(!(topic in plain), topic);
      assert.ok(topic in dotted, topic);
    }
    for (const [topic, text] of Object.entries(plain)) assert.equal(dotted[topic], text, topic);
  });

  it('names no topic twice', () => {
    const { sys, clock, take } = setUp(['$SYS/#'], { sysDottedTopics: true });
    sys.start();
    take();
    clock.advance(30_000);
    take();
    clock.advance(30_000);
    const topics = take().map(({ topic }) => topic);
    assert.equal(new Set(topics).size, topics.length);
  });
});

describe('Presence', () => {
  const client = clientInfo({
    clientId: 'dev/1',
    username: 'ann',
    protocolVersion: 5,
    sessionExpiry: Infinity,
    cleanStart: false,
    connectedAt: START,
    disconnectedAt: START + 5000
  });

  it('reports at once that a client has connected', () => {
    const { connected, take, clock } = setUp(['$SYS/brokers/+/clients/#']);
    clock.advance(1);
    connected(client);
    const [{ topic, payload, qos, retain }] = take();
    assert.deepEqual({ topic, qos, retain }, { topic: `${PREFIX}clients/dev/1/connected`, qos: 1, retain: false });
    assert.deepEqual(JSON.parse(payload), {
      clientid: 'dev/1',
      username: 'ann',
      ipaddress: '192.0.2.7',
      sockport: 1883,
      proto_name: 'MQTT',
      proto_ver: 5,
      keepalive: 60,
      connack: 0,
      clean_start: false,
      expiry_interval: 4_294_967_295,
      connected_at: START,
      ts: START + 1
    });
  });

  it('reports at once that a client has disconnected, and why', () => {
    const { disconnected, take } = setUp(['$SYS/brokers/+/clients/#'], {}, 2);
    disconnected(client, 'keepalive_timeout');
    const [{ topic, payload, qos }] = take();
    assert.deepEqual({ topic, qos }, { topic: `${PREFIX}clients/dev/1/disconnected`, qos: 2 });
    assert.deepEqual(JSON.parse(payload), {
      clientid: 'dev/1',
      username: 'ann',
      reason: 'keepalive_timeout',
      disconnected_at: START + 5000,
      ts: START
    });
  });

  it('writes strings for absent values, and the words of older versions', () => {
    const { connected, texts } = setUp(['$SYS/#']);
    const local = clientInfo({ protocolVersion: 3, transportInfo: { transport: 'local' } });
    connected(local);
    const notice = JSON.parse(texts()['clients/c1/connected']);
    assert.equal(notice.username, 'undefined');
    assert.equal(notice.ipaddress, 'undefined');
    assert.equal(notice.sockport, 0);
    assert.equal(notice.proto_name, 'MQIsdp');
    assert.equal(notice.connected_at, START);
  });

  it('writes an IPv4 address as such, even from an IPv6 socket', () => {
    const { connected, texts } = setUp(['$SYS/#']);
    for (const [remoteAddress, shown] of [
      ['::ffff:192.0.2.7', '192.0.2.7'],
      ['2001:db8::1', '2001:db8::1'],
      ['::ffff:1', '::ffff:1']
    ]) {
      connected(clientInfo({ transportInfo: { transport: 'tcp', remoteAddress } }));
      assert.equal(JSON.parse(texts()['clients/c1/connected']).ipaddress, shown);
    }
  });

  it('escapes wildcards in a client id so that the topic remains a topic name', () => {
    const { connected, take } = setUp(['$SYS/brokers/+/clients/+/connected']);
    connected(clientInfo({ clientId: '+#' }));
    const [{ topic, payload }] = take();
    assert.equal(topic, `${PREFIX}clients/%2B%23/connected`);
    assert.equal(JSON.parse(payload).clientid, '+#');
  });

  it('omits a client id that cannot be part of a topic name', () => {
    const { connected, disconnected, take } = setUp(['$SYS/#']);
    connected(clientInfo({ clientId: 'x'.repeat(65_535) }));
    disconnected(clientInfo({ clientId: 'a\0b' }), 'normal');
    assert.deepEqual(take(), []);
  });

  it('creates nothing without a subscriber for that client', () => {
    const { connected, take, asked } = setUp([`${PREFIX}clients/other/#`]);
    connected(client);
    assert.deepEqual(take(), []);
    assert.deepEqual(asked, [`${PREFIX}clients/dev/1/connected`]);
    const silent = setUp([]);
    silent.connected(client);
    assert.deepEqual(silent.asked, []);
  });
  it('creates a payload for each event with a notice about a client', () => {
    assert.deepEqual(
      EVENT_NAMES.filter((name) => EVENTS[name].notice?.startsWith('clients/')),
      Object.keys(NOTICES)
    );
  });

  it('publishes nothing while it is stopped', () => {
    const { presence, connected, disconnected, take } = setUp(['$SYS/#']);
    presence.stop();
    connected(client);
    disconnected(client, 'normal');
    assert.deepEqual(take(), []);
    presence.start();
    connected(client);
    assert.equal(take().length, 1);
  });
});

describe('SysTopics alarms and warnings', () => {
  const alarm = {
    id: 'cpu_high_watermark',
    desc: { severity: 'warning', title: 'CPU', summary: '88 %', timestamp: START }
  } as const;

  it('reports an alarm and its end', () => {
    const { sys, take } = setUp(['$SYS/#']);
    sys.alarm('alert', alarm);
    sys.alarm('clear', alarm);
    sys.alarm('alert', { id: 'x', desc: 'plain' });
    assert.deepEqual(
      take().map(({ topic, payload, qos, retain }) => [topic, JSON.parse(payload), qos, retain]),
      [
        [`${PREFIX}alarms/alert`, alarm, 0, false],
        [`${PREFIX}alarms/clear`, { id: alarm.id }, 0, false],
        [`${PREFIX}alarms/alert`, { id: 'x', desc: 'plain' }, 0, false]
      ]
    );
  });

  it('does not repeat a warning of one kind about one subject within two seconds', () => {
    const { sys, take, clock } = setUp(['$SYS/#']);
    sys.warn('long_gc', 'process', 'took 300 ms');
    sys.warn('long_gc', 'process', 'took 400 ms');
    sys.warn('busy_port', 'c1', 'does not read');
    sys.warn('busy_port', 'c2', 'does not read');
    clock.advance(1999);
    sys.warn('long_gc', 'process', 'took 500 ms');
    clock.advance(1);
    sys.warn('long_gc', 'process', 'took 600 ms');
    assert.deepEqual(
      take().map(({ topic, payload }) => [topic.slice(PREFIX.length), payload]),
      [
        ['sysmon/long_gc', 'long_gc warning: process took 300 ms'],
        ['sysmon/busy_port', 'busy_port warning: c1 does not read'],
        ['sysmon/busy_port', 'busy_port warning: c2 does not read'],
        ['sysmon/long_gc', 'long_gc warning: process took 600 ms']
      ]
    );
  });
});

describe('uptimeText', () => {
  const cases: [ms: number, text: string][] = [
    [0, '0 seconds'],
    [5999, '5 seconds'],
    [60_000, '1 minutes, 0 seconds'],
    [239_000, '3 minutes, 59 seconds'],
    [3_602_000, '1 hours, 0 minutes, 2 seconds'],
    [153_901_000, '1 days, 18 hours, 45 minutes, 1 seconds'],
    [100 * DAY_MS, '100 days, 0 hours, 0 minutes, 0 seconds'],
    [-5, '0 seconds']
  ];
  for (const [ms, text] of cases) it(`returns "${text}"`, () => assert.equal(uptimeText(ms), text));
});

describe('dateTimeText', () => {
  it('returns local time with two digits for each part', () => {
    assert.equal(dateTimeText(new Date(2026, 0, 2, 3, 4, 5, 999).getTime()), '2026-01-02 03:04:05');
    assert.equal(dateTimeText(new Date(2026, 11, 31, 23, 59, 59).getTime()), '2026-12-31 23:59:59');
  });
});
