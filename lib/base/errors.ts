/**
 * Every error this library throws on purpose. Callers test `code`, never the message.
 */
export class BrokerError extends Error {
  /** Stable, upper-case identifier such as `TOPIC_FILTER_INVALID`. */
  readonly code: string;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/**
 * A packet broke a rule of MQTT. The connection answers with `reasonCode` where its version allows an answer, and closes.
 * `code` is `PROTOCOL_ERROR`.
 */
export class ProtocolError extends BrokerError {
  /** MQTT 5.0 reason code, for example 0x81 (malformed packet) or 0x82 (protocol error). */
  readonly reasonCode: number;

  constructor(reasonCode: number, message: string) {
    super('PROTOCOL_ERROR', message);
    this.reasonCode = reasonCode;
  }
}

/** An argument or option is wrong: `field` names it, `expected` says what would be right, `got` is what came. */
export class InvalidInput extends BrokerError {
  readonly field: string;
  readonly expected: string;
  readonly got: unknown;

  constructor(code: string, field: string, expected: string, got: unknown, message?: string) {
    super(code, message ?? `${field}: expected ${expected}, got ${show(got)}`);
    this.field = field;
    this.expected = expected;
    this.got = got;
  }
}

/** The thing asked for is not there. `code` is for example `SESSION_NOT_FOUND`. */
export class NotFound extends BrokerError {}

/** The access rules or a hook refused. `reasonCode` is the MQTT 5.0 code that says so on the wire (0x87 unless a hook chose another). */
export class NotAuthorized extends BrokerError {
  readonly reasonCode: number;

  constructor(message: string, reasonCode = 0x87) {
    super('NOT_AUTHORIZED', message);
    this.reasonCode = reasonCode;
  }
}

/** Asked while in the wrong state, for example publishing on a broker that is not started. */
export class StateError extends BrokerError {}

/** A value as it stands in a message, cut off where it is long. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 77)}...` : value);
  if (typeof value === 'function') return 'a function';
  // JSON has no NaN, no Infinity, no bigint
  if (typeof value !== 'object') return String(value);
  try {
    const text = JSON.stringify(value);
    return text === undefined ? String(value) : text.length > 80 ? `${text.slice(0, 77)}...` : text;
  } catch {
    return Object.prototype.toString.call(value);
  }
}
