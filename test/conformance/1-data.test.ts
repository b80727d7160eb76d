import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import { connectPacket, type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, payloads, publish, refused, startBroker, subscribe, unsubscribe } from '../support/wire.ts';
import { type ConnectParts, connectBytes, field, frame, sized } from '../support/wire-connect.ts';

/**
 * Ill-formed UTF-8: stray and missing continuation bytes, overlong forms, surrogates, code points beyond U+10FFFF, bytes that are never
 * valid.
 */
const ILL_FORMED = [
  '80',
  '61ff',
  'fe',
  'c3',
  'c328',
  'e28228',
  'e282',
  'f09f98',
  'c080',
  'c1bf',
  'e08080',
  'e09fbf',
  'f0808080',
  'f08fbfbf',
  'eda080',
  'edbfbf',
  'eda081edb080',
  'f4908080',
  'f5808080',
  'f888808080'
].map((bytes) => Buffer.from(bytes, 'hex'));

const NULS = ['00', '6100', '006100', 'e282ac00'].map((bytes) => Buffer.from(bytes, 'hex'));

const FIRST = { connect: 0x10, publish: 0x30, qos1: 0x32, subscribe: 0x82, unsubscribe: 0xa2, disconnect: 0xe0 };
const ID = Buffer.from([0, 1]);
const NONE = Buffer.from([0]);
const x = field('x');

/** Encodes a property with this id and a string value. */
function property(id: number, text: string | Buffer): Buffer {
  return Buffer.concat([Buffer.from([id]), field(text)]);
}

function pair(name: string | Buffer, value: string | Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x26]), field(name), field(value)]);
}

/** CONNECT packets, one for each string field, with `text` in that field. */
function connects(text: Buffer): Record<string, Buffer> {
  const make = (parts: ConnectParts) => connectBytes(parts);
  const will = (block: Buffer, topic: string | Buffer) => [sized(block), field(topic), x];
  const empty = Buffer.alloc(0);
  return {
    'client id': make({ clientId: text }),
    'user name': make({ flags: 0x82, payload: [field(text)] }),
    'will topic': make({ flags: 0x06, payload: will(empty, text) }),
    'authentication method': make({ properties: property(0x15, text) }),
    'user property name': make({ properties: pair(text, 'x') }),
    'user property value': make({ properties: pair('x', text) }),
    'will content type': make({ flags: 0x06, payload: will(property(0x03, text), 'x') }),
    'will response topic': make({ flags: 0x06, payload: will(property(0x08, text), 'x') }),
    'will user property name': make({ flags: 0x06, payload: will(pair(text, 'x'), 'x') }),
    'will user property value': make({ flags: 0x06, payload: will(pair('x', text), 'x') })
  };
}

/** The other packets that a client sends, one for each string field, with `text` in that field. */
function packets(text: Buffer): Record<string, Buffer> {
  const { publish, qos1, subscribe, unsubscribe, disconnect } = FIRST;
  return {
    'topic name': frame(publish, field(text), NONE, Buffer.from('payload')),
    'topic name at QoS 1': frame(qos1, field(text), ID, NONE),
    'content type': frame(publish, x, sized(property(0x03, text))),
    'response topic': frame(publish, x, sized(property(0x08, text))),
    'user property name': frame(publish, x, sized(pair(text, 'x'))),
    'user property value': frame(publish, x, sized(pair('x', text))),
    'topic filter': frame(subscribe, ID, NONE, field(text), NONE),
    'second topic filter': frame(subscribe, ID, NONE, x, NONE, field(text), NONE),
    'user property of SUBSCRIBE': frame(subscribe, ID, sized(pair('x', text)), x, NONE),
    'filter of UNSUBSCRIBE': frame(unsubscribe, ID, NONE, field(text)),
    'reason string of PUBACK': frame(0x40, ID, NONE, sized(property(0x1f, text))),
    'user property of PUBREC': frame(0x50, ID, NONE, sized(pair(text, 'x'))),
    'user property of PUBREL': frame(0x62, ID, NONE, sized(pair('x', text))),
    'user property of PUBCOMP': frame(0x70, ID, NONE, sized(pair('x', text))),
    'reason string of DISCONNECT': frame(disconnect, NONE, sized(property(0x1f, text))),
    'method of AUTH': frame(0xf0, Buffer.from([0x19]), sized(property(0x15, text)))
  };
}

async function refusedConnect(broker: Broker, bytes: Buffer, what: string): Promise<void> {
  const client = await rawClient(broker, { connect: false });
  client.send(bytes);
  const [connack, ...more] = await client.closed();
  assert.ok(connack?.cmd === 'connack', `${what}: no CONNACK`);
  assert.equal(connack.reasonCode, 0x81, `${what}: CONNACK 0x${connack.reasonCode.toString(16)}`);
  assert.deepEqual(more, []);
}

async function refusedPacket(broker: Broker, bytes: Buffer, what: string): Promise<void> {
  const client = await rawClient(broker);
  client.send(bytes);
  const before = await client.refused(0x81).catch((error: Error) => assert.fail(`${what}: ${error.message}`));
  assert.deepEqual(before, [], what);
}

async function eachString(texts: readonly Buffer[]): Promise<void> {
  await using broker = await startBroker();
  for (const text of texts) {
    const shown = text.toString('hex');
    for (const [what, bytes] of Object.entries(connects(text))) await refusedConnect(broker, bytes, `${what} ${shown}`);
    for (const [what, bytes] of Object.entries(packets(text))) await refusedPacket(broker, bytes, `${what} ${shown}`);
  }
  assert.deepEqual([...broker.sessions], []);
}

/** Checks that the broker closes a 3.x client without an answer. */
async function eachStringOf311(texts: readonly Buffer[]): Promise<void> {
  await using broker = await startBroker();
  for (const text of texts) {
    for (const parts of [
      { level: 4, clientId: text },
      { level: 4, flags: 0x82, payload: [field(text)] },
      { level: 4, flags: 0x06, payload: [field(text), x] },
      { level: 3, name: 'MQIsdp', clientId: text }
    ]) {
      const client = await rawClient(broker, { version: 4, connect: false });
      client.send(connectBytes(parts));
      assert.deepEqual(await client.closed(), [], text.toString('hex'));
    }
    for (const bytes of [
      frame(FIRST.publish, field(text), Buffer.from('payload')),
      frame(FIRST.qos1, field(text), ID),
      frame(FIRST.subscribe, ID, field(text), NONE),
      frame(FIRST.unsubscribe, ID, field(text))
    ]) {
      const client = await rawClient(broker, { version: 4 });
      client.send(bytes);
      assert.deepEqual(await client.refused(0x81), [], text.toString('hex'));
      assert.equal(client.received.length, 1);
    }
  }
}

/** Returns the payloads that a subscriber of `filter` receives when `topic` is published; neither string is changed. */
async function passes(broker: Broker, filter: string, topic: string): Promise<string[]> {
  const client: RawClient = await rawClient(broker);
  assert.deepEqual(await granted(client, 1, filter), [0]);
  client.send(publish(topic, 'payload'));
  const got = await payloads(client);
  client.cut();
  return got;
}

describe('Data representation', () => {
  it('[MQTT-1.5.4-1] closes with 0x81 for ill-formed UTF-8 in any string of any packet', () => eachString(ILL_FORMED));

  it('[MQTT-1.5.4-1] finds ill-formed UTF-8 at the end of a long string', async () => {
    await using broker = await startBroker();
    for (const length of [126, 127, 128, 129, 1000, 60_000]) {
      const text = Buffer.concat([Buffer.alloc(length, 'a'), Buffer.from('eda080', 'hex')]);
      for (const [what, bytes] of Object.entries(connects(text))) await refusedConnect(broker, bytes, what);
      for (const [what, bytes] of Object.entries(packets(text))) await refusedPacket(broker, bytes, what);
    }
  });

  it('[MQTT-1.5.4-1] finds ill-formed UTF-8 in a topic that follows valid messages to another topic in the same chunk', async () => {
    await using broker = await startBroker();
    const reader = await rawClient(broker);
    await granted(reader, 1, '#');
    const writer = await rawClient(broker);
    const good = frame(FIRST.publish, x, NONE, Buffer.from('1'));
    const bad = frame(FIRST.publish, field(Buffer.from('ff', 'hex')), NONE);
    writer.send(good, good, bad, good);
    await writer.refused(0x81);
    assert.deepEqual(await payloads(reader), ['1', '1']);
  });

  it('[MQTT-1.5.4-1] forwards every well-formed character unchanged', async () => {
    await using broker = await startBroker({ controlCharacters: 'allow' });
    // The bounds of each encoded length, the code points next to the surrogates, non-characters, and the last code point of Unicode.
    const codes = [0x01, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfdd0, 0xfffe, 0xffff, 0x10000, 0x10ffff];
    for (const code of codes) {
      const topic = `t/${String.fromCodePoint(code)}`;
      const client = await rawClient(broker);
      await granted(client, 1, topic);
      client.send(publish(topic, 'payload', { properties: { userProperties: [[topic, topic]] } }));
      const got = await client.next('publish');
      assert.equal(got.topic, topic);
      assert.deepEqual(got.properties?.userProperties, [[topic, topic]]);
      client.cut();
    }
  });

  it('[MQTT-1.5.4-2] closes with 0x81 for U+0000 in any string of any packet', () => eachString(NULS));

  it('[MQTT-1.5.4-3] keeps a byte order mark in topics, filters, properties and client ids', async () => {
    await using broker = await startBroker();
    assert.deepEqual(await passes(broker, '\uFEFFa', '\uFEFFa'), ['payload']);
    assert.deepEqual(await passes(broker, '\uFEFFa', 'a'), []);
    assert.deepEqual(await passes(broker, 'a', '\uFEFFa'), []);
    const client = await rawClient(broker, { clientId: '\uFEFFme' });
    const other = await rawClient(broker, { clientId: 'me' });
    await granted(client, 1, '#');
    other.send(
      publish('\uFEFF', '1', { properties: { contentType: '\uFEFFtext', userProperties: [['\uFEFF', '\uFEFF']] } })
    );
    const { topic, properties } = await client.next('publish');
    assert.equal(topic, '\uFEFF');
    assert.deepEqual(properties, { contentType: '\uFEFFtext', userProperties: [['\uFEFF', '\uFEFF']] });
    assert.ok(broker.sessions.has('\uFEFFme') && broker.sessions.has('me'));
  });

  it('[MQTT-1.5.5-1] closes with 0x81 for a variable byte integer that is longer than necessary or longer than four bytes', async () => {
    await using broker = await startBroker();
    const bad = {
      'remaining length 0 in two bytes': 'c0 80 00',
      'remaining length 0 in three bytes': 'c0 80 80 00',
      'remaining length 4 in two bytes': '30 84 00 0001 78 00',
      'remaining length of five bytes': 'c0 80 80 80 80 00',
      'remaining length of five bytes that say more': '30 ff ff ff ff 01',
      'property length 0 in two bytes': '30 06 0001 78 80 00 31',
      'property length 2 in two bytes': '30 07 0001 78 82 00 01 00',
      'property length of five bytes': '30 09 0001 78 80 80 80 80 01 00',
      'property id in two bytes': '30 07 0001 78 03 81 00 00',
      'subscription identifier 1 in two bytes': '82 0a 0001 03 0b 81 00 0001 78 00',
      'subscription identifier of five bytes': '82 0d 0001 06 0b ff ff ff ff 01 0001 78 00'
    };
    for (const [what, hex] of Object.entries(bad)) {
      await refusedPacket(broker, Buffer.from(hex.replaceAll(' ', ''), 'hex'), what);
    }
  });

  it('[MQTT-1.5.5-1] writes lengths of every size in the fewest bytes', async () => {
    await using broker = await startBroker();
    for (const bytes of [0, 122, 123, 124, 16_377, 16_378, 16_379, 16_380, 900_000]) {
      const client = await rawClient(broker);
      await granted(client, 1, 'x');
      // With a header for each receiver, and as a shared frame. The test client's reader refuses a length that could be shorter.
      for (const properties of [{ contentType: '' }, undefined]) {
        client.send(publish('x', Buffer.alloc(bytes, 1), { properties }));
        assert.equal((await client.next('publish')).payload.length, bytes);
      }
      client.cut();
    }
  });

  it('[MQTT-1.5.5-1] reads the smallest and largest lengths of one, two and three bytes', async () => {
    await using broker = await startBroker();
    for (const bytes of [122, 123, 16_378, 16_379, 900_000]) {
      const reader = await rawClient(broker);
      await granted(reader, 1, 'x');
      reader.send(frame(FIRST.publish, x, NONE, Buffer.alloc(bytes, 1)));
      assert.equal((await reader.next('publish')).payload.length, bytes);
      reader.cut();
    }
  });

  it('[MQTT-1.5.7-1] closes with 0x81 when the name or the value of a user property is truncated', async () => {
    await using broker = await startBroker();
    const name = Buffer.concat([Buffer.from([0x26]), field('name')]);
    const cut = Buffer.concat([name, Buffer.from([0, 9]), Buffer.from('value')]);
    for (const block of [name, cut, name.subarray(0, 4), Buffer.from([0x26])]) {
      await refusedConnect(broker, connectBytes({ properties: block }), block.toString('hex'));
      await refusedPacket(broker, frame(FIRST.publish, x, sized(block)), block.toString('hex'));
      await refusedPacket(broker, frame(FIRST.subscribe, ID, sized(block), x, NONE), block.toString('hex'));
    }
  });

  it('[MQTT-1.5.7-1] forwards user properties with empty names and values', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    client.send(subscribe(1, 'x'));
    await client.next('suback');
    const userProperties: [string, string][] = [
      ['', ''],
      ['a', ''],
      ['', 'b']
    ];
    client.send(publish('x', '', { properties: { userProperties } }));
    assert.deepEqual((await client.next('publish')).properties?.userProperties, userProperties);
  });

  it('[MQTT3-1.5.3-1] closes a 3.x connection without an answer for ill-formed UTF-8', () =>
    eachStringOf311(ILL_FORMED));

  it('[MQTT3-1.5.3-2] closes a 3.x connection without an answer for U+0000', () => eachStringOf311(NULS));
});

/** Characters of each kind that section 1.5.4 names: the first and last control characters, and non-characters of several planes. */
const CONTROLS = [0x01, 0x1f, 0x7f, 0x80, 0x9f, 0xfdd0, 0xfdef, 0xfffe, 0xffff, 0x1fffe, 0x10ffff].map((code) =>
  String.fromCodePoint(code)
);
/** The valid characters next to them. */
const PLAIN = [' ', '~', '\u00a0', '\ufdcf', '\ufdf0', '\ufffd', '\u{1fffd}', '\u{10fffd}', '\ufeff', '\u200b'];

describe('control characters and non-characters (MQTT 5.0 section 1.5.4, option controlCharacters)', () => {
  for (const version of [4, 5] as const) {
    it(`ends the connection (0x81) when control characters are in a topic name or a filter, version ${version}`, async () => {
      await using broker = await startBroker();
      for (const text of CONTROLS) {
        const topic = `a/${text}b`;
        for (const packet of [
          publish(topic, 'x'),
          publish(topic, 'x', { qos: 1, messageId: 1 }),
          publish(topic, 'x', { qos: 2, messageId: 1, retain: true }),
          subscribe(1, ['fine', topic]),
          unsubscribe(1, 'fine', topic)
        ]) {
          const client = await rawClient(broker, { version });
          client.send(packet);
          await client.refused(0x81).then((before) => assert.deepEqual(before, [], JSON.stringify(topic)));
        }
      }
      assert.equal(broker.metrics.counter('messages.received'), 0);
    });

    it(`refuses control characters (0x81) in client ids, user names and will topics, version ${version}`, async () => {
      await using broker = await startBroker();
      const will = { payload: Buffer.alloc(0), qos: 0, retain: false } as const;
      for (const text of CONTROLS) {
        for (const given of [{ clientId: `c${text}` }, { username: text }, { will: { topic: `w/${text}`, ...will } }]) {
          const client = await rawClient(broker, { version, connect: false });
          client.send(connectPacket({ version, ...given }));
          const [connack] = await client.closed();
          assert.equal(
            version === 5 ? connack?.cmd === 'connack' && connack.reasonCode : connack,
            version === 5 ? 0x81 : undefined
          );
        }
      }
      assert.deepEqual([...broker.sessions], []);
    });
  }

  it('refuses control characters (0x81) in response topics, which a client that answers would publish to', async () => {
    await using broker = await startBroker({ zones: { open: { controlCharacters: 'allow' } } });
    const reader = await rawClient(broker);
    await granted(reader, 1, 'ask');
    for (const text of CONTROLS) {
      const properties = { responseTopic: `r/${text}` };
      for (const flow of [{}, { qos: 1, messageId: 1 } as const]) {
        const client = await rawClient(broker);
        client.send(publish('ask', 'x', { ...flow, properties }));
        await client.refused(0x81);
      }
      const willed = await rawClient(broker, { connect: false });
      const will = { topic: 'w', payload: Buffer.alloc(0), qos: 0, retain: false, properties } as const;
      willed.send(connectPacket({ will }));
      const [connack] = await willed.closed();
      assert.equal(connack?.cmd === 'connack' && connack.reasonCode, 0x81);
    }
    for (const [zone, text] of [
      ['open', CONTROLS[0]],
      ['external', PLAIN[3]]
    ]) {
      const client = await rawClient(broker, { meta: { zone } });
      client.send(publish('ask', zone, { properties: { responseTopic: `r/${text}` } }));
      assert.deepEqual(await payloads(reader), [zone]);
    }
  });

  it('accepts control characters where the zone allows them, and refuses them from clients of other zones', async () => {
    await using broker = await startBroker({ zones: { open: { controlCharacters: 'allow' } } });
    const open = await rawClient(broker, { clientId: 'o\u0001', username: '\u0085', meta: { zone: 'open' } });
    for (const text of CONTROLS) {
      await granted(open, 1, text);
      // The second time, both zones use the cached route.
      for (const payload of ['1', '2', '3']) open.send(publish(text, payload));
      assert.deepEqual(await payloads(open), ['1', '2', '3']);
      for (const qos of [0, 1] as const) {
        const client = await rawClient(broker);
        client.send(publish('fine', 'x'), publish(text, 'x', { qos, messageId: qos === 1 ? 1 : undefined }));
        await client.refused(0x81);
      }
    }
    await open.nothing();
  });

  it('ends the connection for control characters under a mount point, in a rewritten topic, and after valid messages of the same chunk', async () => {
    for (const options of [{ mountpoint: 'm/' }, { rewrite: ['old/# ^old/(.+)$ new/$1'] }, {}]) {
      await using broker = await startBroker(options);
      const reader = await rawClient(broker);
      await granted(reader, 1, '#');
      for (const topic of ['old/\u0001', '\u0001']) {
        const client = await rawClient(broker);
        client.send(publish('fine', '1'), publish('fine', '2'), publish(topic, '3'), publish('fine', '4'));
        await client.refused(0x81);
        assert.deepEqual(await payloads(reader), ['1', '2']);
      }
    }
  });

  it('names the code points of control characters in the Reason String', async () => {
    await using broker = await startBroker();
    for (const [text, shown] of [
      ['\u0085', 'U+0085'],
      ['\u{10ffff}', 'U+10FFFF']
    ]) {
      const client = await rawClient(broker);
      client.send(publish(`a${text}`));
      assert.ok((await refused(client, 0x81))?.startsWith(`topic name: contains ${shown};`));
    }
  });

  it('accepts the characters next to control characters, and accepts control characters in other strings', async () => {
    await using broker = await startBroker();
    for (const text of PLAIN) {
      const client = await rawClient(broker, { clientId: `c${text}`, username: text });
      await granted(client, 1, `a${text}`);
      const properties = { contentType: '\u0001', userProperties: [['\u007f', '\uffff']] as [string, string][] };
      client.send(publish(`a${text}`, '\u0001', { properties }));
      const got = await client.next('publish');
      assert.deepEqual([got.topic, got.properties], [`a${text}`, properties]);
    }
  });
});
