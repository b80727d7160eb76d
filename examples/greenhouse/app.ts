import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Broker, createBroker } from 'embermq';
import { levelStore } from 'embermq/level';
import { healthHandler, managementApis, metricsHandler } from 'embermq/management';
import { attachWebSocket, listen } from 'embermq/net';
import { streamsApi } from 'embermq/streams-api';
import { webhook, webhooks } from 'embermq/webhook';
import express from 'express';
import { Greenhouses } from './greenhouses.ts';
import { type Device, deviceTokens, Login } from './login.ts';
import { routes } from './routes.ts';
import { defineMeans, eventRules } from './statements.ts';

/** The options of `startApp`. */
export interface AppOptions {
  /** Port of HTTP and of MQTT over WebSocket. 0: any free port. */
  readonly port: number;
  /** Port of MQTT over TCP. */
  readonly mqttPort: number;
  readonly host: string;
  /** Folder for the state of the broker. */
  readonly dataDir: string;
  /** Signs the tokens of devices; at least 32 bytes. */
  readonly tokenSecret: string;
  readonly devices: readonly Device[];
  /** Credentials of the management interface and of the routes for operators. */
  readonly operator: { readonly id: string; readonly secret: string };
  /** Length of the windows of the mean temperature. */
  readonly windowSeconds: number;
  /** Web server that receives alarms (`/alarms`) and connects and disconnects of devices (`/devices`). */
  readonly hookUrl?: string;
}

/** The app while it runs. */
export interface RunningApp {
  readonly port: number;
  readonly mqttPort: number;
  /** Disconnect the devices, write the state, complete the requests, and close the ports. */
  stop(): Promise<void>;
}

/** Start the app: one HTTP server with the routes of the app, the broker and its interfaces. */
export async function startApp(options: AppOptions): Promise<RunningApp> {
  const { tokenSecret, devices, operator, hookUrl, host } = options;
  const broker = createBroker({
    store: levelStore(join(options.dataDir, 'broker')),
    auth: [deviceTokens(tokenSecret)],
    rules: eventRules(hookUrl),
    connectors: [webhooks()] // operators can create further webhooks at run time
  });
  const greenhouses = new Greenhouses();
  const app = express();
  app.use(routes(broker, greenhouses, new Login(devices, tokenSecret)));
  mountInterfaces(app, broker);

  const server = createServer(app);
  attachWebSocket(broker, server, { path: '/mqtt' });
  const mqtt = listen(broker, { port: options.mqttPort, host });
  if (hookUrl !== undefined) {
    const events = ['client.connected', 'client.disconnected'] as const;
    webhook(broker, { url: `${hookUrl}/devices`, rules: events.map((event) => ({ event })), isPersisted: true });
  }

  await broker.start();
  if (broker.applications.get(operator.id) === undefined) await broker.applications.create(operator);
  else await broker.applications.setSecret(operator.id, operator.secret);
  greenhouses.follow(broker);
  await defineMeans(broker, options.windowSeconds);
  server.listen(options.port, host);
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    mqttPort: mqtt.port as number,
    async stop() {
      const closed = once(server, 'close');
      server.close(); // no new requests; those in progress are completed
      await broker.stop({ timeoutMs: 5_000 });
      server.closeIdleConnections();
      await closed;
    }
  };
}

/** Mount the management interface in its three revisions, the interface of stream rules, metrics and health. */
function mountInterfaces(app: express.Express, broker: Broker): void {
  const management = managementApis(broker, [
    { revision: 'earlier', prefix: '/api/v3' },
    { revision: 'later', prefix: '/api/v4' },
    { revision: 'hosted', prefix: '/api', unmatched: 'next' } // other paths below /api are left to the app
  ]);
  app.use(management.node);
  app.use(streamsApi(broker, { prefix: '/stream-rules', credentials: 'applications' }).node);
  app.use(metricsHandler(broker).node);
  app.use(healthHandler(broker).node);
}
