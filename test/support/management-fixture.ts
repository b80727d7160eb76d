import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Broker, type Clock, createBroker, memoryStore } from 'embermq';
import { Batch, type Store } from 'embermq/adapter';
import { bridges } from 'embermq/bridge';
import { listen } from 'embermq/net';
import { VirtualClock } from 'embermq/testing';
import { webhooks } from 'embermq/webhook';
import { RuleTargets } from './rule-target.ts';

const TCP = { transport: 'tcp', remoteAddress: '192.0.2.10', remotePort: 50_123 } as const;
const WEB = { transport: 'wss', remoteAddress: '192.0.2.20', remotePort: 50_456 } as const;

/** The clocks of the brokers, which only `passTime` moves. */
const clocks = new WeakMap<Broker, VirtualClock>();

/** The operation that measures for a second. */
export const MEASURED = 'list_busiest_clients';

/** Let time pass until an answer has come that waits for it. */
export async function passTime<T>(broker: Broker, answer: Promise<T>): Promise<T> {
  let isAnswered = false as boolean;
  const ended = answer.finally(() => {
    isAnswered = true;
  });
  for (await nextTurn(); !isAnswered; await nextTurn()) await clocks.get(broker)?.advance(1_000);
  return ended;
}

/** A virtual clock whose monotonic time has fractions of a millisecond, like that of the system. */
function fractionalClock(clock: VirtualClock): Clock {
  let reads = 0;
  const monotonic = () => clock.monotonic() + ++reads / 512;
  return {
    now: () => clock.now(),
    monotonic,
    setTimeout: (run, delayMs) => clock.setTimeout(run, delayMs),
    clearTimeout: (timer) => clock.clearTimeout(timer),
    internal: { ...clock.internal, monotonic }
  };
}

/** The store with the records, which are added once. */
let records: Promise<Store> | undefined;

/**
 * Start the broker of the examples of operations. Time does not pass, so answers are the same in each run.
 *
 * If an example needs an additional object, add it at the end, so that lists begin with the entries that the other examples expect.
 */
export async function startExampleBroker(): Promise<Broker> {
  const clock = new VirtualClock();
  const broker = createBroker({
    clock: fractionalClock(clock),
    store: await copyOf(await (records ??= storeWithRecords())),
    memoryHighWatermark: 0,
    allowAnonymous: true,
    aclNomatch: 'allow',
    connectors: [webhooks(), bridges()],
    rules: { resources: [new RuleTargets('web_hook').type] }
  });
  // keeps decisions for some time, so that clients have cached ones
  broker.hook('authorizePublish', () => undefined);
  clocks.set(broker, clock);
  await broker.start();
  await listen(broker, { port: 0, host: '127.0.0.1', maxConnections: 1000 });
  await addClients(broker);
  broker.alarms.raise({
    id: 'pump_pressure',
    severity: 'warning',
    title: 'Low pressure',
    summary: 'Pump 1 is at 0.8 bar'
  });
  broker.alarms.raise({
    id: 'door_open',
    severity: 'notice',
    title: 'Door is open',
    summary: 'The door of the pump room'
  });
  broker.alarms.clear('door_open');
  await broker.configuration.set('broker.sys_interval', '90s');
  await broker.connectors.create('webhook', {
    name: 'first',
    url: 'http://127.0.0.1:3000/events',
    rules: [{ event: 'session.terminated' }],
    secret: 'a secret of the webhook of the examples'
  });
  await broker.connectors.create('bridge', {
    name: 'first',
    url: 'mqtt://127.0.0.1:1',
    out: [{ filter: 'sensors/#', qos: 1 }],
    password: 'a password of the bridge of the examples'
  });
  await broker.connectors.stop('bridge', 'first');
  await broker.rules.resources.create({
    id: 'resource:alarm-server',
    type: 'web_hook',
    config: { url: 'http://127.0.0.1:1/alarms' },
    description: 'The server that calls people'
  });
  await broker.rules.create({
    id: 'rule:hot-sensors',
    sql: 'SELECT clientid, payload FROM "sensors/+/temperature"',
    actions: [{ name: 'inspect' }],
    description: 'Shows temperatures'
  });
  broker.monitor.topicCounters.create('sensors/#');
  broker.monitor.traces.start({ clientId: 'sensor-1', durationMs: 600_000 });
  broker.monitor.audit.record({
    operation: 'create_banned',
    caller: { kind: 'application', id: 'app' },
    address: '127.0.0.1',
    request: 'POST /banned',
    parameters: { who: 'sensor-9', as: 'clientid', reason: 'replaced' },
    status: 200,
    code: 0
  });
  return broker;
}

async function storeWithRecords(): Promise<Store> {
  const store = memoryStore();
  const broker = createBroker({ clock: new VirtualClock(), store, passwordCost: 10 });
  await broker.start();
  await addRecords(broker);
  await broker.stop();
  return store;
}

async function copyOf(store: Store): Promise<Store> {
  const copy = memoryStore();
  await Promise.all([store.open(), copy.open()]);
  const batch = new Batch();
  for (const { key, value } of await store.read(Buffer.alloc(0), Buffer.alloc(64, 255), 10_000)) batch.put(key, value);
  await copy.commit(batch);
  await Promise.all([store.close(), copy.close()]);
  return copy;
}

async function addRecords({ applications, users, access }: Broker): Promise<void> {
  await applications.create({ id: 'app', secret: 'a secret', name: 'Examples' });
  await applications.create({
    id: 'reports',
    secret: 'secret of reports',
    name: 'Reports',
    description: 'Monthly reports'
  });
  await users.create('ann', 'password of ann', 'administrator');
  await users.create('bob', 'password of bob', 'viewer');
  await access.clientIds.create('sensor-1', 'password of sensor-1');
  await access.usernames.create('sensors', 'password of sensors');
  await access.logins.create('operator', 'password of operator', { isSuperuser: false });
  await access.acl.set({ topic: 'commands/sensor-1', action: 'sub', access: 'allow', clientId: 'sensor-1' });
  await access.acl.set({ topic: 'sensors/#', action: 'pub', access: 'allow', username: 'sensors' });
  await access.acl.set({ topic: 'secret/#', action: 'pubsub', access: 'deny' });
  await access.banned.create({ kind: 'clientId', who: 'intruder', by: 'ann', reason: 'guesses passwords' });
}

async function addClients(broker: Broker): Promise<void> {
  const sensor = await broker.connect({
    clientId: 'sensor-1',
    username: 'sensors',
    password: 'password of sensor-1',
    keepalive: 60,
    sessionExpiry: 7200,
    transportInfo: TCP
  });
  await sensor.subscribe('commands/sensor-1', { qos: 1 });
  const dashboard = await broker.connect({ clientId: 'dashboard', keepalive: 30, transportInfo: WEB });
  await dashboard.subscribe('sensors/+/temperature');
  await dashboard.subscribe('$share/screens/alerts/#', { qos: 1 });
  const away = await broker.connect({ clientId: 'sensor-2', sessionExpiry: 7200, transportInfo: TCP });
  await away.subscribe('commands/sensor-2', { qos: 1 });
  const gone = broker.nextEvent('client.disconnected');
  await away.disconnect();
  await gone;
  await sensor.publish('sensors/1/temperature', '21.5', { qos: 1, retain: true });
  await sensor.publish('sensors/1/status', 'online', { qos: 1 });
}

/** Fields whose values differ from run to run, or between machines and versions. */
const VARYING =
  /^(version|uptime|datetime|timestamp|\w+_at|otp_release|load\d+|max_fds|memory_\w+|password|secret|listen_on|heap_size|reductions|(recv|send)_(oct|cnt|pkt))$/;

/** The id of an action of a rule, which contains the time at which it was created. */
const ACTION_ID = /^\w+_\d{19}$/;

/**
 * Compare an answer with an example. Examples may contain only the first entries of a list, and some fields of a record.
 * @returns the place of a difference; undefined: there is none
 */
export function differenceFrom(example: unknown, answer: unknown, at = 'data'): string | undefined {
  if (typeof example !== 'object' || example === null)
    return Object.is(example, answer)
      ? undefined
      : `${at} is ${JSON.stringify(answer)}, not ${JSON.stringify(example)}`;
  if (typeof answer !== 'object' || answer === null || Array.isArray(example) !== Array.isArray(answer))
    return `${at} is ${JSON.stringify(answer)}`;
  for (const [name, value] of Object.entries(example)) {
    const theirs = (answer as Record<string, unknown>)[name];
    const isSame = VARYING.test(name)
      ? typeof theirs === typeof value
      : ACTION_ID.test(String(value)) && ACTION_ID.test(String(theirs));
    const difference = isSame ? undefined : differenceFrom(value, theirs, `${at}.${name}`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}
