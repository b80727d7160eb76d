import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { COUNTERS, connectClient, GAUGES, PLAIN_GAUGES } from 'embermq';
import { SYSTEM_DESCRIPTION } from 'embermq/adapter';
import { listen, ws } from 'embermq/net';
import { serveManagement, startBroker } from '../support/management.ts';

const LATER = ['later', 'hosted'] as const;
const REVISIONS = ['earlier', ...LATER] as const;
const UPTIME = /^(\d+ days, )?(\d+ hours, )?(\d+ minutes, )?\d+ seconds$/;
const LOCAL_TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/;

/** The counters and gauges of the earlier revision, as documented. */
const EARLIER_METRICS = [
  'bytes.received bytes.sent packets.received packets.sent packets.connect.received packets.connack.sent packets.connack.error',
  'packets.connack.auth_error packets.publish.received packets.publish.sent packets.publish.error packets.publish.auth_error',
  'packets.puback.received packets.puback.sent packets.puback.missed packets.pubrec.received packets.pubrec.sent',
  'packets.pubrec.missed packets.pubrel.received packets.pubrel.sent packets.pubrel.missed packets.pubcomp.received',
  'packets.pubcomp.sent packets.pubcomp.missed packets.subscribe.received packets.subscribe.error packets.subscribe.auth_error',
  'packets.suback.sent packets.unsubscribe.received packets.unsubscribe.error packets.unsuback.sent packets.pingreq.received',
  'packets.pingresp.sent packets.disconnect.received packets.disconnect.sent packets.auth.received packets.auth.sent',
  'messages.received messages.sent messages.qos0.received messages.qos0.sent messages.qos1.received messages.qos1.sent',
  'messages.qos2.received messages.qos2.sent messages.qos2.expired messages.qos2.dropped messages.expired messages.retained',
  'messages.dropped messages.forward auth.mqtt.anonymous'
].flatMap((line) => line.split(' '));
/** Counters and gauges that only the later revisions have, as documented. */
const LATER_METRICS = [
  'packets.publish.inuse packets.publish.dropped packets.puback.inuse packets.pubrec.inuse packets.pubcomp.inuse',
  'messages.publish messages.dropped.expired messages.dropped.no_subscribers messages.delayed messages.delivered messages.acked',
  'delivery.dropped delivery.dropped.no_local delivery.dropped.too_large delivery.dropped.qos0_msg delivery.dropped.queue_full',
  'delivery.dropped.expired client.connect client.connack client.connected client.authenticate client.auth.anonymous',
  'client.check_acl client.subscribe client.unsubscribe client.disconnected session.created session.resumed session.takeovered',
  'session.discarded session.terminated'
].flatMap((line) => line.split(' '));

describe('Brokers', () => {
  it('lists and looks up brokers in each revision', async () => {
    await using broker = await startBroker();
    const { node } = broker.settings;
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const list = (await server.call('GET', '/api/brokers')).body;
      assert.deepEqual([list.code, list.data.length, 'meta' in list], [0, 1, false]);
      const one = (await server.call('GET', `/api/brokers/${encodeURIComponent(node)}`)).body;
      for (const record of [list.data[0], one.data]) {
        const { datetime, uptime, node: named, ...rest } = record;
        assert.match(datetime, LOCAL_TIME);
        assert.match(uptime, UPTIME);
        assert.deepEqual(rest, {
          version: broker.version,
          sysdescr: SYSTEM_DESCRIPTION,
          otp_release: process.version,
          node_status: 'Running'
        });
        assert.equal(named, record === one.data && revision === 'earlier' ? undefined : node);
      }
      const unknown = await server.call('GET', '/api/brokers/other');
      assert.deepEqual([unknown.status, unknown.body.code], [404, 102]);
    }
  });
});

describe('Nodes', () => {
  it('lists and looks up nodes in each revision, with sizes as text in lists', async () => {
    await using broker = await startBroker();
    const { node } = broker.settings;
    const away = await broker.connect({ clientId: 'away', sessionExpiry: 60 });
    await broker.connect({ clientId: 'here' });
    const gone = broker.nextEvent('client.disconnected');
    await away.disconnect();
    await gone;
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const list = (await server.call('GET', '/api/nodes')).body;
      assert.deepEqual([list.code, list.data.length, 'meta' in list], [0, 1, false]);
      const one = (await server.call('GET', `/api/nodes/${encodeURIComponent(node)}`)).body;
      for (const record of [list.data[0], one.data]) {
        const { load1, load5, load15, max_fds, memory_total, memory_used, uptime, ...rest } = record;
        for (const load of [load1, load5, load15]) assert.match(load, /^\d+\.\d\d$/);
        assert.ok(Number.isInteger(max_fds));
        if (process.platform === 'linux') assert.ok(max_fds > 0);
        assert.match(uptime, UPTIME);
        assert.deepEqual(rest, {
          name: node,
          node,
          version: broker.version,
          otp_release: process.version,
          node_status: 'Running',
          connections: 1,
          process_available: 250_000,
          process_used: 2
        });
        if (record === one.data) assert.ok(Number.isInteger(memory_total) && memory_total > memory_used);
        else for (const size of [memory_total, memory_used]) assert.match(size, /^\d+\.\d\d[GMK]$/);
      }
      const unknown = await server.call('GET', '/api/nodes/other');
      assert.deepEqual([unknown.status, unknown.body.code], [404, 102]);
    }
  });
});

describe('Listeners', () => {
  it('lists listeners in each revision, with their connections', async () => {
    await using broker = await startBroker();
    const { node } = broker.settings;
    const tcp = await listen(broker, { port: 0, maxConnections: 100 });
    const web = await listen(broker, ws({ port: 0, path: '/mqtt' }));
    const socket = connect(tcp.port as number, '127.0.0.1');
    await once(socket, 'connect');
    const client = await connectClient(socket, { clientId: 'c' });
    const read = async (server: Awaited<ReturnType<typeof serveManagement>>) => {
      const list = (await server.call('GET', '/api/listeners')).body;
      const own = (await server.call('GET', `/api/nodes/${encodeURIComponent(node)}/listeners`)).body;
      assert.deepEqual(list.data, [{ node, listeners: own.data }]);
      return own.data;
    };
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      assert.deepEqual(await read(server), [
        {
          protocol: 'mqtt:tcp',
          listen_on: `127.0.0.1:${tcp.port}`,
          acceptors: 1,
          max_conns: 100,
          current_conns: 1,
          shutdown_count: []
        },
        {
          protocol: revision === 'earlier' ? 'mqtt:ws' : `mqtt:ws:${web.port}`,
          listen_on: `127.0.0.1:${web.port}`,
          acceptors: 1,
          max_conns: web.info().maxConnections,
          current_conns: 0,
          shutdown_count: []
        }
      ]);
      const unknown = await server.call('GET', '/api/nodes/other/listeners');
      assert.deepEqual([unknown.status, unknown.body.code], [404, 102]);
    }
    const gone = broker.nextEvent('client.disconnected');
    await client.disconnect();
    await gone;
    await using server = await serveManagement(broker);
    const [first] = await read(server);
    assert.deepEqual([first.current_conns, first.shutdown_count], [0, { normal: 1 }]);
  });
});

describe('Metrics', () => {
  it('shows metrics with the documented names in each revision', async () => {
    await using broker = await startBroker();
    const { node } = broker.settings;
    const client = await broker.connect({ clientId: 'c' });
    await client.publish('t', 'x', { qos: 1, retain: true });
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const list = (await server.call('GET', '/api/metrics')).body;
      const own = (await server.call('GET', `/api/nodes/${encodeURIComponent(node)}/metrics`)).body;
      assert.deepEqual(list.data, [{ node, metrics: own.data }]);
      const names = Object.keys(own.data).sort();
      if (revision === 'earlier') assert.deepEqual(names, EARLIER_METRICS.toSorted());
      else {
        assert.deepEqual(names, [...COUNTERS, ...PLAIN_GAUGES].sort() as string[]);
        const documented = [...EARLIER_METRICS.filter((name) => name !== 'auth.mqtt.anonymous'), ...LATER_METRICS];
        assert.deepEqual(
          documented.filter((name) => !names.includes(name)),
          []
        );
      }
      assert.ok(Object.values(own.data).every(Number.isInteger));
      assert.deepEqual([own.data['messages.received'], own.data['packets.puback.sent']], [1, 1]);
      assert.equal(own.data['messages.retained'], broker.retained.count);
      const unknown = await server.call('GET', '/api/nodes/other/metrics');
      assert.deepEqual([unknown.status, unknown.body.code], [404, 102]);
    }
  });
});

describe('Statistics', () => {
  it('shows statistics with the documented names in each revision, flat in lists of the earlier one', async () => {
    await using broker = await startBroker();
    const { node } = broker.settings;
    const away = await broker.connect({ clientId: 'away', sessionExpiry: 60 });
    await broker.connect({ clientId: 'here' });
    const gone = broker.nextEvent('client.disconnected');
    await away.disconnect();
    await gone;
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const list = (await server.call('GET', '/api/stats')).body;
      const own = (await server.call('GET', `/api/nodes/${encodeURIComponent(node)}/stats`)).body;
      assert.deepEqual(list.data, [revision === 'earlier' ? { node, ...own.data } : { node, stats: own.data }]);
      const names = GAUGES.filter(
        (name) => revision !== 'earlier' || !['channels', 'rules', 'actions', 'resources'].includes(name)
      );
      assert.deepEqual(
        Object.keys(own.data),
        names.flatMap((name) => [`${name}.count`, `${name}.max`])
      );
      assert.deepEqual(
        [own.data['connections.count'], own.data['connections.max'], own.data['sessions.count']],
        [1, 2, 2]
      );
      const unknown = await server.call('GET', '/api/nodes/other/stats');
      assert.deepEqual([unknown.status, unknown.body.code], [404, 102]);
    }
  });
});
