import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, engineOf } from '../../lib/broker/broker.ts';
import { createBroker } from '../../lib/index.ts';
import { type Dialect, namesIn, type RecordTable, recordOf } from '../../lib/records/record-table.ts';
import { COUNTER_FIELDS } from '../../lib/records/session-counters.ts';
import {
  CLIENT_FIELDS,
  CONNECTION_FIELDS,
  type RecordedSession,
  SESSION_FIELDS
} from '../../lib/records/session-records.ts';
import { SUBSCRIPTION_FIELDS } from '../../lib/records/subscription-record.ts';
import { Lives, PERSISTENT, turns } from '../store/support.ts';

/** The fields that the management interface documents for a client, in its later revision. */
const CLIENT = `node clientid username proto_name proto_ver ip_address port is_bridge connected_at disconnected_at connected zone
  keepalive clean_start expiry_interval created_at subscriptions_cnt max_subscriptions inflight max_inflight mqueue_len max_mqueue
  mqueue_dropped awaiting_rel max_awaiting_rel recv_oct recv_cnt recv_pkt recv_msg send_oct send_cnt send_pkt send_msg mailbox_len
  heap_size reductions mountpoint`;
/** The fields of a connection and a session in its earlier revision. */
const CONNECTION = `clean_start client_id conn_mod connected_at heap_size ipaddress is_bridge keepalive mailbox_len node peercert port
  proto_name proto_ver recv_cnt recv_msg recv_oct recv_pkt reductions send_cnt send_msg send_oct send_pend send_pkt username zone`;
const SESSION = `awaiting_rel_len binding clean_start client_id created_at deliver_msg enqueue_msg expiry_interval heap_size inflight_len
  mailbox_len max_awaiting_rel max_inflight max_mqueue max_subscriptions mqueue_dropped mqueue_len node reductions subscriptions_count
  username`;
/** The fields of a client in webhooks. */
const WEBHOOK_CLIENT = 'clientid username ipaddress keepalive proto_ver connected_at';
/** Columns of events of a client for rules, except those made of address and port. */
const RULE_CLIENT = `clientid username mountpoint peerhost proto_name proto_ver keepalive clean_start expiry_interval is_bridge
  connected_at disconnected_at node`;

function words(text: string): string[] {
  return text.split(/\s+/).sort();
}

function wireNames<R>(table: RecordTable<never, R>, dialect: Dialect): string[] {
  return [...namesIn(table, dialect).keys()].sort();
}

function source(broker: Broker, clientId: string): RecordedSession {
  return engineOf(broker).sessions.get(clientId) as RecordedSession;
}

describe('The record tables', () => {
  it('contains the documented fields of a client, a connection, a session and a subscription in each revision', () => {
    assert.deepEqual(wireNames(CLIENT_FIELDS, 'later'), words(CLIENT));
    assert.deepEqual(wireNames(CONNECTION_FIELDS, 'earlier'), words(CONNECTION));
    assert.deepEqual(wireNames(SESSION_FIELDS, 'earlier'), words(SESSION));
    assert.deepEqual(wireNames(SUBSCRIPTION_FIELDS, 'later'), words('node clientid topic qos'));
    assert.deepEqual(wireNames(SUBSCRIPTION_FIELDS, 'earlier'), words('node client_id topic qos'));
  });

  it('contains the documented fields of webhooks and rules', () => {
    assert.deepEqual(wireNames(CLIENT_FIELDS, 'webhook'), words(WEBHOOK_CLIENT));
    assert.deepEqual(wireNames(CLIENT_FIELDS, 'rule'), words(RULE_CLIENT));
    assert.deepEqual(wireNames(SUBSCRIPTION_FIELDS, 'webhook'), words('clientid topic qos'));
    assert.deepEqual(wireNames(SUBSCRIPTION_FIELDS, 'rule'), words('node clientid topic qos'));
  });

  it('uses a name of a dialect for one field only', () => {
    for (const table of [CLIENT_FIELDS, CONNECTION_FIELDS, SESSION_FIELDS, COUNTER_FIELDS, SUBSCRIPTION_FIELDS])
      for (const dialect of ['later', 'earlier', 'webhook', 'rule'] as const) {
        const named = Object.values(table).filter((field) => field[dialect] !== undefined);
        assert.equal(namesIn<unknown>(table as never, dialect).size, named.length);
      }
  });
});

describe('The record of a client', () => {
  it('contains the facts of the connection and the session of a client', async () => {
    await using broker = await createBroker({ maxSubscriptions: 7 }).start();
    const client = await broker.connect({
      clientId: 'c',
      username: 'u',
      keepalive: 9,
      sessionExpiry: 60,
      transportInfo: {
        transport: 'tls',
        remoteAddress: '::ffff:192.0.2.1',
        remotePort: 5_000,
        certificate: { subject: 'CN=c' }
      }
    });
    await client.subscribe(['a', 'b']);
    const record = recordOf(CLIENT_FIELDS, source(broker, 'c'), 'n');
    const { node, clientId, username, cleanStart, ipAddress, port, transport, certificate, protocolName } = record;
    assert.deepEqual(
      { node, clientId, username, cleanStart, ipAddress, port, transport, certificate, protocolName },
      {
        node: 'n',
        clientId: 'c',
        username: 'u',
        cleanStart: true,
        ipAddress: '192.0.2.1',
        port: 5_000,
        transport: 'tls',
        certificate: 'CN=c',
        protocolName: 'MQTT'
      }
    );
    const { protocolVersion, isConnected, zone, keepalive, sessionExpiry, binding, subscriptions, maxSubscriptions } =
      record;
    assert.deepEqual(
      { protocolVersion, isConnected, zone, keepalive, sessionExpiry, binding, subscriptions, maxSubscriptions },
      {
        protocolVersion: 5,
        isConnected: true,
        zone: 'external',
        keepalive: 9,
        sessionExpiry: 60,
        binding: 'local',
        subscriptions: 2,
        maxSubscriptions: 7
      }
    );
    assert.deepEqual([record.recvPkt, record.sendPkt, record.reductions], [2, 2, 4]);
    const gone = broker.nextEvent('client.disconnected');
    await client.disconnect();
    await gone;
    const later = recordOf(CLIENT_FIELDS, source(broker, 'c'), 'n');
    assert.deepEqual([later.isConnected, later.binding], [false, undefined]);
    assert.deepEqual(
      [later.recvPkt, later.sendPkt, later.reductions],
      [3, 2, 5],
      'the counters of the last connection'
    );
    assert.equal(later.connectedAt, record.connectedAt);
    const at = { connectedFrom: record.connectedAt, connectedTo: record.connectedAt };
    assert.equal((await broker.directory.clients(at)).entries.length, 1, 'conditions on times see it');
    assert.equal(typeof later.disconnectedAt, 'number');
  });

  it('names the protocol as the CONNECT of MQTT 3.1 does', async () => {
    await using broker = await createBroker().start();
    await broker.connect({ clientId: 'old', protocolVersion: 3 });
    assert.equal(recordOf(CLIENT_FIELDS, source(broker, 'old'), 'n').protocolName, 'MQIsdp');
  });
});

describe('The record of a client of a broker with a store', () => {
  it('keeps the time of the last connection after a restart and a crash, and counters until the broker stops', async () => {
    await using lives = await new Lives().begin();
    const record = async () => {
      const found = await lives.kit.broker.directory.client('c');
      return [found?.connectedAt, found?.isConnected, found?.recvPkt];
    };
    const first = lives.kit.clock.now();
    const client = await lives.connect({ ...PERSISTENT, clientId: 'c' });
    await lives.kit.clock.advance(5_000);
    await client.disconnect();
    await lives.kit.clock.advance(5_000);
    assert.deepEqual(await record(), [first, false, 2]);
    await lives.crash();
    assert.deepEqual(await record(), [first, false, 0]);
    const second = lives.kit.clock.now();
    await lives.connect({ ...PERSISTENT, clientId: 'c' });
    await lives.kit.clock.advance(5_000);
    await lives.crash();
    assert.deepEqual(await record(), [second, false, 0]);
  });

  it('counts the packets that wait for a commit', async () => {
    await using lives = await new Lives().begin();
    const { broker, clock } = lives.kit;
    await lives.leave('away', 'a');
    lives.store.turnsBefore = () => 20;
    const client = await lives.connect({ clientId: 'c' });
    const done = Promise.all(['one', 'two'].map((text) => client.publish('a', text, { qos: 1 })));
    while (broker.sessions.get('c').counters().recvMsg < 2) await turns(1);
    assert.equal(recordOf(CLIENT_FIELDS, source(broker, 'c'), 'n').mailboxLen, 2);
    await clock.settle();
    await done;
    assert.equal(recordOf(CLIENT_FIELDS, source(broker, 'c'), 'n').mailboxLen, 0);
  });
});

for (const isKept of [false, true]) {
  describe(`The counters of a session ${isKept ? 'in a store' : 'in memory'}`, () => {
    it('counts the messages that were sent to all connections of a session, and those that had to wait', async () => {
      const lives = new Lives();
      lives.isKept = isKept;
      await using _ = await lives.begin();
      const { broker, clock } = lives.kit;
      const counters = () => {
        const { deliverMsg, sendMsg, enqueueMsg, mqueueLen } = broker.sessions.get('c').counters();
        return { deliverMsg, sendMsg, enqueueMsg, mqueueLen };
      };
      const client = await lives.connect({ clientId: 'c', ...PERSISTENT });
      await client.subscribe({ topic: 'a', qos: 1 });
      for (let count = 0; count < 3; count++) await broker.publish('a', 'x', { qos: 1 });
      await clock.settle();
      assert.deepEqual(counters(), { deliverMsg: 3, sendMsg: 3, enqueueMsg: 0, mqueueLen: 0 });
      await client.disconnect();
      await clock.settle();
      for (let count = 0; count < 2; count++) await broker.publish('a', 'x', { qos: 1 });
      assert.deepEqual(counters(), { deliverMsg: 3, sendMsg: 3, enqueueMsg: 2, mqueueLen: 2 });
      await lives.connect({ clientId: 'c', ...PERSISTENT });
      await clock.settle();
      assert.deepEqual(counters(), { deliverMsg: 5, sendMsg: 2, enqueueMsg: 2, mqueueLen: 0 });
      await lives.connect({ clientId: 'c', ...PERSISTENT });
      await broker.publish('a', 'x', { qos: 1 });
      await clock.settle();
      assert.equal(counters().deliverMsg, counters().sendMsg + 5, 'a connection that was taken over counts as well');
    });

    it('counts a message that waits for the window of a connected client', async () => {
      const lives = new Lives();
      lives.isKept = isKept;
      await using _ = await lives.begin();
      const { broker, clock } = lives.kit;
      const client = await lives.connect({ clientId: 'c', ...PERSISTENT, receiveMaximum: 1, acknowledge: 'manual' });
      client.on('message', () => undefined);
      await client.subscribe({ topic: 'a', qos: 1 });
      for (let count = 0; count < 3; count++) await broker.publish('a', 'x', { qos: 1 });
      await clock.settle();
      const { deliverMsg, enqueueMsg, mqueueLen, heapSize } = recordOf(CLIENT_FIELDS, source(broker, 'c'), 'n');
      assert.deepEqual([deliverMsg, enqueueMsg, mqueueLen], [1, 2, 2]);
      assert.ok(heapSize > 0);
    });
  });
}
