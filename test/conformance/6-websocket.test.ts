import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { WebSocket } from 'ws';
import { type Listener, listen, ws } from '../../adapters/net/index.ts';
import { Broker } from '../../lib/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import type { Packet, ProtocolVersion } from '../../lib/packets/types.ts';
import { connect, publish, subscribe } from '../support/wire.ts';

/** An MQTT client over WebSocket that controls the boundaries of its frames. */
class FramedClient {
  readonly socket: WebSocket;
  readonly #version: ProtocolVersion;
  readonly #reader: PacketReader;
  readonly #packets: Packet[] = [];
  /** For each received frame, whether it was binary. */
  readonly binary: boolean[] = [];

  constructor(port: number, protocols: string[], version: ProtocolVersion = 5) {
    this.socket = new WebSocket(`ws://127.0.0.1:${port}/mqtt`, protocols);
    this.#version = version;
    this.#reader = new PacketReader({ side: 'client', version });
    this.socket.on('error', () => {});
    this.socket.on('message', (data: Buffer, isBinary: boolean) => {
      this.binary.push(isBinary);
      this.#packets.push(...this.#reader.push(data));
      this.socket.emit('packet');
    });
  }

  bytes(...packets: Packet[]): Buffer {
    return Buffer.concat(packets.map((packet) => encode(packet, this.#version)));
  }

  async next<C extends Packet['cmd']>(cmd: C): Promise<Packet> {
    while (this.#packets.length === 0) await once(this.socket, 'packet');
    const packet = this.#packets.shift() as Packet;
    assert.equal(packet.cmd, cmd);
    return packet;
  }
}

describe('MQTT over WebSocket', () => {
  let broker: Broker;
  let listener: Listener;
  const open = async (protocols = ['mqtt'], version: ProtocolVersion = 5): Promise<FramedClient> => {
    const client = new FramedClient(listener.port as number, protocols, version);
    await once(client.socket, 'open');
    return client;
  };

  before(async () => {
    broker = new Broker();
    listener = listen(broker, ws({ port: 0 }));
    await broker.start();
  });

  after(() => broker.stop({ timeoutMs: 200 }));

  it('[MQTT-6.0.0-1] [MQTT3-6.0.0-1] sends binary frames only, and closes the connection for a text frame', async () => {
    const client = await open();
    client.socket.send(client.bytes(connect(5, { clientId: 'text' }), subscribe(1, 'a')));
    await client.next('connack');
    await client.next('suback');
    assert.ok(client.binary.length > 0 && client.binary.every((isBinary) => isBinary));
    const gone = broker.nextEvent('client.disconnected', { where: ({ client: who }) => who.clientId === 'text' });
    client.socket.send('\u00c0\u0000');
    const [code] = await once(client.socket, 'close');
    assert.equal(code, 1003);
    await gone;
  });

  it('[MQTT-6.0.0-1] [MQTT3-6.0.0-1] closes for a text frame before CONNECT as well', async () => {
    const client = await open();
    client.socket.send('hello');
    const [code] = await once(client.socket, 'close');
    assert.equal(code, 1003);
  });

  it('[MQTT-6.0.0-2] [MQTT3-6.0.0-2] accepts packets that begin and end anywhere in frames', async () => {
    for (const size of [1, 2, 3, 7, 50, 1000]) {
      const client = await open();
      const all = client.bytes(
        connect(5),
        subscribe(1, 'a/b'),
        publish('a/b', 'q0'),
        publish('a/b', 'x'.repeat(300), { qos: 1, messageId: 1 }),
        { cmd: 'pingreq' }
      );
      for (let at = 0; at < all.length; at += size) client.socket.send(all.subarray(at, at + size));
      await client.next('connack');
      await client.next('suback');
      assert.equal(String(((await client.next('publish')) as { payload: Buffer }).payload), 'q0');
      const rest = [await client.next('publish'), await client.next('puback'), await client.next('pingresp')];
      assert.equal((rest[0] as { payload: Buffer }).payload.length, 300);
      client.socket.terminate();
    }
  });

  it('[MQTT-6.0.0-2] [MQTT3-6.0.0-2] accepts one packet in the fragments of one message, and empty frames', async () => {
    const client = await open();
    const bytes = client.bytes(connect(5));
    client.socket.send(Buffer.alloc(0));
    client.socket.send(bytes.subarray(0, 3), { fin: false });
    client.socket.send(bytes.subarray(3, 9), { fin: false });
    client.socket.send(bytes.subarray(9), { fin: true });
    await client.next('connack');
    client.socket.terminate();
  });

  it('[MQTT-6.0.0-3] [MQTT3-6.0.0-3] refuses a client that does not offer an MQTT subprotocol', async () => {
    for (const protocols of [[], ['chat']]) {
      const client = new FramedClient(listener.port as number, protocols);
      const [, response] = await once(client.socket, 'unexpected-response');
      assert.equal(response.statusCode, 400);
      response.destroy();
    }
  });

  it('[MQTT-6.0.0-4] [MQTT3-6.0.0-4] selects "mqtt", and "mqttv3.1" for the old protocol name', async () => {
    for (const [offered, selected, version] of [
      [['mqtt'], 'mqtt', 5],
      [['mqtt'], 'mqtt', 4],
      [['chat', 'mqttv3.1', 'mqtt'], 'mqtt', 5],
      [['mqttv3.1'], 'mqttv3.1', 3]
    ] as const) {
      const client = await open([...offered], version);
      assert.equal(client.socket.protocol, selected);
      client.socket.send(client.bytes(connect(version)));
      await client.next('connack');
      client.socket.terminate();
    }
  });

  it('[MQTT-4.13.1-1] sends DISCONNECT with its code before it closes', async () => {
    const client = await open();
    client.socket.send(client.bytes(connect(5)));
    await client.next('connack');
    client.socket.send(Buffer.from([0, 0]));
    assert.equal(((await client.next('disconnect')) as { reasonCode: number }).reasonCode, 0x81);
    const [code] = await once(client.socket, 'close');
    assert.equal(code, 1000);
  });
});
