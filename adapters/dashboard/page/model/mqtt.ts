// The WebSocket client of the page, without the network: values of forms become properties and payloads, packets become rows of a log.

import { T } from '../texts.ts';

const F = T.websocket.faults;

/** The form of a property in a field. `pairs`: one `name=value` in each line. `list`: a number that is sent as a list of one. */
export type PropertyType = 'number' | 'flag' | 'text' | 'bytes' | 'pairs' | 'list';

/** The properties of MQTT 5.0 that a client sends, by packet. The names are those of the client of the package. */
export const PROPERTIES = {
  connect: {
    sessionExpiryInterval: 'number',
    receiveMaximum: 'number',
    maximumPacketSize: 'number',
    topicAliasMaximum: 'number',
    requestResponseInformation: 'flag',
    requestProblemInformation: 'flag',
    authenticationMethod: 'text',
    authenticationData: 'bytes',
    userProperties: 'pairs'
  },
  will: {
    willDelayInterval: 'number',
    messageExpiryInterval: 'number',
    payloadFormatIndicator: 'flag',
    contentType: 'text',
    responseTopic: 'text',
    correlationData: 'bytes',
    userProperties: 'pairs'
  },
  publish: {
    messageExpiryInterval: 'number',
    payloadFormatIndicator: 'flag',
    contentType: 'text',
    responseTopic: 'text',
    correlationData: 'bytes',
    topicAlias: 'number',
    userProperties: 'pairs'
  },
  subscribe: { subscriptionIdentifier: 'list', userProperties: 'pairs' },
  unsubscribe: { userProperties: 'pairs' },
  disconnect: { sessionExpiryInterval: 'number', reasonString: 'text', userProperties: 'pairs' },
  /** The method is that of the CONNECT. */
  auth: { authenticationData: 'bytes', reasonString: 'text', userProperties: 'pairs' }
} as const satisfies Readonly<Record<string, Readonly<Record<string, PropertyType>>>>;

export type PropertySet = keyof typeof PROPERTIES;

/** The values of fields by their names. */
type Values = Readonly<Record<string, string | undefined>>;

/** The value of a field is not valid. `field` is its name. */
export class FieldError extends Error {
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/**
 * The properties in the fields of a form; those of empty fields are left out.
 * @param prefix of the names of the fields
 * @returns undefined if there are none
 * @throws FieldError
 */
export function propertiesIn(set: PropertySet, values: Values, prefix: string): Record<string, unknown> | undefined {
  const properties: Record<string, unknown> = {};
  for (const [name, type] of Object.entries(PROPERTIES[set])) {
    const text = values[prefix + name] ?? '';
    if (text !== '') properties[name] = propertyValue(type, text, prefix + name);
  }
  return Object.keys(properties).length === 0 ? undefined : properties;
}

function propertyValue(type: PropertyType, text: string, field: string): unknown {
  if (type === 'text') return text;
  if (type === 'bytes') return /^0x/i.test(text) ? hexBytes(text.slice(2), field) : new TextEncoder().encode(text);
  if (type === 'pairs') return pairsIn(text, field);
  const number = Number(text);
  if (!Number.isInteger(number) || number < 0) throw new FieldError(field, F.number(text));
  return type === 'list' ? [number] : number;
}

/** The user properties of lines `name=value`. A value may contain `=`. @throws FieldError */
export function pairsIn(text: string, field: string): readonly (readonly [name: string, value: string])[] {
  return text
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const at = line.indexOf('=');
      if (at < 0) throw new FieldError(field, F.pair(line));
      return [line.slice(0, at), line.slice(at + 1)];
    });
}

/** The forms in which a payload is written. */
export const PAYLOAD_FORMS = ['text', 'json', 'hex', 'base64'] as const;
export type PayloadForm = (typeof PAYLOAD_FORMS)[number];

/** The bytes of a payload. JSON is sent as it was written. @throws FieldError */
export function payloadBytes(form: PayloadForm, text: string, field: string): Uint8Array<ArrayBuffer> {
  if (form === 'hex') return hexBytes(text.replaceAll(/[\s:,]|0x/gi, ''), field);
  if (form === 'base64') return base64Bytes(text.replaceAll(/\s/g, ''), field);
  if (form === 'json' && text.trim() !== '') {
    try {
      JSON.parse(text);
    } catch (error) {
      throw new FieldError(field, F.json((error as Error).message));
    }
  }
  return new TextEncoder().encode(text);
}

function hexBytes(digits: string, field: string): Uint8Array<ArrayBuffer> {
  if (/[^\da-f]/i.test(digits)) throw new FieldError(field, F.digits);
  if (digits.length % 2 === 1) throw new FieldError(field, F.half);
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function base64Bytes(text: string, field: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    throw new FieldError(field, F.base64);
  }
}

/** True if a topic name matches a topic filter, also one of a shared subscription. */
export function matchesFilter(filter: string, topic: string): boolean {
  const plain = /^\$share\/[^/]+\/(.*)$/s.exec(filter)?.[1] ?? filter;
  if (topic.startsWith('$') && /^[+#]/.test(plain)) return false;
  const levels = topic.split('/');
  const wanted = plain.split('/');
  for (const [at, level] of wanted.entries()) {
    if (level === '#') return true;
    if (at >= levels.length || (level !== '+' && level !== levels[at])) return false;
  }
  return wanted.length === levels.length;
}

/** Reason codes after which a client that was refused or disconnected connects again: the cause may end without a person. */
const PASSING: ReadonlySet<number> = new Set([0x88, 0x89, 0x8b, 0x8d, 0x96, 0x97, 0x9f, 0xa0]);

/** True if a lost connection is opened again. @param code reason code of the broker; undefined: it has sent none */
export function isPassing(code: number | undefined): boolean {
  return code === undefined || PASSING.has(code);
}

const DELAYS_MS = [1_000, 2_000, 5_000, 10_000, 30_000];

/** The delay before an attempt to connect again. @param attempt from 1 */
export function delayBefore(attempt: number): number {
  return DELAYS_MS[Math.min(attempt, DELAYS_MS.length) - 1];
}
