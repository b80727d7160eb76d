// Debian's prometheus scrapes a broker under load: each expression of the dashboard and of the alerts returns data, and promtool accepts the alerts.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Broker, type Client, connectClient, createBroker } from 'embermq';
import { metricsHandler } from 'embermq/management';
import { listen } from 'embermq/net';
import { webhook } from 'embermq/webhook';
import { freePorts } from '../support/free-ports.ts';
import {
  alertExpressions,
  dashboardExpressions,
  type Expression,
  RULES_FILE,
  withoutThreshold
} from '../support/monitoring-files.ts';
import { LoggedProcess } from './process-log.ts';

/** Maximum time until an expression has data. */
const PATIENCE_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), 'embermq-prometheus-'));
let broker: Broker;
let metrics: Server | undefined;
let prometheus: LoggedProcess | undefined;
let api: string;
const clients: Client[] = [];
let load: NodeJS.Timeout;

before(async () => {
  const [apiPort, closedPort] = await freePorts(2);
  broker = createBroker({ node: 'a' });
  listen(broker, 0);
  await broker.start();
  webhook(broker, {
    url: `http://127.0.0.1:${closedPort}/`,
    rules: [{ event: 'message.publish', topic: 'hook' }],
    backOff: 100,
    maxBackOff: 200
  });
  const connect = async (clientId: string) => {
    const client = await connectClient(broker.stream(), { clientId });
    clients.push(client);
    return client;
  };
  const receiver = await connect('receiver');
  await receiver.subscribe('load/+', { qos: 2 });
  const device = await connect('device');
  let count = 0;
  load = setInterval(() => {
    for (const qos of [0, 1, 2] as const)
      for (let at = 0; at < 20; at++) device.publish(`load/${qos}`, 'x', { qos }).catch(() => undefined);
    if (count++ % 20 === 0) device.publish('hook', 'x').catch(() => undefined);
  }, 50);
  metrics = createServer(metricsHandler(broker).node).listen(0, '127.0.0.1');
  await once(metrics, 'listening');
  const { port } = metrics.address() as AddressInfo;
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [RULES_FILE],
    scrape_configs: [{ job_name: 'embermq', static_configs: [{ targets: [`127.0.0.1:${port}`] }] }]
  };
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
  prometheus = new LoggedProcess(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${apiPort}`,
      '--log.level=warn'
    ],
    { cwd: folder }
  );
  api = `http://127.0.0.1:${apiPort}/api/v1`;
});

after(async () => {
  clearInterval(load);
  await prometheus?.end();
  for (const client of clients) await client.disconnect();
  metrics?.closeAllConnections();
  metrics?.close();
  await broker.stop();
  rmSync(folder, { recursive: true });
});

/** Asks again until there is an answer. */
async function eventually<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    const log = prometheus?.lines.join('\n');
    assert.ok(performance.now() < until, `${what}: no answer within ${PATIENCE_MS} ms:\n${log}`);
    await delay(250);
  }
}

interface Answer<Data> {
  readonly status: string;
  readonly error?: string;
  readonly data: Data;
}

/** Asks Prometheus; undefined while it starts. */
async function get<Data>(path: string): Promise<Data | undefined> {
  const response = await fetch(`${api}${path}`).catch(() => undefined);
  if (response === undefined || response.status === 503) return undefined;
  const { status, error, data } = (await response.json()) as Answer<Data>;
  assert.equal(status, 'success', `${decodeURIComponent(path)}: ${error}`);
  return data;
}

/** The values that an expression has now. */
async function valuesOf(expr: string): Promise<number[] | undefined> {
  type Vector = { readonly result: readonly { readonly value: readonly [number, string] }[] };
  const data = await get<Vector>(`/query?query=${encodeURIComponent(expr)}`);
  const values = data?.result.map(({ value }) => Number(value[1])) ?? [];
  return values.length > 0 && values.every((value) => !Number.isNaN(value)) ? values : undefined;
}

const asGrafana = ({ place, expr }: Expression): Expression => {
  const filled = expr.replaceAll('$__rate_interval', '10s').replaceAll('"$node"', '".*"').replaceAll('"$job"', '".*"');
  assert.doesNotMatch(filled, /\$/, place);
  return { place, expr: filled };
};

describe('Prometheus', () => {
  it('accepts the file of alerts', () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', RULES_FILE], { encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout, new RegExp(`${alertExpressions().length} rules found`));
  });

  it('returns data for each expression of the dashboard', async () => {
    const expressions = dashboardExpressions().map(asGrafana);
    for (const { place, expr } of expressions) await eventually(`${place}: ${expr}`, () => valuesOf(expr));
    console.log(`${expressions.length} expressions of the dashboard have data`);
  });

  it('returns data for each alert without its threshold, and evaluates all of them', async () => {
    const alerts = alertExpressions();
    for (const alert of alerts) await eventually(alert.place, () => valuesOf(withoutThreshold(alert)));
    interface Groups {
      readonly groups: readonly {
        readonly rules: readonly { readonly name: string; readonly health: string; readonly lastError?: string }[];
      }[];
    }
    const rules = await eventually('the evaluation of the alerts', async () => {
      const found = (await get<Groups>('/rules'))?.groups.flatMap((group) => group.rules) ?? [];
      return found.length > 0 && found.every(({ health }) => health !== 'unknown') ? found : undefined;
    });
    for (const { name, health, lastError } of rules) assert.equal(health, 'ok', `${name}: ${lastError}`);
    assert.equal(rules.length, alerts.length);
    console.log(`${alerts.length} alerts have data`);
  });

  it('measures plausible times of deliveries', async () => {
    const [count] = await eventually('measured deliveries', () =>
      valuesOf('sum(embermq_delivery_duration_seconds_count)')
    );
    const sent = broker.metrics.counter('messages.sent');
    assert.ok(count > 0 && count <= sent / 64 + 3, `${count} of ${sent} messages are measured`);
  });
});
