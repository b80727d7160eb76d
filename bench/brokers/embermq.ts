import { fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Session } from 'node:inspector';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type AccessRule, acl, type BrokerOptions, createBroker, hashPassword } from 'embermq';
import { passwordFile } from 'embermq/auth/password-file';
import { bridge } from 'embermq/bridge';
import { levelStore } from 'embermq/level';
import { managementApi } from 'embermq/management';
import { listen } from 'embermq/net';
import { webhook } from 'embermq/webhook';
import { HASH_COST } from '../load/frames.ts';
import { userOf } from '../load/logins.ts';
import { type Observer, program } from '../support/brokers.ts';

/**
 * Runs embermq in the measured configuration: with default options, and with the limits and statistics that are off by
 * default turned on, but with limits that are never reached. `maxInflight` is 1000 instead of 128, as for mosquitto,
 * because fan-in at QoS 1 has 2,000 messages for one subscriber in flight.
 *
 * `observer` adds a hook, a listener, access rules, users or an option, as `Row.observer` says. The password file is in `folder`.
 *
 * node embermq.js PORT [JSON of options that override these] [none|process|power FOLDER of the store] [FOLDER for a CPU
 * profile, from the start of listening until SIGTERM]
 */
const [port, more = '{}', durability = 'none', folder, profiles] = process.argv.slice(2);
const {
  observer,
  folder: scratch = '.',
  farPort,
  ...settings
} = JSON.parse(more) as BrokerOptions & {
  observer?: Observer;
  folder?: string;
  farPort?: number;
};
// a schema that accepts every payload, so that the row shows the cost of calling a schema
const BYTES = { '~standard': { version: 1, vendor: 'bench', validate: (value: unknown) => ({ value }) } } as const;
const options: BrokerOptions = {
  allowAnonymous: true,
  publishLimit: { amount: 1e9, perMs: 1000 },
  rateLimit: { amount: 1e12, perMs: 1000 },
  maxAwaitingRel: 10_000,
  maxInflight: 1000,
  awaitRelTimeout: '5m',
  sysInterval: '10s',
  sysHeartbeat: '5s',
  ...featureOptions(),
  ...(durability === 'none' ? {} : { store: levelStore(folder, { durability: durability as 'process' | 'power' }) }),
  ...settings
};
const broker = createBroker(options);
// an idle listener: this event does not occur while messages flow
broker.on('session.discarded', () => {});
if (observer === 'hook') broker.hook('authorizePublish', () => true, { cache: 'route' });
if (observer === 'rules') {
  const others = Array.from({ length: 999 }, (_, n): AccessRule => {
    return { access: n % 10 === 0 ? 'deny' : 'allow', topic: `site/${n}/+/state` };
  });
  await broker.access.create(acl([...others, { access: 'allow' }]));
}
if (observer === 'users') await broker.access.create(passwordFile({ file: await writeUsers(join(scratch, 'users')) }));
if (observer === 'listener') broker.on('message.publish', () => {}, { filter: 'a/#' });
if (observer === 'respond') broker.respond('calls/#', () => 'answer');
listen(broker, { host: '127.0.0.1', port: Number(port), backlog: 4096, maxConnRate: 1e6 });
await broker.start();
if (farPort !== undefined) forwardTo(farPort);
if (observer === 'rest') await mountAndPoll();
if (observer === 'webhook') await hookToNothing('events/#');
if (observer === 'webhook-all') await hookToNothing('#');
if (profiles === undefined) process.once('SIGTERM', () => process.exit(0));
else recordProfile(profiles);

/** The option of a feature that is measured. */
function featureOptions(): BrokerOptions {
  switch (observer) {
    case 'schemas':
      return { schemas: { 'readings/#': { type: 'object', properties: { t: { type: 'number' } } } } };
    case 'schemas-all':
      return { schemas: { '#': { schema: BYTES, decode: 'bytes' } } };
    case 'sparkplug':
      return { sparkplug: { ndeathTimestamp: true } };
    default:
      return {};
  }
}

/** Forward all messages. The queue has no limit, like that of mosquitto here. */
function forwardTo(far: number): void {
  const out = [{ filter: '#', qos: 1 as const }];
  bridge(broker, { url: `mqtt://127.0.0.1:${far}`, out, maxQueue: 0, maxQueueBytes: 0 });
}

/** Serve the management interface, and start another process that polls it once a second. */
async function mountAndPoll(): Promise<void> {
  const application = { id: 'bench', secret: 'a secret of the benchmark' };
  const server = createServer(managementApi(broker, { prefix: '/api' }).node);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await broker.applications.create(application);
  fork(program('support/poller.js'), [JSON.stringify({ port, ...application })]);
}

/** Send messages to a server that is down. One message is already queued, so that the webhook keeps trying. */
async function hookToNothing(topic: string): Promise<void> {
  // the port "discard" is closed
  webhook(broker, { url: 'http://127.0.0.1:9/', rules: [{ event: 'message.publish', topic }], maxBackOff: '1s' });
  await broker.publish({ topic: 'events/first', payload: '' });
}

async function writeUsers(file: string): Promise<string> {
  const users = Array.from({ length: 1000 }, (_, i) => userOf(i));
  const lines = await Promise.all(
    users.map(async ({ username, password }) => `${username}:${await hashPassword(password, HASH_COST)}\n`)
  );
  writeFileSync(file, lines.join(''));
  return file;
}

/** Profile the process. `--cpu-prof` is not used, because it would include the second in which modules are loaded. */
function recordProfile(folder: string): void {
  const inspector = new Session();
  inspector.connect();
  inspector.post('Profiler.enable');
  inspector.post('Profiler.setSamplingInterval', { interval: 500 });
  inspector.post('Profiler.start');
  process.once('SIGTERM', () => {
    inspector.post('Profiler.stop', (_, { profile }) => {
      writeFileSync(join(folder, `CPU.${process.pid}.cpuprofile`), JSON.stringify(profile));
      process.exit(0);
    });
  });
}
