import type { Params } from '../../lib/adapter.ts';
import { InvalidInput } from '../../lib/index.ts';
import { checkUrl, type OutgoingTls, readTlsParams } from '../outgoing/index.ts';
import { headerValue, readHeaders } from './headers.ts';

/** The checked configuration of a resource `web_hook`. */
export interface WebHookSettings {
  readonly url: URL;
  readonly method: string;
  /** Keyed by lower-case names, ready to be sent. */
  readonly headers: Readonly<Record<string, string>>;
  readonly connectMs: number;
  readonly requestMs: number;
  readonly poolSize: number;
  readonly tls: OutgoingTls;
  readonly failsOnStatus: boolean;
  readonly isPersisted: boolean;
  readonly isPublicOnly: boolean;
}

/** The documented defaults. */
const DEFAULTS = {
  method: 'POST',
  connect_timeout: 5,
  request_timeout: 5,
  pool_size: 32,
  content_type: 'application/json'
};

/** Read a configuration that satisfies `WEB_HOOK_PARAMS`. @throws InvalidInput PARAM_INVALID */
export function readWebHookSettings(config: Params): WebHookSettings {
  const given = { ...DEFAULTS, ...config } as typeof DEFAULTS & Params;
  const { pool_size: poolSize, content_type: contentType } = given;
  if (!Number.isInteger(poolSize)) throw new InvalidInput('PARAM_INVALID', 'pool_size', 'a whole number', poolSize);
  const headers = Object.entries({ 'content-type': contentType, ...readHeaders(given.headers) });
  return {
    url: readUrl(given.url),
    method: given.method,
    headers: Object.fromEntries(headers.map(([name, text]) => [name, headerValue(name, text)])),
    connectMs: given.connect_timeout * 1000,
    requestMs: given.request_timeout * 1000,
    poolSize,
    tls: readTlsParams(given, TLS_NAMES, 'web_hook'),
    failsOnStatus: given.fail_on_status !== false,
    isPersisted: given.persisted === true,
    isPublicOnly: given.public_only === true
  };
}

function readUrl(given: unknown): URL {
  if (String(given).includes('${')) {
    const expected = 'a URL without placeholders; they are possible in "path" of the action';
    throw new InvalidInput('PARAM_INVALID', 'url', expected, given);
  }
  return asParam(() => checkUrl(given, 'url'));
}

const TLS_NAMES = { ca: 'ca', cert: 'cert', key: 'key', passphrase: 'passphrase', servername: 'servername' };

/**
 * Convert errors of options to errors of parameters.
 * @throws InvalidInput PARAM_INVALID
 */
function asParam<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    const { field, expected, got, message } = error;
    throw new InvalidInput('PARAM_INVALID', field, expected, got, message);
  }
}
