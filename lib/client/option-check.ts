import { InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject, type Duration, durationMs, unknownName } from '../base/fields.ts';
import { PUBLISH_OPTION_NAMES } from '../packets/message.ts';
import type { ClientEvents, ClientOptions, RequestOptions, RespondOptions } from './options.ts';

/** A condition on the value of an option. */
interface Check {
  /** The valid values, in words, for the error message. */
  readonly expected: string;
  isValid(value: unknown): boolean;
}

type Checks<Name extends string> = Readonly<Record<Name, Check>>;

const EVENTS: readonly (keyof ClientEvents)[] = ['message', 'packet', 'disconnect', 'close', 'error'];

/** The Session Expiry Interval of a session that never expires (MQTT 5.0, section 3.1.2.11.2). */
const NEVER_EXPIRES = 0xffff_ffff;

const A_STRING: Check = { expected: 'a string', isValid: (value) => typeof value === 'string' };
const A_BOOLEAN: Check = { expected: 'true or false', isValid: (value) => typeof value === 'boolean' };
const A_FUNCTION: Check = { expected: 'a function', isValid: (value) => typeof value === 'function' };
const AN_OBJECT: Check = { expected: 'an object', isValid: (value) => typeof value === 'object' && value !== null };
const A_SIGNAL = objectWith(['addEventListener', 'removeEventListener'], 'an AbortSignal');

/** The checks of the client options. The type ensures that none is missing. `sessionExpiry` is checked by `sessionExpirySec`. */
const CLIENT_OPTIONS: Checks<keyof ClientOptions> = {
  clientId: A_STRING,
  clean: A_BOOLEAN,
  protocolVersion: { expected: '3, 4 or 5', isValid: (value) => value === 3 || value === 4 || value === 5 },
  keepalive: wholeNumber(0, 65_535, 'whole seconds'),
  username: A_STRING,
  password: {
    expected: 'a string or Buffer',
    isValid: (value) => typeof value === 'string' || value instanceof Uint8Array
  },
  will: {
    expected: '{ topic, payload }',
    isValid: (value) => typeof (value as { readonly topic?: unknown } | null)?.topic === 'string'
  },
  properties: AN_OBJECT,
  sessionExpiry: { expected: 'a duration', isValid: () => true },
  receiveMaximum: wholeNumber(1, 65_535), // 0 is a protocol error (MQTT 5.0, section 3.1.2.11.3)
  maximumPacketSize: wholeNumber(1, 0xffff_ffff), // 0 is a protocol error (MQTT 5.0, section 3.1.2.11.4)
  topicAliasMaximum: wholeNumber(0, 65_535),
  onAuth: A_FUNCTION,
  acknowledge: { expected: '"auto" or "manual"', isValid: (value) => value === 'auto' || value === 'manual' },
  onReleased: A_FUNCTION,
  session: objectWith(['takeId', 'asked', 'answered'], 'the `session` of a client'),
  clock: objectWith(['now', 'monotonic', 'setTimeout', 'clearTimeout']),
  signal: A_SIGNAL
};

const CLIENT_OPTION_NAMES = Object.keys(CLIENT_OPTIONS);

const WILL_OPTIONS: Checks<'qos' | 'retain' | 'properties'> = {
  qos: { expected: '0, 1 or 2', isValid: (value) => value === 0 || value === 1 || value === 2 },
  retain: A_BOOLEAN,
  properties: AN_OBJECT
};

const MESSAGES_OPTIONS: Checks<'signal' | 'highWaterMark'> = {
  signal: A_SIGNAL,
  highWaterMark: {
    expected: 'a number of messages, 1 or more',
    isValid: (value) => typeof value === 'number' && value >= 1
  }
};

const REQUEST_OPTIONS: Checks<keyof RequestOptions> = {
  timeout: { expected: 'a duration', isValid: () => true },
  qos: { expected: '0, 1 or 2', isValid: () => true },
  properties: {
    expected: 'properties other than responseTopic, correlationData and topicAlias',
    isValid: (value) =>
      AN_OBJECT.isValid(value) &&
      !['responseTopic', 'correlationData', 'topicAlias'].some((name) => name in (value as object))
  },
  signal: A_SIGNAL
};

const RESPOND_OPTIONS: Checks<keyof RespondOptions> = { qos: { expected: '0, 1 or 2', isValid: () => true } };

const UNSUBSCRIBE_OPTIONS: Checks<'properties'> = { properties: AN_OBJECT };

const DISCONNECT_OPTIONS: Checks<'reasonCode' | 'properties'> = {
  reasonCode: wholeNumber(0, 255),
  properties: AN_OBJECT
};

/** Check the options of a client before anything is sent. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, DURATION_INVALID */
export function checkClientOptions(options: ClientOptions): void {
  checkObject(options, 'options');
  checkNames(options, CLIENT_OPTION_NAMES, '');
  const { password } = options;
  // The error message must not contain the password.
  if (password !== undefined && !CLIENT_OPTIONS.password.isValid(password))
    throw new InvalidInput('OPTION_INVALID', 'password', CLIENT_OPTIONS.password.expected, typeof password);
  checkValues(CLIENT_OPTIONS, options);
  sessionExpirySec(options.sessionExpiry);
  if (options.will === undefined) return;
  checkNames(options.will, ['topic', 'payload', ...PUBLISH_OPTION_NAMES], 'will');
  checkValues(WILL_OPTIONS, options.will, 'will.');
}

/** Check the options of `client.messages`. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
export function checkMessagesOptions(options: object): void {
  checkOptions(MESSAGES_OPTIONS, options, 'messages');
}

/** Check the options of `client.request`; `timeout` and `qos` are checked where they are used. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
export function checkRequestOptions(options: object): void {
  checkOptions(REQUEST_OPTIONS, options, 'request');
}

/** Check the arguments of `client.respond`; `qos` is checked by `subscribe`. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, HANDLER_INVALID */
export function checkRespond(handler: unknown, options: object): void {
  if (typeof handler !== 'function') throw new InvalidInput('HANDLER_INVALID', 'handler', 'a function', handler);
  checkOptions(RESPOND_OPTIONS, options, 'respond');
}

/** Check the options of `client.unsubscribe`. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
export function checkUnsubscribeOptions(options: object): void {
  checkOptions(UNSUBSCRIBE_OPTIONS, options, 'unsubscribe');
}

/** Check the options of `client.disconnect`. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
export function checkDisconnectOptions(options: object): void {
  checkOptions(DISCONNECT_OPTIONS, options, 'disconnect');
}

/** Check the arguments of `client.on`. @throws InvalidInput EVENT_UNKNOWN with a suggestion, HANDLER_INVALID */
export function checkListener(event: keyof ClientEvents, listener: unknown): void {
  if (!EVENTS.includes(event)) throw unknownName('EVENT_UNKNOWN', 'event', event, EVENTS);
  if (typeof listener !== 'function') throw new InvalidInput('HANDLER_INVALID', event, 'a function', listener);
}

/**
 * Convert the option `sessionExpiry` to a Session Expiry Interval. Plain numbers are seconds.
 * @throws InvalidInput DURATION_INVALID; OPTION_INVALID if the result is not a whole number of seconds within the range
 */
export function sessionExpirySec(duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const seconds = durationMs(duration, 'sessionExpiry', 's') / 1000;
  if (seconds === Infinity) return NEVER_EXPIRES;
  if (wholeNumber(0, NEVER_EXPIRES).isValid(seconds)) return seconds;
  const expected = `whole seconds from 0 to ${NEVER_EXPIRES}, a duration such as "1h", or Infinity`;
  throw new InvalidInput('OPTION_INVALID', 'sessionExpiry', expected, duration);
}

function checkOptions(checks: Checks<string>, options: object, where: string): void {
  checkObject(options, 'options');
  checkNames(options, Object.keys(checks), where);
  checkValues(checks, options);
}

/** @param prefix precedes the names of the options in errors */
function checkValues(checks: Checks<string>, options: object, prefix = ''): void {
  for (const name of Object.keys(options)) {
    const value = (options as Readonly<Record<string, unknown>>)[name];
    const check = checks[name];
    if (value === undefined || check === undefined || check.isValid(value)) continue;
    throw new InvalidInput('OPTION_INVALID', prefix + name, check.expected, value);
  }
}

function wholeNumber(min: number, max: number, what = 'a whole number'): Check {
  return {
    expected: `${what} from ${min} to ${max}`,
    isValid: (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max
  };
}

function objectWith(functions: readonly string[], expected = `an object with ${functions.join(', ')}`): Check {
  const hasFunctions = (object: Readonly<Record<string, unknown>>) =>
    functions.every((name) => typeof object[name] === 'function');
  return { expected, isValid: (value) => AN_OBJECT.isValid(value) && hasFunctions(value as Record<string, unknown>) };
}
