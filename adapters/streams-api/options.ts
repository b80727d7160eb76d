import { type OptionValues, optionField as row } from '../../lib/adapter.ts';
import { type Duration, InvalidInput, type Size } from '../../lib/index.ts';
import { type Credentials, MOUNT_OPTIONS, prefixRow, readMountOptions } from '../rest/index.ts';
import type { PluginsApi } from '../streams-plugins/index.ts';

/** Options of `streamsApi`. */
export interface StreamsApiOptions {
  /** The path under which the interface is mounted, or several. Default: none, `/rules` and the like. */
  prefix?: string | readonly string[];
  /** The answer to unknown paths below the prefix: 404 (default), or none (`next`): they are left to the host app. */
  unmatched?: 404 | 'next';
  /** The bodies of errors, unless the header `Accept` of the request asks for JSON: text as in 1.x of the original (default), or JSON. */
  errors?: 'text' | 'json';
  /** The credentials that the interface accepts. Default `applications`: the applications of the broker. A function of the app also gets bearer tokens, with the id ''. */
  credentials?: Credentials;
  /** Proxies in front of the server: IP addresses, networks such as `10.0.0.0/8`, or `unix`. Default: none. */
  trustedProxies?: string | readonly string[];
  /** Names of the server, for the check of the `Host` header with `credentials: 'none'`. Default: none. */
  hosts?: string | readonly string[];
  /**
   * Origins such as `https://app.example` whose pages may use the interface; `any`: all, as in the original. They get
   * CORS headers. Default: none, and requests that change something are refused if their `Origin` header is not that of
   * the server.
   */
  origins?: string | readonly string[];
  /** The plugins. Default: none, and the operations on them are answered with 404. */
  plugins?: PluginsApi;
  /** Maximum size of a request body. Default 1 MB. */
  maxBodyBytes?: Size;
  /** Maximum depth of nested objects and arrays in a body. Default 64. */
  maxDepth?: number;
  /** Time for reading a request body. Default 15 s. */
  bodyTimeout?: Duration;
}

const STREAMS_OPTIONS = {
  prefix: prefixRow(['']),
  errors: row('choice', 'text' as 'text' | 'json', 'The bodies of errors.', { choices: ['text', 'json'] }),
  ...MOUNT_OPTIONS,
  plugins: row('object', undefined as PluginsApi | undefined, 'The plugins.', {
    check: (value, field) => {
      if (typeof value === 'object' && value !== null) return value as PluginsApi;
      throw new InvalidInput('OPTION_INVALID', field, 'the plugins that streamPlugins() has made', value);
    }
  }),
  maxDepth: row('integer', 64, 'Maximum depth of a body.', { min: 1, max: 1_000 })
};

/** The checked options. */
export type StreamsSettings = OptionValues<typeof STREAMS_OPTIONS>;

/** Read the options of `streamsApi`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readStreamsOptions(given: StreamsApiOptions): StreamsSettings {
  return readMountOptions(STREAMS_OPTIONS, given, 'streamsApi');
}
