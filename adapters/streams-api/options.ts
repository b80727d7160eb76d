import { type FieldValues, field } from '../../lib/adapter.ts';
import { InvalidInput } from '../../lib/index.ts';
import { type Credentials, MOUNT_OPTIONS, type MountOptions, prefixRow, readMountOptions } from '../rest/index.ts';
import type { PluginsApi } from '../streams-plugins/index.ts';

/** Options of `streamsApi`. */
export interface StreamsApiOptions extends MountOptions {
  /** The path under which the interface is mounted, or several. Default: none, `/rules` and the like. */
  prefix?: string | readonly string[];
  /**
   * Access control. Default `applications`: the applications of the broker. A function of the app also gets bearer tokens, with the id ''.
   */
  credentials?: Credentials;
  /** The bodies of errors, unless the header `Accept` of the request asks for JSON: text as in 1.x of the original (default), or JSON. */
  errors?: 'text' | 'json';
  /** The plugins. Default: none, and the operations on them are answered with 404. */
  plugins?: PluginsApi;
  /** Maximum depth of nested objects and arrays in a body. Default 64. */
  maxDepth?: number;
}

const STREAMS_OPTIONS = {
  prefix: prefixRow(['']),
  errors: field('choice', 'text' as 'text' | 'json', 'The bodies of errors.', { choices: ['text', 'json'] }),
  ...MOUNT_OPTIONS,
  plugins: field('object', undefined as PluginsApi | undefined, 'The plugins.', {
    check: (value, field) => {
      if (typeof value === 'object' && value !== null) return value as PluginsApi;
      throw new InvalidInput('OPTION_INVALID', field, 'the plugins that streamPlugins() has made', value);
    }
  }),
  maxDepth: field('integer', 64, 'Maximum depth of a body.', { min: 1, max: 1_000 })
};

/** The checked options. */
export type StreamsSettings = FieldValues<typeof STREAMS_OPTIONS>;

/** Read the options of `streamsApi`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readStreamsOptions(given: StreamsApiOptions): StreamsSettings {
  return readMountOptions(STREAMS_OPTIONS, given, 'streamsApi');
}
