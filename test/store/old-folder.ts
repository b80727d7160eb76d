import assert from 'node:assert/strict';
import { chmodSync, cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { levelStore } from '../../adapters/level/index.ts';
import type { Broker } from '../../lib/broker/broker.ts';
import type { Packet, ProtocolVersion, PublishPacket, QoS } from '../../lib/packets/types.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');

/** The data folders written by brokers of earlier releases in an app, see `make-fixture.mjs`. */
export const OLD_FOLDERS: readonly string[] = readdirSync(FIXTURES).filter((name) => /-(closed|killed)$/.test(name));

/** The data folders written by `embermq serve` of earlier releases, see `make-served-fixture.mjs`. */
export const SERVED_FOLDERS: readonly string[] = readdirSync(FIXTURES).filter((name) => name.endsWith('-served'));

interface Sent {
  readonly messageId: number;
  readonly topic: string;
  readonly payload: string;
  readonly qos: QoS;
}

type Named = readonly [topic: string, payload: string];

/** The description that `make-fixture.mjs` writes next to a folder. */
interface OldFolder {
  readonly version: string;
  readonly end: 'closed' | 'killed';
  /** Wall clock shortly before the broker ended. */
  readonly madeAtMs: number;
  /** The messages in flight to each reader, in both stages of QoS 2; all readers have the same queue after them. */
  readonly sessions: Readonly<
    Record<string, { version: ProtocolVersion; pubrels: readonly number[]; resent: readonly Sent[] }>
  >;
  readonly queue: readonly { topic: string; payload: string; qos: QoS; hasProperties?: true }[];
  /** The payloads that the two members of a share group have together. */
  readonly jobs: readonly string[];
  readonly awaitingRel: Readonly<
    Record<string, { version: ProtocolVersion; messageId: number; topic: string; payload: string }>
  >;
  readonly retained: Readonly<Record<string, string>>;
  readonly retainedForAnHour: Readonly<Record<string, string>>;
  readonly delayed: readonly { topic: string; payload: string; delaySec: number; isRetained: boolean }[];
  readonly tables: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly wills: {
    readonly atOnce: readonly string[];
    readonly after: { readonly clientId: string; readonly delaySec: number };
    readonly revokedBy: string;
  };
  readonly properties: Readonly<Record<string, unknown>>;
  /** Only if the broker was killed. */
  readonly load?: {
    readonly asleep: Readonly<Record<string, ProtocolVersion>>;
    readonly awake: Readonly<
      Record<string, { version: ProtocolVersion; received: readonly Named[]; openIds: readonly number[] }>
    >;
    readonly publishers: Readonly<
      Record<
        string,
        {
          version: ProtocolVersion;
          sent: readonly Named[];
          acked: readonly Named[];
          outgoing: readonly (Sent & { isReleased: boolean })[];
        }
      >
    >;
  };
}

/**
 * Copies a folder of a release; the original is never opened.
 * @returns its expected contents
 */
export function copyOldFolder(name: string, to: string): OldFolder {
  copy(name, to);
  return JSON.parse(readFileSync(join(FIXTURES, `${name}.json`), 'utf8')) as OldFolder;
}

/** The description that `make-served-fixture.mjs` writes next to a folder: the definitions of each kind, as the release returned them. */
export interface ServedFolder {
  /** The config file with which the folder was created. */
  readonly config: { readonly streams?: object };
  readonly rules: readonly { readonly id: string }[];
  readonly resources: readonly { readonly id: string }[];
  readonly webhooks: readonly { readonly name: string }[];
  readonly bridges: readonly { readonly name: string }[];
  readonly streamRules: readonly { readonly id: string; readonly status: string }[];
  readonly streams: readonly string[];
  readonly tables: readonly string[];
  readonly plugins: readonly string[];
  readonly scripts: readonly string[];
}

/**
 * Copies a folder of `embermq serve`; the original is never opened.
 * @returns its expected contents
 */
export function copyServedFolder(name: string, to: string): ServedFolder {
  copy(name, to);
  return JSON.parse(readFileSync(join(FIXTURES, `${name}.json`), 'utf8')) as ServedFolder;
}

function copy(name: string, to: string): void {
  cpSync(join(FIXTURES, name), to, { recursive: true });
  chmodSync(to, 0o700); // otherwise the broker warns about it
}

/** Advancing the clock further takes too long: a broker is started at that time instead. */
const TURNED_SEC = 7_200;

/** Opens a folder and checks that its state is complete and that everything happens when it is due. This changes the folder. */
export async function checkOldFolder(folder: string, expected: OldFolder): Promise<void> {
  const start = (now: number) => {
    const clock = { now, stuckMs: 60_000 };
    return createTestBroker({ store: levelStore(folder), leakCheck: false, clock, sessionExpiryInterval: Infinity });
  };
  await using kit = await start(expected.madeAtMs + 1_000);
  await new OldFolderCheck(kit, expected).run();
  await kit.broker.stop();
  const longestSec = Math.max(...expected.delayed.map(({ delaySec }) => delaySec));
  await using later = await start(expected.madeAtMs + longestSec * 1_000);
  await new OldFolderCheck(later, expected).runAtTheEnd();
  await later.broker.stop();
}

class OldFolderCheck {
  readonly #kit: TestBroker;
  readonly #broker: Broker;
  readonly #expected: OldFolder;

  constructor(kit: TestBroker, expected: OldFolder) {
    this.#kit = kit;
    this.#broker = kit.broker;
    this.#expected = expected;
  }

  async run(): Promise<void> {
    await this.#kit.clock.advance('1s');
    this.#checkTables();
    await this.#checkRetained();
    await this.#checkReaders();
    await this.#checkShareGroup();
    const observer = await this.#resume('observer', 5);
    const observed = await this.#drained(observer);
    await this.#checkWriters(observer, observed);
    await this.#checkLoad();
    await this.#checkWhatWaits(observer, observed);
    assert.equal(this.#broker.sessions.has('ended'), false);
    assert.equal(this.#broker.sessions.has('expiring'), false, 'its session expiry interval has passed');
  }

  /** Checks the messages with very long delays when they are due. */
  async runAtTheEnd(): Promise<void> {
    await this.#kit.clock.advance('1s');
    const messages = await this.#drained(await this.#resume('observer', 5));
    const late = this.#expected.delayed.filter(({ delaySec }) => delaySec > TURNED_SEC);
    assert.deepEqual(
      messages.map(({ topic, payload }) => [topic, `${payload}`]),
      late.map(({ topic, payload }) => [topic, payload])
    );
  }

  #checkTables(): void {
    for (const [name, entries] of Object.entries(this.#expected.tables)) {
      const table = this.#broker.table(name);
      assert.deepEqual(Object.fromEntries(table), entries, `table ${name}`);
    }
  }

  async #checkRetained(): Promise<void> {
    const { retained, retainedForAnHour } = this.#expected;
    const found: Record<string, string> = {};
    for await (const { topic, payload } of this.#broker.retained.match('kept/#')) found[topic] = `${payload}`;
    assert.deepEqual(found, { ...retained, ...retainedForAnHour });
  }

  async #checkReaders(): Promise<void> {
    const { sessions, queue, properties } = this.#expected;
    for (const [clientId, { version, pubrels, resent }] of Object.entries(sessions)) {
      const client = await this.#resume(clientId, version);
      const packets = await this.#received(client);
      const released = packets.flatMap((packet) => (packet.cmd === 'pubrel' ? [packet.messageId] : []));
      assert.deepEqual(released.slice(0, pubrels.length), pubrels, `${clientId}: PUBREL`);
      const messages = packets.filter((packet) => packet.cmd === 'publish');
      const again = messages.splice(0, resent.length);
      assert.deepEqual(
        again.map(({ messageId, topic, payload, qos, dup }) => ({ messageId, topic, payload: `${payload}`, qos, dup })),
        resent.map(({ messageId, topic, payload, qos }) => ({ messageId, topic, payload, qos, dup: true })),
        `${clientId}: in flight`
      );
      assert.deepEqual(
        messages.map(({ topic, payload, qos, dup }) => [topic, `${payload}`, qos, dup]),
        queue.map(({ topic, payload, qos }) => [topic, payload, qos, false]),
        `${clientId}: queue`
      );
      if (version !== 5) continue;
      for (const [at, { hasProperties }] of queue.entries())
        if (hasProperties) assert.deepEqual(propertiesOf(messages[at]), properties);
      assert.ok([...again, ...messages].every((one) => one.properties?.subscriptionIdentifier?.[0] === 7));
      const [record] = [...this.#broker.sessions.get(clientId).subscriptions()];
      const { filter, qos, noLocal, retainAsPublished, retainHandling } = record;
      assert.deepEqual([filter, qos, noLocal, retainAsPublished, retainHandling], ['q/#', 2, true, true, 1]);
    }
  }

  async #checkShareGroup(): Promise<void> {
    const got: string[] = [];
    for (const [clientId, version] of [
      ['worker5', 5],
      ['worker4', 4]
    ] as const) {
      const messages = await this.#drained(await this.#resume(clientId, version));
      if (version === 5) assert.ok(messages.every((one) => one.properties?.subscriptionIdentifier?.[0] === 8));
      assert.ok(messages.length > 0, `${clientId} has none`);
      got.push(...messages.map(({ payload }) => `${payload}`));
    }
    assert.deepEqual(got.sort(), [...this.#expected.jobs].sort());
  }

  /** Checks that messages received at QoS 2 before are not delivered again when they are sent again. */
  async #checkWriters(observer: RawClient, observed: PublishPacket[]): Promise<void> {
    for (const [clientId, { version, messageId, topic, payload }] of Object.entries(this.#expected.awaitingRel)) {
      const client = await this.#resume(clientId, version);
      const again = { topic, payload: Buffer.from(payload), messageId, qos: 2, dup: true, retain: false } as const;
      client.send({ cmd: 'publish', ...again });
      assert.equal((await client.next('pubrec')).reasonCode, 0);
      client.send({ cmd: 'pubrel', messageId, reasonCode: 0 });
      assert.equal((await client.next('pubcomp')).reasonCode, 0);
      observed.push(...(await this.#drained(observer)));
    }
    for (const { topic } of Object.values(this.#expected.awaitingRel))
      assert.equal(observed.filter((message) => message.topic === topic).length, 0, `${topic} was delivered twice`);
  }

  /** Checks that every acknowledged message exists, and that the others are delivered when sent again; at QoS 2 once. */
  async #checkLoad(): Promise<void> {
    const { load } = this.#expected;
    if (load === undefined) return;
    const { publishers, asleep, awake } = load;
    const acked = Object.values(publishers).flatMap((one) => one.acked);
    const first: Record<string, PublishPacket[]> = {};
    const clients: Record<string, RawClient> = {};
    for (const [clientId, version] of Object.entries(asleep)) {
      clients[clientId] = await this.#resume(clientId, version);
      first[clientId] = await this.#drained(clients[clientId]);
      const got = new Set(first[clientId].map(nameOf));
      const lost = acked.filter(([topic, payload]) => !got.has(`${topic} ${payload}`));
      assert.deepEqual(lost, [], `${clientId} did not receive every acknowledged message`);
    }
    for (const [clientId, { version, openIds }] of Object.entries(awake)) {
      clients[clientId] = await this.#resume(clientId, version);
      const messages = await this.#drained(clients[clientId]);
      // The broker had received these already, but its PUBREC had not arrived.
      first[clientId] = messages.filter(
        ({ qos, dup, messageId = 0 }) => !(qos === 2 && dup && openIds.includes(messageId))
      );
    }
    for (const [clientId, { version, outgoing }] of Object.entries(publishers))
      await this.#sendAgain(await this.#resume(clientId, version), outgoing);
    for (const [clientId, client] of Object.entries(clients)) {
      const before = awake[clientId]?.received.map(([topic, payload]) => `${topic} ${payload}`) ?? [];
      const got = [...before, ...[...first[clientId], ...(await this.#drained(client))].map(nameOf)];
      const sent = Object.values(publishers).flatMap((one) => one.sent);
      const all = sent.map(([topic, payload]) => `${topic} ${payload}`);
      assert.deepEqual(new Set(got), new Set(all), clientId);
      const once = got.filter((name) => name.includes('/q2 '));
      assert.equal(once.length, new Set(once).size, `${clientId} got a message of QoS 2 twice`);
    }
  }

  async #sendAgain(client: RawClient, outgoing: readonly (Sent & { isReleased: boolean })[]): Promise<void> {
    for (const { messageId, topic, payload, qos, isReleased } of outgoing) {
      if (isReleased) client.send({ cmd: 'pubrel', messageId, reasonCode: 0 });
      else {
        const again = { topic, payload: Buffer.from(payload), messageId, qos, dup: true, retain: false };
        client.send({ cmd: 'publish', ...again });
        if (qos === 1) continue;
        while ((await client.next()).cmd !== 'pubrec');
        client.send({ cmd: 'pubrel', messageId, reasonCode: 0 });
      }
    }
    await this.#received(client);
  }

  /** Checks wills and delayed messages when they are due. */
  async #checkWhatWaits(observer: RawClient, observed: PublishPacket[]): Promise<void> {
    const { wills, delayed, retainedForAnHour, end } = this.#expected;
    const came = (topic: string) => observed.filter((message) => message.topic === topic).length;
    for (const clientId of wills.atOnce) assert.equal(came(`wills/${clientId}`), 1, `will of ${clientId} (${end})`);
    await this.#resume(wills.revokedBy, 5);
    for (const { topic } of delayed) assert.equal(came(topic), 0, `${topic} before its time`);
    const timesSec = new Set(delayed.map(({ delaySec }) => delaySec).filter((sec) => sec <= TURNED_SEC));
    let passedSec = 0;
    for (const sec of [...timesSec].sort((a, b) => a - b)) {
      await this.#kit.clock.advance((sec - passedSec) * 1_000);
      passedSec = sec;
      observed.push(...(await this.#drained(observer)));
      for (const { topic, delaySec } of delayed)
        assert.equal(came(topic), delaySec <= sec ? 1 : 0, `${topic} after ${sec} s`);
      assert.equal(came(`wills/${wills.after.clientId}`), wills.after.delaySec <= sec ? 1 : 0, `will after ${sec} s`);
    }
    assert.equal(came(`wills/${wills.revokedBy}`), 0, 'its client has reconnected');
    const retained: string[] = [];
    for await (const { topic } of this.#broker.retained.match('#')) retained.push(topic);
    for (const { topic, isRetained } of delayed) assert.equal(retained.includes(topic), isRetained, topic);
    assert.ok(retained.includes(`wills/${wills.after.clientId}`), 'the will is retained');
    for (const topic of Object.keys(retainedForAnHour)) assert.ok(!retained.includes(topic), `${topic} has expired`);
  }

  async #resume(clientId: string, version: ProtocolVersion): Promise<RawClient> {
    const properties = version === 5 ? { sessionExpiryInterval: 0xffff_ffff } : undefined;
    const client = await rawClient(this.#broker, { clientId, version, clean: false, properties });
    // MQTT 3.1 has no Session Present flag.
    if (version !== 3) assert.equal(client.connack?.sessionPresent, true, `${clientId} has no session`);
    return client;
  }

  /** Returns all messages received, and acknowledges them completely. */
  async #received(client: RawClient): Promise<Packet[]> {
    const all: Packet[] = [];
    for (let quiet = 0; quiet < 3; ) {
      await this.#kit.clock.settle();
      const packets = await client.rest();
      quiet = packets.length === 0 ? quiet + 1 : 0;
      all.push(...packets);
      for (const packet of packets) {
        if (packet.cmd === 'pubrel') client.send({ cmd: 'pubcomp', messageId: packet.messageId, reasonCode: 0 });
        if (packet.cmd !== 'publish' || packet.qos === 0) continue;
        client.send({ cmd: packet.qos === 1 ? 'puback' : 'pubrec', messageId: packet.messageId ?? 0, reasonCode: 0 });
      }
    }
    return all;
  }

  async #drained(client: RawClient): Promise<PublishPacket[]> {
    return (await this.#received(client)).filter((packet) => packet.cmd === 'publish');
  }
}

function nameOf({ topic, payload }: PublishPacket): string {
  return `${topic} ${payload}`;
}

/** Formats packets as in the expectations. */
function propertiesOf({ properties }: PublishPacket): Record<string, unknown> {
  const { contentType, responseTopic, correlationData, userProperties } = properties ?? {};
  return {
    contentType,
    responseTopic,
    userProperties: Object.fromEntries((userProperties ?? []) as Iterable<readonly [string, string]>),
    correlationData: `${correlationData}`
  };
}
