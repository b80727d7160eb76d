import { type FieldValues, field, readOptions } from '../../lib/adapter.ts';
import { type Clock, type Duration, InvalidInput, type Size, type StreamsApi } from '../../lib/index.ts';

/** The part of the broker that plugins use; implemented by `Broker`. */
export interface PluginsHost {
  /** The version of the broker. */
  readonly version: string;
  /** The clock of the broker. */
  readonly clock: Clock;
  /** The stream service. */
  readonly streams: Pick<
    StreamsApi,
    'isRunning' | 'createFunction' | 'createSource' | 'createSink' | 'deleteType' | 'beforeStart' | 'stop'
  >;
  /** Stop the broker; for `exitOnPluginDrop`. */
  stop(): Promise<unknown>;
  /** Report an error that has no caller. */
  failed(error: unknown, during: string): void;
}

/** Options of `streamPlugins`. */
export interface PluginOptions {
  /**
   * Folder of the stream service, for example `DATA_DIR/streams`. Plugins are in its folder `plugins`, and their `etc`
   * files in `etc/TYPE/NAME`.
   */
  dataDir: string;
  /**
   * Load libraries that were put manually into the folder `plugins/TYPE`. With false, such a library is reported and
   * not loaded. Default true.
   */
  autoLoad?: boolean;
  /** The name of this option in the report of a library that is not loaded. Default `autoLoad`. */
  autoLoadName?: string;
  /** Run `install.sh` of archives. With false, an archive that has one is refused; JavaScript in an archive still runs. Default true. */
  installScripts?: boolean;
  /** Servers that offer plugins, as a list or separated by commas. Default: none. */
  pluginHosts?: string | readonly string[];
  /** The version in the path of these offers: `HOST/kuiper-plugins/VERSION/OS/TYPE`. Default: that of the broker. */
  pluginVersion?: string;
  /** The operating system in that path. Default `debian`. */
  pluginOs?: string;
  /**
   * End the process with code 100, after the broker has stopped, one second after a plugin was deleted with `restart`.
   * Default false.
   */
  exitOnPluginDrop?: boolean;
  /** Called when a plugin was deleted with `restart` and the stream service has stopped. */
  onStop?: (plugin: {
    /** The type of the plugin. */
    readonly type: string;
    /** The name of the plugin. */
    readonly name: string;
  }) => void;
  /**
   * Receives the arguments of `log()` in functions in JavaScript, and the reasons why an archive cannot be read, which
   * are not sent to callers. Default: discarded.
   */
  onLog?: (name: string, text: string) => void;
  /** Maximum number of plugins of all types. Default 1000. */
  maxPlugins?: number;
  /** Maximum size of an archive. Default 64 MB. */
  maxArchiveSize?: Size;
  /** Maximum size of all files of an archive. Default 256 MB. */
  maxUnpackedSize?: Size;
  /** Maximum number of files and folders of an archive. Default 2000. */
  maxEntries?: number;
  /** Time limit for downloading an archive. Default 5 minutes. */
  downloadTimeout?: Duration;
  /** Maximum number of redirects of a download. Default 5. */
  maxRedirects?: number;
  /** Time limit for `install.sh`, and for loading a library. Default 5 minutes. */
  installTimeout?: Duration;
  /** Maximum number of functions in JavaScript. Default 100. */
  maxScripts?: number;
  /**
   * Time limit of one call of a function in JavaScript. Default 100 ms. It is checked every 10,000 steps of the
   * interpreter, so a loop over slow operations, such as those on very long strings, may take longer.
   */
  scriptTime?: Duration;
  /** Memory limit of each function in JavaScript, including the interpreter; at least 17 MB. Default 32 MB. */
  scriptMemory?: Size;
}

/** The options of plugins. */
export const PLUGIN_OPTIONS = {
  dataDir: field('string', '', 'Folder of the stream service, in which plugins are kept.', {
    max: 4096,
    check: checkPath
  }),
  autoLoad: field('boolean', true, 'Load libraries that were put manually into the folder of plugins.'),
  autoLoadName: field('string', 'autoLoad', 'Name of this option in the report of a library that is not loaded.'),
  installScripts: field(
    'boolean',
    true,
    'Run install.sh of archives. With false, an archive that has one is refused; JavaScript in an archive still runs.'
  ),
  pluginHosts: field('object', [] as readonly string[], 'Servers that offer plugins.', { check: readHosts }),
  pluginVersion: field('string', undefined as string | undefined, 'The version in the path of these offers.', {
    check: checkSegment
  }),
  pluginOs: field('string', 'debian', 'The operating system in that path.', { check: checkSegment }),
  exitOnPluginDrop: field('boolean', false, 'End the process with code 100 after a plugin was deleted with restart=1.'),
  onStop: field(
    'function',
    undefined as PluginOptions['onStop'],
    'Called when such a deletion has stopped the service.'
  ),
  onLog: field(
    'function',
    undefined as PluginOptions['onLog'],
    'Receives what functions in JavaScript log, and why an archive cannot be read.'
  ),
  maxPlugins: field('integer', 1000, 'Maximum number of plugins of all types.', { min: 1, max: 100_000 }),
  maxArchiveSize: field('size', 64 * 1024 ** 2, 'Maximum size of an archive.', { min: 1, max: 2 ** 30 }),
  maxUnpackedSize: field('size', 256 * 1024 ** 2, 'Maximum size of all files of an archive.', { min: 1, max: 2 ** 34 }),
  maxEntries: field('integer', 2000, 'Maximum number of files and folders of an archive.', { min: 1, max: 65_535 }),
  downloadTimeout: field('duration', 300_000, 'Time limit for downloading an archive.', { unit: 'ms', min: 1 }),
  maxRedirects: field('integer', 5, 'Maximum number of redirects of a download.', { max: 20 }),
  installTimeout: field('duration', 300_000, 'Time limit for install.sh, and for loading a library.', {
    unit: 'ms',
    min: 1
  }),
  maxScripts: field('integer', 100, 'Maximum number of functions in JavaScript.', { max: 10_000 }),
  scriptTime: field('duration', 100, 'Time limit of one call of a function in JavaScript.', { unit: 'ms', min: 1 }),
  scriptMemory: field(
    'size',
    32 * 1024 ** 2,
    'Memory limit of each function in JavaScript, including the interpreter.',
    {
      min: 17 * 1024 ** 2,
      max: 1024 ** 3
    }
  )
};

/** The checked options. */
export type PluginSettings = FieldValues<typeof PLUGIN_OPTIONS>;

/** Read the options of `streamPlugins`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readPluginOptions(given: PluginOptions): PluginSettings {
  const settings = readOptions(PLUGIN_OPTIONS, given, 'plugins');
  checkPath(settings.dataDir, 'plugins.dataDir');
  return settings;
}

function checkPath(value: unknown, field: string): string {
  if (typeof value !== 'string' || value === '' || value.includes('\0'))
    throw new InvalidInput('OPTION_INVALID', field, 'the path of a folder', value);
  return value;
}

function checkSegment(value: unknown, field: string): string {
  if (!/^[\w.-]{1,64}$/.test(String(value)))
    throw new InvalidInput('OPTION_INVALID', field, '1 to 64 letters, digits, ".", "-" and "_"', value);
  return String(value);
}

function readHosts(value: unknown, field: string): readonly string[] {
  const hosts = (Array.isArray(value) ? value : String(value).split(',')).map((host) => String(host).trim());
  const isGood = (host: string) => URL.canParse(host) && /^https?:\/\//.test(host);
  const wrong = hosts.filter((host) => host !== '').find((host) => !isGood(host));
  if (wrong !== undefined)
    throw new InvalidInput('OPTION_INVALID', field, 'URLs that begin with http:// or https://', wrong);
  return hosts.filter((host) => host !== '').map((host) => host.replace(/\/+$/, ''));
}
