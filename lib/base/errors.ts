import { HIDDEN, hideInText, isSecretByName, shownText, shownUrl } from './hidden-text.ts';

/** Base class of the errors that this library throws. Test `code`, not the message, which may change. */
export class BrokerError extends Error {
  /** Stable identifier in upper case, for example `TOPIC_FILTER_INVALID`. */
  readonly code: string;

  constructor(
    code: string,
    message: string,
    options?: {
      /** The error that has caused this one. */
      cause?: unknown;
    }
  ) {
    super(message, options?.cause === undefined ? undefined : options); // no `[cause]: undefined` in logs
    this.code = code;
    this.name = new.target.name;
  }
}

/**
 * A packet violates the MQTT specification. The connection is closed, after a packet with `reasonCode` if the protocol version has one.
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

/**
 * A listener has closed a connection before the broker received it, because of its peer: its TLS handshake has failed, for example. `code`
 * is `CONNECTION_REFUSED`.
 */
export class ConnectionRefused extends BrokerError {
  /** The reason as `shutdownCount` of the listener counts it, for example `tls_failed`. */
  readonly reason: string;
  /** IP address of the peer, if it has one. */
  readonly address: string | undefined;

  constructor(reason: string, message: string, address?: string) {
    super('CONNECTION_REFUSED', message);
    this.reason = reason;
    this.address = address;
  }
}

/** Tell whether an error is caused by a peer, which can cause any number of such errors. */
export function isCausedByPeer(error: unknown): boolean {
  return error instanceof ProtocolError || error instanceof ConnectionRefused;
}

/** An argument or option is invalid. */
export class InvalidInput extends BrokerError {
  /** Name of the argument or option. */
  readonly field: string;
  /** Description of the values that are allowed. */
  readonly expected: string;
  /** The value that was given, without the secrets in a string. */
  readonly got: unknown;

  constructor(code: string, field: string, expected: string, got: unknown, message?: string) {
    super(code, message ?? `${field}: expected ${expected}, got ${show(got)}`);
    this.field = field;
    this.expected = expected;
    this.got = typeof got === 'string' ? shownText(got) : got instanceof URL ? shownUrl(got.href) : got;
  }
}

/** The requested object does not exist. `code` is for example `SESSION_NOT_FOUND`. */
export class NotFound extends BrokerError {}

/** An access rule or a hook has refused an operation. `code` is `NOT_AUTHORIZED`. */
export class NotAuthorized extends BrokerError {
  /** MQTT 5.0 reason code of the refusal: 0x87 unless a hook chose another one. */
  readonly reasonCode: number;

  constructor(message: string, reasonCode = 0x87) {
    super('NOT_AUTHORIZED', message);
    this.reasonCode = reasonCode;
  }
}

/** The operation is not possible in the current state, for example publishing on a broker that is not started. */
export class StateError extends BrokerError {}

/** Turn any thrown value into an Error; values that are not errors become its `cause`. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(errorText(thrown), { cause: thrown });
}

/** The message of an error, or any other thrown value as a string. It does not throw. */
export function errorText(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message;
  try {
    return String(thrown);
  } catch {
    return `a thrown value of type ${typeof thrown} that cannot be converted to a string`;
  }
}

/** Format a value for an error message, without secrets in text; long values are truncated to 80 characters. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(truncated(shownText(value)));
  if (typeof value === 'function')
    return value.constructor?.name === 'AsyncFunction' ? 'an async function' : 'a function';
  // JSON cannot express NaN, Infinity and bigint
  if (typeof value !== 'object') return String(value);
  try {
    const text = JSON.stringify(value, (name, one: unknown) =>
      isSecretByName(name, one) ? HIDDEN : typeof one === 'string' ? hideInText(one) : one
    );
    return text === undefined ? String(value) : truncated(text);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** A text of at most that many characters, for messages. */
export function truncated(text: string, most = 80): string {
  return text.length > most ? `${text.slice(0, most - 3)}...` : text;
}
