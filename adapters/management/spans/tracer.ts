/** A point in time: seconds since 1970, and nanoseconds. */
export type SpanTime = [seconds: number, nanoseconds: number];

/** The vendor-specific part of a trace context. */
export interface TraceState {
  /** Get the value of a key. */
  get(key: string): string | undefined;
  /** Set the value of a key. @returns a changed copy */
  set(key: string, value: string): TraceState;
  /** Remove a key. @returns a changed copy */
  unset(key: string): TraceState;
  /** The form in which it is sent. */
  serialize(): string;
}

/** The part of a span that is passed on with a message. */
export interface SpanContext {
  /** The id of the trace: 32 hexadecimal digits. */
  readonly traceId: string;
  /** The id of the span: 16 hexadecimal digits. */
  readonly spanId: string;
  /** Bit 0: the trace is sampled. */
  readonly traceFlags: number;
  /** True if the context comes from a message. */
  readonly isRemote?: boolean | undefined;
  /** The `tracestate`; undefined if it is empty. */
  readonly traceState?: TraceState | undefined;
}

/** The context that contains the parent of a span. */
export interface SpanParent {
  /** Get the value of a key. */
  getValue(key: symbol): unknown;
  /** Set the value of a key. @returns a changed copy */
  setValue(key: symbol, value: unknown): SpanParent;
  /** Remove a key. @returns a changed copy */
  deleteValue(key: symbol): SpanParent;
}

/** The attributes of a span. */
export type SpanAttributes = Record<string, string | number | boolean>;

/** A span that a tracer has started. */
export interface StartedSpan {
  /** The part that is passed on. */
  spanContext(): SpanContext;
  /** Check whether the span is recorded, which a sampler of the tracer may refuse. */
  isRecording(): boolean;
  /** Add an attribute. */
  setAttribute(key: string, value: string | number | boolean): unknown;
  /** Add an event. */
  addEvent(name: string, attributes: SpanAttributes, time: SpanTime): unknown;
  /** Set the status. */
  setStatus(status: {
    /** 2: an error. */
    code: number;
    /** The reason. */
    message?: string;
  }): unknown;
  /** End the span. */
  end(time: SpanTime): void;
}

/** The options of a span that is started. */
export interface SpanStart {
  /** Kind of the span: 0 internal, 2 client, 3 producer, 4 consumer. */
  kind: number;
  /** The attributes that are known at the start. */
  attributes: SpanAttributes;
  /** Time of the start. */
  startTime: SpanTime;
}

/** The part of a tracer of `@opentelemetry/api` that is used, version 1.3 or newer: `trace.getTracer('my-app')`. */
export interface SpanTracer {
  /** Start a span. */
  startSpan(name: string, options: SpanStart, context: SpanParent): StartedSpan;
}
