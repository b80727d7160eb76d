import {
  checkConnectorName,
  type Defaulted,
  type FieldValues,
  field,
  OUTBOX_OPTIONS,
  readOptions
} from '../../lib/adapter.ts';
import { type Duration, InvalidInput, type OutboxOptions } from '../../lib/index.ts';
import { checkTls, checkUrl, OUTGOING_TLS_OPTIONS, type OutgoingTls } from '../outgoing/index.ts';
import type { PayloadEncoding, WebhookEvent } from './bodies.ts';
import { checkRules, translated, type WebhookRule } from './rules.ts';

/** The body for an event, as returned by JSON.parse. */
export type WebhookBody = Readonly<Record<string, unknown>> & {
  /** The event, such as `client_connected`. */
  readonly action: string;
};

/**
 * Options of `webhook`. One of `url` and `onEvent` is needed. The documented settings `web.hook.api.url`, `web.hook.encode_payload` and
 * `web.hook.rule.<Event>.<Number>` are accepted as well. With `web.hook.api.url`, only events that have a rule are sent: without one, nothing is sent,
 * which becomes an `error` event (`WEBHOOK_WITHOUT_RULES`).
 */
export interface WebhookOptions extends OutgoingTls, Omit<OutboxOptions, 'name' | 'send' | 'settled' | 'batch'> {
  /** The URL to which events are sent with POST. */
  url?: string | URL;
  /**
   * Receives the events instead of a server, in the same order. Errors, and calls that take longer than `timeout`,
   * become an `error` event. It is not called again for the same event.
   */
  onEvent?: (body: WebhookBody, event: WebhookEvent) => unknown;
  /** The name of the webhook, if there are several: letters, digits, `.`, `-` and `_`. Default `default`. */
  name?: string;
  /** The events that are sent, one request for each rule that applies. Default: all events. */
  rules?: readonly WebhookRule[];
  /** The encoding of message payloads. Default `text`: UTF-8. */
  encodePayload?: PayloadEncoding;
  /** Additional headers of each request. */
  headers?: Readonly<Record<string, string>>;
  /**
   * Key for the signature of each request according to the specification Standard Webhooks: `whsec_` and 24 to 64 bytes
   * in Base64, or any string of at least 24 characters. Default: requests are not signed.
   */
  secret?: string;
  /** Maximum number of events in one request. If set, each body is a list of events. Default: one event per request. */
  batch?: number;
  /** Do not send to addresses of this machine and of private networks. Default false. */
  publicOnly?: boolean;
  /** Maximum number of concurrent requests. Default 32. */
  concurrency?: number;
  /** Time limit of a request. Default 5 s. */
  timeout?: Duration;
}

/** The key that signs requests. */
export interface SigningKey {
  /** The bytes of the key. */
  readonly bytes: Buffer;
}

const { concurrency, batch, ...LIMITS } = OUTBOX_OPTIONS;

/** The options of a webhook. */
export const WEBHOOK_OPTIONS = {
  url: field('object', undefined as URL | undefined, 'URL to which events are sent with POST.', { check: checkUrl }),
  onEvent: field('function', undefined as WebhookOptions['onEvent'], 'Receives the events instead of a server.'),
  name: field('string', 'default', 'Name of the webhook, if there are several.', { check: checkConnectorName }),
  rules: field(
    'object',
    undefined as readonly WebhookRule[] | undefined,
    'The events that are sent, one request for each rule that applies. Default: all events.',
    { check: checkRules }
  ),
  encodePayload: field('choice', 'text' as PayloadEncoding, 'Encoding of message payloads.', {
    choices: ['text', 'base64', 'base62']
  }),
  headers: field('object', {} as Readonly<Record<string, string>>, 'Additional headers of each request.', {
    check: checkHeaders
  }),
  secret: field(
    'string',
    undefined as SigningKey | undefined,
    'Key of the signature (Standard Webhooks). Default: no signature.',
    {
      check: checkSecret
    }
  ),
  batch: field(
    'integer',
    0,
    'Maximum number of events in one request; each body is then a list. 0: one event per request.',
    {
      min: 0,
      max: 10_000
    }
  ),
  publicOnly: field('boolean', false, 'Do not send to addresses of this machine and of private networks.'),
  ...LIMITS,
  concurrency: { ...concurrency, default: 32 } as Defaulted<number>,
  ...OUTGOING_TLS_OPTIONS
};

/** The checked options. */
export type WebhookSettings = FieldValues<typeof WEBHOOK_OPTIONS>;

/** Read the options of `webhook`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readWebhookOptions(given: WebhookOptions): WebhookSettings {
  const isObject = typeof given === 'object' && given !== null;
  const { options, hasNoRules } = isObject
    ? translated(given as Record<string, unknown>)
    : { options: given, hasNoRules: false };
  const read = readOptions(WEBHOOK_OPTIONS, options, 'webhook');
  const settings = hasNoRules ? { ...read, rules: [] } : read;
  if ((settings.url === undefined) === (settings.onEvent === undefined))
    throw new InvalidInput('OPTION_INVALID', 'webhook.url', 'one of "url" and "onEvent"', undefined);
  checkTls(settings, 'webhook');
  return settings;
}

/** Headers that each request sets itself. */
const OWN_HEADERS =
  /^(content-length|content-type|transfer-encoding|connection|host|webhook-(id|timestamp|signature))$/i;

function checkHeaders(value: unknown, field: string): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw hidden(field, 'an object with header names and values');
  for (const [name, text] of Object.entries(value)) {
    const isGood =
      /^[\w!#$%&'*+.^`|~-]+$/.test(name) && typeof text === 'string' && !/[^\t\x20-\x7e\x80-\xff]/.test(text);
    const expected = isGood ? 'a header that the webhook does not set' : 'a valid name and value of a header';
    if (!isGood || OWN_HEADERS.test(name)) throw hidden(`${field}.${name}`, expected);
  }
  return { ...(value as Record<string, string>) };
}

function checkSecret(value: unknown, field: string): SigningKey {
  const encoded = typeof value === 'string' && value.startsWith('whsec_') ? value.slice('whsec_'.length) : undefined;
  const key = encoded === undefined ? Buffer.from(String(value)) : Buffer.from(encoded, 'base64');
  const isBase64 = encoded === undefined || /^[A-Za-z0-9+/]+={0,2}$/.test(encoded);
  if (typeof value !== 'string' || !isBase64 || key.length < 24 || key.length > 256)
    throw hidden(field, '"whsec_" and at least 24 bytes in Base64, or a string of at least 24 characters');
  return { bytes: key };
}

/** An error that does not show the value, which may be a secret. */
function hidden(field: string, expected: string): InvalidInput {
  return new InvalidInput('OPTION_INVALID', field, expected, undefined, `${field}: expected ${expected}`);
}
