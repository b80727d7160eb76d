// Runs a station with an invented thermometer: npm run device -- GREENHOUSE ID KEY
import { connect as connectTcp } from 'node:net';
import { type ClientOptions, type Clock, connectClient, systemClock } from 'embermq';
import { Station } from './station.ts';

const [greenhouse, id, key] = process.argv.slice(2);
const url = process.env.URL ?? 'http://127.0.0.1:3000';
const port = Number(process.env.MQTT_PORT ?? 1883);
if (key === undefined) end('usage: npm run device -- GREENHOUSE ID KEY');

/** The timers of `systemClock` do not keep a process running; those of a device must. */
const clock: Clock = {
  ...systemClock,
  setTimeout: (run, delayMs) => setTimeout(run, delayMs),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout)
};

function end(message: string): never {
  console.error(message);
  process.exit(1);
}

/** A station retries after a failure, so the reason is printed here. */
async function connect(options: ClientOptions) {
  try {
    return await loginAndConnect(options);
  } catch (error) {
    const { message, cause } = error as Error;
    console.error(`${id} is not connected: ${cause instanceof Error ? cause.message || message : message}`);
    throw error;
  }
}

async function loginAndConnect(options: ClientOptions) {
  const response = await fetch(`${url}/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ device: id, key })
  });
  if (response.status === 401) end(`${id}: the login was refused: the id or the key is wrong`);
  if (!response.ok) throw new Error(`login failed: ${response.status}`);
  const { token } = (await response.json()) as { token: string };
  const client = await connectClient(connectTcp(port, new URL(url).hostname), { ...options, password: token });
  console.log(`${id} is connected`);
  return client;
}

const station = new Station({
  id,
  greenhouse,
  clock,
  connect,
  readCelsius: () => Math.round(200 + 200 * Math.random()) / 10,
  setVent: (isOpen) => console.log(isOpen ? 'vent opens' : 'vent closes')
});
station.start();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void station.stop());
