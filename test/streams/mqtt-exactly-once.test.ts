import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { mqttSource } from '../../adapters/streams/mqtt/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import type { Packet, QoS } from '../../lib/packets/types.ts';
import type { StreamTable } from '../../lib/streams/host.ts';
import { until } from '../support/until.ts';
import { ALL, Kept, makeHub, memoryTable, settled, stream } from './source-fixture.ts';

/** Another server, whose packets the test sends. */
class ScriptedServer {
  readonly got: Packet[] = [];
  readonly #server = createServer((socket) => this.#accept(socket));
  #socket: Socket | undefined;
  /** The session flag of the next CONNACK. */
  hasSession = false;

  async begin(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `tcp://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The acknowledgements received so far, such as `pubrec 5`. */
  get acks(): string[] {
    return this.got.flatMap((packet) =>
      'messageId' in packet && packet.cmd.startsWith('pub') ? `${packet.cmd} ${packet.messageId}` : []
    );
  }

  publish(n: number, messageId: number, { dup = false, qos = 2 as QoS } = {}): void {
    const payload = Buffer.from(JSON.stringify({ n }));
    this.#send({ cmd: 'publish', topic: 'a', payload, qos, dup, retain: false, messageId, properties: {} });
  }

  release(messageId: number): void {
    this.#send({ cmd: 'pubrel', messageId, reasonCode: 0 });
  }

  cut(): void {
    this.#socket?.destroy();
  }

  async end(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #send(packet: Packet): void {
    this.#socket?.write(encode(packet, 5));
  }

  #accept(socket: Socket): void {
    this.#socket = socket;
    const reader = new PacketReader({ side: 'server' });
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      for (const packet of reader.push(chunk)) {
        this.got.push(packet);
        if (packet.cmd === 'connect')
          this.#send({ cmd: 'connack', sessionPresent: this.hasSession, reasonCode: 0, properties: {} });
        if (packet.cmd === 'subscribe') this.#send({ cmd: 'suback', messageId: packet.messageId, granted: [2] });
      }
    });
  }
}

/** A store whose commits the test completes. */
class ManualCommits {
  readonly #table = memoryTable();
  readonly #waiting: { resolve(): void; reject(error: Error): void; undo(): void }[] = [];

  get waiting(): number {
    return this.#waiting.length;
  }

  readonly table: StreamTable<string> = {
    get: (key) => this.#table.get(key),
    set: async (key, value) => {
      void this.#table.set(key, value);
      await this.commit(() => void this.#table.delete(key));
    },
    delete: async (key) => {
      const value = this.#table.get(key);
      void this.#table.delete(key);
      await this.commit(() => value !== undefined && void this.#table.set(key, value));
      return value !== undefined;
    },
    [Symbol.iterator]: () => this.#table[Symbol.iterator]()
  };

  /** Resolves when the test completes the commit. */
  commit(undo: () => void): Promise<void> {
    return new Promise((resolve, reject) => void this.#waiting.push({ resolve, reject, undo }));
  }

  complete(): void {
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  refuse(): void {
    for (const { reject, undo } of this.#waiting.splice(0)) {
      undo();
      reject(new Error('disk full'));
    }
  }
}

async function start() {
  const server = new ScriptedServer();
  const commits = new ManualCommits();
  const kept = new Kept();
  const records = {
    get added() {
      return kept.rows.length;
    },
    committed: () => commits.commit(() => undefined)
  };
  const sourceConfig = { mqtt: { default: { server: await server.begin(), protocolVersion: '5', qos: 2 } } };
  const ports = { sourceConfig, records, notes: commits.table, isKept: () => true };
  const fixture = makeHub([mqttSource()], ports);
  const attachment = fixture.hub.attach(stream({ TYPE: 'mqtt', DATASOURCE: 'a' }), ALL, kept);
  /** Wait for the connection, including the commits that it needs. */
  const connected = () =>
    until(() => {
      commits.complete();
      return attachment.connection.status === 1;
    });
  const reconnect = async (hasSession: boolean) => {
    server.cut();
    await until(() => attachment.connection.status === -1);
    server.hasSession = hasSession;
    fixture.clock.advance(1_100);
    await connected();
  };
  const end = async () => {
    const detached = attachment.detach();
    commits.complete();
    await detached;
    await server.end();
  };
  await connected();
  return { ...fixture, server, commits, kept, attachment, reconnect, end };
}

/** Wait for packets in transit to arrive. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await settled();
}

describe('Messages of QoS 2 of another MQTT server', () => {
  it('answers with PUBREC when row and packet id are committed, and with PUBCOMP when the removal of the id is committed', async () => {
    const { server, commits, kept, end } = await start();
    server.publish(1, 5);
    await until(() => commits.waiting === 2);
    await quiet();
    assert.deepEqual([kept.values, server.acks], [[{ n: 1 }], []]);
    commits.complete();
    await until(() => server.acks.length === 1);
    server.release(5);
    await until(() => commits.waiting === 1);
    await quiet();
    assert.deepEqual(server.acks, ['pubrec 5']);
    commits.complete();
    await until(() => server.acks.length === 2);
    assert.deepEqual(server.acks, ['pubrec 5', 'pubcomp 5']);
    await end();
  });

  it('takes a repeated message once, and accepts its packet id for another message after the PUBREL', async () => {
    const { server, commits, kept, reconnect, end } = await start();
    server.publish(1, 5);
    await until(() => commits.waiting === 2);
    commits.complete();
    await until(() => server.acks.length === 1);
    await reconnect(true);
    server.publish(1, 5, { dup: true });
    await until(() => server.acks.length === 2);
    server.release(5);
    await until(() => commits.waiting === 1);
    commits.complete();
    await until(() => server.acks.length === 3);
    await reconnect(true);
    server.publish(2, 5);
    await until(() => commits.waiting === 2);
    commits.complete();
    await until(() => server.acks.length === 4);
    assert.deepEqual(server.acks, ['pubrec 5', 'pubrec 5', 'pubcomp 5', 'pubrec 5']);
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }]);
    await end();
  });

  it('takes a message again if the store has refused it', async () => {
    const { server, commits, kept, attachment, clock, end } = await start();
    server.publish(1, 5);
    await until(() => commits.waiting === 2);
    server.hasSession = true;
    commits.refuse();
    await until(() => attachment.connection.status === -1);
    assert.match(attachment.connection.disconnectedMessage, /disk full/);
    clock.advance(1_100);
    await until(() => attachment.connection.status === 1);
    server.publish(1, 5, { dup: true });
    await until(() => commits.waiting === 2);
    commits.complete();
    await until(() => server.acks.length === 1);
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 1 }]); // the consumer of a rule with checkpoints refuses the first one
    await end();
  });

  it('forgets the packet ids of a session that the server has lost', async () => {
    const { server, commits, kept, reported, reconnect, end } = await start();
    server.publish(1, 5);
    await until(() => commits.waiting === 2);
    commits.complete();
    await until(() => server.acks.length === 1);
    assert.deepEqual(reported, []);
    await reconnect(false);
    assert.match(
      reported.join(),
      /^stream demo: the server no longer has the session embermq_.*_demo, so messages .* are lost/
    );
    server.publish(2, 5);
    await until(() => kept.rows.length === 2);
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }]);
    await until(() => commits.waiting > 0);
    commits.complete();
    await until(() => server.acks.length === 2);
    await end();
  });

  it('waits, on the next connection, for commits in progress', async () => {
    const { server, commits, attachment, clock, end } = await start();
    server.publish(1, 5);
    await until(() => commits.waiting === 2);
    server.cut();
    await until(() => attachment.connection.status === -1);
    server.hasSession = true;
    clock.advance(1_100);
    await quiet();
    assert.equal(server.got.filter(({ cmd }) => cmd === 'connect').length, 1);
    commits.complete();
    await until(() => attachment.connection.status === 1);
    await end();
  });

  for (const qos of [1, 2] as const)
    it(`delays messages of QoS ${qos} in order, without acknowledgement, while a rule is replaced or has no room`, async () => {
      const { server, commits, kept, attachment, end } = await start();
      const release = attachment.hold();
      for (const n of [1, 2]) server.publish(n, n, { qos });
      await quiet();
      assert.deepEqual([kept.values, commits.waiting], [[], 0]);
      attachment.setFull(true);
      release();
      await quiet();
      assert.equal(kept.rows.length, 0);
      attachment.setFull(false);
      await until(() => kept.rows.length === 2);
      assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }]);
      commits.complete();
      await until(() => {
        commits.complete();
        return server.acks.length === 2;
      });
      const ack = qos === 1 ? 'puback' : 'pubrec';
      assert.deepEqual(server.acks, [`${ack} 1`, `${ack} 2`]);
      await end();
    });

  it('waits for pending commits when a source replaces one without a connection', async () => {
    const { hub, server, commits, attachment, end } = await start();
    server.publish(1, 5);
    await until(() => commits.waiting === 2);
    server.cut();
    await until(() => attachment.connection.status === -1);
    server.hasSession = true;
    const detached = attachment.detach();
    const next = hub.attach(stream({ TYPE: 'mqtt', DATASOURCE: 'a' }), ALL, new Kept());
    await quiet();
    assert.equal(server.got.filter(({ cmd }) => cmd === 'connect').length, 1);
    commits.complete();
    await detached;
    await until(() => next.connection.status === 1);
    server.publish(1, 5, { dup: true });
    await until(() => server.acks.length === 1);
    await next.detach();
    await end();
  });

  it('takes messages with packet ids of a lost session that the store could not delete', async () => {
    const { server, commits, kept, attachment, clock, end } = await start();
    server.publish(1, 5);
    await until(() => commits.waiting === 2);
    commits.complete();
    await until(() => server.acks.length === 1);
    server.cut();
    await until(() => attachment.connection.status === -1);
    clock.advance(1_100);
    await until(() => commits.waiting === 1);
    server.hasSession = true;
    commits.refuse();
    await quiet();
    server.cut();
    await until(() => attachment.connection.status === -1);
    clock.advance(3_000);
    await until(() => {
      commits.complete();
      return attachment.connection.status === 1;
    });
    server.publish(2, 5);
    await until(() => {
      commits.complete();
      return server.acks.length === 2;
    });
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }]);
    await end();
  });

  it('passes waiting messages on again if the connection is lost in the meantime', async () => {
    const { server, commits, kept, attachment, reconnect, end } = await start();
    const release = attachment.hold();
    server.publish(1, 5);
    await quiet();
    await reconnect(true);
    server.publish(1, 5, { dup: true });
    await quiet();
    release();
    await until(() => kept.rows.length === 1);
    await quiet();
    commits.complete();
    await until(() => server.acks.length === 1);
    assert.deepEqual([kept.values, server.acks], [[{ n: 1 }], ['pubrec 5']]);
    await end();
  });
});
