// The SDK of OpenTelemetry with `observeSpans`: its spans, their parents and times, with the tracer of its API as the type of the argument.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Tracer } from '@opentelemetry/api';
import { observeSpans } from 'embermq/management';
import { createTestBroker } from '../../lib/testing/index.ts';
import { installed } from './installed.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';

/** The part of the SDK that is used. */
interface Sdk {
  readonly BasicTracerProvider: new (options: {
    sampler?: object;
    spanProcessors: object[];
  }) => { getTracer(name: string): Tracer };
  readonly InMemorySpanExporter: new () => { getFinishedSpans(): FinishedSpan[]; reset(): void };
  readonly SimpleSpanProcessor: new (exporter: object) => object;
  readonly ParentBasedSampler: new (options: { root: object }) => object;
  readonly AlwaysOffSampler: new () => object;
}

interface FinishedSpan {
  readonly name: string;
  readonly startTime: [number, number];
  readonly endTime: [number, number];
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly parentSpanContext?: { readonly traceId: string; readonly spanId: string; readonly isRemote?: boolean };
  spanContext(): { readonly traceId: string; readonly spanId: string; readonly traceState?: { serialize(): string } };
}

function sdk(): Sdk {
  const folder = installed('opentelemetry', {
    dependencies: { '@opentelemetry/api': '^1.9.0', '@opentelemetry/sdk-trace-base': '^2.0.0' }
  });
  return createRequire(join(folder, 'package.json'))('@opentelemetry/sdk-trace-base') as Sdk;
}

describe('observeSpans with the SDK of OpenTelemetry', () => {
  it('exports spans as children of the span of the publisher', async () => {
    const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = sdk();
    const exporter = new InMemorySpanExporter();
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    await using kit = await createTestBroker();
    observeSpans(kit.broker, provider.getTracer('test'), { sample: 0 });
    const receiver = await kit.connect();
    const got: (readonly (readonly [string, string])[] | undefined)[] = [];
    await receiver.subscribe('a', { qos: 1 }, ({ properties }) => got.push(properties?.userProperties));
    kit.link(receiver).delay(20);
    const device = await kit.connect();
    const start = kit.clock.now();
    const userProperties: [string, string][] = [
      ['traceparent', `00-${TRACE_ID}-b7ad6b7169203331-01`],
      ['tracestate', 'x=1']
    ];
    await device.publish('a', 'x', { qos: 1, properties: { userProperties } });
    await kit.clock.advance(100);
    const spans = exporter.getFinishedSpans();
    const named = (name: string) => spans.find((span) => span.name === name) ?? assert.fail(name);
    assert.deepEqual(spans.map(({ name }) => name).sort(), ['deliver', 'publish', 'route']);
    const publish = named('publish');
    assert.deepEqual(
      [publish.parentSpanContext?.traceId, publish.parentSpanContext?.spanId, publish.parentSpanContext?.isRemote],
      [TRACE_ID, 'b7ad6b7169203331', true]
    );
    for (const name of ['route', 'deliver'])
      assert.equal(named(name).parentSpanContext?.spanId, publish.spanContext().spanId, name);
    const { startTime, endTime } = named('deliver');
    const ms = ([seconds, nanoseconds]: [number, number]) => seconds * 1000 + nanoseconds / 1e6;
    assert.deepEqual([ms(startTime) - start, ms(endTime) - start], [0, 40]);
    assert.equal(publish.attributes['messaging.system'], 'mqtt');
    assert.deepEqual(got, [
      [
        ['traceparent', `00-${TRACE_ID}-${named('deliver').spanContext().spanId}-01`],
        ['tracestate', 'x=1']
      ]
    ]);
  });

  it('leaves the decision on messages without a trace context to the sampler, too', async () => {
    const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor, ...samplers } = sdk();
    const exporter = new InMemorySpanExporter();
    const sampler = new samplers.ParentBasedSampler({ root: new samplers.AlwaysOffSampler() });
    const provider = new BasicTracerProvider({ sampler, spanProcessors: [new SimpleSpanProcessor(exporter)] });
    await using kit = await createTestBroker();
    observeSpans(kit.broker, provider.getTracer('test'), { sample: 1 });
    const receiver = await kit.connect();
    const got: object[] = [];
    await receiver.subscribe('a', ({ properties }) => got.push(properties ?? {}));
    await kit.broker.publish('a', 'x');
    await kit.clock.settle();
    assert.deepEqual(got, [{}]);
    assert.deepEqual(exporter.getFinishedSpans(), []);
  });
});
