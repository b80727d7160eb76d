import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, connect as dial, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { listen, ws } from '../../adapters/net/index.ts';
import type { Broker } from '../../lib/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import { quiet, turns } from '../fuzz/wire.ts';
import { client, connect, isServed, kinds, payloads, publish, startTestBed, subscribe } from './support.ts';

const KIB = Buffer.alloc(1024, 'x');

interface Carried {
  readonly socket: Socket;
  readonly say: (bytes: Buffer) => void;
  readonly close: () => unknown;
}

/** Connections to a broker over a local socket whose other end the test reads at any speed. */
const CARRIERS: Readonly<Record<string, (broker: Broker) => Promise<Carried>>> = {
  async TCP(broker) {
    const server = createServer((socket) => broker.handle(socket, { transport: 'tcp' }));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const socket = dial((server.address() as { port: number }).port, '127.0.0.1');
    return { socket, say: (bytes) => void socket.write(bytes), close: () => server.close() };
  },
  async WebSocket(broker) {
    const listener = await listen(broker, ws({ port: 0 }));
    const socket = dial(listener.port as number, '127.0.0.1');
    const names = ['Host: x', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
    const key = `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`;
    socket.write(`${['GET /mqtt HTTP/1.1', ...names, key, 'Sec-WebSocket-Protocol: mqtt'].join('\r\n')}\r\n\r\n`);
    for (let answer = ''; !answer.endsWith('\r\n\r\n'); )
      answer += String(((await once(socket, 'data')) as [Buffer])[0]);
    const say = (bytes: Buffer) => {
      socket.write(Buffer.concat([Buffer.from([0x82, 0x80 | bytes.length, 0, 0, 0, 0]), bytes])); // masked with zeros
    };
    return { socket, say, close: () => listener.close() };
  }
};

describe('A client that never reads', () => {
  for (const qos of [0, 1] as const) {
    it(`loses messages while publishers run at full speed, and affects no other client, QoS ${qos}`, async () => {
      await using it = await startTestBed({
        maxMqueueLen: 100,
        maxMqueueBytes: 1_000_000,
        outputHighWaterMark: 65_536
      });
      const { broker } = it;
      const dropped = new Map<string, number>();
      broker.on('message.dropped', ({ reason, client }) => {
        dropped.set(`${client?.clientId} ${reason}`, (dropped.get(`${client?.clientId} ${reason}`) ?? 0) + 1);
      });
      const publisher = await client(broker);
      const healthy = await client(broker, { clientId: 'healthy', properties: { receiveMaximum: 65_535 } });
      const slow = await client(broker, { clientId: 'slow' });
      for (const peer of [healthy, slow]) {
        peer.say(subscribe(1, qos, 'a'));
        await turns(2);
        peer.take();
      }
      slow.wire.listen(false);
      let received = 0;
      for (let round = 0; round < 200; round++) {
        const ids = Array.from({ length: 50 }, (_, at) => at + 1);
        publisher.say(Buffer.concat(ids.map((id) => encode(publish('a', KIB, qos, qos > 0 ? id : undefined), 5))));
        await turns(1);
        for (const packet of healthy.take()) {
          if (packet.cmd !== 'publish') continue;
          received++;
          if (qos > 0) healthy.say({ cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 });
        }
        healthy.received.length = publisher.take().length = 0;
      }
      await turns(2);
      received += payloads(healthy).length;
      assert.equal(received, 10_000, 'the healthy client receives every message');
      assert.ok(await isServed(publisher));
      assert.deepEqual(
        [...dropped.keys()],
        ['slow queue_full'],
        'only the slow client loses messages, and the reason is reported'
      );
      const { mqueueLen, mqueueDropped, sendPend, inflight } = broker.sessions.get('slow').counters();
      assert.ok(mqueueLen <= 100);
      assert.ok(sendPend <= 65_536 + 131_072 + 60 * 1024, `${sendPend} bytes unsent`);
      assert.equal(mqueueDropped, dropped.get('slow queue_full'));
      // A message that was not dropped waits, is in flight, or has been written.
      assert.ok(10_000 - mqueueDropped - mqueueLen <= Math.max(inflight, 260));
    });
  }

  it('closes a client when its output makes no progress for slowConsumerTimeout', async () => {
    await using it = await startTestBed({ slowConsumerTimeout: '10s', outputHighWaterMark: 10_000 });
    const { broker, pass, reasons } = it;
    const publisher = await client(broker);
    const slow = await client(broker, { clientId: 'slow' });
    slow.say(subscribe(1, 0, 'a'));
    await turns(2);
    slow.wire.listen(false);
    for (let count = 0; count < 50; count++) publisher.say(publish('a', KIB));
    await pass(0);
    await pass(9_000);
    assert.ok(broker.sessions.get('slow').state === 'connected');
    slow.wire.listen(true); // some progress
    await pass(0);
    slow.wire.listen(false);
    for (let count = 0; count < 50; count++) publisher.say(publish('a', KIB));
    await pass(0);
    await pass(9_000);
    assert.ok(broker.sessions.get('slow').state === 'connected', 'progress restarts the timeout');
    await pass(1_100);
    assert.equal(reasons.get('slow'), 'slow_consumer');
    const { causes } = await broker.monitor.why({ topic: 'a', clientId: 'slow' });
    assert.ok(causes.some(({ code, kind }) => code === 'slow_consumer' && kind === 'recorded'));
    assert.ok(slow.wire.destroyed, 'it is closed without DISCONNECT, which it would not read');
  });

  it('keeps a client that reads a little, even if its output never drains', async () => {
    await using it = await startTestBed({ slowConsumerTimeout: '10s', outputHighWaterMark: 10_000 });
    const { broker, pass, reasons } = it;
    const publisher = await client(broker);
    const slow = await client(broker, { clientId: 'slow' });
    slow.say(subscribe(1, 0, 'a'));
    await turns(2);
    slow.wire.listen(false);
    for (let count = 0; count < 50; count++) {
      publisher.say(publish('a', KIB));
      await turns(1);
    }
    const unsent = slow.wire.writableLength;
    await pass(9_000);
    slow.wire.sip();
    assert.ok(slow.wire.writableLength > 0 && slow.wire.writableLength < unsent, 'it has read some bytes');
    await pass(9_000);
    assert.equal(broker.sessions.get('slow').state, 'connected');
    await pass(2_100);
    assert.equal(reasons.get('slow'), 'slow_consumer', 'it has read nothing for slowConsumerTimeout');
  });

  for (const [name, carrier] of Object.entries(CARRIERS)) {
    it(`keeps a client that reads a little over ${name}, even if the output is a single message`, async () => {
      await using it = await startTestBed({ slowConsumerTimeout: '10s' });
      const { broker, pass } = it;
      const { socket, say, close } = await carrier(broker);
      try {
        say(Buffer.concat([encode(connect({ version: 4, clientId: 'slow' }), 4), encode(subscribe(1, 0, 'a'), 4)]));
        for (let heard = 0; heard < 9; ) heard += ((await once(socket, 'data')) as [Buffer])[0].length;
        socket.pause();
        // Each step is more than the kernel buffers for both ends, so the broker has to write.
        const step = 16 * 2 ** 20;
        await broker.publish('a', Buffer.alloc(4 * step));
        for (let left = 3 * step; left > 0; ) {
          for (const end = left - step; left > end; ) {
            const chunk = socket.read() as Buffer | null;
            if (chunk === null) await once(socket, 'readable');
            else left -= chunk.length;
          }
          await pass(9_000);
          assert.equal(broker.sessions.get('slow').state, 'connected', `${left} bytes left`);
        }
      } finally {
        socket.destroy();
        await close();
      }
    });
  }

  it('reports lost messages as slow_consumer if the session ends with the connection', async () => {
    await using it = await startTestBed({ slowConsumerTimeout: '10s', outputHighWaterMark: 10_000 });
    const { broker, pass } = it;
    const lost: string[] = [];
    broker.on('message.dropped', ({ reason, client }) => lost.push(`${client?.clientId} ${reason}`));
    const publisher = await client(broker);
    const brief = await client(broker, { clientId: 'brief' });
    const lasting = await client(broker, { clientId: 'lasting', properties: { sessionExpiryInterval: 60 } });
    for (const peer of [brief, lasting]) {
      peer.say(subscribe(1, 1, 'a'));
      await turns(2);
      peer.wire.listen(false);
    }
    for (let id = 1; id <= 40; id++) {
      publisher.say(publish('a', KIB, 1, id));
      await turns(1);
    }
    const { mqueueLen } = broker.sessions.get('brief').counters();
    assert.ok(mqueueLen > 0);
    await pass(10_100);
    assert.deepEqual(lost, new Array(mqueueLen).fill('brief slow_consumer'));
    assert.equal(broker.metrics.counter('delivery.dropped.slow_consumer'), mqueueLen);
    assert.equal(
      broker.sessions.get('lasting').counters().mqueueLen,
      mqueueLen,
      'a session that outlives its connection keeps its messages'
    );
    await pass(60_000);
    assert.deepEqual(lost.slice(mqueueLen), new Array(mqueueLen).fill('lasting session_terminated'));
  });

  it('loses only the messages of the client over TCP, too', async () => {
    await using it = await startTestBed({ maxMqueueLen: 100, maxMqueueBytes: 1_000_000, outputHighWaterMark: 65_536 });
    const { broker } = it;
    const server = createServer((socket) => broker.handle(socket, { transport: 'tcp' }));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as { port: number };
    const sockets: Socket[] = [];
    const join = async (clientId: string) => {
      const socket = dial(port, '127.0.0.1');
      sockets.push(socket);
      socket.write(Buffer.concat([encode(connect({ version: 4, clientId }), 4), encode(subscribe(1, 0, 'a'), 4)]));
      const reader = new PacketReader({ side: 'client', version: 4 });
      const welcome: string[] = [];
      while (welcome.length < 2) {
        const [chunk] = (await once(socket, 'data')) as [Buffer];
        welcome.push(...reader.push(chunk).map(({ cmd }) => cmd));
      }
      return { socket, reader };
    };
    try {
      const slow = await join('slow');
      slow.socket.pause();
      const healthy = await join('healthy');
      let received = 0;
      healthy.socket.on('data', (chunk: Buffer) => {
        received += healthy.reader.push(chunk).length;
      });
      const publisher = await client(broker, { version: 4 });
      const frame = encode(publish('a', Buffer.alloc(10_000, 'x')), 4);
      let sent = 0;
      // Sockets buffer in the kernel, so continue until messages are dropped.
      while ((broker.sessions.get('slow').counters().mqueueDropped ?? 0) < 500 && sent < 20_000) {
        publisher.say(Buffer.concat([frame, frame, frame, frame]));
        sent += 4;
        while (received < sent) await once(healthy.socket, 'data');
      }
      const { mqueueDropped, mqueueLen } = broker.sessions.get('slow').counters();
      assert.ok(mqueueDropped >= 500, `${mqueueDropped} of ${sent} dropped`);
      assert.ok(mqueueLen <= 100);
      assert.equal(received, sent);
      assert.equal(broker.sessions.get('healthy').counters().mqueueDropped, 0);
    } finally {
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  });

  it('stops reading from a client that floods PINGREQ packets, until it reads the answers', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const peer = await client(broker, { clientId: 'flood' });
    const other = await client(broker);
    peer.wire.listen(false);
    const flood = Buffer.alloc(65_536);
    for (let at = 0; at < flood.length; at += 2) flood[at] = 0xc0;
    for (let round = 0; round < 100; round++) {
      peer.say(flood);
      if (round % 10 === 0) await turns(1);
    }
    await turns(2);
    const unread = peer.wire.readableLength;
    assert.ok(unread > 50 * 65_536, `${unread} bytes are unread`);
    assert.ok(broker.sessions.get('flood').counters().sendPend <= 262_144 + 131_072);
    assert.ok(await isServed(other));
    let heard = 0;
    for (let round = 0; round < 2_000 && heard < 100 * 65_536; round++) {
      peer.wire.listen(true);
      await turns(1);
      heard += peer.wire.hear().length;
    }
    assert.equal(heard, 100 * 65_536, 'every PINGREQ is answered in the end');
  });

  it('does not block itself when it publishes to itself and reads only afterwards', async () => {
    await using it = await startTestBed({ outputHighWaterMark: 20_000 });
    for (const qos of [0, 1] as const) {
      const peer = await client(it.broker, { clientId: `self${qos}`, properties: { receiveMaximum: 65_535 } });
      peer.say(subscribe(1, qos, `own${qos}`));
      await turns(2);
      peer.take();
      peer.wire.listen(false);
      for (let id = 1; id <= 5_000; id++) {
        peer.say(publish(`own${qos}`, String(id), qos, qos > 0 ? id : undefined));
        if (id % 100 === 0) await turns(1);
      }
      await turns(2);
      assert.equal(peer.wire.readableLength, 0, 'all packets have been read');
      peer.wire.listen(true);
      const heard: string[] = [];
      for (let round = 0; round < 200; round++) {
        await turns(1);
        for (const packet of peer.take()) {
          if (packet.cmd !== 'publish') continue;
          heard.push(packet.payload.toString());
          if (qos > 0) peer.say({ cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 });
        }
      }
      assert.deepEqual(
        heard,
        Array.from({ length: 5_000 }, (_, at) => String(at + 1)),
        'all messages arrive in order'
      );
    }
  });

  it('keeps a client past its keep alive while the broker does not read from it', async () => {
    await using it = await startTestBed({ slowConsumerTimeout: 0 });
    const peer = await client(it.broker, { clientId: 'paused', keepalive: 10 });
    peer.wire.listen(false);
    const flood = Buffer.alloc(600_000);
    for (let at = 0; at < flood.length; at += 2) flood[at] = 0xc0;
    for (let at = 0; at < flood.length; at += 60_000) peer.say(flood.subarray(at, at + 60_000));
    await it.pass(0);
    assert.ok(peer.wire.readableLength > 0, 'reading is paused');
    await it.pass(100_000);
    assert.equal(it.broker.sessions.get('paused').state, 'connected');
    for (let round = 0; round < 200; round++) {
      peer.wire.listen(true);
      await turns(1);
    }
    await it.pass(16_000);
    assert.equal(it.reasons.get('paused'), 'keepalive_timeout', 'afterwards the timeout applies again');
  });

  it('sends no repeated copies of messages that the client does not acknowledge (retryInterval)', async () => {
    await using it = await startTestBed({ retryInterval: '1s', slowConsumerTimeout: 0, outputHighWaterMark: 10_000 });
    const publisher = await client(it.broker, { version: 4 });
    const slow = await client(it.broker, { version: 4, clientId: 'slow' });
    slow.say(subscribe(1, 1, 'a'));
    await turns(2);
    slow.wire.listen(false);
    for (let id = 1; id <= 100; id++) publisher.say(publish('a', KIB, 1, id));
    await it.pass(0);
    const { sendOct, sendPkt } = it.broker.sessions.get('slow').counters();
    for (let second = 0; second < 60; second++) await it.pass(1_000);
    const later = it.broker.sessions.get('slow').counters();
    assert.deepEqual([later.sendOct, later.sendPkt], [sendOct, sendPkt], 'unread messages are not sent again');
  });

  it('sends no more unacknowledged messages again than the client reads, for any number of reconnects', async () => {
    await using it = await startTestBed({ outputHighWaterMark: 100_000, maxInflight: 100 });
    const { broker } = it;
    const publisher = await client(broker, { version: 4 });
    const options = { version: 4, clientId: 'slow', clean: false } as const;
    const first = await client(broker, options);
    first.say(subscribe(1, 1, 'a'));
    for (let id = 1; id <= 100; id++) publisher.say(publish('a', Buffer.alloc(50_000, String(id % 10)), 1, id));
    await quiet(publisher);
    for (let round = 0; round < 3; round++) {
      const again = await client(broker, { ...options, isListening: false });
      await turns(3);
      const { sendMsg } = broker.sessions.get('slow').counters();
      assert.ok(sendMsg < 10, `${sendMsg} messages sent and not read`);
      again.wire.leave();
      await turns(2);
    }
    const last = await client(broker, options);
    for (let round = 0; round < 100; round++) {
      await turns(1);
      last.take();
    }
    const all = last.received.filter(({ cmd }) => cmd === 'publish');
    assert.equal(all.length, 100, 'a client that reads receives all messages');
    assert.ok(all.every((packet) => packet.cmd === 'publish' && packet.dup));
    assert.deepEqual(
      all.map((packet) => packet.cmd === 'publish' && packet.messageId),
      Array.from({ length: 100 }, (_, at) => at + 1),
      'in order'
    );
    publisher.say(publish('a', 'new', 1, 101));
    last.say({ cmd: 'puback', messageId: 1, reasonCode: 0 });
    await turns(3);
    assert.ok(kinds(last).includes('publish'), 'and then new messages');
  });
});
