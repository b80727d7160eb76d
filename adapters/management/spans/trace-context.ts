// W3C Trace Context in the user properties of MQTT 5.0, as its MQTT binding describes: `traceparent` and `tracestate`.

import type { Message, UserProperty } from '../../../lib/index.ts';
import type { SpanContext, SpanParent, TraceState } from './tracer.ts';

/** Version, trace id, span id, flags. A version above 00 may have more fields. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})($|-)/;
/** Maximum number of characters of `tracestate` that are passed on. */
const MAX_STATE = 512;
/** Maximum number of entries of `tracestate`. */
const MAX_ENTRIES = 32;
/** An entry of `tracestate`. Others are left out: publishers choose them, and requests of webhooks have them in a header. */
const STATE_ENTRY = /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]$/;
const SAMPLED = 1;

/** The key under which the API of OpenTelemetry keeps the span of a context. */
const SPAN_KEY = Symbol.for('OpenTelemetry Context Key SPAN');

/** Check whether a span is sampled. */
export function isSampled({ traceFlags }: SpanContext): boolean {
  return (traceFlags & SAMPLED) !== 0;
}

/** The trace context of a message; undefined: it has none, or one that is not valid. */
export function contextOf({ properties }: Message): SpanContext | undefined {
  const { userProperties = [] } = properties;
  const values = (wanted: string) => userProperties.filter(([name]) => name === wanted).map(([, value]) => value);
  const parents = values('traceparent');
  const [, version, traceId, spanId, flags, rest] = TRACEPARENT.exec(parents[0] ?? '') ?? [];
  if (traceId === undefined || parents.length > 1 || (version === '00' && rest !== '')) return undefined;
  const state = values('tracestate').join();
  const traceState = state === '' || state.length > MAX_STATE ? undefined : new StateList(state);
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true, traceState };
}

/** The user properties of a message that continues the trace of a span. */
export function propertiesOf(context: SpanContext): UserProperty[] {
  const { traceId, spanId, traceFlags, traceState } = context;
  const flags = traceFlags.toString(16).padStart(2, '0');
  const properties: UserProperty[] = [['traceparent', `00-${traceId}-${spanId}-${flags}`]];
  const state = traceState?.serialize() ?? '';
  if (state !== '') properties.push(['tracestate', state]);
  return properties;
}

/** The parent of a span, in the form that a tracer expects. */
export function parentOf(span: { spanContext(): SpanContext } | undefined): SpanParent {
  return new ParentContext(new Map(span === undefined ? [] : [[SPAN_KEY, span]]));
}

/** A remote span, of which only its context is known. */
export function remoteSpan(context: SpanContext): { spanContext(): SpanContext } {
  return { spanContext: () => context };
}

/** An immutable context, as the API of OpenTelemetry describes it. */
class ParentContext implements SpanParent {
  readonly #values: ReadonlyMap<symbol, unknown>;

  constructor(values: ReadonlyMap<symbol, unknown>) {
    this.#values = values;
  }

  getValue(key: symbol): unknown {
    return this.#values.get(key);
  }

  setValue(key: symbol, value: unknown): SpanParent {
    return new ParentContext(new Map([...this.#values, [key, value]]));
  }

  deleteValue(key: symbol): SpanParent {
    return new ParentContext(new Map([...this.#values].filter(([other]) => other !== key)));
  }
}

/** The entries of a `tracestate`, which samplers may read and change. */
class StateList implements TraceState {
  readonly #entries: readonly string[];

  constructor(text: string) {
    const entries = text.split(',').map((entry) => entry.trim());
    this.#entries = entries.length > MAX_ENTRIES ? [] : entries.filter((entry) => STATE_ENTRY.test(entry));
  }

  get(key: string): string | undefined {
    return this.#entries.find((entry) => entry.startsWith(`${key}=`))?.slice(key.length + 1);
  }

  set(key: string, value: string): TraceState {
    return new StateList([`${key}=${value}`, ...this.#without(key)].join());
  }

  unset(key: string): TraceState {
    return new StateList(this.#without(key).join());
  }

  serialize(): string {
    return this.#entries.join();
  }

  #without(key: string): string[] {
    return this.#entries.filter((entry) => !entry.startsWith(`${key}=`));
  }
}
