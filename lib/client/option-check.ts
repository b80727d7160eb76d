import { InvalidInput } from '../errors.ts';
import { checkNames, checkObject, type Duration, durationMs, unknownName } from '../options-table.ts';
import type { ClientEvents, ClientOptions } from './options.ts';

/** The names of all options. The type makes sure that none is missing. */
const OPTION_NAMES: Readonly<Record<keyof ClientOptions, true>> = {
  clientId: true,
  clean: true,
  protocolVersion: true,
  keepalive: true,
  username: true,
  password: true,
  will: true,
  properties: true,
  sessionExpiry: true,
  receiveMaximum: true,
  maximumPacketSize: true,
  topicAliasMaximum: true,
  onAuth: true,
  acknowledge: true,
  session: true,
  clock: true,
  signal: true
};

const EVENTS: readonly (keyof ClientEvents)[] = ['message', 'packet', 'disconnect', 'close', 'error'];

const KEEP_ALIVE_MAX_SEC = 65_535;
/** The Session Expiry Interval of a session that never expires (MQTT 5.0, section 3.1.2.11.2). */
const NEVER_EXPIRES = 0xffff_ffff;

/** Check the options of a client before anything is sent. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, DURATION_INVALID */
export function checkClientOptions(options: ClientOptions): void {
  checkObject(options, 'options');
  checkNames(options, Object.keys(OPTION_NAMES), '');
  const { protocolVersion = 5, clientId = '', username = '', password = '', will, keepalive = 0 } = options;
  if (![3, 4, 5].includes(protocolVersion))
    throw new InvalidInput('OPTION_INVALID', 'protocolVersion', '3, 4 or 5', protocolVersion);
  for (const [name, value] of Object.entries({ clientId, username }))
    if (typeof value !== 'string') throw new InvalidInput('OPTION_INVALID', name, 'a string', value);
  // The error message must not contain the password.
  if (typeof password !== 'string' && !(password instanceof Uint8Array))
    throw new InvalidInput('OPTION_INVALID', 'password', 'a string or Buffer', typeof password);
  if (will !== undefined && typeof (will as Partial<typeof will> | null)?.topic !== 'string')
    throw new InvalidInput('OPTION_INVALID', 'will', '{ topic, payload }', will);
  if (!isWholeNumber(keepalive, KEEP_ALIVE_MAX_SEC)) {
    throw new InvalidInput('OPTION_INVALID', 'keepalive', `whole seconds from 0 to ${KEEP_ALIVE_MAX_SEC}`, keepalive);
  }
  sessionExpirySec(options.sessionExpiry);
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
  if (isWholeNumber(seconds, NEVER_EXPIRES)) return seconds;
  const expected = `whole seconds from 0 to ${NEVER_EXPIRES}, a duration such as "1h", or Infinity`;
  throw new InvalidInput('OPTION_INVALID', 'sessionExpiry', expected, duration);
}

function isWholeNumber(value: unknown, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max;
}
