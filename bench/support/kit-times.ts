import type { TestBroker } from 'embermq/testing';

/** The costs of the test kit for a test file, in milliseconds of one process. */
export interface KitTimes {
  readonly importMs: number;
  /** The first message of the process: from the creation of the broker to the handler of a subscriber. */
  readonly firstMs: number;
  /** The same with the next broker. */
  readonly nextMs: number;
  /** Connect clients one after another by `kit.connect`. */
  readonly connectMs: number;
  /** Advance the clock by a day while they are connected. */
  readonly dayMs: number;
  /** Connect as many clients by `broker.connect`. */
  readonly plainConnectMs: number;
}

/** Measure in this process and print the times as JSON: `node kit-times.js CLIENTS`. */
const clients = Number(process.argv[2]);
let beganMs = performance.now();
const { createTestBroker } = await import('embermq/testing');
const importMs = lap();
const firstMs = await withKit(message);
const nextMs = await withKit(message);
const [connectMs, dayMs] = await withKit(async (kit) => {
  lap();
  for (let i = 0; i < clients; i++) await kit.connect();
  const connected = lap();
  await kit.clock.advance('24h');
  return [connected, lap()];
});
const plainConnectMs = await withKit(async ({ broker }) => {
  const all = [];
  lap();
  for (let i = 0; i < clients; i++) all.push(await broker.connect({ clientId: `client-${i}` }));
  const connected = lap();
  for (const client of all) await client.disconnect();
  return connected;
});
const times: KitTimes = { importMs, firstMs, nextMs, connectMs, dayMs, plainConnectMs };
console.log(JSON.stringify(times));

/** Milliseconds since the last call. */
function lap(): number {
  const previousMs = beganMs;
  beganMs = performance.now();
  return beganMs - previousMs;
}

async function withKit<T>(run: (kit: TestBroker) => Promise<T>): Promise<T> {
  lap();
  const kit = await createTestBroker({ allowAnonymous: true, leakCheck: false });
  const result = await run(kit);
  await kit[Symbol.asyncDispose]();
  return result;
}

async function message(kit: TestBroker): Promise<number> {
  const client = await kit.connect();
  const arrived = new Promise<number>((resolve) => {
    void client.subscribe('first', () => resolve(lap())).then(() => client.publish('first', 'message'));
  });
  return arrived;
}
