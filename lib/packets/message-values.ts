// The results of schemas, beside the messages: a field of `Message` would cost every message of every broker. A copy of
// a message, such as one that a deliver hook has changed, has no results.

/** The results by topic filter, in the order of the schemas. */
type Values = ReadonlyMap<string, unknown>;

/** The fields of a message that tell whether it has a payload. */
interface Sized {
  readonly retain: boolean;
  /** Size of the frame. */
  readonly bytes: number;
  /** Offset of the payload. */
  readonly payloadAt: number;
}

const VALUES = new WeakMap<object, Values>();
/** The views of a message for handlers of other filters than that of its first result. */
const FILTERS = new WeakMap<object, string>();

/** Set the results of the schemas that a message matches. */
export function setValues(message: object, values: Values): void {
  VALUES.set(message, values);
}

/** The results of the schemas that a message matches; undefined: it has not been checked. */
export function valuesOf(message: object): Values | undefined {
  return VALUES.get(message);
}

/** The result that a message shows: that of the filter of its handler, otherwise the first one. */
export function shownValue(message: object): unknown {
  const values = VALUES.get(message);
  if (values === undefined) return undefined;
  const filter = FILTERS.get(message);
  return filter === undefined ? values.values().next().value : values.get(filter);
}

/** Let a message show the result of the schema of a filter. */
export function showValue(message: object, values: Values, filter: string): void {
  VALUES.set(message, values);
  FILTERS.set(message, filter);
}

/** Tell whether a message deletes the retained message of its topic. Schemas do not check it, so that it has no results. */
export function isDeletion({ retain, bytes, payloadAt }: Sized): boolean {
  return retain && bytes <= payloadAt;
}
