import { BrokerError, InvalidInput, NotFound, StateError } from 'embermq';
import type {
  PluginDescription,
  PluginInput,
  PluginsApi,
  PluginType,
  ScriptInput
} from '../../adapters/streams-plugins/index.ts';

/** Errors by the name of the plugin that is created. */
const FAILING: Readonly<Record<string, () => Error>> = {
  '': () => new InvalidInput('PLUGIN_NAME_INVALID', 'name', 'a name', '', 'invalid name : should not be empty'),
  gone: () =>
    new StateError(
      'PLUGIN_DELETED',
      'invalid name gone: the plugin is marked as deleted but Kuiper is not restarted for the change to take effect yet'
    ),
  away: () => new BrokerError('PLUGIN_DOWNLOAD_FAILED', 'fail to download file http://a/b.zip: not there'),
  broken: () =>
    new BrokerError(
      'PLUGIN_ARCHIVE_INVALID',
      'fail to install plugin: invalid zip file: so file or conf file is missing'
    ),
  script: () => new BrokerError('PLUGIN_INSTALL_FAILED', 'fail to install plugin: exit status 1')
};

/** Plugins that are names only. */
export class FakePlugins implements PluginsApi {
  /** The calls of the service. */
  readonly stops: string[] = [];
  readonly #plugins = new Map<string, PluginDescription>();
  readonly #scripts = new Map<string, Required<ScriptInput>>();

  async create(type: PluginType, { name, file, functions }: PluginInput): Promise<PluginDescription> {
    const failing = Object.hasOwn(FAILING, name) ? FAILING[name] : undefined;
    if (failing !== undefined) throw failing();
    if (!file.endsWith('.zip'))
      throw new InvalidInput('PLUGIN_FILE_INVALID', 'file', 'a URL', file, `invalid uri ${file}`);
    if (this.#plugins.has(`${type}/${name}`)) throw new StateError('PLUGIN_EXISTS', `invalid name ${name}: duplicate`);
    const made = { name, version: '1.0.0', ...(functions === undefined ? {} : { functions }) };
    this.#plugins.set(`${type}/${name}`, made);
    return made;
  }

  async update(type: PluginType, { name }: PluginInput): Promise<PluginDescription> {
    return this.get(type, name);
  }

  async list(type: PluginType): Promise<string[]> {
    return [...this.#plugins.keys()].filter((key) => key.startsWith(`${type}/`)).map((key) => key.split('/')[1]);
  }

  async get(type: PluginType, name: string): Promise<PluginDescription> {
    const found = this.#plugins.get(`${type}/${name}`);
    if (found === undefined) throw new NotFound('PLUGIN_NOT_FOUND', 'not found');
    return found;
  }

  async delete(
    type: PluginType,
    name: string,
    { restart = false }: { readonly restart?: boolean } = {}
  ): Promise<void> {
    if (!this.#plugins.delete(`${type}/${name}`))
      throw new NotFound('PLUGIN_NOT_FOUND', `invalid name ${name}: not exist`);
    if (restart) this.stops.push(name);
  }

  async udfs(): Promise<string[]> {
    return [...this.#plugins.values()].flatMap(({ functions = [] }) => functions);
  }

  async udf(name: string) {
    const found = [...this.#plugins.values()].find(({ functions }) => functions?.includes(name));
    if (found === undefined) throw new NotFound('FUNCTION_NOT_FOUND', 'not found');
    return { name, plugin: found.name };
  }

  async register(plugin: string, functions: readonly string[]): Promise<void> {
    const found = await this.get('functions', plugin);
    if (functions.length === 0)
      throw new InvalidInput(
        'PLUGIN_FUNCTIONS_INVALID',
        'functions',
        'names',
        functions,
        "property 'functions' must not be empty"
      );
    if (functions.includes('abs')) throw new StateError('FUNCTION_EXISTS', 'function name abs already exists');
    this.#plugins.set(`functions/${plugin}`, { ...found, functions });
  }

  async prebuild(type: PluginType): Promise<Record<string, string>> {
    if (type === 'sinks')
      throw new InvalidInput(
        'PLUGIN_HOSTS_MISSING',
        'pluginHosts',
        'hosts',
        '',
        'Invalid configruation for plugin host in kuiper.yaml.'
      );
    return { file: 'https://a/file_arm64.zip' };
  }

  readonly scripts: PluginsApi['scripts'] = {
    create: async (input) => {
      if (this.#scripts.has(input.id))
        throw new StateError('FUNCTION_EXISTS', `function name ${input.id} already exists`);
      return this.scripts.replace(input);
    },
    replace: async ({ id, description = '', script, isAgg = false }) => {
      const made = { id, description, script, isAgg };
      this.#scripts.set(id, made);
      return made;
    },
    list: async () => [...this.#scripts.keys()],
    get: async (id) => {
      const found = this.#scripts.get(id);
      if (found === undefined) throw new NotFound('SCRIPT_NOT_FOUND', 'not found');
      return found;
    },
    delete: async (id) => {
      if (!this.#scripts.delete(id)) throw new NotFound('SCRIPT_NOT_FOUND', 'not found');
    },
    counters: async () => ({ calls: 0, timeouts: 0, failures: 0 })
  };
}
