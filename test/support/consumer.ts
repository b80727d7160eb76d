/** Code as an app in TypeScript would write it. */
export const CONSUMER = `
  import { createServer as createHttpServer } from 'node:http';
  import { createServer } from 'node:net';
  import {
    type BrokerEvents, type BrokerOptions, type Client, type ClientMessageHandler, createBroker, type Hook, type Hooks,
    type MessageHandler, ReasonCode, users
  } from 'embermq';
  import { attachWebSocket, listen, upgradeHandler } from 'embermq/net';
  import { levelStore } from 'embermq/level';
  import { ManagementClient } from 'embermq/management/client';
  import { type CompiledStreamRule, compileStreamRule, type SampleRun, type SampleStep, type TimedOutput } from 'embermq/streams';
  import { createTestBroker } from 'embermq/testing';

  const store = levelStore('folder');

  const authenticate: Hook<'authenticate'> = async ({ username, password }) =>
    username === 'a' && password?.toString() === 'b' ? true : { allow: false, reasonCode: ReasonCode.notAuthorized };
  const hooks: Hooks = { authenticate, deliver: ({ message, client }) => message.topic !== client.clientId };
  hooks.publish = ({ message }) => ({ topic: message.topic, payload: message.payload });
  const maxPacketSize = process.env['MAX_PACKET_SIZE'];
  const options: BrokerOptions = { store, hooks, maxPacketSize, zones: { inner: { allowAnonymous: false } } };
  const broker = createBroker(options);
  const remove: () => void = broker.hook('authenticate', authenticate, { isFirst: true });
  const hear: MessageHandler = ({ topic, payload }, isRetained) => console.log(topic, payload.length, isRetained);
  const stop: () => void = broker.subscribe('a/#', hear, { qos: 1 });
  broker.on('client.disconnected', ({ client, reason }: BrokerEvents['client.disconnected']) => {
    console.log(client.username, reason);
  });
  listen(broker, { port: 0, maxConnections: 5 });
  createServer((socket) => {
    const { remoteAddress, remotePort } = socket;
    broker.handle(socket, { transport: 'stream', remoteAddress, remotePort });
  });
  createServer(broker.handle).listen(1884);
  attachWebSocket(broker, createHttpServer(), { origins: 'any' });
  createHttpServer().on('upgrade', upgradeHandler(broker).handleUpgrade);
  const onMessage: ClientMessageHandler = (message) => message.ack();
  const client: Client = await broker.connect({ clientId: 'c', will: { topic: 'w', payload: 'x' } });
  await client.subscribe('x', onMessage);
  await broker.publish('a', 'b', { retain: true, properties: { contentType: 'text/plain' } });
  const counts: number[] = [
    broker.metrics.counters()['messages.received'],
    broker.metrics.gauges()['connections.max'],
    broker.metrics.gauges()['messages.delayed']
  ];
  for await (const { clientId, timestamp } of broker.messages('#')) console.log(clientId, timestamp, counts);
  await using kit = await createTestBroker({ hooks });
  await kit.clock.advance('1s');
  broker.sessions.get('c').kick({ session: 'keep' });
  interface User { readonly tenant: string }
  const typed = createBroker<User>({
    auth: [users([]), { name: 'tenants', authenticate: () => ({ allow: true, clientData: { tenant: 'a' } }) }],
    hooks: { deliver: ({ client }) => client.data?.tenant === 'a' }
  });
  typed.on('client.connected', ({ client }) => console.log(client.data?.tenant.length));
  listen(typed, { port: 0 });
  const management = new ManagementClient({ url: 'http://127.0.0.1:8081/api/v4', id: 'me', secret: 'a secret' });
  const names: string[] = (await management.get('/clients', { query: { _limit: 10 } })).map(({ username }) => username);
  for await (const { topic } of management.list('/subscriptions')) names.push(topic);
  const rises: CompiledStreamRule = await compileStreamRule('SELECT a FROM demo WHERE a > lag(a)', { timezone: undefined });
  const steps: SampleStep[] = [{ stream: 'demo', values: { a: 1 }, at: 5 }, { at: 10 }];
  const ran: SampleRun = rises.run(steps, { until: 20 });
  const texts = ran.outputs.map((output: TimedOutput) => ('rows' in output ? output.rows.length : output.error));
  console.log(texts, ran.emissions);
  stop();
  remove();
`;

/** Code as an app with Fastify would add it. */
export const FASTIFY_CONSUMER = `
  import { fastifyMqtt } from 'embermq/fastify';
  import type { FastifyInstance } from 'fastify';

  export async function mount(app: FastifyInstance): Promise<void> {
    await app.register(fastifyMqtt, { broker, listen: 0, management: { revision: 'later' } });
    await app.mqtt.publish('a', 'b');
  }
`;

const [imports, body] = CONSUMER.split(/(?<=from 'embermq\/testing';)/);

/** The code of CONSUMER as a CommonJS module, which awaits only in functions. */
export const COMMONJS_CONSUMER = `${imports}\n  export async function main(): Promise<void> {${body}}\n`;

/** Code of a CommonJS module that exchanges objects with ES modules, injects, extends and tests for classes, and names each kind of export. */
export const COMMONJS_CLASSES = `
  import embermq = require('embermq');
  import { Broker, BrokerError, InvalidInput, ReasonCode } from 'embermq';
  import type { Broker as ImportedBroker } from 'embermq' with { 'resolution-mode': 'import' };
  import { Charted } from 'embermq/machines';
  import { type LaterTypes, ManagementClient } from 'embermq/management/client';

  export const toModule = (broker: Broker<string>): ImportedBroker<string> => broker;
  export const fromModule = (broker: ImportedBroker<string>): Broker<string> => broker;
  export class Service {
    constructor(readonly broker: Broker = embermq.createBroker()) {}
  }
  export class AppError extends BrokerError {}
  export class Machine extends Charted<'on' | 'off'> {}
  export const codeOf = (error: unknown): string => (error instanceof InvalidInput ? error.code : String(ReasonCode.success));
  export const client = (typed: ManagementClient<'earlier'>, types?: LaterTypes.AlarmDetails): unknown => types ?? typed;
  // @ts-expect-error: the types are not any
  export const wrong: number = embermq.createBroker();
`;
