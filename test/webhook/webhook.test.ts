import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { type Webhook, type WebhookBody, type WebhookOptions, webhook } from '../../adapters/webhook/index.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import type { InvalidInput } from '../../lib/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { turns } from '../outbox/target.ts';
import { disposable, Receiver } from './receiver.ts';

const PUBLISH = [{ event: 'message.publish' }] as const;

/** Runs a task with a broker, a receiver and a webhook between them. */
async function withHook(
  options: Partial<WebhookOptions>,
  run: (it: { kit: TestBroker; receiver: Receiver; hook: Webhook }) => Promise<void>
): Promise<void> {
  await using receiver = await new Receiver().open();
  await using kit = await createTestBroker({ leakCheck: false });
  const hook = webhook(kit.broker, { url: receiver.url, rules: PUBLISH, ...options } as WebhookOptions);
  using _hook = disposable(() => hook.close());
  await run({ kit, receiver, hook });
}

function topics(receiver: Receiver): unknown[] {
  return receiver.bodies.map(({ topic }) => topic);
}

describe('The answers to a webhook', () => {
  it('counts a status other than 2xx as refused, reports it once a minute for each status, and sends nothing again', () =>
    withHook({}, async ({ kit, receiver, hook }) => {
      const errors: string[] = [];
      kit.broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
      const publish = async (status: number, headers = {}) => {
        receiver.answer = (_request, response) => response.writeHead(status, headers).end();
        await kit.broker.publish('t', '');
        await hook.idle();
      };
      for (const status of [200, 404, 404, 503, 302, 404]) await publish(status, { 'retry-after': '9' });
      const { origin, pathname } = new URL(receiver.url);
      const [first, ...others] = errors;
      assert.equal(
        first,
        `the webhook default: ${origin}${pathname} has answered with the status 404; the event is not sent again`
      );
      assert.deepEqual(
        others.map((text) => /status (\d+)/.exec(text)?.[1]),
        ['503', '302']
      );
      assert.deepEqual([hook.refused, hook.counters.sent, receiver.received.length], [5, 6, 6]);
      assert.match(hook.lastError?.message ?? '', /404/);
      await kit.clock.advance('61s');
      await publish(404);
      assert.equal(errors.length, 4);
      await publish(204);
      assert.deepEqual([hook.lastError, hook.refused], [undefined, 6]);
    }));
});

describe('The rules of a webhook', () => {
  it('selects events and topics, and sends a request for each rule that applies', async () => {
    const rules = [
      { event: 'message.publish', topic: 'a/#' },
      { event: 'message.publish', topic: '+/b' },
      { event: 'client.connected' }
    ] as const;
    await withHook({ rules }, async ({ kit, receiver, hook }) => {
      await kit.connect({ clientId: 'c' });
      for (const topic of ['a/b', 'a/c', 'x/b', 'x/c']) await kit.broker.publish(topic, '');
      await kit.clock.settle();
      await hook.idle();
      assert.deepEqual(
        topics(receiver)
          .filter((topic) => topic !== undefined)
          .sort(),
        ['a/b', 'a/b', 'a/c', 'x/b']
      );
      assert.equal(receiver.bodies.filter(({ action }) => action === 'client_connected').length, 1);
      assert.equal(receiver.bodies.length, 5);
    });
  });

  it('applies rules with a topic to subscriptions as well, and leaves messages of other topics on the fast path', async () => {
    const rules = [
      { event: 'session.subscribed', topic: 'a/#' },
      { event: 'message.publish', topic: 'a/#' }
    ] as const;
    await withHook({ rules }, async ({ kit, receiver, hook }) => {
      const c = await kit.connect({ clientId: 'c' });
      await c.subscribe(['a/+', 'b', '$share/g/a/1']);
      await kit.clock.settle();
      await hook.idle();
      assert.deepEqual(topics(receiver), ['a/+', 'a/1']);
      assert.equal(engineOf(kit.broker).publishing.hooks.isFastPathOpen, true);
      hook.stop();
      assert.equal(hook.isStarted, false);
    });
  });

  it('accepts the documented spelling of rules', async () => {
    await using receiver = await new Receiver().open();
    await using kit = await createTestBroker({ leakCheck: false });
    const hook = webhook(kit.broker, {
      'web.hook.api.url': receiver.url,
      'web.hook.encode_payload': 'base64',
      'web.hook.rule.message.publish.2': '{"action": "on_message_publish", "topic": "b"}',
      'web.hook.rule.message.publish.1': '{"action": "on_message_publish", "topic": "a"}'
    } as WebhookOptions);
    using _hook = disposable(() => hook.close());
    for (const topic of ['a', 'b', 'c']) await kit.broker.publish(topic, 'x');
    await hook.idle();
    assert.deepEqual(topics(receiver), ['a', 'b']);
    assert.equal(receiver.bodies[0].payload, 'eA==');
  });

  it('accepts the names of the event message.deliver and its action of revision 3.x', async () => {
    const rules = { 'web.hook.rule.message.deliver.1': '{"action": "on_message_deliver", "topic": "a"}' };
    await withHook({ rules: undefined, ...rules } as never, async ({ kit, receiver, hook }) => {
      const c = await kit.connect({ clientId: 'c' });
      await c.subscribe('a');
      await kit.broker.publish('a', 'x');
      await kit.clock.settle();
      await hook.idle();
      assert.deepEqual(
        receiver.bodies.map(({ action }) => action),
        ['message_delivered']
      );
    });
  });

  it('sends nothing without rules beside web.hook.api.url, and emits an error event', async () => {
    await using receiver = await new Receiver().open();
    await using kit = await createTestBroker({ leakCheck: false });
    const errors: unknown[] = [];
    kit.broker.on('error', ({ error }) => errors.push((error as { code?: string }).code));
    const documented = webhook(kit.broker, { name: 'documented', 'web.hook.api.url': receiver.url } as WebhookOptions);
    using _documented = disposable(() => documented.close());
    await kit.broker.publish('a', 'x');
    await documented.idle();
    assert.deepEqual([errors, documented.isStarted, receiver.bodies], [['WEBHOOK_WITHOUT_RULES'], false, []]);
    const own = webhook(kit.broker, { url: receiver.url });
    using _own = disposable(() => own.close());
    await kit.broker.publish('b', 'x');
    await own.idle();
    assert.deepEqual([errors.length, new Set(topics(receiver))], [1, new Set(['b'])]);
  });

  it('rejects rules with the action of another event, and unknown names', async () => {
    await using kit = await createTestBroker();
    const name = 'web.hook.rule.client.connected.1';
    for (const [setting, value, code, message] of [
      [
        name,
        '{"action": "on_message_publish"}',
        'OPTION_INVALID',
        /on_message_publish.*client\.connected.*on_client_connected/
      ],
      ['web.hook.rule.message.acked.2', '{"action": "on_message_delivered"}', 'OPTION_INVALID', /on_message_acked/],
      ['web.hook.rule.message.publish.1', '{"action": "on_message_publish", "topci": "a"}', 'OPTION_UNKNOWN', /topci/],
      ['web.hook.rule.message.publish.1', '["a"]', 'OPTION_INVALID', /JSON such as/],
      ['web.hook.rule.session.created.1', '{"action": "on_session_created"}', 'OPTION_INVALID', /client\.connected/]
    ] as const)
      assert.throws(
        () => webhook(kit.broker, { url: 'http://127.0.0.1:1/', [setting]: value } as WebhookOptions),
        (error: InvalidInput) => {
          assert.equal(error.code, code);
          assert.ok(error.message.includes(setting), error.message);
          assert.match(error.message, message);
          return true;
        }
      );
  });

  it('names the place of the fault in rejected rules', async () => {
    await using kit = await createTestBroker();
    const url = 'http://127.0.0.1:1/';
    for (const [options, field] of [
      [{ url, rules: [{ event: 'message.publsh' }] }, 'webhook.rules[0].event'],
      [{ url, rules: [{ event: 'message.publish', topic: 'a/#/b' }] }, 'webhook.rules[0].topic'],
      [{ url, rules: [{ event: 'client.subscribe', topic: '$share/g/a' }] }, 'webhook.rules[0].topic'],
      [{ url, rules: [{ event: 'client.subscribe', topic: '$queue/a' }] }, 'webhook.rules[0].topic'],
      [{ url, rules: 'all' }, 'webhook.rules'],
      [{ url, 'web.hook.rule.message.publish.1': '{' }, 'web.hook.rule.message.publish.1'],
      [{ url: 'ftp://a' }, 'webhook.url'],
      [{}, 'webhook.url'],
      [{ url, secret: 'short' }, 'webhook.secret'],
      [{ url, headers: { 'webhook-id': 'x' } }, 'webhook.headers.webhook-id'],
      [{ url, headers: { a: 'b\r\nc: d' } }, 'webhook.headers.a'],
      [{ url, name: 'a b' }, 'webhook.name'],
      [{ url, name: '..' }, 'webhook.name'],
      [{ url, encodePayload: 'hex' }, 'webhook.encodePayload']
    ] as const)
      assert.throws(() => webhook(kit.broker, options as never), { code: 'OPTION_INVALID', field });
    assert.throws(() => webhook(kit.broker, { url, retry: 3 } as never), { code: 'OPTION_UNKNOWN' });
    assert.deepEqual([...kit.broker.outboxes], []);
  });

  it('does not show rejected headers and secrets, or anything in their place', async () => {
    await using kit = await createTestBroker();
    const url = 'http://127.0.0.1:1/';
    const refused: WebhookOptions[] = [
      { url, secret: 'short' },
      { url, headers: { 'webhook-id': 'x' } },
      { url, headers: { a: 'b\r\nc: d' } }
    ];
    for (const options of refused)
      assert.throws(
        () => webhook(kit.broker, options),
        ({ message }: Error) => !/got|short/.test(message)
      );
  });

  it('rejects the name of an existing webhook, which stays unchanged', async () => {
    await withHook({}, async ({ kit, receiver, hook }) => {
      assert.throws(() => webhook(kit.broker, { url: receiver.url }), {
        code: 'RECORD_EXISTS',
        message: 'there is a webhook "default" already'
      });
      await kit.broker.publish('a', '');
      await hook.idle();
      assert.deepEqual(topics(receiver), ['a']);
    });
  });

  it('rejects the name of an outbox of the app, and leaves nothing behind', async () => {
    await using kit = await createTestBroker();
    const outbox = kit.broker.outboxes.open({ name: 'webhook:default', send: () => undefined });
    assert.throws(() => webhook(kit.broker, { url: 'http://127.0.0.1:1/' }), { code: 'OUTBOX_IN_USE' });
    assert.deepEqual(kit.broker.connectors.list(), []);
    outbox.close();
  });
});

describe('A webhook', () => {
  it('never sends publishes below $SYS', () =>
    withHook({}, async ({ kit, receiver, hook }) => {
      for (const topic of ['$SYS/x', '$SYS']) await kit.broker.publish(topic, 'a');
      await kit.broker.publish('x', 'a');
      await hook.idle();
      assert.deepEqual(topics(receiver), ['x']);
    }));

  it('reports stopped when it sends no new events and its queue is empty', () =>
    withHook({ backOff: '1s' }, async ({ kit, receiver, hook }) => {
      receiver.answer = (request) => request.socket.destroy();
      await kit.broker.publish('a', '');
      await hook.idle();
      hook.stop();
      assert.deepEqual([hook.size, hook.state], [1, 'working']);
      receiver.answer = (_request, response) => response.end();
      await kit.clock.advance('2s');
      await hook.idle();
      assert.deepEqual([hook.size, hook.state], [0, 'stopped']);
      hook.start();
      assert.equal(hook.state, 'working');
    }));

  it('sends an event once, whatever the server answers', () =>
    withHook({}, async ({ kit, receiver, hook }) => {
      kit.broker.on('error', () => undefined);
      receiver.answer = (_request, response) => response.writeHead(500).end('no');
      for (const topic of ['a', 'b', 'c']) await kit.broker.publish(topic, '');
      await hook.idle();
      assert.deepEqual(topics(receiver), ['a', 'b', 'c']);
      assert.deepEqual([hook.size, hook.counters.sent, hook.refused], [0, 3, 3]);
      assert.equal(receiver.connections, 1);
    }));

  it('keeps events that cannot be sent, and sends them in order with the same ids when the server is back', async () => {
    await using kit = await createTestBroker({ leakCheck: false });
    const first = await new Receiver().open();
    const { port, url } = first;
    first.answer = (request) => request.socket.destroy();
    const hook = webhook(kit.broker, { url, rules: PUBLISH, backOff: '1s' });
    using _hook = disposable(() => hook.close());
    await kit.broker.publish('a', '');
    await hook.idle();
    await first.close();
    await kit.broker.publish('b', '');
    for (let at = 0; at < 8; at++) {
      await kit.clock.advance('20s');
      await hook.idle();
    }
    assert.equal(kit.broker.alarms.get('outbox_failing:webhook:default')?.severity, 'warning');
    assert.match(hook.lastError?.message ?? '', /ECONNREFUSED/);
    await using again = await new Receiver().open(port);
    await kit.clock.advance('2m');
    await again.until(2);
    await hook.idle();
    assert.deepEqual(topics(again), ['a', 'b']);
    assert.equal(again.received[0].headers['webhook-id'], first.received[0].headers['webhook-id']);
    assert.deepEqual(kit.broker.alarms.present(), []);
  });

  it('stops waiting for a server that does not answer, and never delays a client', () =>
    withHook({ timeout: '5s' }, async ({ kit, receiver, hook }) => {
      receiver.answer = () => {};
      const c = await kit.connect({ clientId: 'c' });
      for (let at = 0; at < 50; at++) await c.publish('a', `${at}`, { qos: 1 });
      await receiver.until(1);
      assert.equal(hook.size, 50);
      await kit.clock.advance('6s');
      assert.equal((hook.lastError as { code?: string } | undefined)?.code, 'SEND_TIMEOUT');
      receiver.answer = (_request, response) => response.end();
      await kit.clock.advance('2m');
      await hook.idle();
      assert.equal(hook.size, 0);
      assert.deepEqual(
        receiver.bodies.slice(-50).map(({ payload }) => payload),
        Array.from({ length: 50 }, (_, at) => `${at}`)
      );
    }));

  it('counts a request as delivered when the answer begins, even if it arrives byte by byte or has no end', () =>
    withHook({}, async ({ kit, receiver, hook }) => {
      receiver.answer = (_request, response) => {
        response.writeHead(200);
        response.write('x');
      };
      for (const topic of ['a', 'b', 'c']) await kit.broker.publish(topic, '');
      await hook.idle();
      assert.deepEqual([topics(receiver), hook.counters.failed], [['a', 'b', 'c'], 0]);
    }));

  it('sends again requests interrupted by a reset connection', async () => {
    await using kit = await createTestBroker({ leakCheck: false });
    const sockets: Socket[] = [];
    let isBroken = true;
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      socket.on('data', () => {
        if (isBroken) socket.resetAndDestroy();
        else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    using _server = disposable(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const { port } = server.address() as { port: number };
    const hook = webhook(kit.broker, { url: `http://127.0.0.1:${port}`, rules: PUBLISH });
    using _hook = disposable(() => hook.close());
    await kit.broker.publish('a', '');
    await hook.idle();
    assert.deepEqual([hook.counters.sent, hook.counters.failed], [0, 1]);
    isBroken = false;
    await kit.clock.advance('1s');
    await hook.idle();
    assert.deepEqual([hook.counters.sent, hook.size], [1, 0]);
  });

  it('signs its requests according to the specification Standard Webhooks', async () => {
    const key = Buffer.alloc(32, 7);
    const secret = `whsec_${key.toString('base64')}`;
    await withHook({ secret, headers: { 'x-site': 'one' } }, async ({ kit, receiver, hook }) => {
      await kit.broker.publish('a', 'x');
      await hook.idle();
      const [{ headers, text }] = receiver.received;
      const timestamp = headers['webhook-timestamp'];
      assert.equal(Number(timestamp), Math.floor(kit.clock.now() / 1000));
      const signed = `${headers['webhook-id']}.${timestamp}.${text}`;
      assert.equal(headers['webhook-signature'], `v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
      assert.equal(headers['x-site'], 'one');
    });
  });

  it('sends several events in one request if configured', () =>
    withHook({ batch: 10, concurrency: 1 }, async ({ kit, receiver, hook }) => {
      for (let at = 0; at < 25; at++) await kit.broker.publish('a', `${at}`);
      await hook.idle();
      assert.ok(receiver.received.length < 25);
      assert.ok(receiver.received.every(({ text }) => text.startsWith('[')));
      assert.deepEqual(
        receiver.bodies.map(({ payload }) => payload),
        Array.from({ length: 25 }, (_, at) => `${at}`)
      );
    }));

  it('gives requests with other events other ids, so that no receiver treats them as duplicates', () =>
    withHook({ batch: 10 }, async ({ kit, receiver, hook }) => {
      receiver.answer = (request) => request.socket.destroy();
      for (const payload of ['1', '2', '3']) await kit.broker.publish('a', payload);
      await hook.idle();
      receiver.answer = (_request, response) => response.end();
      await kit.clock.advance('3s');
      await hook.idle();
      assert.deepEqual(
        receiver.bodies.map(({ payload }) => payload),
        ['1', '2', '3', '1', '2', '3']
      );
      assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 4);
    }));

  it('does not connect to private addresses if configured', async () => {
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254', '10.0.0.1'])
      await withHook({ url: `http://${host}:1/`, publicOnly: true }, async ({ kit, hook }) => {
        await kit.broker.publish('a', '');
        await hook.idle();
        assert.equal((hook.lastError as { code?: string } | undefined)?.code, 'ADDRESS_PRIVATE', host);
      });
  });

  it('passes the same events to a function of the app, one after the other for each client', async () => {
    await using kit = await createTestBroker({ leakCheck: false });
    const errors: string[] = [];
    kit.broker.on('error', ({ error }) => errors.push((error as Error).message));
    const seen: [string, unknown][] = [];
    let running = 0;
    const hook = webhook(kit.broker, {
      rules: PUBLISH,
      onEvent: async (body: WebhookBody, event) => {
        assert.equal(++running, 1);
        await turns();
        running--;
        if (body.payload === '1') throw new Error('cannot store it');
        seen.push([event, body.payload]);
      }
    });
    using _hook = disposable(() => hook.close());
    for (let at = 0; at < 4; at++) await kit.broker.publish('a', `${at}`);
    await hook.idle();
    assert.deepEqual(
      seen,
      ['0', '2', '3'].map((payload) => ['message.publish', payload])
    );
    assert.deepEqual(errors, ['cannot store it']);
    assert.equal(hook.size, 0);
  });

  it('calls a function that does not answer once for each event, and reports it', async () => {
    await using kit = await createTestBroker({ leakCheck: false });
    const errors: unknown[] = [];
    kit.broker.on('error', ({ error }) => errors.push((error as { code?: string }).code));
    const seen: unknown[] = [];
    const onEvent = ({ payload }: WebhookBody) => {
      seen.push(payload);
      return new Promise(() => {});
    };
    const hook = webhook(kit.broker, { rules: PUBLISH, onEvent });
    using _hook = disposable(() => hook.close());
    for (const payload of ['1', '2']) await kit.broker.publish('a', payload);
    for (let at = 0; at < 10; at++) await kit.clock.advance('10s');
    await hook.idle();
    assert.deepEqual(seen, ['1', '2']);
    assert.deepEqual(errors, ['SEND_TIMEOUT', 'SEND_TIMEOUT']);
    assert.equal(hook.size, 0);
  });

  it('can be stopped, started and closed', () =>
    withHook({}, async ({ kit, receiver, hook }) => {
      await kit.broker.publish('a', '');
      hook.stop();
      await kit.broker.publish('b', '');
      hook.start();
      await kit.broker.publish('c', '');
      await hook.idle();
      hook.close();
      await kit.broker.publish('d', '');
      hook.start();
      await turns();
      assert.deepEqual(topics(receiver), ['a', 'c']);
      assert.deepEqual([...kit.broker.outboxes], []);
    }));

  it('can be closed by another listener of an event that it would send', () =>
    withHook({}, async ({ kit, receiver, hook }) => {
      const errors: unknown[] = [];
      kit.broker.on('error', ({ error }) => errors.push(error));
      hook.stop();
      kit.broker.on('message.publish', () => hook.close());
      hook.start();
      await kit.broker.publish('a', '');
      await turns();
      assert.deepEqual([errors, receiver.bodies], [[], []]);
    }));

  it('sends the events of the stop of the broker before the stop is complete', () =>
    withHook({ rules: undefined }, async ({ kit, receiver }) => {
      await kit.connect({ clientId: 'c' });
      await kit.broker.stop();
      const actions = receiver.bodies.map(({ action, reason }) => [action, reason]);
      assert.deepEqual(actions.slice(-2), [
        ['client_disconnected', 'server_shutting_down'],
        ['session_terminated', 'server_shutting_down']
      ]);
    }));
});
