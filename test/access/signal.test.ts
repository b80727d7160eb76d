import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthorizeRequest } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, publish, subscribe, turns, withResolvers } from '../support/wire.ts';

/** A source that does not answer until its signal is aborted, and records the reasons. */
function silent(requests: AuthorizeRequest[], reasons: string[]) {
  return {
    name: 'silent',
    authorize: (request: AuthorizeRequest) => {
      requests.push(request);
      return new Promise<boolean>((_, reject) =>
        request.signal.addEventListener('abort', () => {
          reasons.push(request.signal.reason.code);
          reject(request.signal.reason);
        })
      );
    }
  };
}

describe('The signal of a question to a source', () => {
  for (const action of ['publish', 'subscribe'] as const) {
    it(`aborts the signal of a question ${action === 'publish' ? 'not ' : ''}when the connection closes (${action}), which is not an error`, async () => {
      const requests: AuthorizeRequest[] = [];
      const reasons: string[] = [];
      await using kit = await createTestBroker({ auth: [silent(requests, reasons)], allowAnonymous: true });
      const errors: string[] = [];
      kit.broker.on('error', ({ error }) => errors.push(error.message));
      const client = await rawClient(kit.broker);
      client.send(action === 'publish' ? publish('a', 'x', { qos: 1, messageId: 1 }) : subscribe(1, 'a'));
      await turns();
      assert.equal(requests.length, 1);
      assert.equal(requests[0].signal, requests[0].signal);
      client.cut();
      await turns();
      assert.deepEqual([reasons, errors], [action === 'publish' ? [] : ['CONNECTION_CLOSED'], []]);
    });

    it(`aborts the signal of a question when hookTimeout has passed (${action})`, async () => {
      const reasons: string[] = [];
      await using kit = await createTestBroker({
        auth: [silent([], reasons)],
        allowAnonymous: true,
        hookTimeout: 1000
      });
      const errors: string[] = [];
      kit.broker.on('error', ({ error }) => errors.push((error as Error & { code: string }).code));
      const client = await rawClient(kit.broker);
      client.send(action === 'publish' ? publish('a', 'x', { qos: 1, messageId: 1 }) : subscribe(1, 'a'));
      await turns();
      await kit.clock.advance(999);
      assert.deepEqual(reasons, []);
      await kit.clock.advance(1);
      assert.deepEqual([reasons, errors], [['HOOK_TIMEOUT'], ['HOOK_TIMEOUT']]);
      const code =
        action === 'publish' ? (await client.next('puback')).reasonCode : (await client.next('suback')).granted[0];
      assert.equal(code, action === 'publish' ? 0x83 : 0x80);
    });
  }

  it('does not abort the signal after the answer, and gives each connection its own', async () => {
    const signals: AbortSignal[] = [];
    await using kit = await createTestBroker({
      auth: [{ name: 'quick', authorize: async ({ signal }) => signals.push(signal) > 0 }],
      allowAnonymous: true
    });
    const clients = [await rawClient(kit.broker), await rawClient(kit.broker)];
    for (const client of clients) {
      for (const topic of ['a', 'b', 'a']) client.send(publish(topic, 'x', { qos: 0 }));
      await turns();
      client.cut();
      await turns();
    }
    assert.equal(signals.length, 4, 'a cached answer asks no source');
    assert.ok(signals.every(({ aborted }) => !aborted));
    assert.equal(new Set(signals).size, 4);
  });

  it('returns an aborted signal if it is read after the connection has closed or hookTimeout has passed', async () => {
    for (const isTimeout of [false, true]) {
      const late = withResolvers<void>();
      let read: (() => AbortSignal) | undefined;
      const source = {
        name: 'late',
        authorize: async (request: AuthorizeRequest) => {
          read = () => request.signal;
          await late.promise;
          return true;
        }
      };
      await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, hookTimeout: 1000 });
      const client = await rawClient(kit.broker);
      client.send(subscribe(1, 'a'));
      await turns();
      if (isTimeout) await kit.clock.advance(1000);
      else client.cut();
      await turns();
      const signal = read?.();
      assert.equal(signal?.reason.code, isTimeout ? 'HOOK_TIMEOUT' : 'CONNECTION_CLOSED');
      late.resolve();
      client.cut();
      await turns();
      assert.equal(read?.(), signal);
    }
  });

  it('passes the signal to authorize hooks of the app as well', async () => {
    const reasons: string[] = [];
    await using kit = await createTestBroker({
      hooks: {
        authorizeSubscribe: ({ signal }) =>
          new Promise((resolve) =>
            signal.addEventListener('abort', () => {
              reasons.push(signal.reason.code);
              resolve(false);
            })
          )
      }
    });
    const client = await rawClient(kit.broker);
    client.send(subscribe(1, 'a'));
    await turns();
    client.cut();
    await turns();
    assert.deepEqual(reasons, ['CONNECTION_CLOSED']);
  });
});

describe('A message that the broker has received', () => {
  for (const qos of [0, 1] as const)
    it(`publishes a message if its connection closes while a source decides (QoS ${qos})`, async () => {
      const answer = withResolvers<boolean>();
      const source = {
        name: 'slow',
        authorize: ({ signal }: AuthorizeRequest) => {
          signal.addEventListener('abort', () => answer.resolve(false));
          return answer.promise;
        }
      };
      await using kit = await createTestBroker({ auth: [source], allowAnonymous: true });
      const seen: string[] = [];
      kit.broker.subscribe('a', ({ payload }) => void seen.push(String(payload)));
      const client = await rawClient(kit.broker);
      client.send(publish('a', 'x', { qos, messageId: qos === 0 ? undefined : 1 }));
      await turns();
      client.cut();
      await turns();
      answer.resolve(true);
      await turns();
      assert.deepEqual(seen, ['x']);
    });
});

describe('A question about a subscription that is never answered', () => {
  it('keeps nothing waiting for an unanswered question about a subscription after its client has gone', async () => {
    let isSilent = false;
    const source = {
      name: 'silent',
      timeoutMs: 0,
      authorize: () => (isSilent ? new Promise<boolean>(() => {}) : true)
    };
    await using kit = await createTestBroker({ auth: [source], allowAnonymous: true, aclCacheTtl: 60_000 });
    const first = await rawClient(kit.broker, { clientId: 'first' });
    for (let at = 0; at < 64; at++) await granted(first, 1, `a/${at}`);
    const second = await rawClient(kit.broker, { clientId: 'second' });
    await granted(second, 1, 'b');
    isSilent = true;
    kit.broker.access.invalidate('first');
    await turns();
    first.cut();
    await turns();
    isSilent = false;
    let asked = 0;
    kit.broker.hook('authorizeSubscribe', () => void asked++, { isFirst: true });
    kit.broker.access.invalidate('second');
    await turns();
    assert.equal(asked, 1);
  });
});
