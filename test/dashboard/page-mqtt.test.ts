// The parts of the WebSocket client of the page that need no network.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { reasonName } from 'embermq';
import {
  delayBefore,
  isPassing,
  matchesFilter,
  PROPERTIES,
  payloadBytes,
  propertiesIn
} from '../../adapters/dashboard/page/model/mqtt.ts';
import {
  EMPTY_LOG,
  type LogRow,
  MAX_KEPT_BYTES,
  MAX_KEPT_TEXT,
  MAX_LOG,
  MAX_PROPERTIES,
  packetRow,
  resumedLog,
  withRows
} from '../../adapters/dashboard/page/model/mqtt-log.ts';
import { PROPERTIES as OF_PACKETS } from '../../lib/packets/property-table.ts';
import { matches } from '../../lib/topics/topic.ts';

describe('Forms of the WebSocket client', () => {
  it('offers a field for each property that a client may send in a packet', () => {
    for (const set of ['connect', 'will', 'publish', 'subscribe', 'unsubscribe', 'disconnect', 'auth'] as const) {
      const all = OF_PACKETS.filter(({ sets }) => sets.includes(set)).map(({ name }) => name);
      // the method of AUTH is that of the CONNECT
      const offered = set === 'auth' ? all.filter((name) => name !== 'authenticationMethod') : all;
      assert.deepEqual(Object.keys(PROPERTIES[set]).sort(), offered.sort(), set);
    }
  });

  it('reads properties from fields, and names the field of a value that is not valid', () => {
    const values = {
      'pub.messageExpiryInterval': '60',
      'pub.payloadFormatIndicator': '0',
      'pub.contentType': ' text ',
      'pub.correlationData': '0x00fF',
      'pub.userProperties': 'a=b=c\n\n=\r\n x = y',
      'pub.topicAlias': '',
      other: 'x'
    };
    assert.deepEqual(propertiesIn('publish', values, 'pub.'), {
      messageExpiryInterval: 60,
      payloadFormatIndicator: 0,
      contentType: ' text ',
      correlationData: Uint8Array.of(0, 255),
      userProperties: [
        ['a', 'b=c'],
        ['', ''],
        [' x ', ' y']
      ]
    });
    assert.equal(propertiesIn('publish', { 'pub.topicAlias': '' }, 'pub.'), undefined);
    assert.deepEqual(propertiesIn('subscribe', { subscriptionIdentifier: '7' }, ''), { subscriptionIdentifier: [7] });
    for (const [name, value] of [
      ['receiveMaximum', '1.5'],
      ['receiveMaximum', '-1'],
      ['receiveMaximum', 'many'],
      ['userProperties', 'no equals sign'],
      ['authenticationData', '0x123']
    ])
      assert.throws(() => propertiesIn('connect', { [name]: value }, ''), { field: name }, value);
  });

  it('reads payloads as text, JSON, hexadecimal and base64', () => {
    const read = (form: Parameters<typeof payloadBytes>[0], text: string) => [...payloadBytes(form, text, 'p')];
    assert.deepEqual(read('text', 'ä'), [0xc3, 0xa4]);
    assert.deepEqual(read('json', '{ "a": 1.0 }'), [...Buffer.from('{ "a": 1.0 }')]);
    assert.deepEqual(read('hex', '0x00, FF:0a\n01'), [0, 255, 10, 1]);
    assert.deepEqual(read('base64', 'AP8\n='), [0, 255]);
    for (const form of ['text', 'json', 'hex', 'base64'] as const) assert.deepEqual(read(form, ''), []);
    for (const [form, text] of [
      ['json', '{'],
      ['hex', '0g'],
      ['hex', '012'],
      ['base64', '%']
    ] as const)
      assert.throws(() => read(form, text), { field: 'p' }, `${form} ${text}`);
  });

  it('finds the subscriptions of a topic as the broker does', () => {
    const filters = ['#', '+', 'a', 'a/#', 'a/+', '+/b', 'a//b', '+/+/+', '/', '$SYS/#', 'a/b/#', '+/#'];
    for (const filter of filters)
      for (const topic of ['a', 'a/b', 'a//b', '/', '', 'a/', '$SYS/x', '$SYS', 'b/b', 'a/b/c'])
        if (topic !== '') assert.equal(matchesFilter(filter, topic), matches(filter, topic), `${filter} ${topic}`);
    assert.equal(matchesFilter('$share/group/a/+', 'a/b'), true);
  });

  it('connects again after causes that end on their own, later with each attempt', () => {
    assert.deepEqual([undefined, 0x89, 0x8b, 0x86, 0x87, 0x8a, 0x8e, 0x98].map(isPassing), [
      true,
      true,
      true,
      false,
      false,
      false,
      false,
      false
    ]);
    assert.deepEqual([1, 2, 5, 100].map(delayBefore), [1_000, 2_000, 30_000, 30_000]);
  });
});

describe('The log of the WebSocket client', () => {
  const row = (number: number) => ({ number }) as LogRow;

  it('keeps the last rows, and holds new ones while it is paused', () => {
    const many = Array.from({ length: MAX_LOG + 3 }, (_, number) => row(number));
    const full = withRows(EMPTY_LOG, many, false);
    assert.deepEqual([full.rows.length, full.rows[0].number], [MAX_LOG, 3]);
    const paused = withRows(full, [row(1_000)], true);
    assert.deepEqual([paused.rows, paused.held.length], [full.rows, 1]);
    assert.equal(withRows(paused, many, true).held.length, MAX_LOG);
    const resumed = resumedLog(paused);
    assert.deepEqual([resumed.rows.length, resumed.rows.at(-1)?.number, resumed.held], [MAX_LOG, 1_000, []]);
  });

  it('describes packets with reason codes in words, without passwords and authentication data', () => {
    const text = (packet: Parameters<typeof packetRow>[1]) => packetRow('sent', packet, reasonName).text;
    const connect = {
      cmd: 'connect',
      protocolVersion: 5,
      clientId: 'c',
      clean: true,
      keepalive: 60,
      username: 'u',
      password: Buffer.from('secret'),
      properties: { authenticationData: Buffer.from('secret'), topicAliasMaximum: 3, sessionExpiryInterval: 60 }
    };
    const { text: said, properties } = packetRow('sent', connect, reasonName);
    assert.equal(said, 'MQTT 5, client id c, new session, keep alive 60 s, user name u, with a password');
    assert.deepEqual(properties, [
      ['Authentication Data', '6 bytes'],
      ['Topic Alias Maximum', '3'],
      ['Session Expiry Interval', '60 s']
    ]);
    assert.equal(text({ cmd: 'puback', messageId: 3, reasonCode: 0x87 }), 'not authorized (0x87), packet id 3');
    assert.equal(
      text({ cmd: 'suback', messageId: 1, granted: [2, 0x8f] }),
      'granted QoS 2, topic filter invalid (0x8f), packet id 1'
    );
    assert.equal(packetRow('received', { cmd: 'suback', granted: [0x80] }, reasonName).isBad, true);
    assert.equal(
      text({
        cmd: 'subscribe',
        messageId: 1,
        subscriptions: [{ topic: 'a/#', qos: 1, noLocal: true, retainHandling: 2 }]
      }),
      'a/# QoS 1 No Local Retain Handling 2, packet id 1'
    );
  });

  it('keeps the beginning of a large payload, and its size', () => {
    const payload = new Uint8Array(MAX_KEPT_BYTES + 1);
    const { payload: kept, payloadBytes: all } = packetRow(
      'received',
      { cmd: 'publish', topic: 'a', payload, qos: 0 },
      reasonName
    );
    assert.deepEqual([kept?.length, all], [MAX_KEPT_BYTES, MAX_KEPT_BYTES + 1]);
    assert.notEqual(kept?.buffer, payload.buffer);
  });

  it('keeps the bytes of a payload and not the buffer around them, which holds all packets of a read', () => {
    const payload = Buffer.alloc(1_000_000).subarray(10, 20);
    const { payload: kept } = packetRow('received', { cmd: 'publish', topic: 'a', payload, qos: 0 }, reasonName);
    assert.deepEqual([kept?.length, kept?.buffer.byteLength], [10, 10]);
  });

  it('cuts long properties, and counts those beyond the first', () => {
    const userProperties = Array.from({ length: 100 }, (_, at) => [`${at}`, 'x'.repeat(65_000)] as const);
    const { properties } = packetRow('received', { cmd: 'puback', properties: { userProperties } }, reasonName);
    assert.equal(properties.length, MAX_PROPERTIES + 1);
    assert.equal(properties[0][1], `${'x'.repeat(MAX_KEPT_TEXT)}… and 63,976 more characters`);
    assert.deepEqual(properties.at(-1), ['Further properties', '68']);
  });
});
