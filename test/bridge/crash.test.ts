import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type Client, type ClientOptions, connectClient } from '../../lib/index.ts';

/** A durable broker in a process that can be killed. It keeps its port and its folder. */
class Victim {
  port = 0;
  #child!: ChildProcess;
  readonly #folder = mkdtempSync(join(tmpdir(), 'bridge-'));
  readonly #link: object | undefined;

  constructor(link?: object) {
    this.#link = link;
  }

  async begin(): Promise<this> {
    const settings = JSON.stringify({ folder: this.#folder, port: this.port, link: this.#link });
    const file = join(import.meta.dirname, 'broker-child.ts');
    const flags = ['--import', 'tsx', '--conditions=embermq-source'];
    this.#child = spawn(process.execPath, [...flags, file, settings], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(this.#child.stdout as NonNullable<ChildProcess['stdout']>, 'data');
    this.port = Number(line);
    return this;
  }

  async kill(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  async end(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true });
  }
}

/** A client with a lasting session that connects again until it ends. */
class Peer {
  client: Client | undefined;
  readonly #victim: Victim;
  readonly #options: ClientOptions;
  readonly #seen: (payload: string) => void;
  #isEnded = false;

  constructor(victim: Victim, clientId: string, seen: (payload: string) => void = () => undefined) {
    this.#victim = victim;
    this.#options = { clientId, clean: false, sessionExpiry: '1h' };
    this.#seen = seen;
  }

  /** Resolves when the peer is connected. */
  async ready(): Promise<Client> {
    while (this.client?.isConnected !== true && !this.#isEnded) {
      await setImmediate();
      const socket = connect({ port: this.#victim.port, host: '127.0.0.1', noDelay: true });
      try {
        await once(socket, 'connect');
        const session = this.client?.session;
        const client = await connectClient(socket, { ...this.#options, ...(session === undefined ? {} : { session }) });
        client.on('message', ({ payload }) => this.#seen(String(payload)));
        this.client = client;
      } catch {
        socket.destroy();
      }
    }
    return this.client as Client;
  }

  end(): void {
    this.#isEnded = true;
    this.client?.destroy();
  }
}

/** Publishes numbers at one broker while both are killed in turns. @returns the numbers as the other one has delivered them */
async function delivered(qos: 1 | 2, isOut: boolean): Promise<{ published: number; received: string[] }> {
  const far = await new Victim().begin();
  const topics = [{ filter: 't', qos }];
  const near = await new Victim({
    url: `mqtt://127.0.0.1:${far.port}`,
    isPersisted: true,
    maxQueue: 0,
    maxQueueBytes: 0,
    backOff: 20,
    maxBackOff: 100,
    ...(isOut ? { out: topics } : { in: topics })
  }).begin();
  const [from, to] = isOut ? [near, far] : [far, near];
  const received: string[] = [];
  const sink = new Peer(to, 'sink', (payload) => received.push(payload));
  const source = new Peer(from, 'source');
  try {
    await (await sink.ready()).subscribe('t', { qos });
    let isOver = false;
    let published = 0;
    const reading = (async () => {
      while (!isOver) {
        await sink.ready();
        await setImmediate();
      }
    })();
    const writing = (async () => {
      while (!isOver) {
        const client = await source.ready();
        const burst = Array.from({ length: 20 }, () =>
          client.publish('t', `${published++}`, { qos }).catch(() => undefined)
        );
        await Promise.all(burst);
        await setImmediate();
      }
      // what was rejected is in the session of the client, and is sent again with the next connection
      await source.ready();
    })();
    for (const victim of [far, near, far, near]) {
      const mark = received.length;
      while (received.length < mark + 200) await setImmediate();
      await victim.kill();
      await victim.begin();
    }
    isOver = true;
    await writing;
    const last = await (await source.ready()).publish('t', 'end', { qos });
    assert.ok(last !== null);
    isOver = false;
    const still = (async () => {
      while (!isOver) {
        await sink.ready();
        await setImmediate();
      }
    })();
    while (!received.includes('end')) await setImmediate();
    isOver = true;
    await Promise.all([reading, still]);
    return { published, received: received.filter((payload) => payload !== 'end') };
  } finally {
    sink.end();
    source.end();
    await Promise.all([near.end(), far.end()]);
  }
}

/** The numbers that were not received. */
function missing(received: readonly string[], published: number): number[] {
  const known = new Set(received);
  return Array.from({ length: published }, (_, number) => number).filter((number) => !known.has(`${number}`));
}

describe('A persisted bridge between two durable brokers', () => {
  for (const isOut of [true, false]) {
    const name = isOut ? 'to' : 'from';
    it(`loses no QoS 1 message ${name} the remote server if either process is killed`, async () => {
      const { published, received } = await delivered(1, isOut);
      assert.deepEqual(missing(received, published), []);
    });

    it(`neither loses nor doubles a QoS 2 message ${name} the remote server if either process is killed`, async () => {
      const { published, received } = await delivered(2, isOut);
      assert.deepEqual(missing(received, published), []);
      assert.equal(received.length, published);
    });
  }
});
