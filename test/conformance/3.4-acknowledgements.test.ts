import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { AckPacket, Packet } from '../../lib/packets/types.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import type { Batch, Store } from '../../lib/store/store.ts';
import { ack, cutOff, persistent, subscriber, summarize, timedBroker } from '../support/flows.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { publish } from '../support/wire.ts';

type Cmd = AckPacket['cmd'];

const FIRST = { puback: 0x40, pubrec: 0x50, pubrel: 0x62, pubcomp: 0x70 };
const SECTIONS = { puback: '3.4', pubrec: '3.5', pubrel: '3.6', pubcomp: '3.7' };
const REFUSALS = [0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99];
const CODES = { puback: [0, 0x10, ...REFUSALS], pubrec: [0, 0x10, ...REFUSALS], pubrel: [0, 0x92], pubcomp: [0, 0x92] };

/** Encodes an acknowledgement of packet id 7 byte by byte: the bytes after the id are as given. */
function bytes(cmd: Cmd, ...rest: number[]): Buffer {
  return Buffer.from([FIRST[cmd], 2 + rest.length, 0, 7, ...rest]);
}

async function refuses(broker: Broker, packet: Buffer, code: number): Promise<void> {
  const client = await rawClient(broker);
  client.send(packet);
  assert.deepEqual(await client.refused(code), []);
}

/** Returns the bytes received until PINGRESP. */
async function raw(client: RawClient): Promise<string> {
  const chunks: Buffer[] = [];
  client.stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await client.rest();
  return Buffer.concat(chunks).toString('hex').replace(/d000$/, '');
}

describe('Acknowledgements from a client', () => {
  for (const cmd of ['puback', 'pubrec', 'pubrel', 'pubcomp'] as const) {
    const id = `MQTT-${SECTIONS[cmd]}.2-1`;

    it(`[${id}] accepts ${cmd} with any code of its table, and closes with 0x82 for others`, async () => {
      await using test = await timedBroker();
      const client = await rawClient(test.broker);
      for (const code of CODES[cmd]) client.send(bytes(cmd, code));
      await client.rest();
      for (let code = 1; code < 256; code += code < 0x14 || code > 0x7c ? 1 : 13)
        if (!CODES[cmd].includes(code)) await refuses(test.broker, bytes(cmd, code), 0x82);
    });

    it(`[${id}] accepts ${cmd} of every length, and closes when the length is wrong`, async () => {
      await using test = await timedBroker();
      const client = await rawClient(test.broker);
      const block = [0x1f, 0, 1, 0x72, 0x26, 0, 1, 0x61, 0, 0, 0x26, 0, 1, 0x61, 0, 0];
      client.send(bytes(cmd), bytes(cmd, 0), bytes(cmd, 0, 0), bytes(cmd, 0, block.length, ...block));
      await client.rest();
      for (const length of [1, block.length - 1, block.length + 1])
        await refuses(test.broker, bytes(cmd, 0, length, ...block), 0x81);
      await refuses(test.broker, Buffer.from([FIRST[cmd], 1, 7]), 0x81);
      await refuses(test.broker, Buffer.from([FIRST[cmd], 0]), 0x81);
    });

    it(`[${id}] closes for ${cmd} with a property that it must not carry, or that occurs twice`, async () => {
      await using test = await timedBroker();
      for (const block of [
        [0x23, 0, 1],
        [0x02, 0, 0, 0, 1],
        [0x1f, 0, 0, 0x1f, 0, 0],
        [0x0b, 1]
      ])
        await refuses(test.broker, bytes(cmd, 0, block.length, ...block), 0x82);
      await refuses(test.broker, bytes(cmd, 0, 1, 0x7f), 0x81);
    });

    const flagIds = cmd === 'pubrel' ? '[MQTT-2.1.3-1, MQTT-3.6.1-1]' : '[MQTT-2.1.3-1]';
    it(`${flagIds} closes with 0x81 for ${cmd} with other flags`, async () => {
      await using test = await timedBroker();
      for (let flags = 0; flags < 16; flags++)
        if (flags !== (FIRST[cmd] & 15))
          await refuses(test.broker, Buffer.from([(FIRST[cmd] & 0xf0) | flags, 2, 0, 7]), 0x81);
    });

    it(`[MQTT-2.2.1-3] closes with 0x82 for ${cmd} with packet id 0`, async () => {
      await using test = await timedBroker();
      await refuses(test.broker, Buffer.from([FIRST[cmd], 2, 0, 0]), 0x82);
      await refuses(test.broker, Buffer.from([FIRST[cmd], 3, 0, 0, 0]), 0x82);
    });
  }

  it('[MQTT-3.5.2-1] [MQTT-3.6.2-1] answers PUBREC without a PUBLISH with PUBREL 0x92, and does not answer it if it refuses', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(ack('pubrec', 7), ack('pubrec', 8, 0x80), ack('pubrec', 65_535));
    assert.deepEqual(summarize(await client.rest()), ['pubrel 7 0x92', 'pubrel 65535 0x92']);
  });

  it('[MQTT-3.6.2-1] [MQTT-3.7.2-1] answers PUBREL without a PUBLISH with PUBCOMP 0x92, and keeps the connection', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(ack('pubrel', 7), ack('pubrel', 8, 0x92));
    assert.deepEqual(summarize(await client.rest()), ['pubcomp 7 0x92', 'pubcomp 8 0x92']);
  });

  it('[MQTT-3.4.2-1] [MQTT-3.7.2-1] does not answer PUBACK or PUBCOMP without a PUBLISH', async () => {
    await using test = await timedBroker();
    const client = await rawClient(test.broker);
    client.send(ack('puback', 7), ack('pubcomp', 8), ack('pubcomp', 9, 0x92));
    await client.nothing();
  });

  for (const version of [3, 4, 5] as const) {
    /** Connects a subscriber with three messages in flight: QoS 1 (id 1), QoS 2 (id 2), and QoS 2 already released (id 3). */
    const inFlight = async (broker: Broker): Promise<RawClient> => {
      const client = await subscriber(broker, { topic: 'a', qos: 2 }, { version });
      await broker.publish('a', '1', { qos: 1 });
      await broker.publish('a', '2', { qos: 2 });
      await broker.publish('a', '3', { qos: 2 });
      client.send(ack('pubrec', 3));
      assert.deepEqual(summarize(await client.rest()).at(-1), 'pubrel 3');
      return client;
    };
    const WRONG = [
      ['pubrec', 1],
      ['pubcomp', 1],
      ['puback', 2],
      ['pubcomp', 2],
      ['puback', 3]
    ] as const;
    const ids = version === 5 ? '[MQTT-3.3.4-1] [MQTT-2.2.1-5]' : '[MQTT3-4.8.0-1]';

    it(`${ids} closes with 0x82 for the wrong kind of acknowledgement for a packet id, version ${version}`, async () => {
      await using test = await timedBroker();
      for (const [cmd, messageId] of WRONG) {
        const client = await inFlight(test.broker);
        client.send(ack(cmd, messageId));
        assert.deepEqual(await client.refused(0x82), [], `${cmd} ${messageId}`);
      }
      const names = ['packets.puback.inuse', 'packets.pubrec.inuse', 'packets.pubcomp.inuse'] as const;
      assert.deepEqual(
        names.map((name) => test.broker.metrics.counter(name)),
        [2, 1, 2]
      );
    });

    it(`${ids} accepts the right kind of acknowledgement, and PUBREC again after PUBREL, version ${version}`, async () => {
      await using test = await timedBroker();
      const client = await inFlight(test.broker);
      client.send(ack('pubrec', 3), ack('pubcomp', 3), ack('pubrec', 2), ack('pubrec', 2), ack('puback', 1));
      assert.deepEqual(summarize(await client.rest()), ['pubrel 3', 'pubrel 2', 'pubrel 2']);
      client.send(ack('pubcomp', 2));
      await client.nothing();
      assert.equal([...test.broker.sessions][0]?.counters().inflight, 0);
    });

    it(`${ids} applies the same rules on the next connection of the session, version ${version}`, async () => {
      await using test = await timedBroker();
      const { broker } = test;
      for (const [cmd, messageId, answer] of [
        ['pubcomp', 1, 'publish 1 q2 dup a=x'],
        ['puback', 1, 'pubrel 1']
      ] as const) {
        const options = persistent(`${cmd}${version}`, version);
        const first = await subscriber(broker, { topic: 'a', qos: 2 }, options);
        await broker.publish('a', 'x', { qos: 2 });
        await first.next('publish');
        if (cmd === 'puback') {
          first.send(ack('pubrec', 1));
          await first.next('pubrel');
        }
        await cutOff(broker, first);
        const next = await rawClient(broker, options);
        assert.deepEqual(summarize(await next.rest()), [answer]);
        next.send(ack(cmd, messageId));
        assert.deepEqual(await next.refused(0x82), []);
        broker.sessions.get(options.clientId as string).discard();
      }
    });
  }

  it('[MQTT-3.3.4-1] treats the packet id as unknown while the PUBLISH waits for its commit', async () => {
    const store = new SlowStore();
    await using test = await timedBroker({ store });
    const { broker } = test;
    const client = await subscriber(broker, { topic: 'a', qos: 2 }, persistent('c'));
    store.isHolding = true;
    const published = broker.publish('a', 'x', { qos: 2 });
    await client.nothing();
    client.send(ack('puback', 1), ack('pubcomp', 1), ack('pubrec', 1));
    assert.deepEqual(summarize(await client.rest()), ['pubrel 1 0x92']);
    store.goOn();
    await published;
    assert.deepEqual(summarize([await client.next('publish')]), ['publish 1 q2 a=x']);
    client.send(ack('pubrec', 1));
    assert.deepEqual(summarize([await client.next('pubrel')]), ['pubrel 1']);
    client.send(ack('pubcomp', 1));
    await client.nothing();
    assert.equal(broker.sessions.get('c').counters().inflight, 0);
  });

  it('[MQTT-3.3.4-1] closes with 0x82 for PUBACK while PUBREL waits for its commit', async () => {
    const store = new SlowStore();
    await using test = await timedBroker({ store });
    const { broker } = test;
    const client = await subscriber(broker, { topic: 'a', qos: 2 }, persistent('c'));
    await broker.publish('a', 'x', { qos: 2 });
    await client.next('publish');
    store.isHolding = true;
    client.send(ack('pubrec', 1), ack('pubrec', 1), ack('puback', 1));
    assert.deepEqual(await client.refused(0x82), []);
    store.goOn();
    const back = await rawClient(broker, persistent('c'));
    assert.deepEqual(summarize(await back.rest()), ['pubrel 1']);
  });
});

/** A store that defers its commits until the test releases them. */
class SlowStore implements Store {
  readonly name = 'slow';
  isHolding = false;
  readonly #inner = memoryStore();
  #waiting: (() => void)[] = [];

  open = () => this.#inner.open();
  close = () => this.#inner.close();
  read = (from: Buffer, to: Buffer, limit: number) => this.#inner.read(from, to, limit);

  async commit(batch: Batch): Promise<void> {
    if (this.isHolding) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    await this.#inner.commit(batch);
  }

  goOn(): void {
    this.isHolding = false;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

describe('Acknowledgements from the broker', () => {
  it('[MQTT-2.2.1-5] sends acknowledgements with the packet id of the PUBLISH', async () => {
    await using test = await timedBroker();
    await subscriber(test.broker, { topic: '#' });
    const client = await rawClient(test.broker);
    for (const messageId of [1, 255, 256, 32_768, 65_535]) {
      client.send(publish('a', '', { qos: 1, messageId }), publish('a', '', { qos: 2, messageId }));
      client.send(ack('pubrel', messageId));
      const got = [`puback ${messageId}`, `pubrec ${messageId}`, `pubcomp ${messageId}`];
      assert.deepEqual(summarize(await client.rest()), got);
    }
  });

  it('[MQTT-3.4.2-1] [MQTT-3.5.2-1] reports the result for the message by codes of their tables', async () => {
    await using test = await timedBroker({ maxAwaitingRel: 2, payloadFormatCheck: true });
    const { broker } = test;
    await subscriber(broker, { topic: 'heard' });
    broker.on('error', () => {});
    broker.hook('authorizePublish', ({ message }) => {
      if (message.topic === 'no') return false;
      if (message.topic === 'quota') return { allow: false, reasonCode: 0x97 };
      if (message.topic === 'foreign') return { allow: false, reasonCode: 0x8a };
      if (message.topic === 'soft') return { allow: false, reasonCode: 0 };
      if (message.topic === 'broken') throw new Error('a bug of the app');
      return true;
    });
    const client = await rawClient(broker);
    const expected = {
      heard: '',
      unheard: ' 0x10',
      no: ' 0x87',
      quota: ' 0x97',
      foreign: ' 0x83',
      soft: ' 0x83',
      broken: ' 0x83',
      $SYS: ' 0x87',
      '$delayed/x/y': ' 0x90'
    };
    for (const [topic, code] of Object.entries(expected)) {
      client.send(publish(topic, '', { qos: 1, messageId: 1 }), publish(topic, '', { qos: 2, messageId: 1 }));
      client.send(ack('pubrel', 1));
      const comp = code >= ' 0x8' ? ' 0x92' : '';
      assert.deepEqual(
        summarize(await client.rest()),
        [`puback 1${code}`, `pubrec 1${code}`, `pubcomp 1${comp}`],
        topic
      );
    }
    const properties = { payloadFormatIndicator: 1 } as const;
    client.send(publish('heard', Buffer.from([0xff]), { qos: 1, messageId: 1, properties }));
    client.send(publish('heard', Buffer.from([0xff]), { qos: 2, messageId: 2, properties }));
    assert.deepEqual(summarize(await client.rest()), ['puback 1 0x99', 'pubrec 2 0x99']);
    for (const messageId of [1, 2, 3]) client.send(publish('heard', '', { qos: 2, messageId }));
    assert.deepEqual(summarize(await client.rest()), ['pubrec 1', 'pubrec 2', 'pubrec 3 0x97']);
  });

  it('[MQTT-3.4.2-2, -3] [MQTT-3.5.2-2, -3] [MQTT-3.6.2-2, -3] [MQTT-3.7.2-2, -3] sends acknowledgements without Reason String and User Property, for any packet size that a client allows', async () => {
    for (const maximumPacketSize of [30, undefined]) {
      await using test = await timedBroker();
      test.broker.hook('authorizePublish', ({ message }) => message.topic !== 'no');
      const client = await rawClient(test.broker, { properties: { maximumPacketSize } });
      for (const topic of ['no', 'a'])
        client.send(publish(topic, '', { qos: 1, messageId: 1 }), publish(topic, '', { qos: 2, messageId: 2 }));
      client.send(ack('pubrel', 2), ack('pubrel', 3), ack('pubrec', 4));
      const packets = (await client.rest()) as Extract<Packet, { cmd: Cmd }>[];
      assert.equal(packets.length, 7);
      assert.ok(packets.every(({ properties }) => properties === undefined));
    }
  });

  it('[MQTT-3.6.1-1] sends PUBREL with the flags 0010, the first time and when it is sent again', async () => {
    await using test = await timedBroker();
    const { broker } = test;
    const client = await subscriber(broker, { topic: 'a', qos: 2 }, persistent('c'));
    await broker.publish('a', '', { qos: 2 });
    await client.next('publish');
    client.send(ack('pubrec', 1));
    assert.equal(await raw(client), '62020001');
    await cutOff(broker, client);
    const back = await rawClient(broker, persistent('c'));
    assert.deepEqual(summarize(await back.rest()), ['pubrel 1']);
    back.send(ack('pubrec', 9));
    assert.equal(await raw(back), '6203000992');
  });

  it('[MQTT-3.4.2-1] sends only the packet id if the code is 0, and always towards 3.x', async () => {
    await using test = await timedBroker();
    await subscriber(test.broker, { topic: 'a' });
    for (const version of [4, 5] as const) {
      const client = await rawClient(test.broker, { version });
      const unheard = version === 5 ? '10' : '';
      client.send(publish('a', '', { qos: 1, messageId: 1 }));
      assert.equal(await raw(client), '40020001');
      client.send(publish('x', '', { qos: 2, messageId: 2 }));
      assert.equal(await raw(client), `500${version === 5 ? 3 : 2}0002${unheard}`);
      client.send(ack('pubrel', 2));
      assert.equal(await raw(client), '70020002');
      client.send(ack('pubrel', 2));
      assert.equal(await raw(client), version === 5 ? '7003000292' : '70020002');
    }
  });
});
