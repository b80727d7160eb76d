import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Announcer } from '../../lib/events/announcer.ts';
import { Events } from '../../lib/events/events.ts';
import { COUNTERS, GAUGES, type GaugeReaders, Metrics, PLAIN_GAUGES } from '../../lib/events/metrics.ts';
import type { DropReason } from '../../lib/events/reasons.ts';
import {
  DISCONNECT_REASONS,
  type DisconnectReasonEntry,
  DROP_REASONS,
  type DropReasonEntry,
  disconnectReasonOf
} from '../../lib/events/reasons.ts';
import { isAllowedCode } from '../../lib/packets/allowed-codes.ts';
import { CONNECT_REFUSALS, type ConnectRefusalEntry } from '../../lib/packets/connect-refusals.ts';
import { encodeConnack } from '../../lib/packets/encode.ts';
import { Message } from '../../lib/packets/message.ts';
import { reasonName } from '../../lib/packets/reason-codes.ts';
import { clientInfo } from '../support/client-info.ts';

const drops = Object.entries<DropReasonEntry>(DROP_REASONS) as [DropReason, DropReasonEntry][];

describe('DISCONNECT_REASONS', () => {
  it('uses only reason codes that DISCONNECT or CONNACK can carry', () => {
    const packets = ['disconnect', 'disconnectFromServer', 'connack'] as const;
    for (const [name, { reasonCode }] of Object.entries(DISCONNECT_REASONS))
      assert.ok(
        packets.some((packet) => isAllowedCode(packet, reasonCode)),
        name
      );
  });

  it('gives each protocol error one reason', () => {
    const errors = Object.values<DisconnectReasonEntry>(DISCONNECT_REASONS).flatMap((row) => row.errors ?? []);
    assert.equal(new Set(errors).size, errors.length);
    assert.equal(disconnectReasonOf(0x95), 'packet_too_large');
    assert.equal(disconnectReasonOf(0x86), 'not_authorized');
    assert.equal(disconnectReasonOf(0x87), 'not_authorized');
    assert.equal(disconnectReasonOf(0x8d), 'keepalive_timeout');
    for (const code of [0x80, 0x81, 0x82, 0x93, 0x94]) assert.equal(disconnectReasonOf(code), 'protocol_error');
  });
});

describe('DROP_REASONS', () => {
  it('uses only reason codes that PUBACK and PUBREC can carry', () => {
    for (const [name, { reasonCode = 0 }] of drops) assert.ok(isAllowedCode('puback', reasonCode), name);
  });

  it('contains a reason for every counter of dropped messages', () => {
    const counted = new Set(drops.flatMap(([, { delivery = [], message = [] }]) => [...delivery, ...message]));
    assert.deepEqual(
      COUNTERS.filter((name) => /^(messages|delivery)\.dropped|^messages\.(expired|not_retained)/.test(name)).sort(),
      [...counted].sort()
    );
  });

  it('names the counters of a drop for one receiver and for all receivers', () => {
    const gauges = Object.fromEntries([...GAUGES, ...PLAIN_GAUGES].map((name) => [name, () => 0])) as GaugeReaders;
    const metrics = new Metrics(gauges);
    const announcer = new Announcer(new Events(), metrics, { drop: () => undefined, dropUnsubscribed() {} });
    const message = Message.from({ topic: 'a', payload: 'x' }, undefined, 0, 0);
    const countedFor = (reason: DropReason, isForOne: boolean) => {
      metrics.counts.fill(0);
      announcer.dropped(message, reason, isForOne ? clientInfo() : undefined);
      return Object.entries(metrics.counters()).flatMap(([name, count]) => Array<string>(count).fill(name));
    };
    assert.deepEqual(countedFor('session_terminated', true), ['delivery.dropped']);
    assert.deepEqual(countedFor('quota', false), ['messages.dropped']);
    assert.deepEqual(countedFor('not_retained', false), ['messages.not_retained']);
    assert.deepEqual(countedFor('expired', true).sort(), [
      'delivery.dropped',
      'delivery.dropped.expired',
      'messages.expired'
    ]);
    assert.deepEqual(countedFor('expired', false).sort(), [
      'messages.dropped',
      'messages.dropped.expired',
      'messages.expired'
    ]);
    assert.deepEqual(countedFor('total_queue_full', true), ['delivery.dropped', 'delivery.dropped.queue_full']);
  });
});

describe('CONNECT_REFUSALS', () => {
  const rows = Object.entries<ConnectRefusalEntry>(CONNECT_REFUSALS);

  it('contains one reason for each error code of CONNACK, by its documented name [MQTT-3.2.2-8]', () => {
    const expected = [
      ...[0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x90, 0x95, 0x97, 0x99],
      ...[0x9a, 0x9b, 0x9c, 0x9d, 0x9f]
    ];
    assert.deepEqual(
      rows.map(([, { reasonCode }]) => reasonCode),
      expected
    );
    for (const [name, { reasonCode }] of rows)
      assert.equal(name.replace('username', 'user_name'), reasonName(reasonCode).replaceAll(' ', '_'));
  });

  it('contains the return codes of MQTT 3.1.1; a refusal without one has no CONNACK [MQTT-3.2.2-6]', () => {
    const codes = rows.map(([, { reasonCode }]) => [
      reasonCode,
      encodeConnack({ cmd: 'connack', sessionPresent: false, reasonCode }, 4)[3]
    ]);
    assert.deepEqual(
      codes.filter(([, code]) => code !== undefined),
      [
        ...[
          [0x84, 1],
          [0x85, 2],
          [0x86, 4],
          [0x87, 5],
          [0x88, 3],
          [0x89, 3],
          [0x8a, 5],
          [0x8c, 5],
          [0x97, 3]
        ],
        ...[
          [0x9c, 3],
          [0x9d, 3],
          [0x9f, 3]
        ]
      ]
    );
  });
});
