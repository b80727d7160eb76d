import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, createBroker, memoryStore, type Store } from 'embermq';
import { listen, tcp } from 'embermq/net';
import { mqttSource } from '../../adapters/streams/mqtt/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { ALL, Kept, makeHub, stream } from './source-fixture.ts';

/** Another server. */
async function startOther() {
  const broker = createBroker({ sessionExpiryInterval: '1h' });
  const listening = listen(broker, tcp({ port: 0 }));
  await broker.start();
  return { broker, port: listening.port as number };
}

const idsOf = (broker: Broker) => [...broker.sessions].map(({ clientId }) => clientId);
const isConnected = (broker: Broker, clientId: string) =>
  [...broker.sessions].some((session) => session.clientId === clientId && session.state === 'connected');

const isSubscribed = (broker: Broker, clientId: string) =>
  [...broker.sessions].some((session) => session.clientId === clientId && [...session.subscriptions()].length === 1);

const DEFAULT_ID = 'embermq_embermq-127-0-0-1_demo';

/** A broker of ours whose stream `demo` is at another server. */
async function startOurs(store: Store, port: number, properties: Record<string, unknown> = {}) {
  const sourceConfig = {
    mqtt: { default: { server: `tcp://127.0.0.1:${port}`, protocolVersion: '5', ...properties } }
  };
  // its clock stands, so no delay before another attempt ends
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
    it(`has the messages that came while the broker was stopped, with MQTT ${protocolVersion}`, async () => {
      const other = await startOther();
      const store = memoryStore();
      const all: number[] = [];
      for (const round of [0, 1, 2]) {
        const ours = await startOurs(store, other.port, { protocolVersion });
        if (round === 0) {
          await ours.broker.streams.define(DEMO);
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

  it('acknowledges a message when its row is in the store, and gets it again if the store has refused it', async () => {
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

  it('leaves no session at the server when it is dropped, or when it reads other topics', async () => {
    const other = await startOther();
    const ours = await startOurs(memoryStore(), other.port);
    const { streams } = ours.broker;
    await streams.define(DEMO);
    await makeRule(ours.broker, 'kept', 1);
    await until(() => isSubscribed(other.broker, DEFAULT_ID));
    await streams.rules.stop('kept');
    await until(() => !isConnected(other.broker, DEFAULT_ID));
    assert.deepEqual(idsOf(other.broker), [DEFAULT_ID]);
    await streams.replace(DEMO.replace('a/#', 'b/#'));
    await until(() => idsOf(other.broker).length === 0);
    await streams.rules.start('kept');
    await until(() => isSubscribed(other.broker, DEFAULT_ID));
    await streams.drop('stream', 'demo', { force: true });
    assert.deepEqual(idsOf(other.broker), [DEFAULT_ID]);
    await streams.rules.drop('kept');
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
      await first.broker.streams.define(DEMO);
      await makeRule(first.broker, 'kept', 1);
      await until(() => isSubscribed(other.broker, id));
      await first.broker.stop();
      const second = await startOurs(store, other.port, { ...more, enableClientSession: false });
      await until(() => (clientid === undefined ? !idsOf(other.broker).includes(id) : isConnected(other.broker, id)));
      await second.broker.stop();
      await until(() => idsOf(other.broker).length === 0);
      await other.broker.stop();
    }
  });

  it('is reported if its session cannot be deleted, because the server is away', async () => {
    const other = await startOther();
    await other.broker.stop();
    const sourceConfig = { mqtt: { default: { server: `tcp://127.0.0.1:${other.port}` } } };
    const { hub, clock, reported } = makeHub([mqttSource()], { sourceConfig, isKept: () => true });
    hub.dropped(stream({ TYPE: 'mqtt', DATASOURCE: 'a/#' }));
    for (let attempt = 1; attempt < 5; attempt++) {
      await until(() => clock.pending === 1 && reported.length === 0);
      clock.advance(40_000);
    }
    await until(() => reported.length > 0);
    assert.match(
      reported[0],
      /^stream demo: the session embermq_embermq-here_demo at 127\.0\.0\.1:\d+ could not be deleted in 5 attempts/
    );
    assert.equal(clock.pending, 0);
  });

  it('begins when a rule with qos 1 comes to a stream that rules with qos 0 read', async () => {
    const other = await startOther();
    const ours = await startOurs(memoryStore(), other.port);
    await ours.broker.streams.define(DEMO);
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
