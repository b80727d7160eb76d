import { type OptionValues, readOptions, optionRow as row } from '../../lib/adapter.ts';
import { type Duration, InvalidInput, type Size } from '../../lib/index.ts';
import {
  type BrowserSettings,
  type Credentials,
  GUARD_OPTIONS,
  hostsFor,
  prefixRow,
  readOrigins
} from '../rest/index.ts';
import type { PluginsApi } from '../streams-plugins/index.ts';

/** Options of `streamsApi`. */
export interface StreamsApiOptions {
  /** The path under which the interface is mounted, or several. Default: none, `/rules` and the like. */
  prefix?: string | readonly string[];
  /** What happens to other paths below the prefix: they are answered with 404 (default), or left to the host app (`next`). */
  unmatched?: 404 | 'next';
  /** The bodies of errors, unless the header `Accept` of the request asks for JSON: text as in 1.x of the original (default), or JSON. */
  errors?: 'text' | 'json';
  /** The credentials that the interface accepts. Default `applications`: the applications of the broker. A function of the app also gets bearer tokens, with the id ''. */
  credentials?: Credentials;
  /** Proxies in front of the server: IP addresses, networks such as `10.0.0.0/8`, or `unix`. Default: none. */
  trustedProxies?: string | readonly string[];
  /** Names by which the server is reached, for the check of the `Host` header with `credentials: 'none'`. Default: none. */
  hosts?: string | readonly string[];
  /**
   * Origins such as `https://app.example` whose pages may use the interface; `any`: all, as in the original. They get CORS headers. Default:
   * none, and requests for changes with another `Origin` header than that of the server are refused.
   */
  origins?: string | readonly string[];
  /** The plugins. Default: none, and the operations on them are answered with 404. */
  plugins?: PluginsApi;
  /** Greatest size of a request body. Default 1 MB. */
  maxBodyBytes?: Size;
  /** Most levels of objects and arrays inside each other in a body. Default 64. */
  maxDepth?: number;
  /** Time from the first look at a request body to its end. Default 15 s. */
  bodyTimeout?: Duration;
}

const STREAMS_OPTIONS = {
  prefix: prefixRow(['']),
  unmatched: row('object', 404 as 404 | 'next', 'What happens to paths that the interface does not have.', {
    check: (value, field) => {
      if (value === 404 || value === 'next') return value;
      throw new InvalidInput('OPTION_INVALID', field, '404 or "next"', value);
    }
  }),
  errors: row('choice', 'text' as 'text' | 'json', 'The bodies of errors.', { choices: ['text', 'json'] }),
  ...GUARD_OPTIONS,
  credentials: { ...GUARD_OPTIONS.credentials, default: 'applications' as Credentials },
  origins: row('object', new Set<string>() as BrowserSettings['origins'], 'Origins whose pages may use it.', {
    check: readOrigins
  }),
  plugins: row('object', undefined as PluginsApi | undefined, 'The plugins.', {
    check: (value, field) => {
      if (typeof value === 'object' && value !== null) return value as PluginsApi;
      throw new InvalidInput('OPTION_INVALID', field, 'the plugins that streamPlugins() has made', value);
    }
  }),
  maxBodyBytes: row('size', 1_048_576, 'Greatest size of a request body.', { unit: 'bytes', min: 1 }),
  maxDepth: row('integer', 64, 'Most levels of a body.', { min: 1, max: 1_000 }),
  bodyTimeout: row('duration', 15_000, 'Time for a request body.', { unit: 'ms', min: 1 })
};

/** Options after checks. */
export type StreamsSettings = OptionValues<typeof STREAMS_OPTIONS>;

/** Read the options of `streamsApi`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readStreamsOptions(given: StreamsApiOptions): StreamsSettings {
  const settings = readOptions(STREAMS_OPTIONS, given, 'streamsApi') as unknown as StreamsSettings;
  return { ...settings, hosts: hostsFor(settings) };
}
