// A row for each event that is logged; a broker without a logger has no listeners and pays nothing. Rows never
// contain passwords, authentication data, payloads or headers, and errors are reduced to a few properties, because
// loggers write every property of an object. Events that a peer can cause at any rate have `causedBy`, which bounds
// their lines in a minute. A failure of the logger is a process warning, not an `error` event, which would be logged
// again. The listener for dropped messages must not close the fast path.

import { asError, BrokerError, ConnectionRefused, isCausedByPeer } from '../base/errors.ts';
import { EVENT_NAMES, type EVENTS, type EventName } from '../events/catalogue.ts';
import type { BrokerEvents } from '../events/event-types.ts';
import type { Events } from '../events/events.ts';
import type { DisconnectReason } from '../events/reasons.ts';
import type { SubscribeResult } from '../events/subscription-options.ts';
import type { Message } from '../packets/message.ts';
import { reasonName } from '../packets/reason-codes.ts';
import type { ClientInfo } from '../records/client.ts';
import type { ListenerHandle } from '../records/listener.ts';
import { shownUsername } from '../records/shown-username.ts';
import { cut } from './cut-text.ts';
import { clientFields } from './traces/trace-fields.ts';

/**
 * A logger: pino, winston, console, or any object with these four methods.
 *
 * Each method is called with a message and an object with the fields: the fields first for pino and bunyan, which are recognized by their
 * methods `bindings` and `addSerializers`, otherwise the message first, as winston and console expect it.
 */
export interface Logger {
  // `never`: a method may accept any parameters
  /** Write a line about a failure. */
  readonly error: (...parts: never[]) => unknown;
  /** Write a line about a condition that an operator should know. */
  readonly warn: (...parts: never[]) => unknown;
  /** Write a line about the normal course of events. */
  readonly info: (...parts: never[]) => unknown;
  /** Write a line with details. */
  readonly debug: (...parts: never[]) => unknown;
  /** Tell whether lines of a level are written. If the logger has this method, it is called before a line is built. */
  readonly isLevelEnabled?: ((level: string) => boolean) | undefined;
}

/** The levels of log lines. */
export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;
/** The level of a log line. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The way in which an event is logged. */
export interface LogEntry<E extends EventName> {
  /** The level, or a function of the event that returns it; undefined: the event is not logged. */
  readonly level: LogLevel | ((event: BrokerEvents[E]) => LogLevel | undefined);
  /** The message, or a function of the event that returns it. */
  readonly message: string | ((event: BrokerEvents[E]) => string);
  /** Fields in addition to those of `client`. Never: passwords, authentication data, payloads, headers. */
  readonly fields?: (event: BrokerEvents[E]) => object;
  /**
   * The cause of the event, which may occur at any rate: of each cause, the first line in a minute has the level, and further ones have
   * `debug`. Undefined: all lines have the level.
   */
  readonly causedBy?: (event: BrokerEvents[E]) => string | undefined;
}

/** Disconnections that indicate a fault of the broker, its machine or the network to the client. */
const WARNED_REASONS: readonly DisconnectReason[] = [
  'slow_consumer',
  'store_failed',
  'source_failed',
  'internal_error',
  'stream_error'
];

/** The events that are logged. The README shows this table. */
export const LOG_ROWS: { readonly [E in keyof typeof EVENTS]?: LogEntry<E> } = {
  'broker.started': {
    level: 'info',
    message: 'broker started',
    fields: ({ listeners }) => ({ listeners: listeners.map(listenerText) })
  },
  'broker.stopped': { level: 'info', message: 'broker stopped' },
  'listener.attached': {
    level: 'info',
    message: 'listener added',
    fields: ({ listener }) => ({ listener: listener.name })
  },
  'listener.detached': {
    level: 'info',
    message: 'listener removed',
    fields: ({ listener }) => ({ listener: listener.name })
  },
  'listener.exposed': {
    level: 'warn',
    message: ({ listeners }) => exposedText(listeners),
    fields: ({ listeners }) => ({ listeners: listeners.map(({ name }) => name) })
  },
  'client.connected': {
    level: 'info',
    message: 'client connected',
    fields: ({ client, sessionPresent }) => ({ ...connectionFields(client), sessionPresent })
  },
  'client.disconnected': {
    level: ({ reason }) => (WARNED_REASONS.includes(reason) ? 'warn' : 'info'),
    message: 'client disconnected',
    fields: ({ reason, reasonCode }) => ({ reason, reasonCode })
  },
  'client.rejected': {
    level: 'warn',
    message: ({ why }) => `client rejected: ${cut(why)}`,
    fields: ({ client, address, reason, reasonCode }) => ({
      ...(client === undefined ? { address } : connectionFields(client)),
      reason,
      ...(reasonCode === 0 ? {} : { reasonCode })
    }),
    causedBy: ({ client, address, reason, reasonCode }) => `${reason} ${reasonCode} ${client?.clientId || address}`
  },
  'connection.closed': {
    level: ({ isAccepted }) => (isAccepted ? undefined : 'debug'),
    message: 'connection closed before its client was accepted',
    fields: ({ client }) => connectionFields(client)
  },
  'client.suback': {
    level: ({ results }) => (results.some(isRefused) ? 'info' : undefined),
    message: 'subscription refused',
    fields: ({ results }) => {
      const refused = results.filter(isRefused);
      return { filters: refused.map(({ filter }) => filter), reason: reasonName(refused[0].reasonCode) };
    },
    causedBy: ({ client }) => client.clientId
  },
  'message.dropped': {
    level: ({ reason, client }) => (reason === 'not_authorized' && client === undefined ? 'info' : undefined),
    message: 'message refused',
    fields: ({ message, reason }) => ({ ...publisherFields(message), topic: message.topic, qos: message.qos, reason }),
    causedBy: ({ message }) => message.clientId
  },
  'client.banned': {
    level: 'warn',
    message: 'clients banned',
    fields: ({ ban: { kind, who, by, reason, until } }) => ({
      kind,
      who: shownUsername(who),
      by,
      reason,
      until: until === Infinity ? 'forever' : new Date(until).toISOString()
    })
  },
  'session.created': { level: 'debug', message: 'session created' },
  'session.resumed': { level: 'debug', message: 'session resumed' },
  'session.takenover': { level: 'debug', message: 'session taken over' },
  'session.discarded': { level: 'debug', message: 'session discarded' },
  'session.terminated': { level: 'debug', message: 'session terminated', fields: ({ reason }) => ({ reason }) },
  'session.subscribed': {
    level: 'debug',
    message: 'subscribed',
    fields: ({ filter, options }) => ({ filter, qos: options.qos })
  },
  'session.unsubscribed': { level: 'debug', message: 'unsubscribed', fields: ({ filter }) => ({ filter }) },
  'access.unguarded': {
    level: 'warn',
    message: ({ record }) =>
      `a ${record} with a password was added, which is checked at the next CONNECT; unknown clients still get in, because there is no source of authentication: set allowAnonymous to false to refuse them`,
    fields: ({ record }) => ({ record })
  },
  'source.reloaded': {
    level: ({ error }) => (error === undefined ? 'info' : 'error'),
    message: ({ error }) =>
      error === undefined
        ? 'source of authentication reloaded'
        : 'source of authentication could not be reloaded; its previous content remains valid',
    fields: ({ source, error }) => ({ source, ...(error === undefined ? {} : { error: errorFields(error) }) })
  },
  'store.failed': {
    level: 'error',
    message: 'the store cannot be written',
    fields: ({ error }) => ({ error: errorFields(error) })
  },
  // at the level warn, so that a log that shows the failure shows its end, too
  'store.recovered': { level: 'warn', message: 'the store can be written again' },
  'store.upgraded': {
    level: 'warn',
    message: ({ count, text }) =>
      `an earlier release has written the store, and ${count} of its definitions ${count === 1 ? 'behaves' : 'behave'} differently now (see "Upgrading" in CHANGELOG.md): ${text}`,
    fields: ({ count }) => ({ count })
  },
  'rule.disconnected': {
    level: 'warn',
    message: 'rule cannot run',
    fields: ({ rule, reason }) => ({ rule, reason })
  },
  'streamRule.stopped': {
    level: ({ reason }) => (reason === undefined ? undefined : 'warn'),
    message: 'stream rule cannot run',
    fields: ({ rule, reason }) => ({ rule, reason }),
    causedBy: ({ rule, reason }) => `${rule} ${reason}`
  },
  'alarm.raised': {
    level: ({ alarm: { severity } }) => (severity === 'notice' ? 'info' : severity === 'warning' ? 'warn' : 'error'),
    message: ({ alarm }) => `alarm raised: ${alarm.title}`,
    fields: ({ alarm: { id, severity, summary } }) => ({ alarm: id, severity, summary })
  },
  'alarm.cleared': {
    level: 'info',
    message: ({ alarm }) => `alarm cleared: ${alarm.title}`,
    fields: ({ alarm: { id } }) => ({ alarm: id })
  },
  error: {
    level: ({ error }) => errorLevel(error),
    message: ({ error, during }) => `${during}: ${error.message}`,
    fields: ({ error, during }) => ({ during, error: errorFields(error) })
  }
};

/** Codes of errors that ask the operator to decide something, although nothing has failed. */
const WARNINGS: ReadonlySet<unknown> = new Set(['PLUGIN_NOT_LOADED']);

function errorLevel(error: Error): LogLevel | undefined {
  if (error instanceof ConnectionRefused) return undefined; // the event client.rejected is logged
  if (isCausedByPeer(error)) return 'info';
  return WARNINGS.has((error as { readonly code?: unknown }).code) ? 'warn' : 'error';
}

const MINUTE_MS = 60_000;
/** Maximum number of causes of each event: for further causes in the same minute, all lines have the level `debug`. */
const MAX_CAUSES = 1_000;

/** Writes the events of the broker to a logger. Without a logger, there are no listeners. */
export class Log {
  readonly #logger: Logger;
  readonly #monotonic: () => number;
  /** The causes of lines in this minute, by event: clients that choose another name each time do not use up those of other events. */
  readonly #causes = new Map<EventName, Set<string>>();
  #minuteEndsAtMs = Number.NEGATIVE_INFINITY;
  readonly #isFieldsFirst: boolean;
  #hasFailed = false;

  /** @param monotonic a time in milliseconds */
  constructor(logger: Logger, events: Events, monotonic: () => number) {
    this.#logger = logger;
    this.#monotonic = monotonic;
    this.#isFieldsFirst = isFieldsFirst(logger);
    for (const name of EVENT_NAMES) {
      const row = LOG_ROWS[name] as LogEntry<EventName> | undefined;
      if (row === undefined) continue;
      const listener = (event: BrokerEvents[EventName]) => this.#event(name, row, event);
      // without closing the fast path, on which nothing is refused
      if (name === 'message.dropped') events.onObserved(name, listener);
      else events.on(name, listener);
    }
  }

  #event(name: EventName, row: LogEntry<EventName>, event: BrokerEvents[EventName]): void {
    try {
      this.#write(name, row, event);
    } catch (error) {
      this.#failed(error);
    }
  }

  #write(name: EventName, row: LogEntry<EventName>, event: BrokerEvents[EventName]): void {
    const wanted = typeof row.level === 'function' ? row.level(event) : row.level;
    if (wanted === undefined) return;
    const level = this.#isFirst(name, row.causedBy?.(event)) ? wanted : 'debug';
    const logger = this.#logger;
    if (logger.isLevelEnabled?.(level) === false) return;
    const message = typeof row.message === 'function' ? row.message(event) : row.message;
    const { client } = event as { readonly client?: ClientInfo };
    const fields = { event: name, ...(client === undefined ? {} : clientFields(client)), ...row.fields?.(event) };
    const parts: unknown[] = this.#isFieldsFirst ? [fields, message] : [message, fields];
    const result = logger[level](...(parts as never[]));
    // a method of the app may be async
    if (typeof (result as PromiseLike<unknown> | undefined)?.then === 'function')
      (result as PromiseLike<unknown>).then(undefined, (error: unknown) => this.#failed(error));
  }

  #isFirst(name: EventName, given: string | undefined): boolean {
    if (given === undefined) return true;
    const cause = cut(given);
    const nowMs = this.#monotonic();
    if (nowMs >= this.#minuteEndsAtMs) {
      this.#causes.clear();
      this.#minuteEndsAtMs = nowMs + MINUTE_MS;
    }
    const causes = this.#causes.get(name) ?? new Set();
    if (causes.has(cause) || causes.size >= MAX_CAUSES) return false;
    this.#causes.set(name, causes.add(cause));
    return true;
  }

  /** Report a failure of the logger, once and as a process warning, because an `error` event would be logged. */
  #failed(cause: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const { message } = asError(cause);
    const text = `the logger has failed: ${message} (further failures are not reported)`;
    process.emitWarning(new BrokerError('LOGGER_FAILED', text, { cause }));
  }
}

/** Tell whether a logger takes the fields before the message: pino (and the logger of Fastify) and bunyan do. */
function isFieldsFirst(logger: Logger): boolean {
  const { bindings, addSerializers } = logger as { readonly bindings?: unknown; readonly addSerializers?: unknown };
  return typeof bindings === 'function' || typeof addSerializers === 'function';
}

function connectionFields({ transportInfo, protocolVersion }: ClientInfo): object {
  const { transport, listener } = transportInfo;
  return { transport, listener, protocolVersion };
}

function isRefused({ reasonCode }: SubscribeResult): boolean {
  return reasonCode >= 0x80;
}

/** The fields of the publisher of a message. If its session has ended, only its names are known. */
function publisherFields({ origin, clientId, username }: Message): object {
  const isClient = origin !== undefined && 'transportInfo' in origin;
  return isClient ? clientFields(origin as ClientInfo) : { clientId, username: shownUsername(username) };
}

/**
 * The properties of an error that are logged, in a plain object: loggers would write all its properties, including the values that it is
 * about.
 */
function errorFields({ name, message, stack, code }: Error & { readonly code?: unknown }): object {
  return { name, code, message, stack };
}

/** Describes why listeners are exposed to any client of other machines, and how to change that. */
export function exposedText(listeners: readonly ListenerHandle[]): string {
  const hosts = [...new Set(listeners.map(({ exposure }) => exposure?.host))].join(' and ');
  return `anyone can connect from other machines at ${hosts}, because no source of authentication is asked there: add one (option auth) to a zone without bypassAuthPlugins, bind 127.0.0.1, or set allowAnonymous to true to allow this`;
}

function listenerText({ name, address }: ListenerHandle): string {
  if (address === undefined) return name;
  const { host, port, path } = address;
  return `${name} (${path ?? `${host?.includes(':') ? `[${host}]` : host}:${port}`})`;
}
