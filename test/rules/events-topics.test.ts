import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EVENTS, type EventName } from '../../lib/index.ts';
import { RULE_EVENTS } from '../../lib/rules/events/rows.ts';
import { ruleEventInfos, testColumns } from '../../lib/rules/events/test-columns.ts';
import { eventsOfFilter, messageFilterOf, ruleEventOfTopic } from '../../lib/rules/events/topics.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

const CONTEXT = { node: 'node-1', now: 1_700_000_000_000 };

describe('The events of rules', () => {
  it('covers the events of the catalogue', () => {
    const ofCatalogue = (Object.keys(EVENTS) as EventName[]).flatMap((source) =>
      EVENTS[source].ruleTopics.map((topic) => `${topic} of ${source}`)
    );
    const ofRules = Object.values(RULE_EVENTS).map(({ topic, source }) => `${topic} of ${source}`);
    assert.deepEqual(ofRules.sort(), ofCatalogue.sort());
  });

  it('names the events by exact topics', () => {
    assert.equal(ruleEventOfTopic('$events/client_connected'), 'client.connected');
    assert.equal(ruleEventOfTopic('$events/message_publish'), 'message.publish');
    assert.equal(ruleEventOfTopic('$events/client/connected'), 'client.connected');
    assert.equal(ruleEventOfTopic('$events/client.connected'), 'client.connected');
    assert.equal(ruleEventOfTopic('$events/sys/alarm_activated'), 'alarm.activated');
    for (const topic of [
      '$events/client_connected/x',
      '$events/client/connected/x',
      '$events/',
      'client.connected',
      't/a',
      '$events/toString'
    ])
      assert.equal(ruleEventOfTopic(topic), undefined, topic);
  });

  it('contains the documented columns, in order', () => {
    const columns = Object.fromEntries(Object.values(RULE_EVENTS).map(({ name, names }) => [name, names.join(' ')]));
    assert.deepEqual(columns, {
      'message.publish':
        'event id clientid username payload peerhost topic qos flags headers pub_props publish_received_at timestamp node',
      'message.delivered':
        'event id clientid username from_clientid from_username payload peerhost topic qos flags pub_props publish_received_at timestamp node',
      'message.acked':
        'event id clientid username from_clientid from_username payload peerhost topic qos flags pub_props puback_props publish_received_at timestamp node',
      'message.dropped':
        'event id clientid username payload peerhost topic qos flags pub_props reason publish_received_at timestamp node',
      'client.connected':
        'event clientid username mountpoint peername sockname proto_name proto_ver keepalive clean_start expiry_interval is_bridge receive_maximum conn_props connected_at timestamp node',
      'client.disconnected':
        'event clientid username peername sockname proto_name proto_ver disconn_props disconnected_at reason timestamp node',
      'session.subscribed': 'event clientid username peerhost topic qos sub_props timestamp node',
      'session.unsubscribed': 'event clientid username peerhost topic qos unsub_props timestamp node',
      'delivery.dropped':
        'event id clientid username from_clientid from_username payload peerhost topic qos flags pub_props reason publish_received_at timestamp node',
      'client.connack':
        'event reason_code clientid clean_start username peername sockname proto_name proto_ver keepalive expiry_interval conn_props timestamp node',
      'client.check_acl_complete': 'event clientid username peerhost topic action is_cache result timestamp node',
      'alarm.activated': 'event name severity title message activated_at timestamp node',
      'alarm.deactivated': 'event name severity title message activated_at deactivated_at timestamp node'
    });
  });
});

describe('A topic filter of FROM', () => {
  for (const [filter, events, messages] of [
    ['t/#', ['message.publish'], 't/#'],
    ['#', ['message.publish'], '#'],
    ['+/client_connected', ['message.publish'], '+/client_connected'],
    ['client.connected', ['message.publish'], 'client.connected'],
    ['$SYS/#', ['message.publish'], '$SYS/#'],
    ['$events/message_publish', ['message.publish'], '#'],
    ['$events/client_connected', ['client.connected'], undefined],
    ['$events/client/connected', ['client.connected'], undefined],
    ['$events/client.connected', ['client.connected'], undefined],
    [
      '$events/client/+',
      ['client.connected', 'client.disconnected', 'client.connack', 'client.check_acl_complete'],
      undefined
    ],
    ['$events/message/publish', ['message.publish'], '#'],
    ['$events/message/delivered', ['message.delivered'], undefined],
    ['$events/delivery_dropped', ['delivery.dropped'], undefined],
    ['$events/sys/+', ['alarm.activated', 'alarm.deactivated'], undefined],
    ['$events/client_connected/x', [], undefined],
    ['$events/unknown', [], undefined],
    ['$events/client_connected/#', ['client.connected'], undefined]
  ] as const)
    it(`${filter} selects from ${events.join(', ') || 'no event'}`, () => {
      assert.deepEqual(eventsOfFilter(filter), events);
      assert.equal(messageFilterOf(filter), messages);
    });

  for (const filter of ['$events/#', '$events/+'])
    it(`${filter} selects from all events except message.publish`, () => {
      const others = Object.keys(RULE_EVENTS).filter((name) => name !== 'message.publish');
      assert.deepEqual(eventsOfFilter(filter), others);
      assert.equal(messageFilterOf(filter), undefined);
    });
});

describe('The columns of a test', () => {
  it('fills in the documented defaults for a message', () => {
    const { pub_props: properties, id, ...columns } = testColumns('any/topic', CONTEXT);
    assert.match(String(id), /^[0-9A-F]+$/);
    assert.equal(typeof properties, 'object');
    assert.deepEqual(columns, {
      event: 'message.publish',
      clientid: 'c_emqx',
      username: 'u_emqx',
      payload: '{"msg": "hello"}',
      peerhost: '192.168.0.10',
      topic: 't/a',
      qos: 1,
      flags: {},
      headers: {},
      publish_received_at: CONTEXT.now,
      timestamp: CONTEXT.now,
      node: 'node-1'
    });
  });

  it('fills in the documented defaults for a client', () => {
    const { conn_props: properties, ...columns } = testColumns('$events/client_connected', CONTEXT);
    assert.equal(typeof properties, 'object');
    assert.deepEqual(columns, {
      event: 'client.connected',
      clientid: 'c_emqx',
      username: 'u_emqx',
      peername: '192.168.0.10:56431',
      sockname: '0.0.0.0:1883',
      proto_name: 'MQTT',
      proto_ver: 5,
      keepalive: 60,
      clean_start: true,
      expiry_interval: 3600,
      is_bridge: false,
      receive_maximum: 32,
      connected_at: CONTEXT.now,
      timestamp: CONTEXT.now,
      node: 'node-1'
    });
  });

  it('names the publisher and the receiver of a delivery', () => {
    const columns = testColumns('$events/message_delivered', CONTEXT);
    const { from_clientid, from_username, clientid, username } = columns;
    assert.deepEqual([from_clientid, from_username], ['c_emqx_1', 'u_emqx_1']);
    assert.deepEqual([clientid, username], ['c_emqx_2', 'u_emqx_2']);
  });

  it('provides a reason that fits the event', () => {
    const reasons = ['client_disconnected', 'message_dropped', 'delivery_dropped', 'client_connack'].map((event) => {
      const { reason, reason_code: code } = testColumns(`$events/${event}`, CONTEXT);
      return reason ?? code;
    });
    assert.deepEqual(reasons, ['normal', 'no_subscribers', 'queue_full', 'success']);
  });

  it('uses the columns of the event with which the topic begins', () => {
    assert.equal(testColumns('$events/session_subscribed/x', CONTEXT).event, 'session.subscribed');
    assert.equal(testColumns('$events/message_publish', CONTEXT).event, 'message.publish');
    assert.equal(testColumns('$events/unknown', CONTEXT).event, 'message.publish');
  });

  it('provides a value for each column except the mount point', () => {
    for (const { name, topic, names } of Object.values(RULE_EVENTS)) {
      const columns = testColumns(topic, CONTEXT);
      const absent = names.filter((column) => columns[column] === undefined);
      assert.deepEqual(absent, name === 'client.connected' ? ['mountpoint'] : [], name);
    }
  });
});

describe('The list of events', () => {
  it('begins with the eight documented events, in order', () => {
    assert.deepEqual(
      ruleEventInfos().map(({ event }) => event),
      [
        ...['$events/message_publish', '$events/message_delivered', '$events/message_acked', '$events/message_dropped'],
        ...['$events/client_connected', '$events/client_disconnected'],
        ...['$events/session_subscribed', '$events/session_unsubscribed'],
        ...['$events/delivery_dropped', '$events/client_connack', '$events/client_check_acl_complete'],
        ...['$events/alarm_activated', '$events/alarm_deactivated']
      ]
    );
  });

  it('contains the columns of a form for tests, each with its default', () => {
    const forms = Object.fromEntries(
      ruleEventInfos().map(({ event, testColumns: columns }) => [event.slice('$events/'.length), columns])
    );
    const client = { clientid: 'c_emqx', username: 'u_emqx' };
    const message = { ...client, topic: 't/a', qos: 1, payload: '{"msg": "hello"}' };
    const delivery = {
      ...{ from_clientid: 'c_emqx_1', from_username: 'u_emqx_1' },
      ...{ ...message, clientid: 'c_emqx_2', username: 'u_emqx_2' }
    };
    const subscription = { ...client, topic: 't/a', qos: 1 };
    const alarm = {
      ...{ name: 'high_memory_usage', severity: 'warning', message: 'The process uses 91 % of its memory' }
    };
    assert.deepEqual(forms, {
      message_publish: message,
      message_delivered: delivery,
      message_acked: delivery,
      message_dropped: message,
      client_connected: { ...client, peername: '192.168.0.10:56431' },
      client_disconnected: { ...client, reason: 'normal' },
      session_subscribed: subscription,
      session_unsubscribed: subscription,
      delivery_dropped: { ...delivery, reason: 'queue_full' },
      client_connack: { ...client, reason_code: 'success' },
      client_check_acl_complete: { ...client, topic: 't/a', action: 'publish', result: 'allow' },
      alarm_activated: alarm,
      alarm_deactivated: alarm
    });
  });

  it('contains titles and descriptions in English and Chinese', () => {
    for (const { title, description } of ruleEventInfos()) {
      assert.match(title.en, /^[a-z ]+$/);
      assert.match(description.en, /^[A-Z].*\.$/);
      assert.match(title.zh, /\p{Script=Han}/u);
      assert.match(description.zh, /\p{Script=Han}.*。$/u);
    }
  });

  for (const { event, example } of ruleEventInfos())
    it(`contains a valid statement for ${event} that matches a test with the defaults`, async () => {
      await using kit = await createTestBroker();
      const { result, outputs } = await kit.broker.rules.test(example);
      assert.equal(result, 'matched');
      assert.equal(outputs.length, 1);
    });
});
