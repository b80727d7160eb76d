import { finished } from 'node:stream/promises';
import { inspect } from 'node:util';
import {
  type Broker,
  InvalidInput,
  LOG_LEVELS,
  type Logger,
  type LogLevel,
  type TraceOptions
} from '../../../lib/index.ts';
import { traceFile } from '../../trace/index.ts';
import { log, type Shell } from '../command.ts';
import { spelledAsFlag } from '../flags.ts';
import type { ServeSettings } from './settings.ts';

type Fields = Readonly<Record<string, unknown>> & {
  readonly event: string;
  readonly error?: { readonly message?: string; readonly stack?: string; readonly code?: unknown };
};

/** Events that the command reports separately. */
const REPORTED: readonly string[] = ['broker.started', 'broker.stopped', 'source.reloaded'];
/** Fields that the message already contains. */
const IN_MESSAGE: readonly string[] = ['event', 'error', 'during', 'record'];

/** The flags of the options that select what is traced. */
const TRACE_FLAGS = {
  'trace.clientId': 'traceClient',
  'trace.topic': 'traceTopic',
  'trace.address': 'traceAddress'
} as const;

/** A logger that writes lines to standard error: the level, the message, and the fields as `name=value`. */
export function serveLogger(shell: Shell, { logLevel, verbose }: ServeSettings['own']): Logger {
  const level: LogLevel = logLevel ?? (verbose ? 'info' : 'warn');
  const isLevelEnabled = (one: string) => LOG_LEVELS.indexOf(one as LogLevel) <= LOG_LEVELS.indexOf(level);
  const write = (one: LogLevel) => (message: string, fields: Fields) => {
    if (!REPORTED.includes(fields.event)) log(shell, lineOf(one, message, fields));
  };
  return { error: write('error'), warn: write('warn'), info: write('info'), debug: write('debug'), isLevelEnabled };
}

function lineOf(level: LogLevel, message: string, fields: Fields): string {
  const shown = Object.entries(fields)
    .filter(([name, value]) => value !== undefined && !IN_MESSAGE.includes(name))
    .map(([name, value]) => ` ${name}=${valueText(value)}`);
  // an error with a code is described by its message; others may be defects of the broker or of a hook
  const calls = level === 'error' && fields.error?.code === undefined ? callsOf(fields.error) : [];
  return [`${level}: ${oneLine(message)}${shown.join('')}`, ...calls].join('\n');
}

/** The stack of an error without its message, which may have several lines and could imitate others. */
function callsOf({ message = '', stack = '' }: NonNullable<Fields['error']> = {}): string[] {
  const from = stack.indexOf(message);
  const calls = from < 0 ? stack : stack.slice(from + message.length);
  return calls.split('\n').filter((line) => /^\s+at /.test(line));
}

/** Quote values that are ambiguous: names of clients must not be able to imitate lines or fields. */
function valueText(value: unknown): string {
  if (typeof value !== 'string')
    return typeof value === 'object' ? inspect(value, { breakLength: Infinity }) : String(value);
  return /^[\w.:/@[\]-]+$/.test(value) ? value : JSON.stringify(value);
}

function oneLine(text: string): string {
  return text.replace(/[\r\n]+/g, ' ');
}

/**
 * Start the trace of the flags, if there is one.
 * @returns a function that waits until its file is complete, after the stop of the broker
 * @throws InvalidInput OPTION_MISSING; BrokerError TRACE_FILE_FAILED
 */
export async function startTrace(
  broker: Broker,
  own: ServeSettings['own'],
  shell: Shell
): Promise<() => Promise<unknown>> {
  const { traceClient: clientId, traceTopic: topic, traceAddress: address, traceFile: file } = own;
  const given = Object.entries({ clientId, topic, address }).filter(([, value]) => value !== undefined);
  if (given.length === 0) {
    if (file === undefined) return async () => {};
    const message = `${spelledAsFlag('traceFile')} needs --trace-client, --trace-topic or --trace-address`;
    throw new InvalidInput('OPTION_MISSING', 'traceClient', 'a client id', undefined, message);
  }
  const selection = Object.fromEntries(given) as Pick<TraceOptions, 'clientId' | 'topic' | 'address'>;
  const to = file === undefined ? shell.stderr : await traceFile(file);
  try {
    broker.trace({ ...selection, to, end: file !== undefined });
  } catch (error) {
    if (file !== undefined) to.destroy();
    throw error instanceof InvalidInput ? namedByFlag(error) : error;
  }
  if (file === undefined) return async () => {};
  return () => finished(to).catch(() => undefined); // already reported by the broker
}

/** The error about an option of a trace with the flag in its message. */
function namedByFlag({ code, field, expected, got, message }: InvalidInput): InvalidInput {
  const option = TRACE_FLAGS[field as keyof typeof TRACE_FLAGS];
  if (option === undefined) return new InvalidInput(code, field, expected, got, message);
  const text = message.startsWith(`${field}: `) ? message.slice(field.length + 2) : message;
  return new InvalidInput(code, option, expected, got, `${spelledAsFlag(option)}: ${text}`);
}
