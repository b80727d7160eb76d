/** The parts that plugins extend: sources, sinks or the functions of statements. */
export type PluginType = 'sources' | 'sinks' | 'functions';

/** The types of plugins. */
export const PLUGIN_TYPES: readonly PluginType[] = ['sources', 'sinks', 'functions'];

/** The input for installing a plugin. */
export interface PluginInput {
  /** The name that the library exports, with a lower-case first letter: `random` for `Random`. */
  readonly name: string;
  /** URL of the archive, which ends with `.zip`: http, https, or file for a path of this machine. */
  readonly file: string;
  /** For plugins of functions: the exported functions of the library. Default: one with the name of the plugin. */
  readonly functions?: readonly string[];
  /** Arguments of `install.sh`. Default: none. */
  readonly shellParas?: readonly string[];
}

/** An installed plugin. */
export interface PluginDescription {
  /** The name of the plugin. */
  readonly name: string;
  /**
   * The version in the name of the library: `1.0.0` of `Random@v1.0.0.so`; '' if it has none; `$deleted` after a
   * deletion, until the service restarts.
   */
  readonly version: string;
  /** The list of functions, for plugins of functions that have one. */
  readonly functions?: readonly string[];
}

/** A function of a plugin. */
export interface PluginFunction {
  /** The name of the function. */
  readonly name: string;
  /** The name of the plugin. */
  readonly plugin: string;
}

/** A function in JavaScript, for `ScriptsApi`. */
export interface ScriptInput {
  /** The name of the function, which the script must define: a JavaScript identifier. */
  readonly id: string;
  /** A description. Default ''. */
  readonly description?: string;
  /** The code, at most 256 KB: `function area(x, y) { return x * y; }`. */
  readonly script: string;
  /** True for an aggregate: each parameter is an array with the values of the rows of a group. Default false. */
  readonly isAgg?: boolean;
}

/** A function in JavaScript, with all fields. */
export type ScriptDescription = Required<ScriptInput>;

/** The number of calls of a function in JavaScript that limits have ended, since the start of the process. */
export interface ScriptCounters {
  /** Calls of the function. */
  readonly calls: number;
  /** Calls that took longer than `scriptTime`. */
  readonly timeouts: number;
  /** Calls that failed for another reason, such as too much memory or an error of the script. */
  readonly failures: number;
}

/**
 * Functions in JavaScript, which run in a separate interpreter: without access to Node, to files or to the network,
 * with limits of time and memory. Running rules keep a replaced or deleted function until they are started again.
 *
 * Errors of all calls that change something: BrokerError PLUGINS_STATE_FAILED; StateError PLUGINS_BUSY, PLUGINS_CLOSED.
 */
export interface ScriptsApi {
  /**
   * @throws InvalidInput SCRIPT_INVALID, with line and column where the interpreter knows them; StateError FUNCTION_EXISTS
   *   (`function name area already exists`), SCRIPTS_FULL; BrokerError PACKAGE_MISSING: `quickjs-emscripten` is not installed
   */
  create(input: ScriptInput): Promise<ScriptDescription>;
  /**
   * Replace a function, or create it.
   * @throws errors of `create`
   */
  replace(input: ScriptInput): Promise<ScriptDescription>;
  /** The names, sorted. */
  list(): Promise<string[]>;
  /** @throws NotFound SCRIPT_NOT_FOUND (`not found`) */
  get(id: string): Promise<ScriptDescription>;
  /** @throws NotFound SCRIPT_NOT_FOUND (`not found`) */
  delete(id: string): Promise<void>;
  /** @throws NotFound SCRIPT_NOT_FOUND (`not found`) */
  counters(id: string): Promise<ScriptCounters>;
}

/**
 * The plugins of the stream service. A plugin runs with the rights of the process: anyone who may install one has all
 * rights of the process.
 *
 * The message of an error is the part of the REST message behind its prefix: `invalid name random: duplicate`. Errors
 * of all calls that change something: BrokerError PLUGINS_STATE_FAILED (the list cannot be written); StateError
 * PLUGINS_BUSY (100 changes are queued), PLUGINS_CLOSED.
 */
export interface PluginsApi {
  /**
   * Install a plugin and define what it exports. After a failure nothing is left behind.
   * @throws InvalidInput PLUGIN_NAME_INVALID (`invalid name : should not be empty`), PLUGIN_FILE_INVALID
   * (`invalid uri URI`), PLUGIN_FUNCTIONS_INVALID, PLUGIN_INPUT_INVALID (another field has the wrong type); StateError
   * PLUGIN_EXISTS (`invalid name random: duplicate`), PLUGIN_DELETED
   * (`invalid name random: the plugin is marked as deleted but ...`), FUNCTION_EXISTS
   * (`function name F already exists`), PLUGINS_FULL; BrokerError PLUGIN_DOWNLOAD_FAILED
   * (`fail to download file URI: CAUSE`), PLUGIN_ARCHIVE_INVALID (`fail to install plugin: invalid zip file: CAUSE`),
   * PLUGIN_INSTALL_FAILED (`fail to install plugin: exit status N`, or the reason why the library cannot be loaded or
   * used), PLUGIN_SCRIPT_REFUSED (`installScripts` is false), PACKAGE_MISSING (`yauzl` or `yaml` is not installed)
   */
  create(type: PluginType, input: PluginInput): Promise<PluginDescription>;
  /**
   * Replace a plugin by another archive at once. Running rules keep the old code until they are started again. After a
   * failure the old plugin is kept. Without a list of functions, the old list is kept.
   * @throws errors of `create`, except PLUGIN_EXISTS; NotFound PLUGIN_NOT_FOUND (`not found`)
   */
  update(type: PluginType, input: PluginInput): Promise<PluginDescription>;
  /** The names, including those of deleted plugins that are still active. */
  list(type: PluginType): Promise<string[]>;
  /** @throws NotFound PLUGIN_NOT_FOUND (`not found`) */
  get(type: PluginType, name: string): Promise<PluginDescription>;
  /**
   * Delete a plugin. It stays active until the stream service or the process restarts.
   * @param options `restart`: stop the stream service; `broker.streams.start()` or a restart of the process starts it
   * again
   * @throws NotFound PLUGIN_NOT_FOUND (`invalid name x: not exist`); StateError PLUGIN_DELETED: it is already deleted
   */
  delete(
    type: PluginType,
    name: string,
    options?: {
      /** Stop the stream service, so that the plugin is no longer active. Default false. */
      readonly restart?: boolean;
    }
  ): Promise<void>;
  /** The functions of plugins, sorted by name. */
  udfs(): Promise<string[]>;
  /** @throws NotFound FUNCTION_NOT_FOUND (`not found`) */
  udf(name: string): Promise<PluginFunction>;
  /**
   * Set the list of functions of a plugin.
   * @throws NotFound PLUGIN_NOT_FOUND (`not found`); InvalidInput PLUGIN_FUNCTIONS_INVALID (`property 'functions' must not be empty`, or the library
   *   does not export one); StateError FUNCTION_EXISTS (`function name F already exists`), PLUGIN_DELETED
   */
  register(plugin: string, functions: readonly string[]): Promise<void>;
  /**
   * The plugins that the hosts of the option `pluginHosts` offer for this machine: their addresses by name. Of equal
   * names, the first host wins.
   * @throws InvalidInput PLUGIN_HOSTS_MISSING (`Invalid configruation for plugin host in kuiper.yaml.`); BrokerError
   * PLUGIN_HOST_FAILED (`Cannot fetch plugin list from URL, with status error: N`, or the reason why it cannot be
   * reached)
   */
  prebuild(type: PluginType): Promise<Record<string, string>>;
  /** Functions in JavaScript. */
  readonly scripts: ScriptsApi;
}
