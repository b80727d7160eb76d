import { readFile } from 'node:fs/promises';
import {
  type Broker,
  BrokerError,
  type IfTyped,
  InvalidInput,
  type NoSchemas,
  type SchemaTable,
  StateError,
  type WithSchemas
} from '../../lib/index.ts';
import {
  createTestBroker as createKit,
  type PortOptions,
  type TestBroker,
  type TestBrokerOf,
  type TestBrokerOptions,
  type TestPort
} from '../../lib/testing/index.ts';

const HOST = '127.0.0.1';
const NAMES: readonly (keyof PortOptions)[] = ['port', 'webSocket'];

/**
 * Create and start a broker for one test, with virtual time. It opens no port, except with `kit.listen()`.
 *
 * ```ts
 * await using kit = await createTestBroker();
 * await using client = await kit.connect({ clientId: 'c', keepalive: 60 });
 * kit.link('c').halfOpen();
 * await kit.clock.advance('90s'); // the keep alive of the client times out
 * ```
 *
 * The options are those of the broker. Three defaults differ: `timerResolution` is 1 ms, so that timeouts are exact to the millisecond;
 * `memoryHighWatermark` is 0 (disabled), because the memory usage of the process differs from run to run; and
 * `sharedSubscriptionStrategy` is `round_robin`, because `random` differs as well.
 *
 * Pass the clock to the device under test as an argument: `kit.clock` in tests and `systemClock` in production. Its timers then fire during
 * `kit.clock.advance`. For code that uses `setTimeout`, such as MQTT.js, pass the fake timers of the test runner as the option `timers`.
 *
 * With the option `schemas`, handlers of the same filters get typed values, as those of `createBroker`.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID; the errors of `broker.start`
 */
export async function createTestBroker<const S extends SchemaTable = NoSchemas>(
  options?: TestBrokerOptions & Partial<WithSchemas<S>>
): Promise<TestBrokerOf<S>>;
/** Start a test broker with the type of the data that hooks and sources keep with clients. @throws as without a type */
export async function createTestBroker<Data, Caller = unknown>(
  this: Caller,
  options?: TestBrokerOptions<Data>,
  ...rest: IfTyped<Caller>
): Promise<TestBroker<Data>>;
export async function createTestBroker<Data>(options?: TestBrokerOptions<Data>): Promise<TestBroker<Data>> {
  return createKit<Data>(options, { openPort, readFile: readRecordingFile });
}

async function readRecordingFile(file: string | URL): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw new BrokerError('FILE_UNREADABLE', `cannot read ${String(file)}: ${(cause as Error).message}`, { cause });
  }
}

async function openPort(broker: Broker, options: PortOptions): Promise<TestPort> {
  if (typeof options !== 'object' || options === null)
    throw new InvalidInput('OPTION_INVALID', 'kit.listen', `an object with ${NAMES.join(' and ')}`, options);
  const unknown = Object.keys(options).find((name) => !(NAMES as readonly string[]).includes(name));
  if (unknown !== undefined) {
    const text = `kit.listen: unknown option "${unknown}"; it has ${NAMES.join(' and ')}`;
    throw new InvalidInput('OPTION_UNKNOWN', unknown, NAMES.join(', '), undefined, text);
  }
  if (broker.state !== 'connected')
    throw new StateError('BROKER_NOT_STARTED', 'kit.listen: the broker of the kit has stopped; create another kit');
  const { port: wanted = 0, webSocket = false } = options;
  const path = webSocket === true ? '/mqtt' : webSocket;
  const { listen, tcp, ws } = await import('../net/index.ts'); // tests without a port do not load it
  const place = { port: wanted, host: HOST };
  const listener = await listen(broker, path === false ? tcp(place) : ws({ ...place, path }));
  const port = listener.port as number;
  const close = () => listener.close();
  const url = path === false ? `mqtt://${HOST}:${port}` : `ws://${HOST}:${port}${path}`;
  return { port, url, close, [Symbol.asyncDispose]: close };
}
