import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, engineOf } from '../../lib/broker/broker.ts';
import { ProtocolError } from '../../lib/index.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { connectPacket, type RawClient, type RawClientOptions, rawClient } from '../support/raw-client.ts';
import { startBroker, subscribe } from '../support/wire.ts';

interface Pending {
  readonly clientId: string;
  grant(): void;
  refuse(error: Error): void;
}

/** Lets claims of client ids wait until the test grants or refuses them. */
function holdClaims(broker: Broker): Pending[] {
  const pending: Pending[] = [];
  engineOf(broker).admission.claims = {
    claim: (clientId) => new Promise((grant, refuse) => pending.push({ clientId, grant, refuse }))
  };
  return pending;
}

/** Sends a CONNECT and waits until its client id is claimed. */
async function unanswered(broker: Broker, options: RawClientOptions): Promise<RawClient> {
  const client = await rawClient(broker, { ...options, connect: false });
  const { claims } = engineOf(broker).admission;
  const claimed = new Promise<void>((resolve) => {
    engineOf(broker).admission.claims = {
      claim: (clientId) => {
        engineOf(broker).admission.claims = claims;
        resolve();
        return claims.claim(clientId);
      }
    };
  });
  client.send(connectPacket(options));
  await claimed;
  return client;
}

describe('The claim of a client id', () => {
  it('adds no turn of the microtask queue to a CONNECT if the client id belongs to this node', async () => {
    await using broker = await startBroker();
    const steps: string[] = [];
    broker.on('client.connect', () => {
      steps.push('connect');
      void Promise.resolve().then(() => steps.push('microtask'));
    });
    broker.on('client.connected', () => steps.push('connected'));
    await broker.connect({ clientId: 'c' });
    assert.deepEqual(steps, ['connect', 'connected', 'microtask']);
  });

  it('awaits the claim before CONNACK, and delays no other client and no later claim', async () => {
    await using broker = await startBroker();
    const pending = holdClaims(broker);
    const slow = await unanswered(broker, { clientId: 'slow' });
    slow.send(subscribe(1, 'a'));
    const other = await unanswered(broker, { clientId: 'other' });
    assert.deepEqual([pending.map(({ clientId }) => clientId), broker.sessions.count], [['slow', 'other'], 0]);
    pending[1].grant();
    assert.equal((await other.next('connack')).reasonCode, 0);
    assert.equal(broker.sessions.has('slow'), false);
    pending[0].grant();
    assert.equal((await slow.next('connack')).reasonCode, 0);
    assert.equal((await slow.next('suback')).messageId, 1);
  });

  it('gives the session to the client whose claim succeeds last', async () => {
    await using broker = await startBroker();
    const pending = holdClaims(broker);
    const properties = { sessionExpiryInterval: 60 };
    const first = await unanswered(broker, { clientId: 'c', clean: false, properties });
    const second = await unanswered(broker, { clientId: 'c', clean: false, properties });
    pending[1].grant();
    assert.equal((await second.next('connack')).sessionPresent, false);
    pending[0].grant();
    assert.equal((await first.next('connack')).sessionPresent, true);
    assert.equal((await second.next('disconnect')).reasonCode, 0x8e);
    assert.equal(broker.sessions.count, 1);
  });

  it('refuses the client with the reason code of a claim that fails with a ProtocolError', async () => {
    await using broker = await startBroker();
    const pending = holdClaims(broker);
    const client = await unanswered(broker, { clientId: 'c' });
    pending[0].refuse(new ProtocolError(0x88, 'the node that has the session does not answer'));
    assert.equal((await client.next('connack')).reasonCode, 0x88);
    assert.equal(broker.sessions.count, 0);
  });

  it('reports a claim that fails with another error, and refuses the client with 0x83', async () => {
    await using broker = await startBroker();
    const pending = holdClaims(broker);
    const errors: string[] = [];
    broker.on('error', ({ error }) => errors.push(error.message));
    const client = await unanswered(broker, { clientId: 'c' });
    pending[0].refuse(new Error('lost'));
    assert.equal((await client.next('connack')).reasonCode, 0x83);
    assert.deepEqual(errors, ['lost']);
  });

  it('ignores the claim if the client has timed out in the meantime', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const pending = holdClaims(broker);
    const client = await unanswered(broker, { clientId: 'c' });
    await clock.advance('10s');
    assert.equal((await client.next('connack')).reasonCode, 0x80);
    pending[0].grant();
    await clock.settle();
    assert.equal(broker.sessions.count, 0);
  });

  it('claims once, although the messages of the session are read from the store after it', async () => {
    await using broker = await startBroker({ store: memoryStore() });
    const properties = { sessionExpiryInterval: 60 };
    const client = await rawClient(broker, { clientId: 'c', clean: false, properties });
    client.send(subscribe(1, { topic: 'a', qos: 1 }));
    await client.next('suback');
    const gone = broker.nextEvent('client.disconnected');
    client.send({ cmd: 'disconnect', reasonCode: 0 });
    await gone;
    await broker.publish('a', 'x', { qos: 1 });
    const pending = holdClaims(broker);
    const again = await unanswered(broker, { clientId: 'c', clean: false, properties });
    pending[0].grant();
    assert.equal((await again.next('connack')).sessionPresent, true);
    assert.equal(String((await again.next('publish')).payload), 'x');
    assert.equal(pending.length, 1);
  });
});
