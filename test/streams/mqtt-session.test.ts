import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, createBroker, memoryStore } from 'embermq';
import type { Store } from 'embermq/adapter';
import { listen, tcp } from 'embermq/net';
import { mqttSource } from '../../adapters/streams/mqtt/index.ts';
import { placeOf } from '../../lib/streams/sources/notes.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { ALL, Kept, makeHub, memoryTable, settled, stream } from './source-fixture.ts';

/** Another server. */
async function startOther(store?: Store, at = 0) {
  const broker = createBroker({ sessionExpiryInterval: '1h', ...(store === undefined ? {} : { store }) });
  const listening = listen(broker, tcp({ port: at }));
  await broker.start();
  return { broker, port: listening.port as number };
}

const idsOf = (broker: Broker) => [...broker.sessions].map(({ clientId }) => clientId);
const isConnected = (broker: Broker, clientId: string) =>
  [...broker.sessions].some((session) => session.clientId === clientId && session.state === 'connected');

const isSubscribed = (broker: Broker, clientId: string) =>
  [...broker.sessions].some((session) => session.clientId === clientId && [...session.subscriptions()].length === 1);

const DEFAULT_ID = 'embermq_embermq-127-0-0-1_demo';

/** A broker whose stream `demo` is at another server. */
async function startOurs(store: Store, port: number, properties: Record<string, unknown> = {}) {
  const sourceConfig = {
    mqtt: { default: { server: `tcp://127.0.0.1:${port}`, protocolVersion: '5', ...properties } }
  };
  // its clock is stopped, so no delay before another attempt elapses
  const clock = new ManualClock(Date.now());
  const broker = createBroker({ store, clock, streams: { sources: [mqttSource()], sourceConfig } });
  const got: number[] = [];
  broker.subscribe('out', ({ payload }) => void got.push(JSON.parse(String(payload)).n));
  await broker.start();
  return { broker, got };
}

async function makeRule({ streams }: Broker, id: string, qos: 0 | 1 | 2, topic = 'out'): Promise<void> {
  const actions = [{ mqtt: { topic, sendSingle: true } }];
  await streams.rules.create({ id, sql: 'SELECT n FROM demo', actions, options: { qos } });
}

const DEMO = 'CREATE STREAM demo () WITH (DATASOURCE="a/#", TYPE="mqtt", FORMAT="json")';

const publish = (broker: Broker, n: number) => broker.publish({ topic: 'a/1', payload: JSON.stringify({ n }), qos: 1 });

describe('A stream of another MQTT server with a session', () => {
  for (const protocolVersion of ['3.1.1', '5'])
    it(`receives the messages published while the broker was stopped, with MQTT ${protocolVersion}`, async () => {
      const other = await startOther();
      const store = memoryStore();
      const all: number[] = [];
      for (const round of [0, 1, 2]) {
        const ours = await startOurs(store, other.port, { protocolVersion });
        if (round === 0) {
          await ours.broker.streams.create(DEMO);
          // it has no checkpoints, and comes first
          await makeRule(ours.broker, 'plain', 0, 'other');
          await makeRule(ours.broker, 'kept', 1);
        }
        await until(() => isConnected(other.broker, DEFAULT_ID));
        if (round === 0) await until(() => isSubscribed(other.broker, DEFAULT_ID));
        publish(other.broker, 2 * round);
        await until(() => ours.got.includes(2 * round));
        await ours.broker.stop();
        all.push(...ours.got);
        publish(other.broker, 2 * round + 1);
      }
      assert.deepEqual([...new Set(all)], [0, 1, 2, 3, 4]);
      await other.broker.stop();
    });

  it('acknowledges a message when its row is committed, and receives it again if the store has refused it', async () => {
    const other = await startOther();
    const acked: string[] = [];
    other.broker.on('message.acked', ({ message }) => void acked.push(String(message.payload)));
    const commits: { resolve(): void; reject(error: Error): void }[] = [];
    const records = {
      get added() {
        return kept.rows.length;
      },
      committed: () => new Promise<void>((resolve, reject) => void commits.push({ resolve, reject }))
    };
    const server = `tcp://127.0.0.1:${other.port}`;
    const sourceConfig = { mqtt: { default: { server, protocolVersion: '5' } } };
    const { hub, clock } = makeHub([mqttSource()], { sourceConfig, records, isKept: () => true });
    const kept = new Kept();
    const attachment = hub.attach(stream({ TYPE: 'mqtt', DATASOURCE: 'a/#' }), ALL, kept);
    await until(() => attachment.connection.status === 1);
    publish(other.broker, 1);
    await until(() => commits.length === 1);
    publish(other.broker, 2);
    await until(() => commits.length === 2);
    commits[0].resolve();
    await until(() => acked.length === 1);
    commits[1].reject(new Error('disk full'));
    await until(() => attachment.connection.status === -1);
    assert.match(attachment.connection.disconnectedMessage, /disk full/);
    clock.advance(1_100);
    await until(() => commits.length === 3);
    assert.deepEqual(acked, ['{"n":1}']);
    commits[2].resolve();
    await until(() => acked.length === 2);
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }, { n: 2 }]);
    await attachment.detach();
    await other.broker.stop();
  });

  it('leaves no session at the server when the stream is dropped or reads other topics', async () => {
    const other = await startOther();
    const ours = await startOurs(memoryStore(), other.port);
    const { streams } = ours.broker;
    await streams.create(DEMO);
    await makeRule(ours.broker, 'kept', 1);
    await until(() => isSubscribed(other.broker, DEFAULT_ID));
    await streams.rules.stop('kept');
    await until(() => !isConnected(other.broker, DEFAULT_ID));
    assert.deepEqual(idsOf(other.broker), [DEFAULT_ID]);
    await streams.replace(DEMO.replace('a/#', 'b/#'));
    await until(() => idsOf(other.broker).length === 0);
    await streams.rules.start('kept');
    await until(() => isSubscribed(other.broker, DEFAULT_ID));
    await streams.delete('stream', 'demo', { force: true });
    assert.deepEqual(idsOf(other.broker), [DEFAULT_ID]);
    await streams.rules.delete('kept');
    await until(() => idsOf(other.broker).length === 0);
    await ours.broker.stop();
    await other.broker.stop();
  });

  it('leaves no session when enableClientSession is switched off', async () => {
    for (const clientid of ['own', undefined]) {
      const other = await startOther();
      const store = memoryStore();
      const id = clientid ?? DEFAULT_ID;
      const more = clientid === undefined ? {} : { clientid };
      const first = await startOurs(store, other.port, more);
      await first.broker.streams.create(DEMO);
      await makeRule(first.broker, 'kept', 1);
      await until(() => isSubscribed(other.broker, id));
      await first.broker.stop();
      const second = await startOurs(store, other.port, { ...more, enableClientSession: false });
      await until(() => isConnected(other.broker, id));
      await second.broker.stop();
      await until(() => idsOf(other.broker).length === 0);
      await other.broker.stop();
    }
  });

  it('deletes, after a restart, the session of a stream that was dropped while the server was unreachable', async () => {
    const kept = memoryStore();
    const other = await startOther(kept);
    const store = memoryStore();
    const first = await startOurs(store, other.port);
    await first.broker.streams.create(DEMO);
    await makeRule(first.broker, 'kept', 1);
    await until(() => isSubscribed(other.broker, DEFAULT_ID));
    await other.broker.stop();
    await first.broker.streams.rules.delete('kept');
    await first.broker.streams.delete('stream', 'demo');
    await first.broker.stop();
    const again = await startOther(kept, other.port);
    assert.deepEqual(idsOf(again.broker), [DEFAULT_ID]);
    const second = await startOurs(store, other.port);
    await until(() => idsOf(again.broker).length === 0);
    await second.broker.stop();
    await again.broker.stop();
  });

  it('deletes the session when enableClientSession is switched off while no rule runs, or when the last rule is dropped', async () => {
    for (const isSwitched of [true, false]) {
      const other = await startOther();
      const store = memoryStore();
      const first = await startOurs(store, other.port);
      await first.broker.streams.create(DEMO);
      await makeRule(first.broker, 'kept', 1);
      await until(() => isSubscribed(other.broker, DEFAULT_ID));
      await first.broker.streams.rules.stop('kept');
      await first.broker.stop();
      assert.deepEqual(idsOf(other.broker), [DEFAULT_ID]);
      const second = await startOurs(store, other.port, isSwitched ? { enableClientSession: false } : {});
      if (!isSwitched) await second.broker.streams.rules.delete('kept');
      await until(() => idsOf(other.broker).length === 0);
      await second.broker.stop();
      await other.broker.stop();
    }
  });

  it('deletes the session of the previous client id', async () => {
    const other = await startOther();
    const store = memoryStore();
    const first = await startOurs(store, other.port);
    await first.broker.streams.create(DEMO);
    await makeRule(first.broker, 'kept', 1);
    await until(() => isSubscribed(other.broker, DEFAULT_ID));
    await first.broker.stop();
    const second = await startOurs(store, other.port, { clientid: 'own' });
    await until(() => isSubscribed(other.broker, 'own') && idsOf(other.broker).length === 1);
    await second.broker.stop();
    await other.broker.stop();
  });

  it('starts with a clean start if the stream is redefined before its previous session is deleted', async () => {
    const kept = memoryStore();
    const other = await startOther(kept);
    const ours = await startOurs(memoryStore(), other.port);
    const { streams } = ours.broker;
    await streams.create(DEMO);
    await makeRule(ours.broker, 'kept', 1);
    await until(() => isSubscribed(other.broker, DEFAULT_ID));
    await other.broker.stop();
    await streams.rules.delete('kept');
    await streams.replace(DEMO.replace('a/#', 'b/#'));
    const again = await startOther(kept, other.port);
    await makeRule(ours.broker, 'kept', 1);
    const filters = () =>
      [...again.broker.sessions].flatMap((session) => Array.from(session.subscriptions(), ({ filter }) => filter));
    await until(() => filters().includes('b/#'));
    assert.deepEqual(filters(), ['b/#']);
    await ours.broker.stop();
    await again.broker.stop();
  });

  it('warns after five attempts to delete a session, and forgets the session when it has expired', async () => {
    const other = await startOther();
    await other.broker.stop();
    const server = `tcp://127.0.0.1:${other.port}`;
    const sourceConfig = { mqtt: { default: { server } } };
    const notes = memoryTable();
    const place = placeOf(stream({ TYPE: 'mqtt', DATASOURCE: 'a/#' }));
    await notes.set(`mqtt session 127.0.0.1:${other.port} one`, JSON.stringify({ place }));
    await notes.set(`mqtt id 127.0.0.1:${other.port} one 7`, '');
    const { hub, clock, reported } = makeHub([mqttSource()], { sourceConfig, notes });
    hub.tidy(new AbortController().signal);
    // an attempt ends with a refused connection, or with its time limit
    const reports = (count: number) =>
      until(() => {
        if (reported.length < count) clock.advance(40_000);
        return reported.length >= count;
      });
    await reports(1);
    assert.match(
      reported[0],
      /^stream demo: the session one at 127\.0\.0\.1:\d+ is not needed and cannot be deleted \(.+\); .* the attempts go on$/
    );
    assert.equal([...notes].length, 2);
    clock.advance(86_400_000);
    await reports(2);
    assert.match(reported[1], /until it expires: delete it there$/);
    await until(() => [...notes].length === 0);
    assert.equal(clock.pending, 0);
  });

  it('starts the session with one more connection if a rule with qos 1 is added while the source is connecting', async () => {
    const other = await startOther();
    const connected: string[] = [];
    other.broker.on('client.connected', ({ client }) => void connected.push(client.clientId));
    const sourceConfig = { mqtt: { default: { server: `tcp://127.0.0.1:${other.port}` } } };
    let isKept = false;
    const { hub, clock } = makeHub([mqttSource()], { sourceConfig, isKept: () => isKept });
    other.broker.hook('preConnect', () => {
      isKept = true;
      hub.tidy(new AbortController().signal);
      return undefined;
    });
    const attachment = hub.attach(stream({ TYPE: 'mqtt', DATASOURCE: 'a' }), ALL, new Kept());
    await until(() => attachment.connection.status === 1);
    for (let round = 0; round < 5; round++) {
      clock.advance(10_000);
      await settled();
    }
    assert.equal(clock.pending, 1); // keep alive
    assert.equal(connected.length, 2);
    assert.equal(attachment.connection.status, 1);
    await attachment.detach();
    await other.broker.stop();
  });

  it('starts the session when a rule with qos 1 is added to a stream that rules with qos 0 read', async () => {
    const other = await startOther();
    const ours = await startOurs(memoryStore(), other.port);
    await ours.broker.streams.create(DEMO);
    await makeRule(ours.broker, 'plain', 0, 'other');
    await until(() => idsOf(other.broker).length === 1);
    assert.notDeepEqual(idsOf(other.broker), [DEFAULT_ID]);
    await makeRule(ours.broker, 'kept', 1);
    await until(() => isConnected(other.broker, DEFAULT_ID));
    await ours.broker.stop();
    assert.deepEqual(idsOf(other.broker), [DEFAULT_ID]);
    await other.broker.stop();
  });
});
