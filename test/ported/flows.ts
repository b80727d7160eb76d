// The flows that the programs for clients in Python have in common: with each version of MQTT, with connections that are cut, with restarts, refusals and
// each transport.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { users } from '../../lib/index.ts';
import { CuttingProxy, cutsOf } from './cutting-proxy.ts';
import { type Python, runPython } from './python.ts';
import { Stage } from './stage.ts';

/** Number of messages that the flow `resume` publishes. */
const RESUMED = 150;
const VERSIONS = { 3: '3.1', 4: '3.1.1', 5: '5' };
type Version = keyof typeof VERSIONS;

/** A client library and its program. */
export interface Flows {
  /** Name of the library. */
  readonly library: string;
  /** The program in this folder: it takes the name of a flow, and options as JSON. */
  readonly program: string;
  /** Flows that need nothing but the broker, with the text of their test. */
  readonly flows: Readonly<Record<string, string>>;
  /** QoS levels with which it can lose the connection while it publishes and send each message as the specification says. */
  readonly publishesWithCuts: readonly (1 | 2)[];
  /** Flows that take a transport. */
  readonly overTransports: readonly string[];
  readonly python: () => Python;
  readonly stage: () => Stage;
}

/** Runs a flow and returns what it prints. @param onLine answers what the flow asks for */
export function runFlow(
  { program, python, stage }: Flows,
  name: string,
  version: Version,
  options: object = {},
  onLine?: (line: string) => Promise<string>
): Promise<string> {
  const { ports, certificates } = stage();
  const text = JSON.stringify({ version, ports, ca: certificates.ca.certFile, ...options });
  return runPython(python(), program, [name, text], { onLine });
}

/** Defines the tests of a library. */
export function describeFlows(given: Flows): void {
  for (const [key, text] of Object.entries(VERSIONS))
    describe(`${given.library} with MQTT ${text}`, { timeout: 600_000 }, () => {
      const version = Number(key) as Version;
      for (const [name, title] of Object.entries(given.flows))
        it(title, async () => {
          await runFlow(given, name, version);
        });

      for (const transport of ['tls', 'ws', 'wss'])
        it(`exchanges messages over ${transport}`, async () => {
          for (const name of given.overTransports) await runFlow(given, name, version, { transport });
        });

      for (const qos of [1, 2] as const)
        it(`loses no message of QoS ${qos} when its connections end at each packet of the exchange`, () =>
          resume(given, version, qos));

      it('reconnects to a broker that was restarted with its state', async () => {
        const stage = given.stage();
        await runFlow(given, 'restart', version, {}, async (line) => {
          await (line === 'stop' ? stage.close() : stage.open());
          return 'done';
        }).finally(() => stage.isOpen || stage.open());
      });

      it('gets the reason of each refusal', async () => {
        const auth = [users([{ username: 'ann', password: 'secret' }])];
        await using refusing = await Stage.start({ maxPacketSize: 10_000, auth }, (broker) => {
          broker.hook('preConnect', ({ packet }) =>
            packet.username === 'banned' ? { allow: false, reasonCode: 0x8a } : undefined
          );
          broker.hook('authorizePublish', ({ message }) => message.topic !== 'denied/x');
          broker.hook('authorizeSubscribe', ({ filter }) => filter !== 'denied/x');
        });
        await runFlow(given, 'refusals', version, { ports: refusing.ports, max: 10_000 });
      });
    });
}

/** Cuts the connections of a publisher and of a subscriber, and compares what the broker has accepted with what the subscriber has received. */
async function resume(given: Flows, version: Version, qos: 1 | 2): Promise<void> {
  const stage = given.stage();
  const target = () => stage.ports.tcp;
  const isCut = given.publishesWithCuts.includes(qos);
  await using publisher = await new CuttingProxy(target, isCut ? cutsOf(qos, 'client') : []).start();
  await using subscriber = await new CuttingProxy(target, cutsOf(qos, 'broker')).start();
  // a client that connects again may send new messages before the older ones that it has to repeat
  const accepted: number[] = [];
  const unsubscribe = stage.broker.subscribe(`resume/${qos}`, ({ payload }) => accepted.push(Number(payload)));
  const options = { qos, count: RESUMED, publisher: publisher.port, subscriber: subscriber.port };
  const received: number[] = JSON.parse(await runFlow(given, 'resume', version, options));
  unsubscribe();
  assert.deepEqual([publisher.left, subscriber.left], [0, 0], 'each cut was made');
  assert.equal(new Set(accepted).size, RESUMED);
  if (qos === 2) assert.equal(accepted.length, RESUMED, 'QoS 2 messages are accepted once');
  assert.deepEqual(qos === 2 ? received : [...new Set(received)], [...new Set(accepted)]);
}
