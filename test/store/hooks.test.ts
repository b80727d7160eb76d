import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { queryObjects } from 'node:v8';
import { ClientSession } from '../../lib/client/session.ts';
import { PersistedMessage } from '../../lib/store/segment.ts';
import { ack, summarize } from '../support/flows.ts';
import { rawClient } from '../support/raw-client.ts';
import { IS_LONG } from '../support/samples.ts';
import { granted, publish } from '../support/wire.ts';
import { Lives, PERSISTENT, turns } from './support.ts';

/** A publish hook whose answer the test controls. */
function gate(lives: Lives): () => void {
  let open: () => void = () => undefined;
  lives.kit.broker.hook(
    'publish',
    () =>
      new Promise<undefined>((resolve) => {
        open = () => resolve(undefined);
      })
  );
  return () => open();
}

/** Sends a message of QoS 2 and disconnects before the hook answers. */
async function sendAndGo(lives: Lives): Promise<ClientSession> {
  const session = new ClientSession();
  const writer = await lives.connect({ clientId: 'w', ...PERSISTENT, session });
  writer.publish('t', 'x', { qos: 2 }).catch(() => undefined);
  await turns(5);
  writer.destroy();
  return session;
}

describe('A message that waits for a hook', () => {
  it('treats a QoS 2 message that waits for a hook as not received if the process crashes in the meantime', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 2);
    gate(lives);
    const session = await sendAndGo(lives); // the end of its connection writes its state
    await turns(5);
    lives.kit.broker.sessions.get('a').subscribe('other');
    await turns(5);
    await lives.kill();
    await lives.connect({ clientId: 'w', ...PERSISTENT, session });
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.equal(session.outgoing.size, 0);
    assert.deepEqual(texts(), ['x']);
  });

  it('answers a QoS 2 message with PUBREC when it is committed, even if the client reconnects before the hook answers', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 2);
    const open = gate(lives);
    const session = await sendAndGo(lives);
    await turns(20);
    await lives.connect({ clientId: 'w', ...PERSISTENT, session });
    await turns(20);
    assert.equal(session.outgoing.size, 1);
    assert.equal([...session.outgoing.values()][0].isReleased, false, 'nothing is acknowledged yet');
    open();
    await turns(20);
    assert.equal(session.outgoing.size, 0);
    await lives.kill();
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts(), ['x']);
  });

  it('delivers a QoS 2 message once, even if its client reconnects after the answer', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 2);
    const open = gate(lives);
    const session = await sendAndGo(lives);
    await lives.kit.clock.advance(100);
    open();
    await lives.kit.clock.advance(100);
    await lives.crash();
    await lives.connect({ clientId: 'w', ...PERSISTENT, session });
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.equal(session.outgoing.size, 0);
    assert.deepEqual(texts(), ['x']);
  });

  it('refuses a QoS 2 message to the client on its next connection if the hook refuses it', async () => {
    await using lives = await new Lives().begin();
    let refuse: () => void = () => undefined;
    lives.kit.broker.hook('publish', () => new Promise<false>((resolve) => (refuse = () => resolve(false))));
    const session = await sendAndGo(lives);
    await turns(20);
    await lives.connect({ clientId: 'w', ...PERSISTENT, session });
    await turns(20);
    refuse();
    await turns(20);
    refuse(); // the client has sent it again, and the first refusal was not delivered
    await turns(20);
    assert.equal(session.outgoing.size, 0);
    assert.equal(lives.kit.broker.sessions.get('w').counters().awaitingRel, 0);
  });

  it('acknowledges a QoS 2 message to a client of 3.1.1 if the hook refuses it, as often as it is sent', async () => {
    await using lives = await new Lives().begin();
    lives.kit.broker.hook('publish', () => turns(2).then(() => false as const));
    const options = { clientId: 'w', version: 4, clean: false } as const;
    for (const dup of [false, true]) {
      const writer = await rawClient(lives.kit.broker, options);
      writer.send(publish('t', 'x', { qos: 2, messageId: 1, dup }));
      assert.deepEqual(summarize([await writer.next('pubrec')]), ['pubrec 1']);
      writer.send(publish('t', 'x', { qos: 2, messageId: 1, dup: true }));
      assert.deepEqual(summarize(await writer.rest()), ['pubrec 1']);
      writer.cut();
      await lives.kit.clock.advance(500);
    }
    const writer = await rawClient(lives.kit.broker, options);
    writer.send(ack('pubrel', 1));
    await lives.kit.clock.advance(500);
    assert.deepEqual(summarize(await writer.rest()), ['pubcomp 1']);
    assert.equal(lives.kit.broker.sessions.get('w').counters().awaitingRel, 0);
  });

  for (const version of IS_LONG ? ([4, 5] as const) : ([5] as const))
    for (const isGone of [false, true])
      it(`keeps nothing of the session of a QoS 2 message of version ${version} in memory if the hook refuses it${isGone ? ' after its client has disconnected' : ''}`, async () => {
        await using lives = await new Lives().begin();
        const writer = await rawClient(lives.kit.broker, {
          clientId: 'w',
          version,
          clean: false,
          properties: version === 5 ? { sessionExpiryInterval: 3600 } : undefined
        });
        await granted(writer, 1, { topic: 'mine', qos: 1 });
        await lives.kit.broker.publish('mine', 'in flight', { qos: 1 });
        await writer.next('publish');
        let refuse: () => void = () => undefined;
        lives.kit.broker.hook('publish', () => new Promise<false>((resolve) => (refuse = () => resolve(false))));
        writer.send(publish('t', 'x', { qos: 2, messageId: 1 }));
        await turns(5);
        if (!isGone) {
          refuse();
          await writer.next('pubrec');
        }
        writer.cut();
        await lives.kit.clock.advance(500);
        refuse();
        await lives.kit.clock.advance(500);
        assert.equal(queryObjects(PersistedMessage, { format: 'count' }), 0);
      });

  it('loses no delayed message if the process crashes in the meantime', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 1);
    const writer = await lives.connect({ clientId: 'w' });
    await writer.publish('$delayed/10/t', 'late', { qos: 1 });
    gate(lives);
    await lives.kit.clock.advance(11_000).catch(() => undefined);
    await turns(20);
    await lives.kill();
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts(), ['late']);
  });

  for (const [name, options] of [
    ['a persistent session', PERSISTENT],
    ['a session that ends with its connection', {}]
  ] as const)
    it(`loses no will of ${name} if the process crashes in the meantime`, async () => {
      await using lives = await new Lives().begin();
      await lives.leave('a', 'will', 1);
      const client = await lives.connect({
        clientId: 'c',
        ...options,
        will: { topic: 'will', payload: 'gone', qos: 1 }
      });
      gate(lives);
      client.destroy();
      await turns(20);
      await lives.kill();
      const { texts } = await lives.listen({ clientId: 'a' });
      await lives.kit.clock.advance(100);
      assert.deepEqual(texts(), ['gone']);
      await lives.crash();
      const again = await lives.listen({ clientId: 'a' });
      await lives.kit.clock.advance(100);
      assert.deepEqual(again.texts(), []);
    });

  for (const isBehindStart of [false, true])
    for (const kind of ['delayed', 'will'] as const) {
      const what = kind === 'will' ? 'as a will' : 'that was delayed';
      it(`publishes ${what} at the next start of the same broker if the hook answers ${isBehindStart ? 'after' : 'before'} that start`, async () => {
        await using lives = await new Lives().begin();
        const { kit } = lives;
        await lives.leave('a', 't', 1);
        const writer = await lives.connect({
          clientId: 'w',
          ...(kind === 'will' ? { will: { topic: 't', payload: 'x', qos: 1 } } : {})
        });
        if (kind === 'delayed') await writer.publish('$delayed/10/t', 'x', { qos: 1 });
        const answers: (() => void)[] = [];
        const unhook = kit.broker.hook(
          'publish',
          () =>
            new Promise<undefined>((resolve) => {
              answers.push(() => resolve(undefined));
            })
        );
        const answer = async () => {
          for (const one of answers.splice(0)) one();
          await turns(20);
        };
        writer.destroy();
        void kit.clock.advance(11_000).catch(() => undefined);
        for (let left = 200; left > 0 && answers.length === 0; left--) await turns(1);
        assert.equal(answers.length, 1);
        await kit.broker.stop();
        if (!isBehindStart) await answer();
        unhook();
        await kit.broker.start();
        await answer();
        await kit.clock.advance(100);
        const { texts } = await lives.listen({ clientId: 'a' });
        await kit.clock.advance(60_000);
        assert.deepEqual(texts(), ['x']);
        assert.equal(kit.broker.metrics.gauge('messages.delayed'), 0);
        assert.deepEqual(
          (await lives.store.contents()).filter((text) => /^(delayed|will)/.test(text)),
          []
        );
      });
    }
});

describe('[MQTT-3.3.1-1] A message whose client disconnects before it is sent', () => {
  /** Puts it in flight to client `a`, which disconnects while the message waits for its commit. Everything is written in the end. */
  async function leaveUnsent(lives: Lives, qos: 1 | 2, messageExpiryInterval?: number): Promise<void> {
    const reader = await lives.connect({ clientId: 'a', ...PERSISTENT });
    await reader.subscribe({ topic: 't', qos });
    const writer = await lives.connect({ clientId: 'w', ...PERSISTENT });
    await lives.kit.clock.advance(100);
    const { store } = lives;
    const commit = store.commit.bind(store);
    let go: () => void = () => undefined;
    const gone = new Promise<void>((resolve) => (go = resolve));
    store.commit = (batch) => gone.then(() => commit(batch));
    writer.publish('t', 'x', { qos: 2, properties: { messageExpiryInterval } }).catch(() => undefined);
    await turns(10);
    const { inflight } = lives.kit.broker.sessions.get('a').counters();
    reader.destroy();
    await turns(10);
    go();
    assert.equal(inflight, 1);
    await lives.kit.clock.advance(100);
  }

  /** @returns the topics that the hook is called for, and the reasons of dropped messages */
  function hookIn({ kit: { broker } }: Lives, isAllowed: boolean): { asked: string[]; drops: string[] } {
    const [asked, drops]: string[][] = [[], []];
    broker.hook('deliver', ({ message }) => {
      asked.push(message.topic);
      return isAllowed;
    });
    broker.on('message.dropped', ({ reason }) => drops.push(reason));
    return { asked, drops };
  }

  async function comeBack({ kit: { broker } }: Lives): Promise<string[]> {
    const client = await rawClient(broker, { clientId: 'a', version: 4, clean: false });
    return summarize(await client.rest());
  }

  for (const qos of [1, 2] as const) {
    for (const restarts of [false, true])
      for (const isAllowed of [false, true])
        it(`treats a message at QoS ${qos} as new: it ${isAllowed ? 'is sent without DUP if the deliver hook allows it' : 'is dropped if the deliver hook refuses it'}${restarts ? ', after a crash' : ''}`, async () => {
          await using lives = await new Lives().begin();
          const first = hookIn(lives, isAllowed);
          await leaveUnsent(lives, qos);
          assert.deepEqual(first.asked, [], 'nothing has been sent');
          if (restarts) await lives.crash();
          const { asked, drops } = restarts ? hookIn(lives, isAllowed) : first;
          assert.deepEqual(await comeBack(lives), isAllowed ? [`publish 1 q${qos} t=x`] : []);
          assert.deepEqual({ asked, drops }, { asked: ['t'], drops: isAllowed ? [] : ['hook'] });
          assert.equal(lives.kit.broker.sessions.get('a').counters().inflight, isAllowed ? 1 : 0);
        });

    it(`sets DUP at QoS ${qos} the second time the message is sent, even if the process crashed in between`, async () => {
      await using lives = await new Lives().begin();
      await leaveUnsent(lives, qos);
      await lives.crash();
      assert.deepEqual(await comeBack(lives), [`publish 1 q${qos} t=x`]);
      await lives.kill();
      const { asked } = hookIn(lives, true);
      assert.deepEqual(await comeBack(lives), [`publish 1 q${qos} dup t=x`]);
      assert.deepEqual(asked, ['t'], 'the hook is asked again, because it may have changed the message');
    });

    it(`sends a message at QoS ${qos} no more if the deliver hook refuses it after a restart${qos === 2 ? ', but keeps its packet id until PUBCOMP' : ''}`, async () => {
      await using lives = await new Lives().begin();
      await leaveUnsent(lives, qos);
      assert.deepEqual(await comeBack(lives), [`publish 1 q${qos} t=x`]);
      await lives.kill();
      const { asked, drops } = hookIn(lives, false);
      assert.deepEqual(await comeBack(lives), []);
      assert.deepEqual({ asked, drops }, { asked: ['t'], drops: ['hook'] });
      assert.equal(lives.kit.broker.sessions.get('a').counters().inflight, qos === 1 ? 0 : 1);
      await lives.kit.clock.advance(100);
      await lives.crash();
      assert.deepEqual(await comeBack(lives), qos === 1 ? [] : ['pubrel 1']);
    });

    for (const restarts of [false, true])
      it(`[MQTT-3.3.2-5] drops a message at QoS ${qos} if it has expired when the client reconnects${restarts ? ', after a crash' : ''}`, async () => {
        await using lives = await new Lives().begin();
        await leaveUnsent(lives, qos, 10);
        if (restarts) await lives.crash();
        await lives.kit.clock.advance('10s');
        const { asked, drops } = hookIn(lives, true);
        assert.deepEqual(await comeBack(lives), []);
        assert.deepEqual({ asked, drops }, { asked: ['t'], drops: ['expired'] });
        const { broker } = lives.kit;
        assert.equal(broker.metrics.counter('messages.expired'), 1);
        assert.equal(broker.sessions.get('a').counters().inflight, 0);
        await lives.crash();
        assert.deepEqual(await comeBack(lives), [], 'the store has no record of it');
      });

    it(`[MQTT-4.3.3-7] sends a message at QoS ${qos} again after it has expired, if it was sent before`, async () => {
      await using lives = await new Lives().begin();
      await leaveUnsent(lives, qos, 10);
      assert.deepEqual(await comeBack(lives), [`publish 1 q${qos} t=x`]);
      await lives.kit.clock.advance('10s');
      assert.deepEqual(await comeBack(lives), [`publish 1 q${qos} dup t=x`]);
    });
  }
});
