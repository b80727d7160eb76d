// Runs the app with options of the environment, until SIGTERM or SIGINT.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startApp } from './app.ts';

const { env } = process;
const random = () => randomBytes(24).toString('hex');
const secret = env.OPERATOR_SECRET ?? random();

const app = await startApp({
  port: Number(env.PORT ?? 3000),
  mqttPort: Number(env.MQTT_PORT ?? 1883),
  host: env.HOST ?? '127.0.0.1',
  dataDir: env.DATA_DIR ?? 'data',
  tokenSecret: env.TOKEN_SECRET ?? random(), // with a random secret, devices log in again after a restart
  devices: JSON.parse(readFileSync(env.DEVICES ?? join(import.meta.dirname, 'devices.json'), 'utf8')),
  operator: { id: 'operator', secret },
  windowSeconds: Number(env.WINDOW_SECONDS ?? 60),
  hookUrl: env.HOOK_URL
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void app.stop());
if (env.OPERATOR_SECRET === undefined) console.log(`operator:${secret}`);
console.log(`ready ${JSON.stringify({ http: app.port, mqtt: app.mqttPort, pid: process.pid })}`);
