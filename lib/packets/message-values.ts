// The results of schemas, beside the messages: a field of `Message` would cost every message of every broker. A message
// has them while it is published, and the views of it that the app gets have them as long as they exist: results may be
// many times larger than their payload, and no limit counts them, so retained and queued messages have none. Nor has a
// copy of a message, such as one that a deliver hook has changed.

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
/** The views of a message for handlers of filters that have a schema. */
const FILTERS = new WeakMap<object, string>();

/** Set the results of the schemas that a message matches. */
export function setValues(message: object, values: Values): void {
  VALUES.set(message, values);
}

/** Drop the results of a message that has been published. */
export function dropValues(message: object): void {
  VALUES.delete(message);
}

/** The results of the schemas that a message matches; undefined: it has none. */
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

/** Let a view of a message show the result of the schema of a filter; undefined: the first one. */
export function showValue(view: object, values: Values, filter: string | undefined): void {
  VALUES.set(view, values);
  if (filter !== undefined) FILTERS.set(view, filter);
}

/** Tell whether a message deletes the retained message of its topic. Schemas do not check it, so that it has no results. */
export function isDeletion({ retain, bytes, payloadAt }: Sized): boolean {
  return retain && bytes <= payloadAt;
}
