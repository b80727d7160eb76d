import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { COUNTERS, GAUGES, type GaugeReaders, Metric, Metrics, PLAIN_GAUGES } from '../../lib/events/metrics.ts';
import { DROP_REASONS, type DropReasonEntry } from '../../lib/events/reasons.ts';

/** Gauges whose values a test sets. */
const setUp = () => {
  const values = Object.fromEntries([...GAUGES, ...PLAIN_GAUGES].map((name) => [name, 0])) as Record<string, number>;
  const readers = Object.fromEntries(Object.keys(values).map((name) => [name, () => values[name]])) as GaugeReaders;
  return { values, metrics: new Metrics(readers) };
};

describe('COUNTERS', () => {
  it('contains every documented counter, each name once', () => {
    const documented = `
      bytes.received bytes.sent
      packets.received packets.sent packets.connect.received packets.connack.sent packets.connack.error
      packets.connack.auth_error packets.publish.received packets.publish.sent packets.publish.error
      packets.publish.auth_error packets.puback.received packets.puback.sent packets.puback.missed
      packets.pubrec.received packets.pubrec.sent packets.pubrec.missed packets.pubrel.received packets.pubrel.sent
      packets.pubrel.missed packets.pubcomp.received packets.pubcomp.sent packets.pubcomp.missed
      packets.subscribe.received packets.subscribe.error packets.subscribe.auth_error packets.suback.sent
      packets.unsubscribe.received packets.unsubscribe.error packets.unsuback.sent packets.pingreq.received
      packets.pingresp.sent packets.disconnect.received packets.disconnect.sent packets.auth.received
      packets.auth.sent packets.publish.inuse packets.publish.dropped packets.puback.inuse packets.pubrec.inuse
      packets.pubcomp.inuse
      messages.received messages.sent messages.qos0.received messages.qos0.sent messages.qos1.received
      messages.qos1.sent messages.qos2.received messages.qos2.sent messages.dropped messages.forward
      messages.qos2.expired messages.qos2.dropped messages.expired messages.publish messages.dropped.expired
      messages.dropped.no_subscribers messages.delivered messages.acked
      delivery.dropped delivery.dropped.no_local delivery.dropped.too_large delivery.dropped.qos0_msg
      delivery.dropped.queue_full delivery.dropped.expired
      client.connect client.connack client.connected client.authenticate client.auth.anonymous client.check_acl
      client.auth.success client.auth.failure client.auth.ignore client.acl.allow client.acl.deny client.acl.ignore
      client.acl.cache_hit
      client.subscribe client.unsubscribe client.disconnected
      session.created session.resumed session.takeovered session.discarded session.terminated`;
    const names = new Set<string>(COUNTERS);
    assert.equal(names.size, COUNTERS.length);
    for (const name of documented.trim().split(/\s+/)) assert.ok(names.has(name), name);
    for (const name of PLAIN_GAUGES) assert.ok(!names.has(name), name);
  });
});

describe('Metric', () => {
  it('contains only counters that the code increments, except the one that cannot change', () => {
    const lib = join(import.meta.dirname, '../../lib');
    const raised = readdirSync(lib, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && name !== join('events', 'metrics.ts'))
      .map((name) => readFileSync(join(lib, name), 'utf8'))
      .join();
    // by its index, or by its name in a table of reasons
    const dropped = Object.values<DropReasonEntry>(DROP_REASONS).flatMap(({ delivery = [], message = [] }) => [
      ...delivery,
      ...message
    ]);
    const never = Object.entries(Metric).filter(
      ([name, at]) => !new RegExp(`Metric\\.${name}\\b`).test(raised) && !dropped.includes(COUNTERS[at])
    );
    assert.deepEqual(never, [['messagesForward', Metric.messagesForward]]);
  });

  it('contains the index of every counter under its name in camelCase', () => {
    assert.equal(Object.keys(Metric).length, COUNTERS.length);
    assert.equal(COUNTERS[Metric.packetsConnackAuthError], 'packets.connack.auth_error');
    assert.equal(COUNTERS[Metric.deliveryDroppedQos0Msg], 'delivery.dropped.qos0_msg');
    assert.deepEqual(
      Object.values(Metric).toSorted((a, b) => a - b),
      COUNTERS.map((_, at) => at)
    );
  });
});

describe('Metrics', () => {
  it('starts at zero and reports the counts by documented name', () => {
    const { metrics, values } = setUp();
    assert.ok(Object.values(metrics.counters()).every((count) => count === 0));
    metrics.counts[Metric.messagesReceived] += 3;
    values['messages.delayed'] = 7;
    assert.equal(metrics.counter('messages.received'), 3);
    assert.equal(metrics.counters()['messages.received'], 3);
    assert.equal(metrics.gauges()['messages.delayed'], 7);
    assert.deepEqual(Object.keys(metrics.counters()), [...COUNTERS]);
  });

  it('counts beyond 32 bits', () => {
    const { metrics } = setUp();
    metrics.counts[Metric.bytesReceived] += 2 ** 40;
    metrics.counts[Metric.bytesReceived] += 1;
    assert.equal(metrics.counter('bytes.received'), 2 ** 40 + 1);
  });

  it('reports the current and the highest value of every gauge', () => {
    const { metrics, values } = setUp();
    values.connections = 5;
    assert.equal(metrics.gauges()['connections.max'], 5);
    values.connections = 2;
    const gauges = metrics.gauges();
    assert.equal(gauges['connections.count'], 2);
    assert.equal(gauges['connections.max'], 5);
    assert.equal(metrics.gauge('connections'), 2);
    assert.equal(Object.keys(gauges).length, 2 * GAUGES.length + PLAIN_GAUGES.length);
  });

  it('includes a maximum that was recorded between two reads', () => {
    const { metrics } = setUp();
    assert.equal(metrics.note('sessions', 9), 9);
    assert.equal(metrics.note('sessions', 4), 9);
    assert.equal(metrics.gauges()['sessions.max'], 9);
  });
});
