import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthSource } from '../../lib/adapter.ts';
import type { AuthorizeRequest, Verdict } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { connectPacket, rawClient } from '../support/raw-client.ts';
import { granted, payloads, refusedConnect, turns } from '../support/wire.ts';

/** A source that counts its open questions. */
class Counted implements AuthSource {
  readonly name = 'counted';
  readonly provides = ['authorization'] as const;
  asked = 0;
  /** Maximum number of questions that were open at a time, and of those about one client. */
  most = 0;
  mostOfOne = 0;
  /** Clients about which the source does not answer. */
  readonly hanging = new Set<string>();
  /** The client about which the source declares at once that it cannot decide. */
  undecided: string | undefined = undefined;
  readonly #open = new Map<string, number>();
  #openOfAll = 0;

  async authorize(request: AuthorizeRequest): Promise<Verdict> {
    const { clientId } = request.client;
    this.asked++;
    if (request.topic === this.undecided) {
      request.undecided();
      return false;
    }
    if (this.hanging.has(clientId)) return new Promise(() => undefined);
    const open = (this.#open.get(clientId) ?? 0) + 1;
    this.#open.set(clientId, open);
    this.most = Math.max(this.most, ++this.#openOfAll);
    this.mostOfOne = Math.max(this.mostOfOne, open);
    await turns(1);
    this.#open.set(clientId, (this.#open.get(clientId) ?? 0) - 1);
    this.#openOfAll--;
    return true;
  }
}

const PROPERTIES = { sessionExpiryInterval: 3600 };

/** Sessions with subscriptions, whose clients have left. */
async function sessions(source: Counted, count: number, subscriptions: number) {
  const kit = await createTestBroker({ auth: [source], allowAnonymous: true, hookTimeout: 3_600_000 });
  const ids = Array.from({ length: count }, (_, at) => `c${at}`);
  for (const clientId of ids) {
    const client = await rawClient(kit.broker, { clientId, properties: PROPERTIES });
    for (let at = 0; at < subscriptions; at++) await granted(client, 1, { topic: `t/${at}`, qos: 1 });
    client.cut();
    await turns();
  }
  source.asked = source.most = source.mostOfOne = 0;
  const comesBack = async (clientId: string) => {
    const client = await rawClient(kit.broker, { connect: false });
    client.send(connectPacket({ clientId, properties: PROPERTIES, clean: false }));
    await turns();
    return client;
  };
  return { kit, ids, comesBack };
}

describe('Clients that return', () => {
  it('asks at most 64 questions at a time about returning clients, and 8 about one of them', async () => {
    const source = new Counted();
    const { kit, ids } = await sessions(source, 20, 20);
    await using _ = kit;
    await kit.broker.publish('t/19', 'x', { qos: 1 });
    const clients = await Promise.all(
      ids.map((clientId) => rawClient(kit.broker, { clientId, properties: PROPERTIES, clean: false }))
    );
    for (const client of clients) assert.deepEqual(await payloads(client), ['x']);
    assert.deepEqual([source.asked, source.most, source.mostOfOne], [400, 64, 8]);
  });

  it('refuses a returning client at the first question that cannot be decided, without waiting for the others', async () => {
    const source = new Counted();
    const { kit, ids } = await sessions(source, 20, 20);
    await using _ = kit;
    source.undecided = 't/3';
    for (const clientId of ids.slice(1)) source.hanging.add(clientId);
    for (const clientId of ids.slice(1))
      assert.equal((await refusedConnect(kit.broker, { clientId, clean: false })).reasonCode, 0x88);
    assert.ok(source.asked <= 19 * 8, `asked ${source.asked} times`);
    source.undecided = undefined;
    const [clientId] = ids;
    await rawClient(kit.broker, { clientId, properties: PROPERTIES, clean: false }); // the places are free again
  });

  it('frees the places of the questions about a returning client that leaves', async () => {
    const source = new Counted();
    const { kit, ids, comesBack } = await sessions(source, 20, 20);
    await using _ = kit;
    const [clientId, ...others] = ids;
    for (const other of others) source.hanging.add(other);
    const leaving = [];
    for (const other of others) leaving.push(await comesBack(other));
    assert.equal(source.asked, 64);
    const last = await comesBack(clientId);
    assert.equal(source.asked, 64, 'the last one waits');
    for (const client of leaving.reverse()) client.cut(); // those that wait for a place leave first
    assert.equal((await last.next('connack')).reasonCode ?? 0, 0);
    assert.equal(source.asked, 64 + 20);
  });
});
