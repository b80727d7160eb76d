import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, it } from 'node:test';
import { type Webhook, type WebhookOptions, webhook, webhooks } from '../../adapters/webhook/index.ts';
import { createBroker } from '../../lib/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { disposable, Receiver } from './receiver.ts';

/** Runs a task with a broker, a receiver and a webhook between them. */
async function withHook(
  options: Partial<WebhookOptions>,
  run: (it: { kit: TestBroker; receiver: Receiver; hook: Webhook }) => Promise<void>
): Promise<void> {
  await using receiver = await new Receiver().open();
  await using kit = await createTestBroker({ leakCheck: false });
  const hook = webhook(kit.broker, { url: receiver.url, ...options } as WebhookOptions);
  using _hook = disposable(() => hook.close());
  await run({ kit, receiver, hook });
}

describe('The test of a webhook', () => {
  it('sends one event that is marked as a test, with the headers and the signature of all events', () =>
    withHook({ headers: { token: 't' }, secret: 'a secret of 24 characters' }, async ({ kit, receiver, hook }) => {
      hook.stop();
      const result = await kit.broker.connectors.test('webhook', 'default');
      assert.deepEqual(result, { status: 200, durationMs: 0, error: undefined });
      assert.equal(receiver.received.length, 1);
      const [{ method, url, headers, text }] = receiver.received;
      const { node } = kit.broker.settings;
      const ts = Math.floor(kit.clock.now() / 1000);
      assert.deepEqual(JSON.parse(text), { action: 'webhook_test', test: true, webhook: 'default', node, ts });
      assert.deepEqual([method, url, headers.token], ['POST', '/hook', 't']);
      const signed = `${headers['webhook-id']}.${ts}.${text}`;
      const signature = createHmac('sha256', 'a secret of 24 characters').update(signed).digest('base64');
      assert.equal(headers['webhook-signature'], `v1,${signature}`);
      assert.deepEqual([hook.isStarted, hook.counters.added, hook.counters.sent], [false, 0, 0], 'nothing is counted');
    }));

  it('sends a list with one event if the webhook sends lists', () =>
    withHook({ batch: 10 }, async ({ receiver, hook }) => {
      await hook.test();
      assert.deepEqual(
        JSON.parse(receiver.received[0].text).map(({ action }: { action: string }) => action),
        ['webhook_test']
      );
    }));

  it('returns a status that is not a success, and leaves the state of the webhook as it is', () =>
    withHook({}, async ({ receiver, hook }) => {
      for (const [status, why] of [
        [404, /\/hook has answered with the status 404$/],
        [503, /status 503$/],
        [302, /status 302; redirects are not followed$/]
      ] as const) {
        receiver.answer = (_request, response) => response.writeHead(status, { location: '/other' }).end();
        const result = await hook.test();
        assert.deepEqual([result.status, (result.error as { code?: string }).code], [status, 'HTTP_STATUS']);
        assert.match(result.error?.message ?? '', why);
      }
      assert.deepEqual([hook.lastError, hook.refused, receiver.received.length], [undefined, 0, 3]);
    }));

  it('says that a server cannot be reached, or closes the connection', () =>
    withHook({}, async ({ receiver, hook }) => {
      receiver.answer = ({ socket }) => socket.destroy();
      const cut = await hook.test();
      assert.deepEqual([cut.status, (cut.error as { code?: string }).code], [undefined, 'HTTP_FAILED']);
      assert.equal(receiver.received.length, 1, 'it is not sent again');
      await receiver.close();
      const unreachable = await hook.test();
      assert.deepEqual([unreachable.status, (unreachable.error as { code?: string }).code], [undefined, 'HTTP_FAILED']);
      assert.match(unreachable.error?.message ?? '', /ECONNREFUSED/);
    }));

  for (const [timeout, waited] of [
    ['2s', 2_000],
    ['1h', 30_000]
  ] as const)
    it(`waits ${waited} ms for a server that never answers if the timeout is ${timeout}`, () =>
      withHook({ timeout }, async ({ kit, receiver, hook }) => {
        receiver.answer = () => undefined;
        const tested = hook.test();
        await receiver.until(1);
        await kit.clock.advance(waited);
        const { status, durationMs, error } = await tested;
        assert.deepEqual([status, durationMs, (error as { code?: string }).code], [undefined, waited, 'HTTP_TIMEOUT']);
        assert.match(error?.message ?? '', new RegExp(`/hook has not answered within ${waited} ms$`));
      }));

  it('does not wait for requests of the webhook that are not answered', () =>
    withHook({ concurrency: 1, rules: [{ event: 'message.publish' }] }, async ({ kit, receiver, hook }) => {
      receiver.answer = () => undefined;
      for (const topic of ['a', 'b', 'c']) await kit.broker.publish(topic, '');
      await receiver.until(1);
      receiver.answer = (_request, response) => response.end();
      assert.equal((await hook.test()).status, 200);
    }));

  it('sends one event for all calls during a test, and ends with the webhook', () =>
    withHook({}, async ({ receiver, hook }) => {
      receiver.answer = () => undefined;
      const tests = [hook.test(), hook.test(), hook.test()];
      await receiver.until(1);
      hook.close();
      const results = await Promise.all(tests);
      assert.equal(receiver.received.length, 1);
      for (const { error } of results) {
        assert.equal((error as { code?: string }).code, 'HTTP_FAILED');
        assert.match(error?.message ?? '', /the webhook is closed$/);
      }
    }));

  it('ends when the broker begins to stop, and works again after the next start', () =>
    withHook({}, async ({ kit, receiver, hook }) => {
      receiver.answer = () => undefined;
      const tested = kit.broker.connectors.test('webhook', 'default');
      await receiver.until(1);
      const stopped = kit.broker.stop();
      const { status, error } = await tested;
      assert.deepEqual([status, (error as { code?: string }).code], [undefined, 'HTTP_FAILED']);
      assert.match(error?.message ?? '', /\/hook failed: the broker stops$/);
      await stopped;
      assert.deepEqual(kit.clock.timers, [], 'its time limit has ended as well');
      await kit.broker.start();
      receiver.answer = (_request, response) => response.end();
      assert.equal((await hook.test()).status, 200);
      hook.close();
      hook.endTest();
      assert.match((await hook.test()).error?.message ?? '', /the webhook is closed$/, 'a closed webhook stays closed');
    }));

  it('refuses to test a webhook that calls a function, one that could not be created, and one that does not exist', async () => {
    await using broker = await createBroker({ connectors: [webhooks()] }).start();
    const { connectors } = broker;
    webhook(broker, { name: 'own', onEvent: () => assert.fail('the function is not called') });
    await assert.rejects(connectors.test('webhook', 'own'), {
      code: 'CONNECTOR_UNTESTABLE',
      message: /"own" calls a function/
    });
    await assert.rejects(connectors.test('webhook', 'other'), { code: 'RECORD_NOT_FOUND' });
    const outbox = broker.outboxes.open({ name: 'webhook:taken', send: () => undefined });
    broker.on('error', () => undefined);
    await connectors.create('webhook', { name: 'taken', url: 'http://127.0.0.1:1/' });
    await assert.rejects(connectors.test('webhook', 'taken'), {
      code: 'CONNECTOR_UNTESTABLE',
      message: /could not be created/
    });
    outbox.close();
    await broker.stop();
    await assert.rejects(connectors.test('webhook', 'own'), { code: 'BROKER_NOT_STARTED' });
  });
});
