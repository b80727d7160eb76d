import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { AggregationTemporality, DataPointType, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { type Broker, COUNTERS, connectClient, createBroker, GAUGES, PLAIN_GAUGES } from 'embermq';
import { metricsHandler, observeMetrics } from 'embermq/management';
import { listen } from 'embermq/net';
import { OPEN_METRICS, PROMETHEUS_TEXT } from '../../adapters/management/metrics/exposition.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { parseExposition } from '../support/exposition.ts';
import { AUTHORIZATION, serve, startBroker } from '../support/management.ts';

/** The Accept header of Prometheus. */
const PROMETHEUS_ACCEPT =
  'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1';

describe('metricsHandler', () => {
  let broker: Broker;
  let server: Awaited<ReturnType<typeof serve>>;

  before(async () => {
    broker = createBroker({ node: 'a "name"\\with\nmuch' });
    listen(broker, 0);
    await broker.start();
    server = await serve(metricsHandler(broker).node);
  });

  after(async () => {
    await server[Symbol.asyncDispose]();
    await broker.stop();
  });

  const scrape = (accept?: string) => server.call('GET', '/metrics', undefined, accept === undefined ? {} : { accept });

  it('shows every counter and every gauge with a help text and a type, in the text format of Prometheus', async () => {
    const { status, headers, text } = await scrape();
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    assert.equal(headers.get('cache-control'), 'no-store');
    const families = parseExposition(text, 'text');
    for (const { name, help, type } of families.values()) {
      assert.match(help ?? '', /^[A-Z].{8,}/, name);
      const other = name === 'embermq_delivery_duration_seconds' ? 'histogram' : 'gauge';
      assert.equal(type, name.endsWith('_total') ? 'counter' : other, name);
    }
    const named = (name: string) => families.has(name) || assert.fail(name);
    for (const counter of COUNTERS)
      named(
        counter.startsWith('bytes.')
          ? `embermq_${counter.slice(6)}_bytes_total`
          : `embermq_${counter.replaceAll('.', '_')}_total`
      );
    for (const gauge of GAUGES) for (const end of ['', '_max']) named(`embermq_${gauge.replaceAll('.', '_')}${end}`);
    for (const gauge of PLAIN_GAUGES) named(`embermq_${gauge.replaceAll('.', '_')}`);
  });

  it('shows the values of the broker with the name of the node as a label', async () => {
    const client = await connectClient(broker.stream(), { clientId: 'c' });
    await client.subscribe('t');
    await broker.publish('t', 'x');
    broker.alarms.raise({ id: 'a', severity: 'error' });
    const families = parseExposition((await scrape()).text, 'text');
    const figure = (name: string, labels: Record<string, string> = {}) => {
      const found = families
        .get(name)
        ?.samples.filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value));
      assert.equal(found?.length, 1, name);
      assert.equal(found[0].labels.node, 'a "name"\\with\nmuch');
      return found[0].value;
    };
    assert.equal(figure('embermq_connections'), 1);
    assert.equal(figure('embermq_subscriptions_max'), 1);
    assert.equal(figure('embermq_messages_publish_total'), 1);
    assert.equal(figure('embermq_received_bytes_total'), broker.metrics.counter('bytes.received'));
    assert.equal(figure('embermq_info', { version: broker.version }), 1);
    assert.equal(figure('embermq_start_time_seconds'), (broker.startedAt as number) / 1000);
    assert.equal(figure('embermq_alarms', { severity: 'error' }), 1);
    assert.equal(figure('embermq_alarms', { severity: 'critical' }), 0);
    const [{ name: listener }] = broker.listeners();
    assert.equal(figure('embermq_listener_connections', { listener, protocol: 'mqtt:tcp' }), 0);
    broker.alarms.clear('a');
    await client.disconnect();
  });

  it('shows CPU time, memory and the delay of the event loop since the previous scrape', async () => {
    let delay = 0;
    const startTimes = new Set<number>();
    for (let scrapes = 0; scrapes < 2 || !(delay >= 0.02); scrapes++) {
      const until = performance.now() + 60;
      while (performance.now() < until);
      const families = parseExposition((await scrape()).text, 'text');
      const figure = (name: string) => families.get(name)?.samples[0]?.value as number;
      assert.ok(figure('process_cpu_seconds_total') > 0);
      assert.ok(figure('process_resident_memory_bytes') > 10_000_000);
      assert.ok(Math.abs(figure('process_start_time_seconds') - (Date.now() / 1000 - process.uptime())) < 60);
      startTimes.add(figure('process_start_time_seconds'));
      delay = figure('nodejs_eventloop_lag_max_seconds');
    }
    assert.ok(delay < 60, String(delay));
    assert.equal(startTimes.size, 1, 'the start time is the same in each scrape');
    await using other = await serve(metricsHandler(broker, { processFigures: false }).node);
    assert.doesNotMatch((await other.call('GET', '/metrics')).text, /process_|nodejs_/);
  });

  it('answers in the format of OpenMetrics, with units, if the request prefers it', async () => {
    const { headers, text } = await scrape(PROMETHEUS_ACCEPT);
    assert.equal(headers.get('content-type'), 'application/openmetrics-text; version=1.0.0; charset=utf-8');
    const families = parseExposition(text, 'openmetrics');
    assert.equal(families.get('embermq_received_bytes')?.unit, 'bytes');
    assert.equal(families.get('process_cpu_seconds')?.unit, 'seconds');
    for (const { name, unit } of families.values())
      assert.equal(unit, /_(bytes|seconds)$/.exec(name)?.[1], 'every name that ends with a base unit has it');
    for (const accept of ['*/*', 'text/plain', 'application/openmetrics-text;q=0.1, text/plain', 'text/html'])
      assert.match((await scrape(accept)).headers.get('content-type') ?? '', /^text\/plain/, accept);
  });

  it('leaves other paths and methods to the app, and asks for credentials if the option is set', async () => {
    assert.equal((await server.call('GET', '/metrics/more')).status, 404);
    assert.equal((await server.call('POST', '/metrics')).status, 404);
    assert.equal((await server.call('HEAD', '/metrics')).status, 200);
    const guarded = await startBroker();
    await using other = await serve(metricsHandler(guarded, { credentials: 'applications', prefix: '/m' }).node);
    assert.equal((await other.call('GET', '/m', undefined, {})).status, 401);
    assert.equal((await other.call('GET', '/m', undefined, { authorization: AUTHORIZATION })).status, 200);
    await guarded.stop();
    assert.throws(() => metricsHandler(guarded, { prefix: 'metrics' }), { code: 'OPTION_INVALID' });
    assert.throws(() => metricsHandler(guarded, { path: '/m' } as never), { code: 'OPTION_UNKNOWN' });
  });

  it('refuses unknown names in the Host header with credentials "none"', async () => {
    const { fetch } = metricsHandler(broker, { credentials: 'none', hosts: 'broker.example' });
    const statusOf = async (host: string) => (await fetch(new Request(`http://${host}/metrics`))).status;
    assert.equal(await statusOf('10.1.2.3:8081'), 200);
    assert.equal(await statusOf('localhost'), 200);
    assert.equal(await statusOf('broker.example'), 200);
    assert.equal(await statusOf('attacker.example'), 403);
  });
});

describe('the histogram of delivery times', () => {
  /** The samples of a QoS, by the end of their names and the bound of their bucket. */
  async function histogram(broker: Broker, qos: number, format: 'text' | 'openmetrics' = 'text') {
    const accept = format === 'text' ? 'text/plain' : PROMETHEUS_ACCEPT;
    const response = await metricsHandler(broker).fetch(
      new Request('http://127.0.0.1/metrics', { headers: { accept } })
    );
    const families = parseExposition(await response.text(), format);
    const family = families.get('embermq_delivery_duration_seconds');
    const samples = family?.samples.filter(({ labels }) => labels.qos === `${qos}`) ?? [];
    return Object.fromEntries(
      samples.map(({ name, labels, value }) => [`${name.slice(name.lastIndexOf('_'))}${labels.le ?? ''}`, value])
    );
  }

  it('measures one message in 64 until its acknowledgement, by the clock of the broker', async () => {
    await using kit = await createTestBroker();
    for (const qos of [1, 2] as const) {
      const receiver = await kit.connect({ clientId: `r${qos}` });
      await receiver.subscribe(`t${qos}`, { qos });
      kit.link(`r${qos}`).delay(20);
      for (let at = 0; at < 65; at++) {
        const device = await kit.connect();
        await device.publish(`t${qos}`, 'x', { qos });
        await kit.clock.advance(100);
        await device.disconnect();
      }
      for (const format of ['text', 'openmetrics'] as const) {
        const { _count, _sum, ...buckets } = await histogram(kit.broker, qos, format);
        assert.equal(_count, 2);
        assert.ok(Math.abs(_sum - 2 * 0.04) < 1e-9, `${_sum}`);
        assert.deepEqual([buckets['_bucket0.025'], buckets['_bucket0.05'], buckets['_bucket+Inf']], [0, 2, 2]);
      }
    }
  });

  it('measures QoS 0 until the write, also of runs of frames', async () => {
    await using kit = await createTestBroker();
    const receiver = await kit.connect();
    let count = 0;
    await receiver.subscribe('t', () => count++);
    const device = await kit.connect();
    for (let at = 0; at < 640; at++) void device.publish('t', 'x');
    await kit.clock.settle();
    assert.equal(count, 640);
    const { _count, _sum } = await histogram(kit.broker, 0);
    assert.deepEqual([_count, _sum], [10, 0]);
  });

  it('leaves out messages that waited for their client, and messages of the broker', async () => {
    await using kit = await createTestBroker({ sysInterval: 1_000 });
    const options = { clientId: 'r', clean: false, properties: { sessionExpiryInterval: 600 } };
    const receiver = await kit.connect(options);
    await receiver.subscribe('t', { qos: 1 });
    await receiver.disconnect();
    await kit.broker.publish('t', 'x', { qos: 1 });
    await kit.broker.publish('kept', 'x', { qos: 1, retain: true });
    await kit.clock.advance('1m');
    const back = await kit.connect(options);
    await back.subscribe(['kept', '$SYS/#'], { qos: 1 });
    await kit.clock.advance('1m');
    assert.ok(kit.broker.metrics.counter('messages.qos1.sent') >= 2);
    assert.equal((await histogram(kit.broker, 1))._count, 0);
    assert.equal((await histogram(kit.broker, 0))._count, 0);
    await kit.broker.publish('t', 'x', { qos: 1 });
    await kit.clock.settle();
    assert.equal((await histogram(kit.broker, 1))._count, 1);
  });

  it('leaves out messages that a client acknowledges on a later connection', async () => {
    await using kit = await createTestBroker();
    const options = { clientId: 'r', clean: false, properties: { sessionExpiryInterval: 600 } };
    const receiver = await kit.connect({ ...options, acknowledge: 'manual' });
    await receiver.subscribe('t', { qos: 1 });
    await kit.broker.publish('t', 'x', { qos: 1 });
    await kit.clock.settle();
    await receiver.disconnect();
    await kit.clock.advance('1m');
    await kit.connect(options);
    await kit.clock.settle();
    assert.equal(kit.broker.metrics.counter('messages.acked'), 1);
    assert.equal((await histogram(kit.broker, 1))._count, 0);
  });

  it('measures as before after the wall clock has been set back', async () => {
    await using kit = await createTestBroker();
    const receiver = await kit.connect();
    await receiver.subscribe('t', { qos: 1 });
    kit.clock.stepWall(-3_600_000);
    for (let sent = 0; sent < 65; sent++) await kit.broker.publish('t', 'x', { qos: 1 });
    await kit.clock.settle();
    assert.equal((await histogram(kit.broker, 1))._count, 2);
  });
});

describe('the formats of metrics', () => {
  it('escapes characters that could end a label or a line', () => {
    const about = 'a\\b"c\nd';
    const labels = { l: 'a\\n"\n', m: '' };
    const families = [{ name: 'x', kind: 'counter', about, samples: [{ labels, value: 1e300 }] }] as const;
    for (const [format, { write }] of [
      ['text', PROMETHEUS_TEXT],
      ['openmetrics', OPEN_METRICS]
    ] as const) {
      const [parsed] = parseExposition(write(families, { node: 'n' }), format).values();
      assert.equal(parsed.help, about);
      assert.deepEqual(parsed.samples[0].labels, { node: 'n', ...labels });
      assert.equal(parsed.samples[0].value, 1e300);
    }
  });

  it('writes infinity and missing numbers as both formats specify', () => {
    const samples = [Infinity, -Infinity, Number.NaN].map((value, at) => ({ labels: { at: `${at}` }, value }));
    const [parsed] = parseExposition(
      PROMETHEUS_TEXT.write([{ name: 'x', kind: 'gauge', about: 'A', samples }], {}),
      'text'
    ).values();
    assert.deepEqual(
      parsed.samples.map(({ value }) => value),
      [Infinity, -Infinity, Number.NaN]
    );
  });
});

/** Collects on request. */
class ManualReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

describe('observeMetrics', () => {
  it('exports counters and gauges with their units to the OpenTelemetry SDK until it is stopped', async () => {
    await using broker = await startBroker();
    await broker.publish('t', 'x');
    const reader = new ManualReader({ aggregationTemporalitySelector: () => AggregationTemporality.CUMULATIVE });
    const provider = new MeterProvider({ readers: [reader] });
    const stop = observeMetrics(broker, provider.getMeter('test'));
    const collect = async () => {
      const { resourceMetrics, errors } = await reader.collect();
      assert.deepEqual(errors, []);
      return new Map(
        resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics).map((one) => [one.descriptor.name, one])
      );
    };
    const metrics = await collect();
    for (const name of COUNTERS) {
      const metric = metrics.get(`embermq.${name}`);
      assert.ok(metric?.dataPointType === DataPointType.SUM && metric.isMonotonic, name);
      assert.match(metric.descriptor.unit, /^(By|\{[a-z]+\})$/);
      assert.deepEqual(metric.dataPoints[0].attributes, { 'embermq.node': broker.settings.node });
      assert.equal(metric.dataPoints[0].value, broker.metrics.counter(name), name);
    }
    assert.equal(metrics.get('embermq.bytes.sent')?.descriptor.unit, 'By');
    assert.equal(metrics.get('embermq.messages.publish')?.dataPoints[0].value, 1);
    for (const name of GAUGES) assert.equal(metrics.get(`embermq.${name}`)?.dataPointType, DataPointType.GAUGE, name);
    stop();
    await broker.publish('t', 'x');
    // the SDK repeats the last values
    assert.equal((await collect()).get('embermq.messages.publish')?.dataPoints[0].value, 1);
    await provider.shutdown();
  });
});
