import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { toPromise, waitFor } from 'xstate';
import { engineOf } from '../../lib/broker/broker.ts';
import { createBroker, type Inspection } from '../../lib/index.ts';
import { sessionMachine } from '../../lib/machines.ts';

describe('The actors of a broker', () => {
  it('exposes the state of broker and session', async () => {
    const broker = createBroker();
    assert.equal(broker.state, 'idle');
    await broker.start();
    assert.equal(broker.state, 'connected');
    const client = await broker.connect({ clientId: 'a', sessionExpiry: 60 });
    assert.equal(broker.sessions.get('a').state, 'connected');
    const gone = broker.nextEvent('client.disconnected');
    await client.disconnect();
    await gone;
    assert.equal(broker.sessions.get('a').state, 'disconnected');
    await broker.stop();
    assert.equal(broker.state, 'disconnected');
  });

  it('reports every transition of every actor to an inspector, until it unsubscribes', async () => {
    const broker = createBroker();
    const seen: string[] = [];
    const end = broker.inspect((event) => {
      if (event.type !== '@xstate.snapshot') return;
      seen.push(`${event.actorRef.id}: ${event.event.type} -> ${JSON.stringify(event.snapshot.value)}`);
    });
    await broker.start();
    const client = await broker.connect({ clientId: 'a' });
    const terminated = broker.nextEvent('session.terminated');
    await client.disconnect();
    await terminated;
    assert.deepEqual(seen, [
      'broker: start -> {"idle":"starting"}',
      'broker: started -> "connected"',
      'session: xstate.init -> {"idle":"awaitingConnect"}',
      'a: connect -> {"idle":"authenticating"}',
      'a: accepted -> "connected"',
      'a: closed -> "gone"'
    ]);
    end();
    await broker.connect({ clientId: 'b' });
    assert.equal(seen.length, 6);
    await broker.stop();
  });

  it("gives xstate's waitFor and inspectors what they need: the actor, its machine and its root", async () => {
    const broker = createBroker();
    const actors: Inspection['actorRef'][] = [];
    broker.inspect(({ type, actorRef, rootId }) => {
      assert.equal(rootId, 'x:0');
      if (type === '@xstate.actor') actors.push(actorRef);
    });
    await broker.start();
    const connecting = broker.connect({ clientId: 'a' });
    const [session] = actors;
    assert.equal(session.logic, sessionMachine);
    const live = waitFor(session, ({ value }) => value === 'connected');
    const client = await connecting;
    assert.equal((await live).status, 'active');
    await client.disconnect();
    const ended = await waitFor(session, ({ status }) => status === 'done');
    assert.equal(ended.value, 'gone');
    await broker.stop();
  });

  it('creates actors of offline sessions on demand, or when their clients return', async () => {
    const broker = createBroker();
    await broker.start();
    const actors = new Set<string>();
    const client = await broker.connect({ clientId: 'a', sessionExpiry: 60 });
    const gone = broker.nextEvent('client.disconnected');
    await client.disconnect();
    await gone;
    broker.inspect((event) => {
      if (event.type === '@xstate.actor') actors.add(event.actorRef.sessionId);
    });
    const again = await broker.connect({ clientId: 'a', clean: false, sessionExpiry: 60 });
    assert.equal(again.connack?.sessionPresent, true);
    // One of the provisional session of the connection, and one of the session that takes it over.
    assert.equal(actors.size, 2);
    await broker.stop();
  });

  it('keeps an actor while its client disconnects and returns, and completes it when the session has ended', async () => {
    const broker = createBroker();
    await broker.start();
    assert.equal(broker.actor.id, 'broker');
    const connected = waitFor(broker.actor, (snapshot) => snapshot.matches('connected'));
    assert.equal((await connected).can({ type: 'stop' }), true);
    const client = await broker.connect({ clientId: 'a', sessionExpiry: 60 });
    const { actor } = broker.sessions.get('a');
    const states: unknown[] = [];
    actor.subscribe(({ value }) => states.push(value));
    const ended = toPromise(actor).then(() => 'ended');
    await client.disconnect();
    await waitFor(actor, (snapshot) => snapshot.matches('disconnected'));
    assert.equal(actor.getSnapshot().status, 'active');
    assert.equal(broker.sessions.get('a').actor, actor);
    const again = await broker.connect({ clientId: 'a', clean: false, sessionExpiry: 60 });
    assert.equal(broker.sessions.get('a').actor, actor);
    await again.disconnect();
    await waitFor(actor, (snapshot) => snapshot.matches('disconnected'));
    await broker.sessions.discard('a');
    assert.equal(await ended, 'ended');
    assert.deepEqual(states, [{ disconnected: 'waiting' }, 'connected', { disconnected: 'waiting' }, 'gone']);
    await broker.stop();
  });

  it('names a session by its client id, which it has from the CONNECT on', async () => {
    await using broker = createBroker();
    const names: string[] = [];
    broker.inspect((event) => {
      if (event.type === '@xstate.snapshot' && event.actorRef.src === 'session')
        names.push(`${event.actorRef.id}: ${JSON.stringify(event.snapshot.value)}`);
    });
    await broker.start();
    const client = await broker.connect({ clientId: 'a', sessionExpiry: 60 });
    const { actor } = broker.sessions.get('a');
    assert.deepEqual([actor.id, actor.getSnapshot().context, actor.toJSON().id], ['a', { session: 'a' }, 'a']);
    assert.throws(() => actor.stop(), /sessions\.get\("a"\)/);
    await client.disconnect();
    assert.equal(names[0], 'session: {"idle":"awaitingConnect"}');
    assert.equal(names.at(-1), 'a: {"disconnected":"waiting"}');
  });

  it('shows the state disconnected to listeners of client.disconnected, also if the session ends or is taken over', async () => {
    await using broker = createBroker();
    await broker.start();
    const seen: string[] = [];
    broker.on('client.disconnected', ({ client, reason }) => {
      const session = broker.sessions.get(client.clientId);
      seen.push(
        `${client.clientId}, ${reason}: ${session.state}, ${session.actor.getSnapshot().matches('disconnected')}`
      );
      session.clearQueue().then(
        () => seen.push('cleared'),
        (error) => seen.push(String(error))
      );
    });
    const brief = await broker.connect({ clientId: 'brief' });
    const ended = broker.nextEvent('session.terminated');
    await brief.disconnect();
    await ended;
    await broker.connect({ clientId: 'lasting', sessionExpiry: 60 });
    const again = await broker.connect({ clientId: 'lasting', clean: false, sessionExpiry: 60 });
    const detached = broker.nextEvent('client.disconnected');
    await again.disconnect();
    await detached;
    assert.deepEqual(seen, [
      'brief, normal: disconnected, true',
      'cleared',
      'lasting, takeovered: disconnected, true',
      'cleared',
      'lasting, normal: disconnected, true',
      'cleared'
    ]);
  });

  it('does not receive its own will if a listener of client.disconnected ends it', async () => {
    await using broker = createBroker();
    await broker.start();
    const dropped: string[] = [];
    const seen: string[] = [];
    broker.on('message.dropped', ({ message, reason }) => dropped.push(`${message.topic}: ${reason}`));
    broker.on('message.publish', ({ message }) => seen.push(message.topic));
    broker.on('client.disconnected', ({ client }) => broker.sessions.get(client.clientId).discard());
    const client = await broker.connect({
      clientId: 'a',
      sessionExpiry: 60,
      will: { topic: 'wills/a', payload: 'bye', qos: 1 }
    });
    await client.subscribe('wills/#', { qos: 1 });
    const ended = broker.nextEvent('session.terminated');
    broker.sessions.get('a').kick({ session: 'keep' });
    await ended;
    assert.equal(broker.sessions.has('a'), false);
    assert.deepEqual([seen, dropped], [['wills/a'], ['wills/a: no_subscribers']]);
  });

  it('drops actors that are neither held nor observed', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const broker = createBroker();
    await broker.start();
    const client = await broker.connect({ clientId: 'a', sessionExpiry: 60 });
    const session = broker.sessions.get('a');
    await client.disconnect();
    const seen: string[] = [];
    const watch = () => {
      const { actor } = session;
      const { unsubscribe } = actor.subscribe(({ value }) => seen.push(String(value)));
      return { ref: new WeakRef(actor), unsubscribe, id: actor.sessionId };
    };
    const collected = async (ref: WeakRef<object>) => {
      await new Promise((resolve) => setImmediate(resolve));
      collect();
      return ref.deref() === undefined;
    };
    const { ref, id } = watch();
    assert.equal(await collected(ref), false, 'it is observed');
    session.discard();
    assert.deepEqual(seen, ['gone']);
    assert.equal(await collected(ref), true, 'it is done');
    assert.equal(session.actor.sessionId, id);
    await broker.stop();
  });

  it('refuses events and stops from outside, and names what to call', async () => {
    await using broker = createBroker();
    await broker.start();
    await broker.connect({ clientId: 'a' });
    const { actor } = broker.sessions.get('a');
    assert.throws(() => broker.actor.send({ type: 'stop' }), {
      code: 'ACTOR_CLOSED',
      message:
        'the actor of the broker takes no events from outside, such as "stop"; call broker.start() or broker.stop()'
    });
    assert.throws(() => actor.stop(), {
      code: 'ACTOR_CLOSED',
      message:
        'the actor of the session "a" cannot be stopped from outside; call kick or discard of broker.sessions.get("a")'
    });
  });

  it('ends only the session whose action throws', async () => {
    const broker = createBroker();
    await broker.start();
    const failures: string[] = [];
    broker.on('error', ({ error, during, client }) => failures.push(`${client?.clientId} ${during}: ${error.message}`));
    const healthy = await broker.connect({ clientId: 'healthy' });
    const got: string[] = [];
    await healthy.subscribe('t', (message) => got.push(message.payload.toString()));
    const stream = broker.stream();
    const faulty = await import('../../lib/client/client.ts').then(({ connectClient }) =>
      connectClient(stream, { clientId: 'faulty', sessionExpiry: 60 })
    );
    const served = engineOf(broker).sessions.get('faulty')?.connection?.stream;
    assert.ok(served);
    const terminated = broker.nextEvent('session.terminated', { where: ({ client }) => client.clientId === 'faulty' });
    // The action `release` ends the stream.
    served.end = () => {
      throw new Error('broken');
    };
    await faulty.disconnect();
    await terminated;
    assert.ok(failures.includes("faulty the session's release: broken"), failures.join('; '));
    assert.equal(broker.sessions.has('faulty'), false);
    await healthy.publish('t', 'still here', { qos: 1 });
    assert.deepEqual(got, ['still here']);
    await broker.stop();
  });
});
