import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import type { Clock } from '../../lib/base/clock.ts';
import { type Client, connectClient } from '../../lib/client/client.ts';
import { duplexPair } from '../../lib/client/duplex.ts';
import type { ClientOptions, ReceivedMessage, Refused } from '../../lib/client/options.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import type { Packet, Properties, ProtocolVersion } from '../../lib/packets/types.ts';

const immediate = () => new Promise((resolve) => setImmediate(resolve));

/** A scripted server: it sends the packets of the test and records the packets that it receives. */
class Peer {
  readonly got: Packet[] = [];
  readonly stream: Duplex;
  readonly clientEnd: Duplex;
  readonly version: ProtocolVersion;

  constructor(version: ProtocolVersion = 5) {
    [this.stream, this.clientEnd] = duplexPair();
    this.version = version;
    const reader = new PacketReader({ side: 'server' });
    this.stream.on('data', (chunk: Buffer) => this.got.push(...reader.push(chunk)));
    this.stream.on('error', () => {});
  }

  send(...packets: Packet[]): void {
    this.stream.write(Buffer.concat(packets.map((packet) => encode(packet, this.version))));
  }

  connack(properties?: Properties, sessionPresent = false): void {
    this.send({ cmd: 'connack', sessionPresent, reasonCode: 0, properties });
  }

  publish(topic: string, payload: string, qos: 0 | 1 | 2 = 0, messageId?: number, properties?: Properties): void {
    this.send({
      cmd: 'publish',
      topic,
      payload: Buffer.from(payload),
      qos,
      dup: false,
      retain: false,
      messageId,
      properties
    });
  }

  cmds(): string[] {
    return this.got.map(({ cmd }) => cmd);
  }
}

async function connected(
  options: ClientOptions = {},
  connack: Properties = {},
  sessionPresent = false
): Promise<{ peer: Peer; client: Client }> {
  const peer = new Peer(options.protocolVersion);
  const connecting = connectClient(peer.clientEnd, { clientId: 'c', ...options });
  peer.connack(options.protocolVersion === 4 ? undefined : connack, sessionPresent);
  const client = await connecting;
  await immediate();
  peer.got.length = 0;
  return { peer, client };
}

/** Two connected streams that allow half-open connections. */
function halfOpenPair(): [Duplex, Duplex] {
  const make = (other: () => Duplex) =>
    new Duplex({
      allowHalfOpen: true,
      read() {},
      write: (chunk, _encoding, done) => {
        other().push(chunk);
        done();
      },
      final: (done) => {
        other().push(null);
        done();
      }
    });
  const one: Duplex = make(() => two);
  const two: Duplex = make(() => one);
  return [one, two];
}

const hasCode = (code: string, reasonCode?: number) => (error: unknown) => {
  assert.equal((error as Refused).code, code, String(error));
  if (reasonCode !== undefined) assert.equal((error as Refused).reasonCode, reasonCode);
  return true;
};

describe('the options of client.subscribe', () => {
  it('refuses unknown options with OPTION_UNKNOWN', async () => {
    const { client, peer } = await connected();
    await assert.rejects(client.subscribe('a', { nl: true } as object), hasCode('OPTION_UNKNOWN'));
    await assert.rejects(client.subscribe([{ topic: 'a', rh: 1 } as { topic: string }]), hasCode('OPTION_UNKNOWN'));
    await immediate();
    assert.deepEqual(peer.cmds(), [], 'nothing was sent');
    client.destroy();
  });

  it('uses the default for an option that is undefined', async () => {
    const { client, peer } = await connected();
    const subscribing = client.subscribe(['a', { topic: 'b', qos: undefined }], { qos: undefined });
    await immediate();
    peer.send({ cmd: 'suback', messageId: 1, granted: [0, 0] });
    assert.deepEqual(await subscribing, [0, 0]);
    const withDefault = client.subscribe([{ topic: 'b', qos: undefined }], { qos: 1 });
    await immediate();
    const sent = peer.got.at(-1);
    assert.equal(sent?.cmd === 'subscribe' && sent.subscriptions[0].qos, 1);
    peer.send({ cmd: 'suback', messageId: 2, granted: [1] });
    assert.deepEqual(await withDefault, [1]);
    client.destroy();
  });
});

describe('client.unsubscribe', () => {
  it('refuses unknown options with OPTION_UNKNOWN', async () => {
    const { client, peer } = await connected();
    const unsubscribing = client.unsubscribe('a', { userProperties: [] } as object);
    await assert.rejects(unsubscribing, { code: 'OPTION_UNKNOWN', message: /"userProperties" in unsubscribe/ });
    await immediate();
    assert.deepEqual(peer.cmds(), [], 'nothing was sent');
    client.destroy();
  });
});

describe('client.disconnect', () => {
  it('refuses unknown options and invalid reason codes with OPTION_UNKNOWN and OPTION_INVALID', async () => {
    const { client, peer } = await connected();
    const message = 'unknown option "reasoncode" in disconnect; did you mean "reasonCode"?';
    await assert.rejects(client.disconnect({ reasoncode: 4 } as object), { code: 'OPTION_UNKNOWN', message });
    for (const reasonCode of [-1, 256, 1.5, '4']) {
      const disconnecting = client.disconnect({ reasonCode: reasonCode as number });
      await assert.rejects(disconnecting, { code: 'OPTION_INVALID', field: 'reasonCode' });
    }
    await immediate();
    assert.deepEqual(peer.cmds(), [], 'nothing was sent');
    assert.ok(client.isConnected);
    client.destroy();
  });
});

describe('client.messages', () => {
  it('refuses unknown options with OPTION_UNKNOWN', async () => {
    const { client } = await connected();
    const message = 'unknown option "highWatermark" in messages; did you mean "highWaterMark"?';
    assert.throws(() => client.messages({ highWatermark: 5 } as object), { code: 'OPTION_UNKNOWN', message });
    client.destroy();
  });

  it('refuses a highWaterMark that is not a number of at least 1 with OPTION_INVALID', async () => {
    const { client } = await connected();
    for (const highWaterMark of [0, -1, NaN, '5', null]) {
      const messages = () => client.messages({ highWaterMark: highWaterMark as number });
      assert.throws(messages, { code: 'OPTION_INVALID', field: 'highWaterMark', got: highWaterMark });
    }
    client.messages({ highWaterMark: Infinity });
    client.destroy();
  });

  it('refuses a signal that is not an AbortSignal with OPTION_INVALID', async () => {
    const { client } = await connected();
    const messages = () => client.messages({ signal: new AbortController() as never });
    assert.throws(messages, { code: 'OPTION_INVALID', field: 'signal' });
    client.destroy();
  });
});

describe('client.connack and CONNECT_REFUSED', () => {
  const RETURN_CODES = [
    [1, 0x84],
    [2, 0x85],
    [3, 0x88],
    [4, 0x86],
    [5, 0x87]
  ] as const;
  for (const [returnCode, reasonCode] of RETURN_CODES) {
    it(`rejects with 0x${reasonCode.toString(16)} for the return code ${returnCode} of 3.x (CONNECT_REFUSED)`, async () => {
      for (const protocolVersion of [3, 4] as const) {
        const peer = new Peer(protocolVersion);
        const connecting = connectClient(peer.clientEnd, { clientId: 'c', protocolVersion });
        peer.stream.write(Buffer.from([0x20, 2, 0, returnCode]));
        await assert.rejects(connecting, hasCode('CONNECT_REFUSED', reasonCode));
      }
    });
  }

  it('returns the reason code 0 after connecting, and properties in MQTT 5.0 only', async () => {
    for (const protocolVersion of [3, 4, 5] as const) {
      const peer = new Peer(protocolVersion);
      const connecting = connectClient(peer.clientEnd, { clientId: 'c', protocolVersion });
      peer.connack(protocolVersion === 5 ? { receiveMaximum: 7 } : undefined);
      const { connack } = await connecting;
      assert.equal(connack.reasonCode, 0);
      assert.deepEqual(connack.properties, protocolVersion === 5 ? { receiveMaximum: 7 } : undefined);
      peer.stream.destroy();
    }
  });
});

describe('connectClient', () => {
  it('OPTION_INVALID: names the parameter if there is no stream', async () => {
    for (const stream of [undefined, null, 'localhost', 1883, {}]) {
      const refusal = { name: 'InvalidInput', code: 'OPTION_INVALID', field: 'stream' };
      await assert.rejects(connectClient(stream as unknown as Duplex), refusal);
    }
  });

  it('sends every field of the CONNECT and uses the assigned client id', async () => {
    const peer = new Peer();
    const connecting = connectClient(peer.clientEnd, {
      clean: false,
      keepalive: 30,
      username: 'u',
      password: 'p',
      will: { topic: 'w', payload: 'gone', qos: 1, retain: true, properties: { willDelayInterval: 5 } },
      sessionExpiry: Infinity,
      receiveMaximum: 7,
      properties: { userProperties: [['a', '1']] }
    });
    peer.connack({ assignedClientIdentifier: 'auto-1' });
    const client = await connecting;
    await immediate();
    const packet = peer.got[0];
    assert.ok(packet.cmd === 'connect');
    assert.equal(client.clientId, 'auto-1');
    assert.equal(packet.clean, false);
    assert.equal(packet.keepalive, 30);
    assert.equal(packet.username, 'u');
    assert.equal(packet.password?.toString(), 'p');
    assert.equal(packet.will?.payload.toString(), 'gone');
    assert.deepEqual(packet.will?.properties, { willDelayInterval: 5 });
    assert.deepEqual(packet.properties, {
      sessionExpiryInterval: 0xffff_ffff,
      requestResponseInformation: 1,
      receiveMaximum: 7,
      userProperties: [['a', '1']]
    });
    client.destroy();
  });

  it('rejects with the reason code of the CONNACK, or the translated return code of 3.1.1', async () => {
    for (const version of [4, 5] as const) {
      const peer = new Peer(version);
      const connecting = connectClient(peer.clientEnd, { clientId: 'c', protocolVersion: version });
      peer.send({ cmd: 'connack', sessionPresent: false, reasonCode: 0x87 });
      await assert.rejects(connecting, hasCode('CONNECT_REFUSED', 0x87));
      assert.ok(peer.clientEnd.destroyed);
    }
  });

  it('rejects if the stream ends before the CONNACK', async () => {
    const peer = new Peer();
    const connecting = connectClient(peer.clientEnd, { clientId: 'c' });
    peer.stream.destroy();
    await assert.rejects(connecting, hasCode('CONNECTION_CLOSED'));
  });

  it('rejects at once if the stream is destroyed, has failed or has ended', async () => {
    const destroyed = new Peer().clientEnd.destroy();
    await assert.rejects(connectClient(destroyed), hasCode('CONNECTION_CLOSED'));
    const failed = new Peer().clientEnd.on('error', () => {}).destroy(new Error('no route'));
    await new Promise((resolve) => failed.on('close', resolve));
    await assert.rejects(connectClient(failed), /is closed: no route/);
    const ended = halfOpenPair()[1].resume();
    ended.push(null);
    await once(ended, 'end');
    await assert.rejects(connectClient(ended), hasCode('CONNECTION_CLOSED'));
    const written = halfOpenPair()[1].end();
    await assert.rejects(connectClient(written), hasCode('CONNECTION_CLOSED'));
  });

  it('resumes a stream that was paused', async () => {
    const peer = new Peer();
    peer.clientEnd.pause();
    const connecting = connectClient(peer.clientEnd);
    peer.connack();
    (await connecting).destroy();
  });

  it('rejects with the reason of the signal and destroys the stream', async () => {
    const abort = new AbortController();
    const peer = new Peer();
    const connecting = connectClient(peer.clientEnd, { clientId: 'c', signal: abort.signal });
    const reason = new Error('enough');
    abort.abort(reason);
    await assert.rejects(connecting, (error) => error === reason);
    await assert.rejects(connectClient(new Peer().clientEnd, { signal: abort.signal }), (error) => error === reason);
    assert.ok(peer.clientEnd.destroyed);
  });

  it('answers the challenges of enhanced authentication and of a re-authentication', async () => {
    const peer = new Peer();
    const asked: string[] = [];
    const connecting = connectClient(peer.clientEnd, {
      clientId: 'c',
      properties: { authenticationMethod: 'M', authenticationData: Buffer.from('0') },
      onAuth: async ({ data }) => {
        asked.push(String(data));
        return Buffer.from(`re:${data}`);
      }
    });
    const challenge = (text: string) =>
      peer.send({
        cmd: 'auth',
        reasonCode: 0x18,
        properties: { authenticationMethod: 'M', authenticationData: Buffer.from(text) }
      });
    challenge('1');
    await immediate();
    challenge('2');
    await immediate();
    peer.connack({ authenticationMethod: 'M' });
    const client = await connecting;
    const again = client.reauthenticate(Buffer.from('x'));
    await immediate();
    challenge('3');
    await immediate();
    peer.send({ cmd: 'auth', reasonCode: 0, properties: { authenticationMethod: 'M' } });
    await again;
    assert.deepEqual(asked, ['1', '2', '3']);
    const data = peer.got.map(
      (packet) => `${packet.cmd} ${(packet as { properties?: Properties }).properties?.authenticationData}`
    );
    assert.deepEqual(data, ['connect 0', 'auth re:1', 'auth re:2', 'auth x', 'auth re:3']);
    client.destroy();
  });

  it('sends a reason string and user properties with AUTH, always with the method of the CONNECT', async () => {
    const peer = new Peer();
    const connecting = connectClient(peer.clientEnd, {
      properties: { authenticationMethod: 'M' },
      onAuth: (): Properties => ({
        authenticationData: Buffer.from('1'),
        reasonString: 'asked',
        authenticationMethod: 'other'
      })
    });
    peer.send({ cmd: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'M' } });
    await immediate();
    peer.connack({ authenticationMethod: 'M' });
    const client = await connecting;
    const again = client.reauthenticate({ userProperties: [['a', 'b']] });
    await immediate();
    peer.send({ cmd: 'auth', reasonCode: 0, properties: { authenticationMethod: 'M' } });
    await again;
    const sent = peer.got.filter(({ cmd }) => cmd === 'auth') as { readonly properties?: Properties }[];
    assert.deepEqual(
      sent.map(({ properties }) => ({ ...properties })),
      [
        { authenticationMethod: 'M', authenticationData: Buffer.from('1'), reasonString: 'asked' },
        { authenticationMethod: 'M', userProperties: [['a', 'b']] }
      ]
    );
    client.destroy();
  });
});

describe('options of a client', () => {
  const refusals: [string, object, string, RegExp][] = [
    ['keepalive', { keepalive: -1 }, 'OPTION_INVALID', /^keepalive: expected whole seconds from 0 to 65535, got -1$/],
    ['keepalive', { keepalive: 65_536 }, 'OPTION_INVALID', /^keepalive: /],
    ['keepalive', { keepalive: 1.5 }, 'OPTION_INVALID', /^keepalive: /],
    ['keepalive', { keepalive: '60' }, 'OPTION_INVALID', /^keepalive: /],
    ['sessionExpiry', { sessionExpiry: 'soon' }, 'DURATION_INVALID', /^sessionExpiry: /],
    ['sessionExpiry', { sessionExpiry: 1.5 }, 'OPTION_INVALID', /^sessionExpiry: expected whole seconds/],
    ['sessionExpiry', { sessionExpiry: 2 ** 32 }, 'OPTION_INVALID', /^sessionExpiry: /],
    ['protocolVersion', { protocolVersion: 6 }, 'OPTION_INVALID', /^protocolVersion: expected 3, 4 or 5, got 6$/],
    ['clientId', { clientId: 5 }, 'OPTION_INVALID', /^clientId: expected a string, got 5$/],
    ['username', { username: {} }, 'OPTION_INVALID', /^username: expected a string/],
    ['password', { password: 5 }, 'OPTION_INVALID', /^password: expected a string or Buffer, got "number"$/],
    ['will', { will: 'gone' }, 'OPTION_INVALID', /^will: expected \{ topic, payload \}, got "gone"$/],
    ['will', { will: {} }, 'OPTION_INVALID', /^will: expected \{ topic, payload \}/],
    ['will', { will: null }, 'OPTION_INVALID', /^will: /],
    ['will.qos', { will: { topic: 't', qos: 3 } }, 'OPTION_INVALID', /^will\.qos: expected 0, 1 or 2, got 3$/],
    ['will.retain', { will: { topic: 't', retain: 1 } }, 'OPTION_INVALID', /^will\.retain: expected true or false/],
    [
      'will.properties',
      { will: { topic: 't', properties: 5 } },
      'OPTION_INVALID',
      /^will\.properties: expected an object/
    ],
    [
      'retained',
      { will: { topic: 't', retained: true } },
      'OPTION_UNKNOWN',
      /unknown option "retained" in will.*"retain"\?/
    ],
    ['clean', { clean: 'no' }, 'OPTION_INVALID', /^clean: expected true or false, got "no"$/],
    [
      'acknowledge',
      { acknowledge: 'maunal' },
      'OPTION_INVALID',
      /^acknowledge: expected "auto" or "manual", got "maunal"$/
    ],
    ['receiveMaximum', { receiveMaximum: 0 }, 'OPTION_INVALID', /a whole number from 1 to 65535, got 0$/],
    ['receiveMaximum', { receiveMaximum: 65_536 }, 'OPTION_INVALID', /^receiveMaximum: /],
    ['maximumPacketSize', { maximumPacketSize: 0 }, 'OPTION_INVALID', /a whole number from 1 to 4294967295, got 0$/],
    ['maximumPacketSize', { maximumPacketSize: '1MB' }, 'OPTION_INVALID', /^maximumPacketSize: /],
    ['maximumPacketSize', { maximumPacketSize: 2 ** 32 }, 'OPTION_INVALID', /^maximumPacketSize: /],
    ['topicAliasMaximum', { topicAliasMaximum: NaN }, 'OPTION_INVALID', /a whole number from 0 to 65535, got NaN$/],
    ['topicAliasMaximum', { topicAliasMaximum: 65_536 }, 'OPTION_INVALID', /^topicAliasMaximum: /],
    ['properties', { properties: 'none' }, 'OPTION_INVALID', /^properties: expected an object, got "none"$/],
    ['onAuth', { onAuth: Buffer.from('x') }, 'OPTION_INVALID', /^onAuth: expected a function/],
    ['onReleased', { onReleased: true }, 'OPTION_INVALID', /^onReleased: expected a function/],
    ['session', { session: {} }, 'OPTION_INVALID', /^session: expected the `session` of a client/],
    ['clock', { clock: { now: Date.now } }, 'OPTION_INVALID', /^clock: expected an object with now, monotonic, /],
    ['signal', { signal: new AbortController() }, 'OPTION_INVALID', /^signal: expected an AbortSignal/],
    ['clientID', { clientID: 'x' }, 'OPTION_UNKNOWN', /unknown option "clientID".*did you mean "clientId"\?/]
  ];
  for (const [field, options, code, message] of refusals) {
    it(`refuses ${JSON.stringify(options)} with ${code} and destroys the stream`, async () => {
      const { stream, clientEnd } = new Peer();
      const closed = once(stream, 'close');
      await assert.rejects(connectClient(clientEnd, options), { code, field, message });
      await closed;
    });
  }

  for (const [sessionExpiry, seconds] of [
    ['1h', 3600],
    ['90s', 90],
    [7, 7],
    ['infinity', 0xffff_ffff],
    [Infinity, 0xffff_ffff]
  ] as const) {
    it(`accepts a session expiry of ${sessionExpiry}`, async () => {
      const peer = new Peer();
      const connecting = connectClient(peer.clientEnd, { clientId: 'c', sessionExpiry });
      peer.connack();
      const client = await connecting;
      const [connect] = peer.got;
      assert.equal(connect.cmd === 'connect' && connect.properties?.sessionExpiryInterval, seconds);
      client.destroy();
    });
  }
});

describe('client.on', () => {
  it('refuses an unknown event with a suggestion, and a listener that is not a function', async () => {
    const { client } = await connected();
    assert.throws(() => client.on('mesage' as 'message', () => undefined), {
      code: 'EVENT_UNKNOWN',
      message: /there is no event "mesage"; did you mean "message"\?/
    });
    assert.throws(() => client.on('close', 5 as never), { code: 'HANDLER_INVALID' });
    client.destroy();
  });
});

describe('client.publish', () => {
  it('refuses unknown options instead of ignoring them', async () => {
    const { client } = await connected();
    await assert.rejects(client.publish('a', 'x', { retained: true } as never), {
      code: 'OPTION_UNKNOWN',
      message: 'unknown option "retained" in publish; did you mean "retain"?'
    });
    await assert.rejects(client.publish('a', 'x', 1 as never), { code: 'OPTION_INVALID' });
    client.destroy();
  });

  it('rejects, and never throws, if a message cannot be published', async () => {
    const { peer, client } = await connected();
    for (const topic of ['a/#', '+', '', 'a\0b']) {
      await assert.rejects(client.publish(topic, 'x'), { code: 'TOPIC_NAME_INVALID', field: 'topic', got: topic });
    }
    for (const wrong of [undefined, null, 7, {}]) {
      const publishing = client.publish(wrong as unknown as string, 'x');
      await assert.rejects(publishing, { code: 'TOPIC_NAME_INVALID' });
    }
    await assert.rejects(client.publish('t', 7 as unknown as string));
    for (const qos of [3, -1, '1', null]) {
      const refused = { code: 'MESSAGE_INVALID', field: 'qos', message: /^qos: expected 0, 1 or 2, got / };
      await assert.rejects(client.publish('t', 'x', { qos: qos as 0 }), refused);
    }
    for (const [field, properties] of [
      ['properties', 7],
      ['properties', null],
      ['properties.contentType', { contentType: 7 }],
      ['properties.correlationData', { correlationData: 'text' }],
      ['properties.messageExpiryInterval', { messageExpiryInterval: -1 }],
      ['properties.payloadFormatIndicator', { payloadFormatIndicator: 7 }],
      ['properties.userProperties', { userProperties: { a: 'b' } }]
    ] as const)
      await assert.rejects(client.publish('t', 'x', { properties } as never), { code: 'MESSAGE_INVALID', field });
    await immediate();
    assert.deepEqual(peer.cmds(), []);
    await client.publish({ topic: '', payload: 'x', properties: { topicAlias: 1 } });
    await immediate();
    assert.deepEqual(peer.cmds(), ['publish'], 'an alias stands for the topic');
    client.destroy();
  });

  it('resolves QoS 0 at once, QoS 1 with PUBACK, QoS 2 with PUBCOMP', async () => {
    const { peer, client } = await connected();
    await client.publish('t', 'x');
    const one = client.publish('t', 'x', { qos: 1 });
    const two = client.publish({ topic: 't', payload: 'x', qos: 2 });
    await immediate();
    assert.deepEqual(peer.cmds(), ['publish', 'publish', 'publish']);
    peer.send({ cmd: 'puback', messageId: 1, reasonCode: 0x10 });
    assert.equal((await one).reasonCode, 0x10);
    peer.send({ cmd: 'pubrec', messageId: 2, reasonCode: 0 });
    await immediate();
    assert.deepEqual(peer.got.at(-1), { cmd: 'pubrel', messageId: 2, reasonCode: 0 });
    let isDone = false;
    void two.then(() => {
      isDone = true;
    });
    await immediate();
    assert.equal(isDone, false);
    peer.send({ cmd: 'pubcomp', messageId: 2, reasonCode: 0 });
    await two;
    client.destroy();
  });

  it('rejects with the reason code of a negative PUBACK or PUBREC and releases the packet id', async () => {
    const { peer, client } = await connected();
    const one = client.publish('t', 'x', { qos: 1 });
    const two = client.publish('t', 'x', { qos: 2 });
    await immediate();
    peer.send({ cmd: 'puback', messageId: 1, reasonCode: 0x87 }, { cmd: 'pubrec', messageId: 2, reasonCode: 0x97 });
    await assert.rejects(one, hasCode('PUBLISH_REFUSED', 0x87));
    await assert.rejects(two, hasCode('PUBLISH_REFUSED', 0x97));
    assert.equal(client.session.outgoing.size, 0);
    client.destroy();
  });

  it('rejects only the message that cannot be encoded and releases its packet id', async () => {
    const { peer, client } = await connected({}, { receiveMaximum: 1 });
    const properties = { contentType: 'x'.repeat(70_000) };
    const first = client.publish('t', 'x', { qos: 1 });
    const wrong = [0, 1, 2].map((qos) => client.publish('t', 'x', { qos: qos as 0, properties }));
    const last = client.publish('t', 'x', { qos: 1 });
    const refused = wrong.map((publishing) => assert.rejects(publishing));
    for (let messageId = 1; messageId <= 2; messageId++) {
      await immediate();
      const { cmd, ...packet } = peer.got.at(-1) as { cmd: string; messageId: number };
      assert.equal(cmd, 'publish');
      peer.send({ cmd: 'puback', messageId: packet.messageId, reasonCode: 0 });
    }
    await Promise.all([first, last, ...refused]);
    assert.equal(client.session.outgoing.size, 0);
    client.destroy();
  });

  it('rejects after destroy(), before the stream has closed', async () => {
    const { client } = await connected();
    client.destroy();
    assert.equal(client.isConnected, false);
    await assert.rejects(client.publish('t', 'x'), hasCode('NOT_CONNECTED'));
  });

  it("keeps no more messages in flight than the server's Receive Maximum, in order", async () => {
    const { peer, client } = await connected({}, { receiveMaximum: 2 });
    const all = [1, 2, 3, 4, 5].map((n) => client.publish('t', String(n), { qos: 1 }));
    await immediate();
    assert.equal(peer.got.length, 2);
    for (let n = 1; n <= 5; n++) {
      const packet = peer.got[n - 1];
      assert.ok(packet.cmd === 'publish');
      assert.equal(packet.payload.toString(), String(n));
      peer.send({ cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 });
      await immediate();
      assert.equal(peer.got.length, Math.min(5, n + 2));
    }
    await Promise.all(all);
    client.destroy();
  });

  it('rejects unacknowledged messages when the connection closes, and messages published afterwards', async () => {
    const { peer, client } = await connected();
    const one = client.publish('t', 'x', { qos: 1 });
    peer.stream.destroy();
    await assert.rejects(one, hasCode('CONNECTION_CLOSED'));
    await assert.rejects(client.publish('t', 'x'), hasCode('NOT_CONNECTED'));
  });

  it('waits at QoS 0 while the buffer of the stream is full, and rejects if the stream closes', async () => {
    const { peer, client } = await connected();
    peer.stream.pause();
    const settled: string[] = [];
    const publishing = Array.from({ length: 20 }, () =>
      client.publish('t', Buffer.alloc(20_000)).then(
        () => settled.push('sent'),
        (error) => settled.push(error.code)
      )
    );
    await immediate();
    assert.ok(settled.length < 10, `${settled.length} went at once`);
    peer.stream.resume();
    await Promise.all(publishing);
    assert.deepEqual(new Set(settled), new Set(['sent']));
    peer.stream.pause();
    for (let n = 0; n < 9; n++) void client.publish('t', Buffer.alloc(20_000)).catch(() => {});
    const stuck = client.publish('t', 'x');
    client.destroy();
    await assert.rejects(stuck, hasCode('CONNECTION_CLOSED'));
  });

  it('refuses a packet that is larger than the server accepts', async () => {
    const { client } = await connected({}, { maximumPacketSize: 50 });
    await assert.rejects(client.publish('t', 'x'.repeat(60)), hasCode('PACKET_TOO_LARGE'));
    client.destroy();
  });

  it('resends unacknowledged messages with DUP if the session is resumed, and discards them if not', async () => {
    const first = await connected();
    const lost = [
      first.client.publish('t', 'one', { qos: 1 }),
      first.client.publish('t', 'two', { qos: 2 }),
      first.client.publish('t', 'three', { qos: 2 })
    ].map((promise) => promise.catch(() => {}));
    await immediate();
    first.peer.send({ cmd: 'pubrec', messageId: 2, reasonCode: 0 });
    await immediate();
    first.peer.stream.destroy();
    await Promise.all(lost);

    const peer = new Peer();
    const connecting = connectClient(peer.clientEnd, { clientId: 'c', clean: false, session: first.client.session });
    peer.connack({}, true);
    const client = await connecting;
    await immediate();
    const repeated = peer.got
      .slice(1)
      .map((packet) => [packet.cmd, 'dup' in packet && packet.dup, 'messageId' in packet && packet.messageId]);
    assert.deepEqual(repeated, [
      ['publish', true, 1],
      ['pubrel', false, 2],
      ['publish', true, 3]
    ]);
    client.destroy();

    const fresh = new Peer();
    const next = connectClient(fresh.clientEnd, { clientId: 'c', session: client.session });
    fresh.connack({}, false);
    await next;
    await immediate();
    assert.deepEqual(fresh.cmds(), ['connect']);
    (await next).destroy();
  });
});

describe('client.subscribe', () => {
  it('returns the codes and calls the handler for matching messages, including those before the SUBACK', async () => {
    const { peer, client } = await connected();
    const heard: string[] = [];
    const granted = client.subscribe(
      ['a/+', { topic: '$share/g/b', qos: 1, noLocal: false, retainHandling: 2 }],
      { qos: 2, noLocal: true },
      (message) => heard.push(message.topic)
    );
    await immediate();
    const packet = peer.got[0];
    assert.ok(packet.cmd === 'subscribe');
    assert.deepEqual(packet.subscriptions.slice(0, 1), [
      { topic: 'a/+', qos: 2, noLocal: true, retainAsPublished: false, retainHandling: 0 }
    ]);
    peer.publish('a/1', 'early');
    peer.send({ cmd: 'suback', messageId: packet.messageId, granted: [2, 1] });
    peer.publish('b', 'x');
    peer.publish('c', 'x');
    assert.deepEqual(await granted, [2, 1]);
    await immediate();
    assert.deepEqual(heard, ['a/1', 'b']);
    client.destroy();
  });

  it('calls every handler of a filter until the handler is removed or the filter is unsubscribed', async () => {
    const { peer, client } = await connected();
    const heard: string[] = [];
    const [one, two] = ['one', 'two'].map((name) => (message: ReceivedMessage) => {
      heard.push(`${name} ${message.payload}`);
    });
    const answer = async <T>(asked: Promise<T>): Promise<T> => {
      await immediate();
      const { cmd, messageId } = peer.got.at(-1) as { cmd: string; messageId: number };
      peer.send({ cmd: cmd === 'subscribe' ? 'suback' : 'unsuback', messageId, granted: [0] });
      return asked;
    };
    await answer(client.subscribe('a', one));
    await answer(client.subscribe('a', { qos: 1 }, two));
    await answer(client.subscribe('a', two));
    peer.publish('a', '1');
    await immediate();
    assert.deepEqual(heard.splice(0), ['one 1', 'two 1'], 'a handler that hears the filter already is not added again');
    assert.deepEqual(await client.unsubscribe('a', one), [0]);
    assert.ok(!peer.cmds().includes('unsubscribe'), 'the other handler still needs the subscription');
    peer.publish('a', '2');
    await immediate();
    assert.deepEqual(heard.splice(0), ['two 2']);
    await answer(client.unsubscribe('a', two));
    assert.equal(peer.cmds().at(-1), 'unsubscribe');
    await answer(client.subscribe('a', one));
    const gone = client.unsubscribe('a');
    const anew = client.subscribe('a', two);
    await immediate();
    const [unsubscribe, subscribe] = peer.got.slice(-2) as { messageId: number }[];
    peer.send({ cmd: 'unsuback', messageId: unsubscribe.messageId, granted: [0] });
    peer.send({ cmd: 'suback', messageId: subscribe.messageId, granted: [0] });
    await Promise.all([gone, anew]);
    peer.publish('a', '3');
    await immediate();
    assert.deepEqual(heard, ['two 3'], 'what was subscribed after the UNSUBSCRIBE is not taken away by its answer');
    client.destroy();
  });

  it('keeps the handlers of a subscription if a second SUBSCRIBE for it is refused or cannot be sent', async () => {
    const { peer, client } = await connected({}, { maximumPacketSize: 100 });
    const heard: string[] = [];
    const first = client.subscribe('a', () => heard.push('first'));
    await immediate();
    peer.send({ cmd: 'suback', messageId: 1, granted: [0] });
    await first;
    const second = client.subscribe('a', () => heard.push('second'));
    await immediate();
    peer.send({ cmd: 'suback', messageId: 2, granted: [0x87] });
    await second;
    const properties = { userProperties: [['x', 'y'.repeat(200)]] as [string, string][] };
    await assert.rejects(
      client.subscribe('a', { properties }, () => heard.push('third')),
      hasCode('PACKET_TOO_LARGE')
    );
    peer.publish('a', '');
    await immediate();
    assert.deepEqual(heard, ['first']);
    client.destroy();
  });

  it('rejects an invalid topic filter and an empty list of filters', async () => {
    const { peer, client } = await connected();
    for (const filters of [undefined, null, 7, {}, [], ['a', undefined], '', 'ab/+e', ['a', '$share/g']]) {
      await assert.rejects(client.subscribe(filters as never), hasCode('TOPIC_FILTER_INVALID'));
      await assert.rejects(client.unsubscribe(filters as never), hasCode('TOPIC_FILTER_INVALID'));
    }
    await immediate();
    assert.deepEqual(peer.cmds(), []);
    client.destroy();
  });

  it('removes the handler of a filter that was refused or unsubscribed', async () => {
    const { peer, client } = await connected();
    const heard: string[] = [];
    const granted = client.subscribe(['a', 'b'], ({ topic }) => heard.push(topic));
    await immediate();
    peer.send({ cmd: 'suback', messageId: 1, granted: [0, 0x87] });
    assert.deepEqual(await granted, [0, 0x87]);
    peer.publish('a', '');
    peer.publish('b', '');
    await immediate();
    const gone = client.unsubscribe('a');
    await immediate();
    peer.send({ cmd: 'unsuback', messageId: 2, granted: [0x11] });
    assert.deepEqual(await gone, [0x11]);
    peer.publish('a', '');
    await immediate();
    assert.deepEqual(heard, ['a']);
    client.destroy();
  });
});

describe('messages to a client', () => {
  it('acknowledges messages on receipt', async () => {
    const { peer, client } = await connected();
    peer.publish('t', '0');
    peer.publish('t', '1', 1, 11);
    peer.publish('t', '2', 2, 12);
    await immediate();
    assert.deepEqual(peer.got, [
      { cmd: 'puback', messageId: 11, reasonCode: 0 },
      { cmd: 'pubrec', messageId: 12, reasonCode: 0 }
    ]);
    client.destroy();
  });

  it('delivers QoS 2 messages exactly once', async () => {
    const { peer, client } = await connected();
    const heard: string[] = [];
    client.on('message', ({ payload }) => heard.push(payload.toString()));
    peer.publish('t', 'x', 2, 5);
    peer.publish('t', 'x', 2, 5);
    peer.send({ cmd: 'pubrel', messageId: 5, reasonCode: 0 });
    peer.publish('t', 'y', 2, 5);
    peer.send({ cmd: 'pubrel', messageId: 6, reasonCode: 0 });
    await immediate();
    assert.deepEqual(heard, ['x', 'y']);
    assert.deepEqual(peer.cmds(), ['pubrec', 'pubrec', 'pubcomp', 'pubrec', 'pubcomp']);
    assert.equal((peer.got[4] as { reasonCode: number }).reasonCode, 0x92);
    client.destroy();
  });

  it('acknowledges messages by ack() with the option acknowledge: "manual"', async () => {
    const { peer, client } = await connected({ acknowledge: 'manual' });
    const heard: ReceivedMessage[] = [];
    client.on('message', (message) => heard.push(message));
    peer.publish('t', 'x', 1, 1);
    peer.publish('t', 'x', 2, 2);
    await immediate();
    assert.deepEqual(peer.got, []);
    heard[1].ack();
    heard[0].ack(0x83);
    heard[0].ack();
    await immediate();
    assert.deepEqual(peer.got, [
      { cmd: 'pubrec', messageId: 2, reasonCode: 0 },
      { cmd: 'puback', messageId: 1, reasonCode: 0x83 }
    ]);
    client.destroy();
  });

  it('keeps all messages for the first listener with the option acknowledge: "manual", except QoS 0 beyond 1,000', async () => {
    const { peer, client } = await connected({ acknowledge: 'manual' });
    for (let id = 1; id <= 1_500; id++) {
      peer.publish('t', String(id), 1, id);
      peer.publish('t', 'plain');
    }
    await immediate();
    await immediate();
    const heard: ReceivedMessage[] = [];
    client.on('message', (message) => heard.push(message));
    const ids = heard.filter(({ qos }) => qos === 1).map(({ messageId }) => messageId);
    assert.deepEqual(
      ids,
      Array.from({ length: 1_500 }, (_, at) => at + 1)
    );
    assert.equal(heard.length, 1_500 + 500);
    client.destroy();
  });

  it('sends the PUBCOMP of QoS 2 messages when onReleased resolves, and closes the connection if it rejects', async () => {
    const waits: { readonly id: number; resolve(): void; reject(error: Error): void }[] = [];
    const onReleased = (id: number) => new Promise<void>((resolve, reject) => void waits.push({ id, resolve, reject }));
    const { peer, client } = await connected({ onReleased });
    let closed: Error | undefined;
    client.on('close', ({ error }) => {
      closed = error;
    });
    peer.publish('t', 'x', 2, 1);
    peer.send({ cmd: 'pubrel', messageId: 1, reasonCode: 0 });
    peer.send({ cmd: 'pubrel', messageId: 2, reasonCode: 0 });
    await immediate();
    assert.deepEqual(peer.cmds(), ['pubrec']);
    assert.deepEqual(
      waits.map(({ id }) => id),
      [1, 2]
    );
    waits[0].resolve();
    await immediate();
    assert.deepEqual(peer.got[1], { cmd: 'pubcomp', messageId: 1, reasonCode: 0 });
    waits[1].reject(new Error('disk full'));
    await once(peer.stream, 'close');
    assert.deepEqual([peer.got.length, closed?.message], [2, 'disk full']);
  });

  it('resolves topic aliases, and closes the connection with 0x94 for an unknown alias', async () => {
    const { peer, client } = await connected({ topicAliasMaximum: 2 });
    const heard: string[] = [];
    client.on('message', ({ topic, properties }) => heard.push(`${topic} ${properties.topicAlias}`));
    client.on('error', () => {});
    peer.publish('long', 'x', 0, undefined, { topicAlias: 2 });
    peer.publish('', 'x', 0, undefined, { topicAlias: 2 });
    await immediate();
    assert.deepEqual(heard, ['long undefined', 'long undefined']);
    peer.publish('', 'x', 0, undefined, { topicAlias: 1 });
    await once(peer.stream, 'close');
    assert.deepEqual(peer.got.at(-1), { cmd: 'disconnect', reasonCode: 0x94 });
    assert.equal(client.isConnected, false);
  });

  it('delivers messages to the first listener if they arrived before it was added', async () => {
    const { peer, client } = await connected();
    peer.publish('t', 'early');
    await immediate();
    const heard: string[] = [];
    client.on('message', ({ payload }) => heard.push(payload.toString()));
    client.on('message', ({ payload }) => heard.push(`second ${payload}`));
    peer.publish('t', 'late');
    await immediate();
    assert.deepEqual(heard, ['early', 'late', 'second late']);
    client.destroy();
  });

  it('iterates over messages until the connection ends', async () => {
    const { peer, client } = await connected();
    for (const n of [1, 2, 3]) peer.publish('t', String(n));
    peer.stream.end();
    const heard: string[] = [];
    for await (const { payload } of client.messages()) heard.push(payload.toString());
    assert.deepEqual(heard, ['1', '2', '3']);
  });

  it('iterates over messages until a signal aborts or the loop ends', async () => {
    const { peer, client } = await connected();
    const abort = new AbortController();
    const messages = client.messages({ signal: abort.signal });
    const next = messages.next();
    abort.abort(new Error('enough'));
    await assert.rejects(next, /enough/);
    const later = new AbortController();
    const unread = client.messages({ signal: later.signal });
    peer.publish('t', 'x');
    await immediate();
    later.abort(new Error('later'));
    await assert.rejects(unread.next(), /later/);
    assert.equal((await unread.next()).done, true);
    peer.publish('t', 'x');
    for await (const { payload } of client.messages()) {
      assert.equal(payload.toString(), 'x');
      break;
    }
    client.destroy();
  });

  it('reads no messages from the stream while an iterator is full, unless an operation waits for its response', async () => {
    const { peer, client } = await connected();
    const messages = client.messages({ highWaterMark: 2 });
    for (let n = 0; n < 40; n++) {
      peer.publish('t', 'x'.repeat(10_000));
      await immediate();
    }
    assert.ok(peer.stream.writableLength > 0, 'the peer has to wait');
    const publishing = client.publish('t', 'x', { qos: 1 });
    await immediate();
    peer.send({ cmd: 'puback', messageId: 1, reasonCode: 0 });
    await publishing;
    for (let n = 0; n < 40; n++) assert.equal((await messages.next()).done, false);
    await immediate();
    assert.equal(peer.stream.writableLength, 0);
    client.destroy();
  });
});

describe('a closing or failing client', () => {
  it('sends the code and properties on disconnect() and resolves when the stream is closed', async () => {
    const { peer, client } = await connected();
    peer.stream.resume();
    const events: unknown[] = [];
    client.on('close', ({ error }) => events.push(error));
    await client.disconnect({ reasonCode: 4, properties: { reasonString: 'bye' } });
    await client.disconnect();
    assert.deepEqual(peer.got, [{ cmd: 'disconnect', reasonCode: 4, properties: { reasonString: 'bye' } }]);
    assert.deepEqual(events, [undefined]);
  });

  it('closes when the server ends its side of a stream that allows half-open connections', async () => {
    const [server, clientEnd] = halfOpenPair();
    const connecting = connectClient(clientEnd);
    server.write(encode({ cmd: 'connack', sessionPresent: false, reasonCode: 0 }, 5));
    const client = await connecting;
    const waiting = client.ping();
    server.end();
    await assert.rejects(waiting, hasCode('CONNECTION_CLOSED'));
    assert.ok(clientEnd.destroyed);
  });

  it('closes when its stream fails without closing', async () => {
    const stream = new Duplex({
      autoDestroy: false,
      emitClose: false,
      read() {},
      write: (_chunk, _encoding, done) => done()
    });
    const connecting = connectClient(stream);
    stream.push(encode({ cmd: 'connack', sessionPresent: false, reasonCode: 0 }, 5));
    const client = await connecting;
    const told = new Promise<Error | undefined>((resolve) => client.on('close', ({ error }) => resolve(error)));
    const waiting = client.ping();
    stream.emit('error', new Error('line dead'));
    await assert.rejects(waiting, /is closed: line dead/);
    assert.equal((await told)?.message, 'line dead');
  });

  it('sends no DISCONNECT on destroy()', async () => {
    const { peer, client } = await connected();
    client.destroy();
    await once(peer.stream, 'close');
    assert.deepEqual(peer.got, []);
  });

  it("reports the server's DISCONNECT and its reason", async () => {
    const { peer, client } = await connected();
    const told: number[] = [];
    client.on('disconnect', ({ reasonCode }) => told.push(reasonCode));
    const publishing = client.publish('t', 'x', { qos: 1 });
    peer.send({ cmd: 'disconnect', reasonCode: 0x8e });
    await assert.rejects(publishing, /session taken over/);
    assert.deepEqual(told, [0x8e]);
  });

  it('passes errors thrown by a listener to the error listeners', async () => {
    const { peer, client } = await connected();
    const errors: string[] = [];
    client.on('error', (error) => errors.push(error.message));
    client.on('message', () => {
      throw new Error('mine');
    });
    peer.publish('t', '1', 1, 1);
    peer.publish('t', '2', 1, 2);
    await immediate();
    assert.deepEqual(errors, ['mine', 'mine']);
    assert.deepEqual(peer.cmds(), ['puback', 'puback']);
    client.destroy();
  });

  it('passes rejections of asynchronous listeners and handlers to the error listeners', async () => {
    const { peer, client } = await connected();
    const errors: string[] = [];
    client.on('error', (error) => errors.push(error.message));
    client.on('message', async () => {
      throw new Error('listener');
    });
    const subscribing = client.subscribe('t', async () => {
      throw new Error('handler');
    });
    await immediate();
    peer.send({ cmd: 'suback', messageId: 1, granted: [0] });
    await subscribing;
    peer.publish('t', '1', 1, 1);
    await immediate();
    await immediate();
    assert.deepEqual(errors.sort(), ['handler', 'listener']);
    assert.equal(client.isConnected, true);
    client.destroy();
  });

  it('causes an uncaught exception if an asynchronous listener rejects and there is no error listener', async () => {
    const { peer, client } = await connected();
    const before = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    const uncaught = new Promise<[Error, string]>((resolve) => {
      process.once('uncaughtException', (error, origin) => resolve([error, origin]));
    });
    try {
      client.on('message', async () => {
        throw new Error('unheard');
      });
      peer.publish('t', '1');
      const [error, origin] = await uncaught;
      assert.deepEqual([error.message, origin], ['unheard', 'uncaughtException']);
    } finally {
      for (const listener of before) process.on('uncaughtException', listener);
    }
    client.destroy();
  });

  it('closes when onAuth returns data that cannot be sent', async () => {
    const peer = new Peer();
    const connecting = connectClient(peer.clientEnd, {
      properties: { authenticationMethod: 'M' },
      onAuth: () => 7 as never
    });
    peer.send({ cmd: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'M' } });
    await assert.rejects(connecting, hasCode('CONNECTION_CLOSED'));
  });

  it('refuses a second re-authentication while the first is in progress', async () => {
    const { peer, client } = await connected({ properties: { authenticationMethod: 'M' } });
    const first = client.reauthenticate();
    await assert.rejects(client.reauthenticate(), hasCode('REAUTHENTICATION_UNDER_WAY'));
    peer.send({ cmd: 'auth', reasonCode: 0, properties: { authenticationMethod: 'M' } });
    await first;
    const last = client.reauthenticate();
    client.destroy();
    await assert.rejects(last, hasCode('CONNECTION_CLOSED'));
  });

  it('rejects if onAuth throws, and calls no listeners that were removed', async () => {
    const peer = new Peer();
    const connecting = connectClient(peer.clientEnd, {
      clientId: 'c',
      properties: { authenticationMethod: 'M' },
      onAuth: () => {
        throw new Error('no password');
      }
    });
    peer.send({ cmd: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'M' } });
    await assert.rejects(connecting, /no password/);

    const { peer: other, client } = await connected();
    const heard: string[] = [];
    const listener = ({ topic }: ReceivedMessage) => heard.push(topic);
    const tap = () => heard.push('packet');
    client.on('message', listener).on('packet', tap);
    other.publish('a', '');
    await immediate();
    client.off('message', listener).off('packet', tap);
    other.publish('b', '');
    await immediate();
    assert.deepEqual(heard, ['packet', 'a']);
    client.destroy();
  });

  it('emits packet for every packet', async () => {
    const { peer, client } = await connected();
    const seen: string[] = [];
    client.on('packet', ({ direction, packet }) => seen.push(`${direction} ${packet.cmd}`));
    void client.publish('t', 'x', { qos: 1 }).catch(() => {});
    await immediate();
    peer.send({ cmd: 'puback', messageId: 1, reasonCode: 0 });
    await immediate();
    assert.deepEqual(seen, ['sent publish', 'received puback']);
    client.destroy();
  });
});

describe('client.ping', () => {
  it('resolves with the PINGRESP, which follows the responses to all earlier packets', async () => {
    const { peer, client } = await connected();
    const answers: string[] = [];
    const asked = [1, 2].map((at) => client.ping().then(() => answers.push(`${at}`)));
    await immediate();
    assert.deepEqual(peer.cmds(), ['pingreq', 'pingreq']);
    assert.deepEqual(answers, []);
    peer.send({ cmd: 'pingresp' });
    await asked[0];
    assert.deepEqual(answers, ['1']);
    peer.send({ cmd: 'pingresp' });
    await asked[1];
    client.destroy();
  });

  it('rejects if the connection closes before the PINGRESP or is closed already', async () => {
    const { peer, client } = await connected();
    const asked = client.ping();
    peer.stream.destroy();
    await assert.rejects(asked, hasCode('CONNECTION_CLOSED'));
    await assert.rejects(client.ping(), hasCode('NOT_CONNECTED'));
  });
});

describe('the keep alive of a client', () => {
  function handClock() {
    let nowMs = 0;
    let timers: { dueMs: number; run: () => void }[] = [];
    const clock: Clock = {
      now: () => nowMs,
      monotonic: () => nowMs,
      setTimeout(run, delayMs) {
        const timer = { dueMs: nowMs + delayMs, run };
        timers.push(timer);
        return timer;
      },
      clearTimeout(timer) {
        timers = timers.filter((other) => other !== timer);
      }
    };
    const turn = async (ms: number) => {
      nowMs += ms;
      for (const timer of timers.filter(({ dueMs }) => dueMs <= nowMs)) {
        clock.clearTimeout(timer);
        timer.run();
      }
      await immediate();
    };
    return { clock, turn, armed: () => timers.length };
  }

  it('sends PINGREQ after the Server Keep Alive without a packet', async () => {
    const { clock, turn } = handClock();
    const { peer, client } = await connected({ keepalive: 60, clock }, { serverKeepAlive: 10 });
    await turn(6_000);
    await client.publish('t', 'x');
    await turn(4_000);
    assert.deepEqual(peer.cmds(), ['publish']);
    await turn(6_000);
    assert.deepEqual(peer.cmds(), ['publish', 'pingreq']);
    client.destroy();
  });

  it('does not time out while the stream is not read because an iterator is full', async () => {
    const { clock, turn } = handClock();
    const { peer, client } = await connected({ keepalive: 10, clock });
    const messages = client.messages({ highWaterMark: 1 });
    peer.publish('a', '1');
    await immediate();
    for (let pings = 0; pings < 3; pings++) await turn(10_000);
    assert.deepEqual(peer.cmds(), ['pingreq', 'pingreq', 'pingreq']);
    await messages.next();
    assert.equal(client.isConnected, true);
    for (let pings = 0; pings < 3; pings++) peer.send({ cmd: 'pingresp' });
    await immediate();
    await turn(10_000);
    assert.deepEqual(peer.cmds().length, 4);
    await turn(10_000);
    await immediate();
    assert.equal(client.isConnected, false, 'it times out once the stream is read again');
  });

  it('closes the connection if no PINGRESP arrives, and leaves no timer', async () => {
    const { clock, turn, armed } = handClock();
    const { peer, client } = await connected({ keepalive: 10, clock });
    await turn(10_000);
    peer.send({ cmd: 'pingresp' });
    await immediate();
    await turn(10_000);
    assert.deepEqual(peer.cmds(), ['pingreq', 'pingreq']);
    await turn(10_000);
    await immediate();
    assert.equal(client.isConnected, false);
    assert.equal(armed(), 0);
  });
});
