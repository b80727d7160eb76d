// The module without Nest, which is not installed here: a few lines take its place. `.ci/full ported` runs it in real apps.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { type Broker, createBroker } from 'embermq';
import { BROKER, type EmbermqDynamicModule, EmbermqModule } from 'embermq/nest';
import mqtt from 'mqtt';

/** The hooks of the life cycle that Nest finds by name. */
interface Hooks {
  configure(consumer: { getHttpAdapter(): object | undefined }): void;
  onModuleInit(): Promise<void>;
  beforeApplicationShutdown(): Promise<void>;
  onApplicationShutdown(): Promise<void>;
}

/** Creates a dynamic module in one app, as Nest does. */
async function makeApp({ module, providers }: EmbermqDynamicModule<unknown>, values = new Map<unknown, unknown>()) {
  const instance = new module();
  values.set(module, instance);
  for (const provider of providers)
    if ('useFactory' in provider)
      values.set(provider.provide, await provider.useFactory(...provider.inject.map((token) => values.get(token))));
  return { broker: values.get(BROKER) as Broker, hooks: instance as unknown as Hooks };
}

/** The adapter of a HTTP server, such as that of Express. */
function adapterOf(server: Server, handlers: unknown[] = []) {
  return { getHttpServer: () => server, getType: () => 'express', use: (handler: unknown) => handlers.push(handler) };
}

async function close(hooks: Hooks): Promise<void> {
  await hooks.beforeApplicationShutdown();
  await hooks.onApplicationShutdown();
}

describe('EmbermqModule', () => {
  it('exports BROKER globally, unless the options say otherwise', () => {
    const made = EmbermqModule.forRoot();
    assert.equal(made.module, EmbermqModule);
    assert.equal(made.global, true);
    assert.deepEqual(made.exports, [BROKER]);
    assert.deepEqual(made.imports, []);
    assert.ok(made.providers.some(({ provide }) => provide === BROKER));
    assert.equal(EmbermqModule.forRoot({ global: false }).global, false);
  });

  it('gives the module of each call different metadata, by which Nest 10 tells modules apart', () => {
    const text = () => JSON.stringify(EmbermqModule.forRoot().providers);
    assert.notEqual(text(), text());
  });

  it('starts the broker in onModuleInit and stops it in onApplicationShutdown', async () => {
    const { broker, hooks } = await makeApp(EmbermqModule.forRoot({ listen: 0 }));
    assert.equal(broker.state, 'idle');
    await hooks.onModuleInit();
    assert.equal(broker.state, 'connected');
    assert.equal(broker.listeners().length, 1);
    await hooks.beforeApplicationShutdown();
    assert.equal(broker.state, 'connected');
    await hooks.onApplicationShutdown();
    assert.equal(broker.state, 'disconnected');
  });

  it('makes a broker for each app that uses the same description', async () => {
    const description = EmbermqModule.forRoot();
    const [one, other] = [await makeApp(description), await makeApp(description)];
    assert.notEqual(one.broker, other.broker);
  });

  it('serves WebSocket and REST on the HTTP server of the app, and frees it before it closes', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const handlers: unknown[] = [];
    const { hooks } = await makeApp(EmbermqModule.forRoot({ management: true, streamsApi: true }));
    hooks.configure({ getHttpAdapter: () => adapterOf(server, handlers) });
    assert.equal(handlers.length, 2);
    await hooks.onModuleInit();
    const { port } = server.address() as AddressInfo;
    const client = await mqtt.connectAsync(`ws://127.0.0.1:${port}/mqtt`, { reconnectPeriod: 0, protocolVersion: 5 });
    const left = new Promise<number>((resolve) =>
      client.on('disconnect', ({ reasonCode }) => resolve(reasonCode ?? 0))
    );
    await hooks.beforeApplicationShutdown();
    assert.equal(await left, 0x8b);
    await new Promise((resolve) => server.close(resolve));
    await hooks.onApplicationShutdown();
    client.end(true);
  });

  it('passes the injected providers to useFactory', async () => {
    const Names = class {};
    const imported = { module: Names };
    const description = EmbermqModule.forRootAsync({
      imports: [imported],
      inject: [Names],
      useFactory: async (names: { broker: Broker }) => ({ broker: names.broker })
    });
    assert.deepEqual(description.imports, [imported]);
    const broker = createBroker();
    assert.equal((await makeApp(description, new Map([[Names, { broker }]]))).broker, broker);
  });

  it('leaves a broker running that the app has started', async () => {
    const broker = await createBroker().start();
    const app = await makeApp(EmbermqModule.forRoot({ broker, listen: 0 }));
    assert.equal(app.broker, broker);
    await app.hooks.onModuleInit();
    assert.equal(broker.listeners().length, 1);
    await app.hooks.beforeApplicationShutdown();
    await app.hooks.onApplicationShutdown();
    assert.equal(broker.state, 'connected');
    assert.equal(broker.listeners().length, 0);
    await broker.stop();
  });

  it('stops the broker once if the app is closed twice at a time', async () => {
    const { broker, hooks } = await makeApp(EmbermqModule.forRoot());
    await hooks.onModuleInit();
    await Promise.all([close(hooks), close(hooks)]);
    assert.equal(broker.state, 'disconnected');
  });

  it('leaves a broker running that another app uses, if the app is closed twice', async () => {
    const description = EmbermqModule.forRoot({ broker: createBroker() });
    const [one, other] = [await makeApp(description), await makeApp(description)];
    for (const { hooks } of [one, other]) await hooks.onModuleInit();
    for (let times = 0; times < 2; times++) await close(one.hooks);
    assert.equal(other.broker.state, 'connected');
    await close(other.hooks);
    assert.equal(other.broker.state, 'disconnected');
  });

  it('closes the ports that it has opened if another one cannot be opened', async (t) => {
    const taken = createServer().listen(0, '127.0.0.1');
    t.after(() => taken.close());
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    await using broker = await createBroker().start();
    for (const options of [{}, { broker }]) {
      const listen = [
        { port: 0, host: '127.0.0.1' },
        { port, host: '127.0.0.1' }
      ];
      const app = await makeApp(EmbermqModule.forRoot({ ...options, listen }));
      await assert.rejects(app.hooks.onModuleInit(), { code: 'LISTENER_BIND_FAILED' });
      assert.deepEqual(app.broker.listeners(), []);
      await close(app.hooks); // changes nothing
    }
    assert.equal(broker.state, 'connected');
  });

  it('opens nothing if a test has replaced the provider of the broker', async () => {
    const hooks = new EmbermqModule() as unknown as Hooks;
    hooks.configure({ getHttpAdapter: () => assert.fail() as never } as never as Parameters<Hooks['configure']>[0]);
    await hooks.onModuleInit();
    await hooks.beforeApplicationShutdown();
    await hooks.onApplicationShutdown();
  });

  it('names the option that is wrong', async () => {
    assert.throws(() => EmbermqModule.forRoot({ listn: 1883 } as never), {
      code: 'OPTION_UNKNOWN',
      message: 'unknown option "listn" in EmbermqModule.forRoot; did you mean "listen"?'
    });
    await assert.rejects(makeApp(EmbermqModule.forRootAsync({ useFactory: () => ({ webSocket: 5 }) as never })), {
      code: 'OPTION_INVALID',
      message: /webSocket/
    });
    for (const options of [undefined, {}, { useFactory: 5 }])
      assert.throws(() => EmbermqModule.forRootAsync(options as never), {
        code: 'OPTION_INVALID',
        message: /^EmbermqModule\.forRootAsync.*expected/
      });
  });
});
