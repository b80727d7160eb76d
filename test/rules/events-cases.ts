import assert from 'node:assert/strict';
import type { Client, ClientOptions, TransportInfo } from '../../lib/index.ts';
import type { RuleEventName } from '../../lib/rules/events/event-name.ts';
import type { ValueObject } from '../../lib/sql/values.ts';
import type { TestBroker, TestBrokerOptions } from '../../lib/testing/index.ts';

/** The time of the events: the clock of a test stands still unless the test advances it. */
const NOW = Date.UTC(2026, 0, 1);
const ALWAYS = { timestamp: NOW, node: 'node-1' };

const AT_TCP: TransportInfo = {
  transport: 'tcp',
  remoteAddress: '192.0.2.1',
  remotePort: 50_001,
  localAddress: '198.51.100.1',
  localPort: 1883
};
const AT_TLS: TransportInfo = { ...AT_TCP, transport: 'tls', remoteAddress: '::ffff:192.0.2.2', localPort: 8883 };

/** A client of MQTT 5.0 with all facts that columns show, and one of MQTT 3.1.1 with none. */
const RICH = {
  clientId: 'rich',
  username: 'ann',
  keepalive: 60,
  sessionExpiry: 120,
  receiveMaximum: 7,
  maximumPacketSize: 5_000,
  transportInfo: AT_TCP,
  properties: {
    userProperties: [
      ['k', '1'],
      ['k', '2'],
      ['__proto__', 'own']
    ]
  }
} as const;
const PLAIN = { clientId: 'plain', protocolVersion: 4 } as const;

const RICH_PROPERTIES = {
  'Session-Expiry-Interval': 120,
  'Maximum-Packet-Size': 5_000,
  'User-Property': JSON.parse('{ "k": "2", "__proto__": "own" }'),
  'User-Property-Pairs': [
    { key: 'k', value: '1' },
    { key: 'k', value: '2' },
    { key: '__proto__', value: 'own' }
  ]
};

const MESSAGE_PROPERTIES = {
  payloadFormatIndicator: 1,
  messageExpiryInterval: 90,
  contentType: 'text/plain',
  responseTopic: 'answers',
  correlationData: Buffer.from('q1'),
  userProperties: [['from', 'rich']]
} as const;
const PUB_PROPS = {
  'Payload-Format-Indicator': 1,
  'Message-Expiry-Interval': 90,
  'Content-Type': 'text/plain',
  'Response-Topic': 'answers',
  'Correlation-Data': 'q1',
  'User-Property': { from: 'rich' },
  'User-Property-Pairs': [{ key: 'from', value: 'rich' }]
};

/** The columns of a message of `rich`, without those of its publisher. */
const OF_MESSAGE = {
  payload: 'hello',
  topic: 't/a',
  qos: 1,
  flags: { dup: false, retain: false },
  publish_received_at: NOW,
  ...ALWAYS
};

const ALARM_COLUMNS = {
  ...{ name: 'tank', severity: 'critical', title: 'The tank is full', message: '97 %', activated_at: NOW, ...ALWAYS }
};

type Connect = (options: ClientOptions & { readonly transportInfo?: TransportInfo }) => Promise<Client>;

/** An action, and the columns of the resulting events of one kind; for the id of a message only its presence. */
interface ColumnCase {
  readonly event: RuleEventName;
  readonly when: string;
  readonly options?: TestBrokerOptions;
  readonly act: (connect: Connect, kit: TestBroker) => Promise<unknown>;
  readonly columns: readonly ValueObject[];
}

/** Each event for the actions of clients of several kinds. */
export const COLUMN_CASES: readonly ColumnCase[] = [
  {
    event: 'message.publish',
    when: 'a client of MQTT 5.0 publishes',
    act: async (connect) =>
      (await connect(RICH)).publish('t/a', 'hello', { qos: 1, retain: true, properties: MESSAGE_PROPERTIES }),
    columns: [
      {
        clientid: 'rich',
        username: 'ann',
        peerhost: '192.0.2.1',
        pub_props: PUB_PROPS,
        headers: { username: 'ann', peerhost: '192.0.2.1', protocol: 'mqtt', properties: PUB_PROPS },
        ...OF_MESSAGE,
        flags: { dup: false, retain: true }
      }
    ]
  },
  {
    event: 'message.publish',
    when: 'a client of MQTT 3.1.1 without user name and address publishes',
    act: async (connect) => (await connect(PLAIN)).publish('t/a', 'hello'),
    columns: [
      { clientid: 'plain', pub_props: {}, headers: { protocol: 'mqtt', properties: {} }, ...OF_MESSAGE, qos: 0 }
    ]
  },
  {
    event: 'message.publish',
    when: 'the app publishes, for itself and for a device',
    act: async (_connect, { broker }) => {
      await broker.publish('t/a', 'hello', { qos: 1 });
      await broker.publish('t/a', 'hello', { qos: 1, clientId: 'device' });
    },
    columns: [{}, { clientid: 'device' }].map((publisher) => ({
      ...publisher,
      pub_props: {},
      headers: { protocol: 'mqtt', properties: {} },
      ...OF_MESSAGE
    }))
  },
  {
    event: 'message.delivered',
    when: 'a message is sent to its subscribers',
    act: async (connect) => {
      const rich = await connect(RICH);
      await rich.subscribe({ topic: 't/#', qos: 1, retainAsPublished: true });
      await (await connect(PLAIN)).subscribe('t/a');
      await rich.publish('t/a', 'hello', { qos: 2, retain: true });
    },
    columns: [
      { clientid: 'plain', qos: 0, flags: { dup: false, retain: false } },
      { clientid: 'rich', username: 'ann', peerhost: '192.0.2.1', qos: 1, flags: { dup: false, retain: true } }
    ].map((receiver) => ({
      ...OF_MESSAGE,
      ...receiver,
      from_clientid: 'rich',
      from_username: 'ann',
      pub_props: {}
    }))
  },
  {
    event: 'message.acked',
    when: 'a subscriber acknowledges messages of QoS 1 and 2',
    act: async (connect) => {
      await (await connect({ ...RICH, transportInfo: AT_TLS })).subscribe('t/a', { qos: 2 });
      const plain = await connect({ ...PLAIN, username: 'bob' });
      for (const qos of [0, 1, 2] as const) await plain.publish('t/a', 'hello', { qos });
    },
    columns: [1, 2].map((qos) => ({
      clientid: 'rich',
      username: 'ann',
      from_clientid: 'plain',
      from_username: 'bob',
      peerhost: '192.0.2.2',
      pub_props: {},
      ...OF_MESSAGE,
      qos
    }))
  },
  {
    event: 'message.acked',
    when: 'a subscriber acknowledges a retained message, with the retain flag of its delivery',
    act: async (connect) => {
      const rich = await connect({ ...RICH, transportInfo: AT_TLS });
      await rich.subscribe('t/a', { qos: 1 });
      const plain = await connect({ ...PLAIN, username: 'bob' });
      await plain.publish('t/a', 'hello', { qos: 1, retain: true });
      await rich.subscribe('t/a', { qos: 1 });
    },
    columns: [false, true].map((retain) => ({
      ...{ clientid: 'rich', username: 'ann', from_clientid: 'plain', from_username: 'bob', peerhost: '192.0.2.2' },
      ...{ pub_props: {}, ...OF_MESSAGE, flags: { dup: false, retain } }
    }))
  },
  {
    event: 'message.dropped',
    when: 'a message has no subscribers',
    act: async (connect) => (await connect(RICH)).publish('t/a', 'hello', { qos: 1, properties: MESSAGE_PROPERTIES }),
    columns: [
      {
        clientid: 'rich',
        username: 'ann',
        peerhost: '192.0.2.1',
        pub_props: PUB_PROPS,
        reason: 'no_subscribers',
        ...OF_MESSAGE
      }
    ]
  },
  {
    event: 'delivery.dropped',
    when: 'a subscriber does not get its own message, because of No Local',
    act: async (connect) => {
      const rich = await connect(RICH);
      await rich.subscribe('t/a', { noLocal: true });
      await rich.publish('t/a', 'hello', { qos: 1 });
    },
    columns: [
      {
        clientid: 'rich',
        username: 'ann',
        from_clientid: 'rich',
        from_username: 'ann',
        peerhost: '192.0.2.1',
        pub_props: {},
        reason: 'no_local',
        ...OF_MESSAGE
      }
    ]
  },
  {
    event: 'client.connected',
    when: 'clients of MQTT 5.0, 3.1.1 and 3.1 connect',
    options: { mountpoint: 'm/%c/' },
    act: async (connect) => {
      await connect(RICH);
      await connect({ ...PLAIN, clean: false, keepalive: 30 });
      await connect({ clientId: 'old', protocolVersion: 3, transportInfo: AT_TLS });
    },
    columns: [
      {
        clientid: 'rich',
        username: 'ann',
        mountpoint: 'm/rich/',
        peername: '192.0.2.1:50001',
        sockname: '198.51.100.1:1883',
        proto_name: 'MQTT',
        proto_ver: 5,
        keepalive: 60,
        clean_start: true,
        expiry_interval: 120,
        is_bridge: false,
        receive_maximum: 7,
        conn_props: RICH_PROPERTIES
      },
      {
        clientid: 'plain',
        mountpoint: 'm/plain/',
        proto_name: 'MQTT',
        proto_ver: 4,
        keepalive: 30,
        clean_start: false,
        expiry_interval: 7200,
        is_bridge: false,
        receive_maximum: 128,
        conn_props: {}
      },
      {
        clientid: 'old',
        mountpoint: 'm/old/',
        peername: '192.0.2.2:50001',
        sockname: '198.51.100.1:8883',
        proto_name: 'MQIsdp',
        proto_ver: 3,
        keepalive: 0,
        clean_start: true,
        expiry_interval: 0,
        is_bridge: false,
        receive_maximum: 128,
        conn_props: {}
      }
    ].map((client) => ({ ...client, connected_at: NOW, ...ALWAYS }))
  },
  {
    event: 'client.disconnected',
    when: 'clients leave, lose their connection over TCP and TLS, and are disconnected',
    act: async (connect, kit) => {
      await (await connect(RICH)).disconnect();
      await connect(PLAIN);
      kit.link('plain').cut();
      await connect({ ...RICH, transportInfo: AT_TLS });
      kit.link('rich').cut();
      await connect(PLAIN);
      kit.broker.sessions.get('plain').kick();
    },
    columns: [
      { ...{ clientid: 'rich', username: 'ann', peername: '192.0.2.1:50001' }, sockname: '198.51.100.1:1883' },
      { clientid: 'plain' },
      { ...{ clientid: 'rich', username: 'ann', peername: '192.0.2.2:50001' }, sockname: '198.51.100.1:8883' },
      { clientid: 'plain' }
    ].map((client, index) => ({
      ...client,
      proto_name: 'MQTT',
      proto_ver: client.clientid === 'rich' ? 5 : 4,
      disconnected_at: NOW,
      reason: ['normal', 'tcp_closed', 'ssl_closed', 'kicked'][index],
      ...ALWAYS
    }))
  },
  {
    event: 'session.subscribed',
    when: 'clients subscribe, alone and in a group',
    options: { maxQosAllowed: 1 },
    act: async (connect) => {
      const rich = await connect(RICH);
      await rich.subscribe('t/#', { qos: 2, properties: { subscriptionIdentifier: [9] } });
      await rich.subscribe('$share/group/t/a');
      await (await connect(PLAIN)).subscribe('$queue/t/+');
    },
    columns: [
      { topic: 't/#', qos: 1, sub_props: { 'Subscription-Identifier': 9 } },
      { topic: 't/a', qos: 0, sub_props: {} },
      { topic: 't/+', qos: 0, sub_props: {} }
    ].map((subscription, index) => ({
      ...(index === 2 ? { clientid: 'plain' } : { clientid: 'rich', username: 'ann', peerhost: '192.0.2.1' }),
      ...subscription,
      ...ALWAYS
    }))
  },
  {
    event: 'session.unsubscribed',
    when: 'a client unsubscribes',
    act: async (connect) => {
      const rich = await connect(RICH);
      await rich.subscribe(['t/a', '$share/group/t/b'], { qos: 1 });
      await rich.unsubscribe(['t/a', '$share/group/t/b', 'never']);
    },
    columns: ['t/a', 't/b'].map((topic) => ({
      ...{ clientid: 'rich', username: 'ann', peerhost: '192.0.2.1', topic, qos: 1 },
      ...ALWAYS
    }))
  },
  {
    event: 'client.connack',
    when: 'clients are accepted and refused',
    options: {
      hooks: {
        authenticate: ({ client }) => (client.username === undefined ? { allow: false, reasonCode: 0x86 } : true)
      }
    },
    act: async (connect) => {
      await connect(RICH);
      await assert.rejects(connect({ ...PLAIN, keepalive: 30, transportInfo: AT_TLS }));
    },
    columns: [
      {
        ...{ reason_code: 'success', clientid: 'rich', username: 'ann', clean_start: true, keepalive: 60 },
        ...{ peername: '192.0.2.1:50001', sockname: '198.51.100.1:1883', proto_name: 'MQTT', proto_ver: 5 },
        ...{ expiry_interval: 120, conn_props: RICH_PROPERTIES, ...ALWAYS }
      },
      {
        ...{ reason_code: 'bad_username_or_password', clientid: 'plain', clean_start: true, keepalive: 30 },
        ...{ peername: '192.0.2.2:50001', sockname: '198.51.100.1:8883', proto_name: 'MQTT', proto_ver: 4 },
        ...{ expiry_interval: 0, conn_props: {}, ...ALWAYS }
      }
    ]
  },
  {
    event: 'client.check_acl_complete',
    when: 'clients publish and subscribe with rights and without',
    options: { hooks: { authorizePublish: () => true, authorizeSubscribe: ({ filter }) => filter !== 'secret' } },
    act: async (connect) => {
      const rich = await connect(RICH);
      await rich.publish('t/a', 'hello');
      await rich.subscribe('secret');
      await (await connect(PLAIN)).subscribe('$share/group/t/b');
    },
    columns: [
      { clientid: 'rich', username: 'ann', peerhost: '192.0.2.1', topic: 't/a', action: 'publish', result: 'allow' },
      {
        clientid: 'rich',
        username: 'ann',
        peerhost: '192.0.2.1',
        topic: 'secret',
        action: 'subscribe',
        result: 'deny'
      },
      { clientid: 'plain', topic: 't/b', action: 'subscribe', result: 'allow' }
    ].map((decision) => ({ ...decision, is_cache: false, ...ALWAYS }))
  },
  {
    event: 'alarm.activated',
    when: 'the app raises an alarm',
    act: async (_connect, { broker }) => {
      broker.alarms.raise({ id: 'tank', title: 'The tank is full', summary: '97 %', severity: 'critical' });
    },
    columns: [ALARM_COLUMNS]
  },
  {
    event: 'alarm.deactivated',
    when: 'the condition of an alarm has ended',
    act: async (_connect, { broker, clock }) => {
      broker.alarms.raise({ id: 'tank', title: 'The tank is full', summary: '97 %', severity: 'critical' });
      await clock.advance('5s');
      broker.alarms.clear('tank');
    },
    columns: [{ ...ALARM_COLUMNS, deactivated_at: NOW + 5_000, timestamp: NOW + 5_000 }]
  }
];
