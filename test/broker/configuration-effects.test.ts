import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, engineOf } from '../../lib/broker/broker.ts';
import { BROKER_OPTIONS, type BrokerOptions } from '../../lib/broker/configuration/options.ts';
import { MachineMonitor } from '../../lib/monitor/machine/machine-monitor.ts';
import { ZONE_OPTIONS } from '../../lib/records/zone.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { type RawClient, type RawClientOptions, rawClient } from '../support/raw-client.ts';
import { connect, granted, payloads, publish, turns } from '../support/wire.ts';

/** The effect of a change of an option. */
interface Effect {
  /** The options of the broker. */
  readonly options?: Omit<BrokerOptions, 'clock'>;
  /** The value that is passed to `broker.configuration.set`. */
  readonly value: unknown;
  /** Returns the observable effect of the option, first of its old value and then of the new one. */
  readonly observe: (broker: Broker, kit: TestBroker) => unknown;
  readonly before: unknown;
  readonly after: unknown;
}

/** Connects, and returns the reason code of the CONNACK; `closed` if there was none. */
async function codeOf(broker: Broker, options: RawClientOptions = {}): Promise<number | 'closed'> {
  const { version = 5, meta, ...given } = options;
  const client = await rawClient(broker, { version, connect: false, ...(meta && { meta }) });
  client.send(connect(version, given));
  await turns();
  const [packet] = client.received;
  client.stream.destroy();
  await turns();
  return packet?.cmd === 'connack' ? packet.reasonCode : 'closed';
}

/** Connects, and returns a property of the CONNACK. */
async function announced(broker: Broker, name: string, options: RawClientOptions = {}): Promise<unknown> {
  const { connack, stream } = await rawClient(broker, options);
  stream.destroy();
  return (connack?.properties as Record<string, unknown> | undefined)?.[name];
}

/** Publishes with QoS 1 and returns the reason code of the PUBACK, or of the DISCONNECT. */
async function puback(broker: Broker, ...[topic, payload, more]: Parameters<typeof publish>): Promise<number> {
  const client = await rawClient(broker);
  client.send(publish(topic, payload, { qos: 1, messageId: 1, ...more }));
  const packet = (await client.next()) as { reasonCode: number };
  client.stream.destroy();
  return packet.reasonCode;
}

/** Subscribes with a new client and returns the code of the SUBACK. */
async function suback(broker: Broker, filter: string, options: RawClientOptions = {}): Promise<number | undefined> {
  const client = await rawClient(broker, options);
  const [code] = await granted(client, 1, filter);
  client.stream.destroy();
  return code;
}

/** Tells whether a client without a CONNECT is disconnected within a second. */
async function isImpatient(broker: Broker, kit: TestBroker, bytes: string): Promise<boolean> {
  const client = await rawClient(broker, { connect: false });
  if (bytes !== '') client.sendBytes(bytes);
  await kit.clock.advance('2s');
  await turns();
  const { isClosed } = client;
  client.stream.destroy();
  return isClosed;
}

let number = 0;
/** Returns a new topic. */
const newTopic = () => `topic/${++number}`;

/** Retains messages and returns how many there are. */
async function retainedAfter(broker: Broker, count: number, payload = 'x'): Promise<number> {
  for (let left = count; left > 0; left--) await broker.publish(newTopic(), payload, { retain: true });
  const { messages } = engineOf(broker).retainer;
  const own = [...messages.entries()].filter(({ topic }) => !topic.startsWith('$'));
  for (const { topic } of own) messages.delete(topic);
  return own.length;
}

/** Delays messages and returns the errors. */
async function delayedErrors(broker: Broker, kit: TestBroker, count: number): Promise<string[]> {
  const errors: string[] = [];
  for (let left = count; left > 0; left--)
    await broker.publish('$delayed/1/t', 'x'.repeat(100)).catch((error) => errors.push(error.code));
  await kit.clock.advance('2s');
  return errors;
}

/** Returns the topics that a client receives from `$SYS` within some time. */
async function heard(broker: Broker, kit: TestBroker, filter: string, time: string): Promise<string[]> {
  const client = await rawClient(broker);
  await granted(client, 1, filter);
  await client.rest(); // the retained ones
  await kit.clock.advance(time);
  const packets = await client.rest();
  client.stream.destroy();
  return packets.flatMap((packet) => (packet.cmd === 'publish' ? [packet.topic.split('/').slice(3).join('/')] : []));
}

/** Queues messages for an offline client and returns how many it receives. */
async function queued(broker: Broker, count: number, more: { qos?: 0 | 1; payload?: string } = {}): Promise<number> {
  const clientId = newTopic();
  const stay = { clientId, clean: false, properties: { sessionExpiryInterval: 1000 } };
  const before = await rawClient(broker, { ...stay, clean: true });
  await granted(before, 1, { topic: clientId, qos: 1 });
  before.stream.destroy();
  await turns();
  for (let left = count; left > 0; left--)
    await broker.publish(clientId, more.payload ?? 'x', { qos: more.qos ?? 1 }).catch(() => undefined);
  await turns();
  const client = await rawClient(broker, stay);
  const got = (await payloads(client)).length;
  await broker.sessions.kick(clientId);
  return got;
}

/** The value that the connection of a new client has agreed to, for options that are only read from there. */
const agreed =
  (name: keyof typeof ZONE_OPTIONS) =>
  async (broker: Broker): Promise<unknown> => {
    const clientId = newTopic();
    const client = await rawClient(broker, { clientId });
    const value = engineOf(broker).sessions.get(clientId)?.client.agreement.zone[name];
    client.stream.destroy();
    return value;
  };

/** The value that connections read whenever they need it. */
const limitOf =
  (name: 'maxHeldBytes' | 'outputHighWaterMark') =>
  async (broker: Broker): Promise<number> => {
    const clientId = newTopic();
    const client = await rawClient(broker, { clientId });
    const value = engineOf(broker).sessions.get(clientId)?.ports.limits[name];
    client.stream.destroy();
    return value ?? -1;
  };

const REMOTE = { remoteAddress: '10.0.0.1', transport: 'tcp' } as const;

/** The effects of all options of the broker that can be changed at run time. */
const BROKER_EFFECTS: Record<string, Effect> = {
  hookTimeout: {
    value: '1s',
    observe: async (broker, kit) => {
      const remove = broker.hook('authenticate', () => new Promise<boolean>(() => undefined));
      const client = await rawClient(broker, { connect: false });
      client.send(connect(5));
      await turns();
      await kit.clock.advance('2s');
      await turns();
      remove();
      client.stream.destroy();
      return client.received.length;
    },
    before: 0,
    after: 1
  },
  maxHeldBytes: { value: 1024, observe: limitOf('maxHeldBytes'), before: 1_048_576, after: 1024 },
  maxConnections: {
    value: 1,
    observe: async (broker) => {
      const first = await rawClient(broker);
      const code = await codeOf(broker);
      first.stream.destroy();
      await turns();
      return code;
    },
    before: 0,
    after: 'closed'
  },
  maxConnectionsPerAddress: {
    value: 1,
    observe: async (broker) => {
      const first = await rawClient(broker, { meta: REMOTE });
      const code = await codeOf(broker, { meta: REMOTE });
      const other = await codeOf(broker, { meta: { ...REMOTE, remoteAddress: '10.0.0.2' } });
      first.stream.destroy();
      await turns();
      return [code, other];
    },
    before: [0, 0],
    after: ['closed', 0]
  },
  takeoverByOtherUser: {
    value: 'refuse',
    observe: async (broker) => {
      const first = await rawClient(broker, { clientId: 'same', username: 'a' });
      const code = await codeOf(broker, { clientId: 'same', username: 'b' });
      first.stream.destroy();
      await turns();
      return code;
    },
    before: 0,
    after: 0x85
  },
  retainedRights: {
    value: 'recheck',
    observe: async (broker) => {
      const publisher = await rawClient(broker, { clientId: 'publisher' });
      publisher.send(publish('kept', 'x', { retain: true }));
      await publisher.rest();
      publisher.stream.destroy();
      const { acl } = broker.access;
      if (acl.size === 0) await acl.set({ clientId: 'publisher', access: 'deny', action: 'publish', topic: 'kept' });
      const client = await rawClient(broker);
      await granted(client, 1, 'kept');
      const got = await payloads(client);
      client.stream.destroy();
      return got.length;
    },
    before: 1,
    after: 0
  },
  maxUnwrittenBytes: {
    options: { store: memoryStore() },
    value: 65_536,
    observe: (broker) => {
      const { unwritten } = engineOf(broker).ledger as NonNullable<ReturnType<typeof engineOf>['ledger']>;
      unwritten.note(100_000);
      return unwritten.isMuch;
    },
    before: false,
    after: true
  },
  maxSessions: {
    value: 1,
    observe: async (broker) => {
      const first = await rawClient(broker);
      const code = await codeOf(broker);
      const ids = broker.alarms.present().map(({ id }) => id);
      first.stream.destroy();
      await turns();
      return [code, ids];
    },
    before: [0, []],
    after: [0x97, ['too_many_processes']]
  },
  maxTotalSubscriptions: { value: 1, observe: twoSubscriptions, before: 0, after: 0x97 },
  outputHighWaterMark: { value: 1, observe: limitOf('outputHighWaterMark'), before: 262_144, after: 1 },
  memoryHighWatermark: {
    options: { memoryUsage: () => 100_000_000 },
    value: 90_000_000,
    observe: async (broker, kit) => {
      await kit.clock.advance('2s');
      return broker.alarms.get('memory_high_watermark') !== undefined;
    },
    before: false,
    after: true
  },
  maxTotalMqueueBytes: {
    value: 2_000,
    observe: (broker) => queued(broker, 10, { payload: 'x'.repeat(500) }),
    before: 10,
    after: 2
  },
  maxTotalMqueueStoreBytes: {
    options: { store: memoryStore() },
    value: 1_000,
    observe: async (broker, kit) => {
      const clientId = newTopic();
      const client = await rawClient(broker, { clientId, properties: { sessionExpiryInterval: 1000 } });
      await granted(client, 1, { topic: clientId, qos: 1 });
      client.stream.destroy();
      await turns();
      let dropped = 0;
      const count = () => dropped++;
      broker.on('message.dropped', count);
      for (let left = 20; left > 0; left--) await broker.publish(clientId, 'x'.repeat(500), { qos: 1 });
      await kit.clock.advance('30s');
      broker.off('message.dropped', count);
      await broker.sessions.kick(clientId);
      return dropped > 0;
    },
    before: false,
    after: true
  },
  sharedSubscriptionStrategy: {
    value: 'round_robin',
    options: { sharedSubscriptionStrategy: 'sticky' },
    observe: async (broker) => {
      const counts = [0, 0];
      const ends = [0, 1].map((at) => broker.subscribe('$share/g/t', () => counts[at]++));
      for (let left = 10; left > 0; left--) await broker.publish('t', 'x');
      for (const end of ends) end();
      return counts.toSorted();
    },
    before: [0, 10],
    after: [5, 5]
  },
  sharedDispatchAckEnabled: {
    options: { sharedSubscriptionStrategy: 'round_robin' },
    value: true,
    observe: async (broker) => {
      const clients = await Promise.all([1, 2].map(() => rawClient(broker, { properties: { receiveMaximum: 1 } })));
      for (const client of clients) await granted(client, 1, { topic: '$share/g/t', qos: 1 });
      const busy = clients[0] as RawClient;
      await broker.publish('t', '1', { qos: 1 }); // the first member does not acknowledge
      await broker.publish('t', '2', { qos: 1 });
      const [packet] = (await clients[1]?.rest()) ?? [];
      clients[1]?.send({ cmd: 'puback', messageId: (packet as { messageId: number }).messageId, reasonCode: 0 });
      await clients[1]?.rest();
      await broker.publish('t', '3', { qos: 1 });
      const got = (await payloads(clients[1] as RawClient)).length;
      busy.stream.destroy();
      clients[1]?.stream.destroy();
      await turns();
      return got;
    },
    before: 0,
    after: 1
  },
  maxRetainedMessages: { value: 2, observe: (broker) => retainedAfter(broker, 4), before: 4, after: 2 },
  maxRetainedBytes: { value: 200, observe: (broker) => retainedAfter(broker, 4, 'x'.repeat(80)), before: 4, after: 2 },
  maxRetainedPayloadSize: { value: 3, observe: (broker) => retainedAfter(broker, 1, 'long'), before: 1, after: 0 },
  retainedExpiryInterval: {
    value: '5s',
    observe: async (broker, kit) => {
      if (broker.configuration.overrides().length === 0) await broker.publish('kept', 'x', { retain: true });
      await kit.clock.advance('6s');
      return broker.retained.get('kept')?.topic;
    },
    before: 'kept',
    after: undefined
  },
  aclCacheMaxSize: { options: { auth: [] }, value: 0, observe: cachedVerdicts, before: 1, after: 0 },
  aclCacheTtl: {
    value: '1s',
    observe: async (broker, kit) => {
      const remove = broker.hook('authorizePublish', () => true, { cache: 'route' });
      const client = await rawClient(broker, { clientId: 'cached' });
      client.send(publish('a', 'x'));
      await client.rest();
      await kit.clock.advance('2s');
      const { length } = broker.access.cache('cached');
      client.stream.destroy();
      remove();
      return length;
    },
    before: 1,
    after: 0
  },
  aclRemoveSubscriptions: {
    value: true,
    observe: async (broker, kit) => {
      const client = await rawClient(broker, { clientId: 'ruled' });
      await granted(client, 1, 'secret');
      await broker.access.acl.set({ access: 'deny', action: 'subscribe', topic: 'secret' });
      await kit.clock.advance('1s');
      await turns();
      const { size } = engineOf(broker).sessions.get('ruled')?.subscriptions ?? { size: -1 };
      await broker.access.acl.delete('all', 'secret');
      client.stream.destroy();
      await turns();
      return size;
    },
    before: 1,
    after: 0
  },
  maxDelayedMessages: {
    value: 1,
    observe: (b, kit) => delayedErrors(b, kit, 2),
    before: [],
    after: ['QUOTA_EXCEEDED']
  },
  maxDelayedBytes: { value: 150, observe: (b, kit) => delayedErrors(b, kit, 2), before: [], after: ['QUOTA_EXCEEDED'] },
  sysInterval: {
    value: '1s',
    observe: async (broker, kit) => (await heard(broker, kit, '$SYS/brokers/+/stats/#', '3500ms')).length > 0,
    before: false,
    after: true
  },
  sysHeartbeat: {
    value: '1s',
    observe: (broker, kit) => heard(broker, kit, '$SYS/brokers/+/uptime', '3500ms'),
    before: [],
    after: ['uptime', 'uptime', 'uptime']
  },
  sysDottedTopics: {
    options: { sysInterval: '1s' },
    value: true,
    observe: (broker, kit) => heard(broker, kit, '$SYS/brokers/+/stats/connections.count', '1500ms'),
    before: [],
    after: ['stats/connections.count']
  },
  sysForRemoteClients: {
    value: true,
    observe: (broker) => suback(broker, '$SYS/#', { meta: REMOTE }),
    before: 0x87,
    after: 0
  },
  banDisconnects: {
    value: true,
    observe: async (broker) => {
      const client = await rawClient(broker, { clientId: 'bad' });
      await broker.access.banned.create({ kind: 'clientId', who: 'bad' });
      await turns();
      const { isClosed } = client;
      client.stream.destroy();
      await broker.access.banned.delete('clientId', 'bad');
      return isClosed;
    },
    before: false,
    after: true
  },
  flappingDetectPolicy: {
    options: { enableFlappingDetect: true },
    value: '2,1m,5m',
    observe: loseTwice,
    before: false,
    after: true
  },
  maxAlarmHistory: {
    value: 1,
    observe: (broker) => {
      for (const id of ['a', 'b']) {
        broker.alarms.raise({ id });
        broker.alarms.clear(id);
      }
      return broker.alarms.history().length;
    },
    before: 2,
    after: 1
  },
  cpuHighWatermark: {
    options: { cpuHighWatermark: 0 },
    value: 80,
    observe: measured,
    before: [],
    after: ['cpu_high_watermark']
  },
  cpuLowWatermark: {
    value: 80,
    observe: (broker, kit) => measured(broker, kit, [90, 70]),
    before: ['cpu_high_watermark'],
    after: []
  },
  cpuCheckInterval: {
    options: { cpuCheckInterval: 0 },
    value: '1s',
    observe: measured,
    before: [],
    after: ['cpu_high_watermark']
  },
  sysmemHighWatermark: {
    value: 10,
    observe: measured,
    before: ['cpu_high_watermark'],
    after: ['cpu_high_watermark', 'system_memory_high_watermark']
  },
  memCheckInterval: {
    options: { sysmemHighWatermark: 10, memCheckInterval: 0 },
    value: '1s',
    observe: measured,
    before: ['cpu_high_watermark'],
    after: ['cpu_high_watermark', 'system_memory_high_watermark']
  },
  processHighWatermark: {
    options: { maxSessions: 10, processLowWatermark: 1 },
    value: 10,
    observe: tooMany,
    before: false,
    after: true
  },
  processLowWatermark: {
    options: { maxSessions: 10, processHighWatermark: 20, processLowWatermark: 1 },
    value: 20,
    observe: tooMany,
    before: true,
    after: false
  },
  presenceQos: {
    value: 2,
    observe: async (broker) => {
      const client = await rawClient(broker);
      await granted(client, 1, { topic: '$SYS/brokers/+/clients/+/connected', qos: 2 });
      await rawClient(broker, { clientId: 'seen' }).then(({ stream }) => stream.destroy());
      const packets = await client.rest();
      client.stream.destroy();
      return packets.flatMap((packet) => (packet.cmd === 'publish' ? [packet.qos] : []));
    },
    before: [1],
    after: [2]
  }
};

async function twoSubscriptions(broker: Broker): Promise<number | undefined> {
  const client = await rawClient(broker);
  const codes = await granted(client, 1, ['a', 'b']);
  client.stream.destroy();
  await turns();
  return codes[1];
}

async function cachedVerdicts(broker: Broker): Promise<number> {
  const remove = broker.hook('authorizePublish', () => true, { cache: 'route' });
  const client = await rawClient(broker, { clientId: 'cached' });
  client.send(publish('a', 'x'));
  await client.rest();
  const { length } = broker.access.cache('cached');
  client.stream.destroy();
  await turns();
  remove();
  return length;
}

/** Tells whether a client id is banned after it has lost its connection twice. */
async function loseTwice(broker: Broker): Promise<boolean> {
  for (const _ of [1, 2]) {
    const client = await rawClient(broker, { clientId: 'flapping' });
    client.stream.destroy();
    await turns();
  }
  return broker.access.banned.get('clientId', 'flapping') !== undefined;
}

/** Tells whether there is an alarm about the number of sessions when there were two of them and one is left. */
async function tooMany(broker: Broker): Promise<boolean> {
  const clients = [await rawClient(broker), await rawClient(broker)];
  clients[0]?.stream.destroy();
  await turns();
  const isRaised = broker.alarms.get('too_many_processes') !== undefined;
  clients[1]?.stream.destroy();
  await turns();
  return isRaised;
}

/**
 * The alarms about a machine that uses half of its memory.
 * @param busy use of the processors in percent, by measurement; the last one is repeated
 */
async function measured(broker: Broker, kit: TestBroker, busy = [90]): Promise<string[]> {
  const { wheel, alarms, settings } = engineOf(broker).services;
  let [idle, total] = [0, 0];
  let measurement = -1; // the first reading only starts the measurement
  const readings = {
    cpuTimes: () => {
      idle += 100 - (busy[Math.max(0, measurement++)] ?? busy[busy.length - 1]);
      return { idle, total: (total += 100) };
    },
    memoryPercent: () => 50
  };
  const monitor = new MachineMonitor({ wheel, alarms, settings }, readings);
  monitor.start();
  await kit.clock.advance('3m');
  const ids = alarms.present().map(({ id }) => id);
  for (const id of ids) alarms.clear(id);
  monitor.stop();
  return ids.toSorted();
}

/** The effects of all options of a zone that can be changed at run time, on clients that connect later. */
const ZONE_EFFECTS: Record<string, Effect> = {
  connectTimeout: { value: '1s', observe: (b, kit) => isImpatient(b, kit, '10'), before: false, after: true },
  idleTimeout: { value: '1s', observe: (b, kit) => isImpatient(b, kit, ''), before: false, after: true },
  maxPacketSize: { value: '64KB', observe: (b) => announced(b, 'maximumPacketSize'), before: 1_048_576, after: 65_536 },
  maxConnectSize: { value: 100, observe: (b) => codeOf(b, { username: 'u'.repeat(200) }), before: 0, after: 0x95 },
  maxClientidLen: { value: 23, observe: (b) => codeOf(b, { clientId: 'c'.repeat(24) }), before: 0, after: 0x85 },
  serverKeepalive: { value: 30, observe: (b) => announced(b, 'serverKeepAlive'), before: undefined, after: 30 },
  maxKeepalive: {
    value: 50,
    observe: (b) => announced(b, 'serverKeepAlive', { keepalive: 100 }),
    before: undefined,
    after: 50
  },
  keepaliveBackoff: {
    value: 0.5,
    observe: async (broker, kit) => {
      const client = await rawClient(broker, { keepalive: 10 });
      await kit.clock.advance('12s');
      await turns();
      const { isClosed } = client;
      client.stream.destroy();
      return isClosed;
    },
    before: false,
    after: true
  },
  publishLimit: {
    value: '1,10s',
    observe: async (broker, kit) => {
      const client = await rawClient(broker);
      client.send(publish('a'));
      await turns();
      client.send(publish('a'), publish('a'));
      await turns();
      client.send({ cmd: 'pingreq' });
      await turns();
      const isAnswered = client.received.some(({ cmd }) => cmd === 'pingresp');
      client.stream.destroy();
      await kit.clock.advance('1m');
      return isAnswered;
    },
    before: true,
    after: false
  },
  protocolVersions: { value: [4, 5], observe: (b) => codeOf(b, { version: 3 }), before: 0, after: 0x84 },
  useUsernameAsClientid: {
    value: true,
    observe: async (broker) => {
      const client = await rawClient(broker, { clientId: 'id', username: 'name' });
      const isKnown = broker.sessions.has('name');
      client.stream.destroy();
      return isKnown;
    },
    before: false,
    after: true
  },
  allowAnonymous: { value: false, observe: (b) => codeOf(b), before: 0, after: 0x87 },
  bypassAuthPlugins: {
    options: { hooks: { authenticate: () => false } },
    value: true,
    observe: (b) => codeOf(b),
    before: 0x87,
    after: 0
  },
  enableBan: {
    value: false,
    observe: async (broker) => {
      await broker.access.banned.create({ kind: 'clientId', who: 'bad' });
      return codeOf(broker, { clientId: 'bad' });
    },
    before: 0x8a,
    after: 0
  },
  limitFailedLogins: {
    value: false,
    observe: async (broker) => {
      if (broker.access.usernames.get('ann') === undefined) await broker.access.usernames.create('ann', 'right');
      const login = { username: 'ann', password: Buffer.from('wrong'), meta: { remoteAddress: '192.0.2.1' } };
      let code: number | 'closed' = 0;
      for (let n = 0; n < 11; n++) code = await codeOf(broker, login);
      return code;
    },
    before: 0x9f,
    after: 0x86
  },
  enableFlappingDetect: {
    options: { flappingDetectPolicy: '2,1m,5m' },
    value: true,
    observe: loseTwice,
    before: false,
    after: true
  },
  aclNomatch: { value: 'deny', observe: (b) => puback(b, 'a'), before: 0x10, after: 0x87 },
  aclDenyAction: {
    options: { aclNomatch: 'deny' },
    value: 'disconnect',
    observe: async (broker) => {
      const client = await rawClient(broker);
      client.send(publish('a'));
      await turns();
      const { isClosed } = client;
      client.stream.destroy();
      return isClosed;
    },
    before: false,
    after: true
  },
  mountpoint: {
    value: 'here/',
    observe: async (broker) => {
      const topics: string[] = [];
      const end = broker.subscribe('#', ({ topic }) => topics.push(topic));
      await puback(broker, 'a');
      end();
      return topics;
    },
    before: ['a'],
    after: ['here/a']
  },
  maxQosAllowed: { value: 0, observe: (b) => announced(b, 'maximumQoS'), before: undefined, after: 0 },
  retainAvailable: { value: false, observe: (b) => announced(b, 'retainAvailable'), before: undefined, after: 0 },
  wildcardSubscription: { value: false, observe: (b) => suback(b, 'a/#'), before: 0, after: 0xa2 },
  sharedSubscription: { value: false, observe: (b) => suback(b, '$share/g/a'), before: 0, after: 0x9e },
  subscriptionIdentifiers: {
    value: false,
    observe: (b) => announced(b, 'subscriptionIdentifiersAvailable'),
    before: undefined,
    after: 0
  },
  controlCharacters: {
    value: 'allow',
    observe: (b) => codeOf(b, { clientId: 'a\u0001' }),
    before: 0x81,
    after: 0
  },
  maxTopicLevels: { value: 2, observe: (b) => suback(b, 'a/b/c'), before: 0, after: 0x8f },
  maxTopicAlias: { value: 3, observe: (b) => announced(b, 'topicAliasMaximum'), before: 64, after: 3 },
  payloadFormatCheck: {
    value: true,
    observe: (b) => puback(b, 'a', Buffer.from([0xff]), { properties: { payloadFormatIndicator: 1 } }),
    before: 0x10,
    after: 0x99
  },
  responseInformation: {
    value: 'reply/%c',
    observe: (b) =>
      announced(b, 'responseInformation', { clientId: 'c', properties: { requestResponseInformation: 1 } }),
    before: undefined,
    after: 'reply/c'
  },
  maxSubscriptions: { value: 1, observe: twoSubscriptions, before: 0, after: 0x97 },
  maxInflight: { value: 2, observe: inFlight, before: 5, after: 2 },
  maxInflightBytes: { value: 1, observe: inFlight, before: 5, after: 1 },
  receiveMaximum: { value: 7, observe: (b) => announced(b, 'receiveMaximum'), before: undefined, after: 7 },
  maxAwaitingRel: {
    value: 1,
    observe: async (broker) => {
      const client = await rawClient(broker);
      for (const messageId of [1, 2]) client.send(publish('a', '', { qos: 2, messageId }));
      await client.next();
      const { reasonCode } = await client.next('pubrec');
      client.stream.destroy();
      return reasonCode >= 0x80;
    },
    before: false,
    after: true
  },
  retryInterval: {
    value: '1s',
    observe: async (broker, kit) => {
      const client = await rawClient(broker, { version: 4 });
      await granted(client, 1, { topic: 'again', qos: 1 });
      await broker.publish('again', 'x', { qos: 1 });
      await turns();
      await kit.clock.advance('2500ms');
      await turns();
      const { length } = await payloads(client);
      client.stream.destroy();
      await turns();
      return length;
    },
    before: 1,
    after: 2
  },
  sessionExpiryInterval: {
    value: 10,
    observe: async (broker, kit) => {
      const clientId = newTopic();
      const client = await rawClient(broker, { version: 4, clean: false, clientId });
      client.stream.destroy();
      await kit.clock.advance('20s');
      return !broker.sessions.has(clientId);
    },
    before: false,
    after: true
  },
  maxSessionExpiryInterval: {
    value: 10,
    observe: (b) => announced(b, 'sessionExpiryInterval', { properties: { sessionExpiryInterval: 100 } }),
    before: undefined,
    after: 10
  },
  maxMessageExpiryInterval: {
    value: 10,
    observe: async (broker) => {
      const expiries: unknown[] = [];
      const end = broker.subscribe('#', (message) => expiries.push(message.expiryInterval));
      await puback(broker, 'a');
      end();
      return expiries;
    },
    before: [-1],
    after: [10]
  },
  maxMqueueLen: { value: 3, observe: (b) => queued(b, 5), before: 5, after: 3 },
  maxMqueueBytes: { value: 1_500, observe: (b) => queued(b, 5, { payload: 'x'.repeat(500) }), before: 5, after: 2 },
  mqueueStoreQos0: { value: false, observe: (b) => queued(b, 5, { qos: 0 }), before: 5, after: 0 },
  upgradeQos: {
    value: true,
    observe: async (broker) => {
      const client = await rawClient(broker);
      await granted(client, 1, { topic: 'a', qos: 1 });
      await broker.publish('a', 'x', { qos: 0 });
      const [packet] = await client.rest();
      client.stream.destroy();
      await turns();
      return packet?.cmd === 'publish' && packet.qos;
    },
    before: 0,
    after: 1
  },
  ignoreLoopDeliver: {
    value: true,
    observe: async (broker) => {
      const client = await rawClient(broker);
      await granted(client, 1, 'a');
      client.send(publish('a', 'x'));
      const { length } = await payloads(client);
      client.stream.destroy();
      return length;
    },
    before: 1,
    after: 0
  },
  slowConsumerTimeout: { value: '5s', observe: agreed('slowConsumerTimeout'), before: 60_000, after: 5_000 },
  rateLimit: {
    value: '1MB,1s',
    observe: agreed('rateLimit'),
    before: undefined,
    after: { amount: 1_048_576, perMs: 1000 }
  },
  totalPublishLimit: {
    value: '5,1s',
    observe: agreed('totalPublishLimit'),
    before: undefined,
    after: { amount: 5, perMs: 1000 }
  },
  totalRateLimit: {
    value: '1MB,1s',
    observe: agreed('totalRateLimit'),
    before: undefined,
    after: { amount: 1_048_576, perMs: 1000 }
  },
  maxOutboundTopicAlias: { value: 0, observe: agreed('maxOutboundTopicAlias'), before: 32, after: 0 },
  outboundAliasAfter: { value: 3, observe: agreed('outboundAliasAfter'), before: 1, after: 3 },
  awaitRelTimeout: { value: '1m', observe: agreed('awaitRelTimeout'), before: 0, after: 60_000 },
  mqueuePriorities: {
    value: 'a=1',
    observe: agreed('mqueuePriorities'),
    before: undefined,
    after: new Map([['a', 1]])
  },
  mqueueDefaultPriority: {
    value: 'highest',
    observe: agreed('mqueueDefaultPriority'),
    before: 'lowest',
    after: 'highest'
  }
};

/** The number of messages that are sent to a client that acknowledges none of five. */
async function inFlight(broker: Broker): Promise<number> {
  const client = await rawClient(broker);
  await granted(client, 1, { topic: 'f', qos: 1 });
  for (let left = 5; left > 0; left--) await broker.publish('f', 'x', { qos: 1 });
  const { length } = await payloads(client);
  client.stream.destroy();
  await turns();
  return length;
}

async function checkEffect(name: string, effect: Effect): Promise<void> {
  const { options = {}, value, observe, before, after } = effect;
  await using kit = await createTestBroker(options);
  const { broker } = kit;
  assert.deepEqual(await observe(broker, kit), before, 'before the change');
  await broker.configuration.set(name, value);
  assert.deepEqual(await observe(broker, kit), after, 'after the change');
}

describe('A change at run time of an option of the broker takes effect:', () => {
  it('covers each option that can be changed', () => {
    const rows = Object.entries(BROKER_OPTIONS);
    const changeable = rows.filter(([, row]) => row.change !== undefined).map(([name]) => name);
    assert.deepEqual(Object.keys(BROKER_EFFECTS).toSorted(), changeable.toSorted());
    for (const [name, row] of rows) assert.equal(row.whyFixed === undefined, row.change !== undefined, name);
  });

  for (const [name, effect] of Object.entries(BROKER_EFFECTS)) it(name, () => checkEffect(name, effect));
});

describe('A change at run time of an option of zones takes effect for clients that connect later:', () => {
  it('covers each option of a zone', () => {
    assert.deepEqual(Object.keys(ZONE_EFFECTS).toSorted(), Object.keys(ZONE_OPTIONS).toSorted());
  });

  for (const [name, effect] of Object.entries(ZONE_EFFECTS)) it(name, () => checkEffect(name, effect));
});
