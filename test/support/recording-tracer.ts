import type { SpanAttributes, SpanContext, SpanParent, SpanStart, SpanTracer, StartedSpan } from 'embermq/management';

/** The key under which the API of OpenTelemetry keeps the span of a context. */
const SPAN_KEY = Symbol.for('OpenTelemetry Context Key SPAN');

/** A span that a recording tracer has started. */
class RecordedSpan implements StartedSpan {
  readonly name: string;
  readonly kind: number;
  readonly attributes: SpanAttributes;
  readonly startMs: number;
  readonly parent: SpanContext | undefined;
  readonly events: string[] = [];
  status: { code: number; message?: string } | undefined;
  endMs: number | undefined;
  readonly #context: SpanContext;
  readonly #isRecording: boolean;

  constructor(
    name: string,
    { kind, attributes, startTime }: SpanStart,
    context: SpanParent,
    spanId: string,
    isOn: boolean
  ) {
    const parent = context.getValue(SPAN_KEY) as StartedSpan | undefined;
    this.name = name;
    this.kind = kind;
    this.attributes = { ...attributes };
    this.startMs = startTime[0] * 1000 + startTime[1] / 1e6;
    this.parent = parent?.spanContext();
    this.#isRecording = isOn;
    const traceId = this.parent?.traceId ?? spanId.padStart(32, 'a');
    this.#context = { traceId, spanId, traceFlags: isOn ? 1 : 0, traceState: this.parent?.traceState };
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  isRecording(): boolean {
    return this.#isRecording;
  }

  setAttribute(key: string, value: string | number | boolean): void {
    this.attributes[key] = value;
  }

  addEvent(name: string): void {
    this.events.push(name);
  }

  setStatus(status: { code: number; message?: string }): void {
    this.status = status;
  }

  end([seconds, nanoseconds]: [number, number]): void {
    if (this.endMs !== undefined) throw new Error(`the span ${this.name} ends twice`);
    this.endMs = seconds * 1000 + nanoseconds / 1e6;
  }
}

/** A tracer that keeps its spans. */
export class RecordingTracer implements SpanTracer {
  readonly spans: RecordedSpan[] = [];
  /** False: its sampler refuses all spans. */
  isOn = true;

  startSpan(name: string, options: SpanStart, context: SpanParent): RecordedSpan {
    const spanId = (this.spans.length + 1).toString(16).padStart(16, '0');
    const span = new RecordedSpan(name, options, context, spanId, this.isOn);
    this.spans.push(span);
    return span;
  }

  /** The spans of a name. */
  named(name: string): RecordedSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  /** The only span of a name. */
  one(name: string): RecordedSpan {
    const found = this.named(name);
    if (found.length !== 1) throw new Error(`${found.length} spans "${name}" of ${this.spans.map((s) => s.name)}`);
    return found[0];
  }
}
