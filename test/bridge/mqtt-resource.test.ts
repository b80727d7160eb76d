// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are templates of rules
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { mqttBridge, rpcBridge } from '../../adapters/bridge/index.ts';
import { listen, tls, ws, wss } from '../../adapters/net/index.ts';
import { encode, PacketReader } from '../../lib/adapter.ts';
import { type BrokerOptions, createBroker, type Packet } from '../../lib/index.ts';
import { documentedParams } from '../../lib/rules/params.ts';
import type { Params } from '../../lib/rules/types.ts';
import type { Value } from '../../lib/sql/values.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { eventOf, type HostOptions, hostOf, type ResourceHost } from '../support/resource-host.ts';
import { until } from '../support/until.ts';
import { Mosquitto, withMosquitto } from './mosquitto.ts';
import { listener, server } from './pair.ts';

const REQUIRED = { pool_size: 8, keepalive: '60s', ssl: 'off' };

/** A message event. */
function publish(topic: string, columns: Readonly<Record<string, Value>> = {}) {
  return eventOf('message.publish', { topic, flags: { dup: false, retain: false }, ...columns });
}

function hostFor(address: string, more: Partial<HostOptions> = {}): Promise<ResourceHost> {
  return hostOf({ type: mqttBridge(), ...more, config: { ...REQUIRED, address, ...more.config } });
}

/** Runs a task with a remote broker and a resource for it. */
async function withBroker(
  given: Partial<HostOptions> & { readonly far?: BrokerOptions },
  run: (it: ResourceHost & { far: Awaited<ReturnType<typeof server>>['broker'] }) => Promise<void>
): Promise<void> {
  const { broker: far, port } = await server(given.far);
  try {
    await using host = await hostFor(`127.0.0.1:${port}`, given);
    await run({ ...host, far });
  } finally {
    await far.stop();
  }
}

describe('The action data_to_mqtt_broker', () => {
  it('publishes the output as JSON to the topic of the message, below the mountpoint, with QoS 1', () =>
    withBroker({ config: { mountpoint: 'from/${node}/' }, node: 'n$&1' }, async ({ far, add, outbox }) => {
      const there = await listener(far);
      add({ x: 1 }, publish('a/b'));
      add({ x: 2 }, publish('a/b', { flags: { retain: true } }));
      await outbox.idle();
      for (const [x, retain] of [
        [1, false],
        [2, true]
      ] as const) {
        const message = await there.next();
        assert.deepEqual(
          [message.topic, String(message.payload), message.qos, message.retain],
          ['from/n$&1/a/b', `{"x":${x}}`, 1, retain]
        );
      }
    }));

  it('supports templates for topic and payload, and does not change bytes', () => {
    const params = { forward_topic: 'to/${clientid}', payload_tmpl: '${payload}' };
    return withBroker({ params, config: { mountpoint: 'm/' } }, async ({ far, add }) => {
      const there = await listener(far);
      add({ clientid: 'ü', payload: Uint8Array.of(0xff, 0) }, publish('a'));
      add({ clientid: 'c', payload: 'text' }, publish('a'));
      const first = await there.next();
      assert.deepEqual([first.topic, [...first.payload]], ['m/to/ü', [0xff, 0]]);
      const second = await there.next();
      assert.deepEqual([second.topic, String(second.payload)], ['m/to/c', 'text']);
    });
  });

  it('fails for events that are not about a message, and for topics that cannot be published to', () =>
    withBroker({ params: { forward_topic: '${topic}' } }, async ({ action }) => {
      for (const name of ['client.connected', 'session.subscribed', 'client.connack'] as const)
        assert.throws(() => action.prepare({ topic: 'a' }, eventOf(name, { topic: 'a' })), { code: 'ACTION_FAILED' });
      for (const topic of ['a/+', '#', 'a\0', '', '$SYS/x', '$share/g/t'])
        assert.throws(() => action.prepare({ topic }, publish('a')), { code: 'TOPIC_NAME_INVALID' });
      assert.throws(() => action.prepare({ topic: 'x'.repeat(65_536) }, publish('a')));
      for (const name of ['message.delivered', 'message.acked', 'message.dropped', 'delivery.dropped'] as const)
        assert.doesNotThrow(() => action.prepare({ topic: 'a' }, eventOf(name, { topic: 'a' })));
    }));

  const PROPERTIES = {
    'Payload-Format-Indicator': 1,
    'Content-Type': 'text/x',
    'Response-Topic': 'answers',
    'Correlation-Data': Uint8Array.of(0xff, 1),
    'User-Property': { a: '2' },
    'User-Property-Pairs': [
      { key: 'a', value: '1' },
      { key: 'a', value: '2' }
    ],
    'Topic-Alias': 7
  };

  it('includes the properties of the message with mqttv5', () =>
    withBroker({ config: { proto_ver: 'mqttv5' } }, async ({ kit, far, add }) => {
      const there = await listener(far);
      add('x', publish('a', { pub_props: PROPERTIES }));
      const expiring = { 'Message-Expiry-Interval': 100, 'Correlation-Data': 'text' };
      add('x', publish('a', { pub_props: expiring, publish_received_at: kit.clock.now() - 30_000 }));
      assert.deepEqual((await there.next()).properties, {
        payloadFormatIndicator: 1,
        contentType: 'text/x',
        responseTopic: 'answers',
        correlationData: Buffer.of(0xff, 1),
        userProperties: [
          ['a', '1'],
          ['a', '2']
        ]
      });
      const { messageExpiryInterval, correlationData } = (await there.next()).properties;
      assert.ok(messageExpiryInterval !== undefined && messageExpiryInterval >= 69 && messageExpiryInterval <= 70);
      assert.equal(String(correlationData), 'text');
    }));

  it('includes no properties with other versions', async () => {
    for (const config of [{}, { proto_ver: 'mqttv3' }, { proto_ver: 'mqttv4' }])
      await withBroker({ config }, async ({ far, add }) => {
        const there = await listener(far);
        add('x', publish('a', { pub_props: PROPERTIES }));
        assert.deepEqual((await there.next()).properties, {});
      });
  });
});

describe('The resource bridge_mqtt', () => {
  it('uses the documented parameters and defaults', () => {
    const { params = {} } = mqttBridge();
    const documented = Object.entries(params)
      .filter(([, row]) => row.default !== undefined)
      .map(([name, row]) => [name, row.default, row.required === true]);
    assert.deepEqual(documented, [
      ['address', '127.0.0.1:1883', true],
      ['proto_ver', 'mqttv4', false],
      ['pool_size', 8, true],
      ['disk_cache', 'off', false],
      ['clientid', 'client', false],
      ['append', true, false],
      ['username', 'user', false],
      ['password', 'passwd', false],
      ['mountpoint', 'bridge/aws/${node}/', false],
      ['keepalive', '60s', true],
      ['reconnect_interval', '30s', false],
      ['retry_interval', '20s', false],
      ['bridge_mode', true, false],
      ['ssl', 'off', true],
      ['ciphers', 'ECDHE-ECDSA-AES256-GCM-SHA384,ECDHE-RSA-AES256-GCM-SHA384', false]
    ]);
    const texts = [...Object.values(documentedParams(params)), mqttBridge(), rpcBridge()].flatMap((row) => [
      row.title,
      row.description
    ]);
    assert.deepEqual(
      texts.filter(({ en, zh }) => en === '' || zh === ''),
      []
    );
  });

  it('connects as the client named in its configuration', async () => {
    const clientOf = async (config: Params) => {
      const seen: Record<string, unknown>[] = [];
      await withBroker({ config }, async ({ far, check }) => {
        await check();
        await check();
        for (const { clientId, username, protocolVersion, keepalive } of (await far.directory.clients()).entries)
          seen.push({ clientId, username, protocolVersion, keepalive });
      });
      assert.equal(seen.length, 1, 'there is one connection');
      return seen[0];
    };
    const plain = await clientOf({ append: false });
    assert.deepEqual(plain, { clientId: 'resource:1', username: undefined, protocolVersion: 4, keepalive: 60 });
    const config = { clientid: 'gw', username: 'u', password: 'p', proto_ver: 'mqttv5', keepalive: '1m30s' };
    const named = await clientOf(config);
    assert.match(String(named.clientId), /^gw_[0-9a-f]{8}$/);
    assert.deepEqual({ ...named, clientId: '' }, { clientId: '', username: 'u', protocolVersion: 5, keepalive: 90 });
    assert.notEqual((await clientOf(config)).clientId, named.clientId);
  });

  it('applies the outbox limits of its configuration', async () => {
    const config = { disk_cache: 'on', reconnect_interval: '100ms', retry_interval: '5s' };
    await using host = await hostFor('127.0.0.1:1', { config });
    const limits = { isPersisted: true, batch: 200, timeout: 5000, backOff: 100, maxBackOff: 100 };
    assert.deepEqual(host.resource.outbox, limits);
  });

  it('rejects an unusable configuration without showing a secret', async () => {
    const cases: readonly (readonly [Params, string])[] = [
      [{ address: 'emqx@127.0.0.1' }, 'address'],
      [{ address: 'mqtt://user:secret@host' }, 'address'],
      [{ address: 'user:secret@host' }, 'address'],
      [{ address: 'http://host' }, 'address'],
      [{ address: '' }, 'address'],
      [{ address: 'host:port' }, 'address'],
      [{ mountpoint: 'a/#/' }, 'mountpoint'],
      [{ keepalive: '20h' }, 'keepalive'],
      [{ keepalive: '60' }, 'keepalive'],
      [{ proto_ver: 'mqttv2' }, 'proto_ver'],
      [{ password: 'secret' }, 'username'],
      [{ username: 'u', password: 's'.repeat(70_000) }, 'password'],
      [{ ssl: 'on', cacertfile: 'etc/certs/cacert.pem' }, 'cacertfile'],
      [{ ssl: 'on', keyfile: '-----BEGIN secret' }, 'keyfile'],
      [{ ssl: 'on', ciphers: 'NONE-OF-THESE' }, 'ciphers']
    ];
    for (const [config, field] of cases)
      await assert.rejects(hostFor('127.0.0.1:1883', { config }), (error: Error & { code: string; field: string }) => {
        assert.deepEqual([error.code, error.field], ['PARAM_INVALID', field], JSON.stringify(config));
        assert.doesNotMatch(error.message, /secret|sssss/);
        return true;
      });
    for (const name of Object.keys(REQUIRED))
      await assert.rejects(hostFor('127.0.0.1', { config: { [name]: undefined } }), {
        code: 'PARAM_REQUIRED',
        field: name
      });
    // forms send the documented default and empty strings
    const filled = { cacertfile: 'etc/certs/cacert.pem', keyfile: '', username: '', password: '', clientid: '' };
    await using host = await hostFor('127.0.0.1', { config: filled });
    assert.ok(host.resource);
  });

  it('keeps the order of each rule, even while the server is down', async () => {
    const first = await server();
    await using host = await hostFor(`127.0.0.1:${first.port}`);
    const { kit, outbox, outcomes, add } = host;
    const one = await listener(first.broker);
    for (let at = 0; at < 300; at++) for (const rule of ['a', 'b']) add({ rule, at }, publish(rule), rule);
    await outbox.idle();
    const seen = async (from: typeof one, count: number) => {
      const all: { rule: string; at: number }[] = [];
      while (all.length < count) all.push(JSON.parse(String((await from.next()).payload)));
      return (rule: string) => all.filter((message) => message.rule === rule).map(({ at }) => at);
    };
    const before = await seen(one, 600);
    for (const rule of ['a', 'b']) assert.deepEqual(before(rule), [...Array(300).keys()]);

    await first.broker.stop();
    for (let at = 0; at < 300; at++) for (const rule of ['a', 'b']) add({ rule, at }, publish(rule), rule);
    await outbox.idle();
    await assert.rejects(host.check(), /ECONNREFUSED/);
    assert.equal(outbox.size, 600);
    const second = await server({}, first.port);
    const two = await listener(second.broker);
    await host.check();
    outbox.retryNow();
    const after = await seen(two, 600);
    for (const rule of ['a', 'b']) assert.deepEqual(after(rule), [...Array(300).keys()]);
    while (outbox.size > 0) {
      await kit.clock.advance('1s');
      await outbox.idle();
    }
    assert.equal(outcomes.filter((outcome) => outcome === 'sent').length, 1200);
    await second.broker.stop();
  });

  it('drops a message that the server refuses permanently, and sends the others of its batch once', async () => {
    const far = createBroker();
    far.hook('publish', ({ message }) => (message.topic === 'no' ? { allow: false, reasonCode: 0x87 } : true) as never);
    const opened = listen(far, 0);
    await far.start();
    const { port } = await opened;
    try {
      await using host = await hostFor(`127.0.0.1:${port}`, { config: { proto_ver: 'mqttv5' } });
      const { kit, outbox, outcomes, add } = host;
      const there = await listener(far);
      for (const topic of ['a', 'b', 'no', 'c', 'd']) add(topic, publish(topic));
      for (let left = 20; outbox.size > 0 && left > 0; left--) {
        await outbox.idle();
        await kit.clock.advance('1s');
      }
      add('end', publish('end'));
      const topics: string[] = [];
      while (topics.at(-1) !== 'end') topics.push((await there.next()).topic);
      assert.deepEqual(topics, ['a', 'b', 'c', 'd', 'end']);
      assert.deepEqual(outcomes.slice(0, 5), ['sent', 'sent', 'refused', 'sent', 'sent']);
    } finally {
      await far.stop();
    }
  });

  it('drops a message that is too large for the server, and one that has expired', () =>
    withBroker(
      { config: { proto_ver: 'mqttv5' }, far: { maxPacketSize: 2048 } },
      async ({ kit, add, outbox, outcomes }) => {
        add('x'.repeat(3000), publish('a'));
        await outbox.idle();
        assert.equal((outbox.lastError as { cause?: { code?: string } } | undefined)?.cause?.code, 'PACKET_TOO_LARGE');
        const receivedAt = kit.clock.now() - 2_000;
        add('x', publish('a', { pub_props: { 'Message-Expiry-Interval': 1 }, publish_received_at: receivedAt }));
        await outbox.idle();
        assert.match(outbox.lastError?.message ?? '', /a message to "a" has expired/);
        add('x', publish('a'));
        await outbox.idle();
        assert.deepEqual(outcomes, ['refused', 'refused', 'sent']);
      }
    ));
});

/** The reaction of a faulty server to the packets of a client. */
type Answer = (packet: Packet, send: (packet: Packet | Buffer) => void, socket: Socket) => void;

/** Runs a task with such a server. */
async function against(
  answer: Answer,
  config: Params,
  run: (
    it: ResourceHost & { received: Packet[]; receives(count: number): Promise<void>; accepted(): number }
  ) => Promise<void>
): Promise<void> {
  const sockets = new Set<Socket>();
  const received: Packet[] = [];
  let accepted = 0;
  const hostile = createServer((socket) => {
    accepted++;
    sockets.add(socket);
    const reader = new PacketReader({ side: 'server' });
    const send = (packet: Packet | Buffer) =>
      socket.write(Buffer.isBuffer(packet) ? packet : encode(packet, reader.version ?? 5));
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      for (const packet of reader.push(chunk)) {
        received.push(packet);
        answer(packet, send, socket);
      }
    });
  }).listen(0, '127.0.0.1');
  await once(hostile, 'listening');
  try {
    await using host = await hostFor(`127.0.0.1:${(hostile.address() as AddressInfo).port}`, { config });
    const receives = async (count: number) => {
      await until(() => received.length >= count);
    };
    await run({ ...host, received, receives, accepted: () => accepted });
  } finally {
    for (const socket of sockets) socket.destroy();
    hostile.close();
  }
}

const CONNACK: Packet = { cmd: 'connack', sessionPresent: false, reasonCode: 0 };

describe('The resource bridge_mqtt and a server', () => {
  it('aborts connecting to a server that does not answer CONNECT', () =>
    against(
      () => undefined,
      {},
      async ({ kit, check, receives }) => {
        const refused = assert.rejects(check(), {
          code: 'RESOURCE_DOWN',
          message: /no connection to .* within 10000 ms/
        });
        await receives(1);
        await kit.clock.advance('11s');
        await refused;
      }
    ));

  it('reports that it is not alive if the server refuses the client, with the reason', () =>
    against(
      (_packet, send) => send({ cmd: 'connack', sessionPresent: false, reasonCode: 0x86 }),
      {},
      async ({ check, add, outbox }) => {
        await assert.rejects(check(), { code: 'CONNECT_REFUSED', message: /bad user name or password/i });
        add('x', publish('a'));
        await outbox.idle();
        assert.deepEqual([outbox.size, (outbox.lastError as { code?: string }).code], [1, 'CONNECT_REFUSED']);
      }
    ));

  it('disconnects from a server that does not acknowledge, and sends the messages again', () => {
    let isDeaf = true;
    const answer: Answer = (packet, send) => {
      if (packet.cmd === 'connect') send(CONNACK);
      else if (packet.cmd === 'publish' && !isDeaf)
        send({ cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 });
    };
    return against(
      answer,
      { retry_interval: '2s' },
      async ({ kit, add, outbox, outcomes, received, receives, accepted }) => {
        add(1, publish('a'));
        add(2, publish('a'));
        await receives(3);
        isDeaf = false;
        await kit.clock.advance('2100ms');
        assert.equal((outbox.lastError as { code?: string }).code, 'SEND_TIMEOUT');
        while (outbox.size > 0) {
          await kit.clock.advance('1s');
          await outbox.idle();
        }
        assert.deepEqual([accepted(), outcomes], [2, ['sent', 'sent']]);
        const payloads = received.flatMap((packet) => (packet.cmd === 'publish' ? [String(packet.payload)] : []));
        assert.deepEqual(payloads, ['1', '2', '1', '2']);
      }
    );
  });

  it('does not send a message again that the server acknowledged before closing the connection', () => {
    let isFirst = true;
    const answer: Answer = (packet, send, socket) => {
      if (packet.cmd === 'connect') send(CONNACK);
      if (packet.cmd !== 'publish') return;
      if (isFirst && String(packet.payload) === '2') {
        isFirst = false;
        socket.end();
      } else if (!socket.writableEnded) send({ cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 });
    };
    return against(answer, {}, async ({ kit, add, outbox, received }) => {
      for (const n of [1, 2, 3]) add(n, publish('a'));
      for (let left = 20; outbox.size > 0 && left > 0; left--) {
        await outbox.idle();
        await kit.clock.advance('1s');
      }
      const payloads = received.flatMap((packet) => (packet.cmd === 'publish' ? [String(packet.payload)] : []));
      assert.deepEqual(payloads, ['1', '2', '3', '2', '3']);
    });
  });

  it('sends only what the server accepts if it supports neither QoS 1 nor retained messages', () => {
    const answer: Answer = (packet, send) => {
      if (packet.cmd === 'connect') send({ ...CONNACK, properties: { maximumQoS: 0, retainAvailable: 0 } });
    };
    return against(answer, { proto_ver: 'mqttv5' }, async ({ add, outbox, outcomes, received, receives }) => {
      add('x', publish('a', { flags: { retain: true } }));
      await outbox.idle();
      await receives(2);
      const [, message] = received;
      assert.deepEqual(message.cmd === 'publish' && [message.qos, message.retain], [0, false]);
      assert.deepEqual(outcomes, ['sent']);
    });
  });

  it('ignores anything else that the server sends', async () => {
    const message = { cmd: 'publish', topic: 'x', payload: Buffer.alloc(1000), dup: false, retain: false } as const;
    const hostile: Record<string, readonly (Packet | Buffer)[]> = {
      'bytes that are not MQTT': [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
      'a second CONNACK': [CONNACK],
      'a SUBACK': [{ cmd: 'suback', messageId: 1, granted: [0] }],
      'an acknowledgement of nothing': [{ cmd: 'puback', messageId: 77, reasonCode: 0 }],
      'a PUBREC for QoS 1': [{ cmd: 'pubrec', messageId: 1, reasonCode: 0 }],
      'a packet that is too large': [Buffer.of(0x30, 0xff, 0xff, 0xff, 0x7f)],
      messages: Array.from({ length: 2000 }, (_, at) => ({ ...message, qos: 1 as const, messageId: at + 1 })),
      'a DISCONNECT': [{ cmd: 'disconnect', reasonCode: 0x8b }]
    };
    for (const [name, packets] of Object.entries(hostile)) {
      const answer: Answer = (packet, send) => {
        if (packet.cmd === 'connect') send(CONNACK);
        if (packet.cmd === 'publish') for (const each of packets) send(each);
      };
      const config = { proto_ver: 'mqttv5', retry_interval: '1s' };
      await against(answer, config, async ({ kit, add, outbox, outcomes }) => {
        add('x', publish('a'));
        for (let left = 50; outbox.counters.failed === 0 && left > 0; left--) {
          await setImmediate();
          await kit.clock.advance('50ms');
        }
        assert.deepEqual([outcomes, outbox.size], [[], 1], name);
        const client = await kit.connect();
        await client.publish('x', 'y', { qos: 1 });
      });
    }
  });

  it('disconnects from a server that reads nothing when the resource closes', () =>
    against(
      (packet, send, socket) => {
        if (packet.cmd !== 'connect') return;
        send(CONNACK);
        socket.pause();
      },
      {},
      async ({ kit, check, resource, add, receives }) => {
        await check();
        await receives(1);
        for (let at = 0; at < 20; at++) add('x'.repeat(500_000), publish('a'));
        for (let turns = 0; turns < 20; turns++) await setImmediate();
        const closed = resource.close();
        await kit.clock.advance('2s');
        await closed;
        await assert.rejects(check(), /closed/);
      }
    ));

  it('stops connecting when the resource closes', () =>
    against(
      () => undefined,
      {},
      async ({ check, resource, receives }) => {
        const refused = assert.rejects(check(), /closed/);
        await receives(1);
        await resource.close();
        await refused;
      }
    ));
});

let certificates: Certificates;
before(() => {
  certificates = makeCertificates();
});
after(() => certificates[Symbol.dispose]());

/** Forwards one message over this transport. @returns its length, or the error */
async function forward(kind: 'mqtts' | 'ws' | 'wss', config: Params, usesUrl = true): Promise<string> {
  const far = createBroker();
  const { cert, key } = certificates.server;
  const secure = { cert, key, ca: certificates.ca.cert, requestCert: true, rejectUnauthorized: true };
  const opened =
    kind === 'mqtts'
      ? listen(far, tls({ port: 0, ...secure }))
      : listen(far, kind === 'ws' ? ws({ port: 0 }) : wss({ port: 0, ...secure }));
  await far.start();
  const { port } = await opened;
  const address = usesUrl ? `${kind}://localhost:${port}` : `localhost:${port}`;
  try {
    await using host = await hostFor(address, { config, params: { payload_tmpl: '${payload}' } });
    const there = await listener(far);
    host.add({ payload: 'x'.repeat(100_000) }, publish('a'));
    await host.outbox.idle();
    const fault = host.outbox.lastError?.message;
    return fault ?? String((await there.next()).payload.length);
  } finally {
    await far.stop();
  }
}

describe('The transport of the resource bridge_mqtt', () => {
  it('supports TLS with a client certificate', async () => {
    const { ca, client } = certificates;
    const given = { cacertfile: ca.cert, certfile: client.cert, keyfile: client.key };
    const ciphers = 'ECDHE-ECDSA-AES256-GCM-SHA384,ECDHE-RSA-AES256-GCM-SHA384';
    assert.equal(await forward('mqtts', given), '100000');
    assert.equal(await forward('mqtts', { ...given, ssl: 'on', ciphers }, false), '100000');
    assert.match(await forward('mqtts', { ...given, servername: 'other.example' }), /other\.example/);
  });

  it('refuses a server whose certificate is not trusted', async () => {
    const { client, stranger } = certificates;
    const own = { certfile: client.cert, keyfile: client.key };
    assert.match(await forward('mqtts', own), /certificate/);
    assert.match(await forward('mqtts', { ...own, cacertfile: stranger.cert }), /certificate/);
  });

  it('supports WebSocket with and without TLS', async () => {
    const { ca, client } = certificates;
    assert.equal(await forward('ws', {}), '100000');
    assert.equal(await forward('wss', { cacertfile: ca.cert, certfile: client.cert, keyfile: client.key }), '100000');
  });
});

describe('The resource bridge_rpc', () => {
  it('can be created, but is never alive and gives the reason', async () => {
    const config = { address: 'emqx@127.0.0.1', pool_size: 8 };
    await using host = await hostOf({ type: rpcBridge(), config });
    await assert.rejects(host.check(), { code: 'RESOURCE_DOWN', message: /use a resource of type bridge_mqtt/ });
    host.add('x', publish('a'));
    await host.outbox.idle();
    assert.deepEqual([host.outcomes, host.outbox.size], [['refused'], 0]);
  });

  it('offers the same action as bridge_mqtt', () => {
    assert.equal(rpcBridge().actions?.[0], mqttBridge().actions?.[0]);
    assert.deepEqual(mqttBridge().actions?.[0].types, ['bridge_mqtt', 'bridge_rpc']);
  });
});

describe('The resource bridge_mqtt and mosquitto', withMosquitto, () => {
  for (const version of ['mqttv3', 'mqttv4', 'mqttv5'])
    it(`forwards messages in order, including those queued during a restart, with ${version}`, async () => {
      const far = await new Mosquitto().begin();
      try {
        const config = { proto_ver: version, mountpoint: 'm/' };
        await using host = await hostFor(`127.0.0.1:${far.port}`, { config });
        const { kit, outbox, add } = host;
        const receive = async (count: number) => {
          const client = await far.client();
          const messages = client.messages()[Symbol.asyncIterator]();
          await client.subscribe('m/#', { qos: 1 });
          return async () => {
            const seen: number[] = [];
            while (seen.length < count) seen.push(Number((await messages.next()).value?.payload));
            client.destroy();
            return seen;
          };
        };
        const first = await receive(500);
        for (let at = 0; at < 500; at++) add(at, publish('a/b'));
        assert.deepEqual(await first(), [...Array(500).keys()]);
        await outbox.idle();
        await far.stop();
        for (let at = 0; at < 500; at++) add(at, publish('a/b'));
        await outbox.idle();
        await assert.rejects(host.check());
        await far.begin();
        const second = await receive(500);
        await host.check();
        outbox.retryNow();
        assert.deepEqual(await second(), [...Array(500).keys()]);
        while (outbox.size > 0) {
          await outbox.idle();
          await kit.clock.advance('1s');
        }
      } finally {
        await far.end();
      }
    });
});
