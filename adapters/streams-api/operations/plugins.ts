// A row for each operation. Faults of plugins have the documented sentences already.
// Plugins run code with the rights of the process, so rows that install or define something have `loadsCode`.

import { Fault } from '../../rest/index.ts';
import { componentOf, flag, listOf, objectOf, optional, recordOf, text } from '../../rest/kit/index.ts';
import { PLUGIN_TYPES, type PluginInput, type PluginType } from '../../streams-plugins/index.ts';
import { faultOf } from '../faults.ts';
import { type Operation, operation } from '../operation.ts';

const FUNCTIONS = listOf(text(), 'The functions that the library exports');
const FIELDS = {
  file: text('URL of the archive (http, https or file), which ends with .zip'),
  functions: optional(FUNCTIONS),
  shellParas: optional(listOf(text(), 'Arguments of install.sh'))
};
const NEW = objectOf({ name: text('The name'), ...FIELDS });
const PLUGIN = componentOf('Plugin', 'A plugin', {
  name: text('The name'),
  version: text('The version; "$deleted" after a drop, until the service restarts'),
  functions: optional(listOf(text(), 'The functions that it defines'))
});
const SCRIPT = objectOf({
  id: text('The name of the function, which the script defines'),
  description: optional(text('A description')),
  script: text('The code: function area(x, y) { return x * y; }'),
  isAgg: optional(flag('True for an aggregate: parameters are arrays', { default: false }))
});
const SCRIPT_ROW = componentOf('Script', 'A function in JavaScript', {
  id: text('The name of the function'),
  description: text('A description'),
  script: text('The code'),
  isAgg: flag('True for an aggregate: parameters are arrays')
});

/** @throws Fault if the type is unknown, as for an unknown path */
function typeOf(type: string): PluginType {
  const found = PLUGIN_TYPES.find((one) => one === type);
  if (found === undefined) throw new Fault('unknownPath', '404 page not found');
  return found;
}

/** The plugin that a body describes. */
function inputOf(name: string, { file, functions, shellParas }: Omit<PluginInput, 'name'>): PluginInput {
  return {
    name,
    file,
    ...(functions === undefined ? {} : { functions }),
    ...(shellParas === undefined ? {} : { shellParas })
  };
}

function notJson(_body: string, reason: string, { type }: Readonly<Record<string, string>>): string {
  return `Invalid body: Error decoding the ${type} plugin json: ${reason}`;
}

const FLAG = optional(text('1: stop the stream service, so that it takes effect'));

/** Plugins of sources, sinks and functions. */
const PLUGINS: readonly Operation[] = [
  operation({
    name: 'createPlugin',
    method: 'POST',
    path: '/plugins/:type',
    ctl: 'stream add-plugin TYPE NAME=name URL=file',
    descr: 'Install a plugin of the type sources, sinks or functions',
    errorPrefix: ({ type }) => `${type} plugins create command error`,
    body: NEW,
    notJson,
    status: 201,
    loadsCode: true,
    run: async ({ plugins }, { params, body }) => {
      const type = typeOf(params.type);
      await plugins.create(type, inputOf(body.name, body));
      return `${type} plugin ${body.name} is created`;
    }
  }),
  operation({
    name: 'listPlugins',
    method: 'GET',
    path: '/plugins/:type',
    ctl: { 'stream plugins TYPE': 'name version functions' },
    descr: 'List the names of the plugins of a type, also of those that are dropped but still in effect',
    errorPrefix: ({ type }) => `${type} plugins list command error`,
    data: listOf(text()),
    run: ({ plugins }, { params: { type } }) => plugins.list(typeOf(type))
  }),
  operation({
    name: 'describePlugin',
    method: 'GET',
    path: '/plugins/:type/:name',
    ctl: 'stream plugins TYPE',
    descr: 'Describe a plugin',
    errorPrefix: ({ type, name }) => `describe ${type} plugin ${name} error`,
    data: PLUGIN,
    run: async ({ plugins }, { params: { type, name } }) => {
      const { name: shown, version, functions } = await plugins.get(typeOf(type), name);
      return { name: shown, version, ...(functions === undefined ? {} : { functions }) };
    }
  }),
  operation({
    name: 'updatePlugin',
    method: 'PUT',
    path: '/plugins/:type/:name',
    descr: 'Replace a plugin by another archive',
    errorPrefix: ({ type }) => `${type} plugins update command error`,
    body: objectOf({ name: optional(text('The same as in the path')), ...FIELDS }),
    notJson,
    loadsCode: true,
    run: async ({ plugins }, { params, body }) => {
      const type = typeOf(params.type);
      if (body.name !== undefined && body.name !== params.name)
        throw new Fault('refused', `invalid name ${body.name}: the path has ${params.name}`);
      await plugins.update(type, inputOf(params.name, body));
      return `${type} plugin ${params.name} is updated`;
    }
  }),
  operation({
    name: 'dropPlugin',
    method: 'DELETE',
    path: '/plugins/:type/:name',
    ctl: 'stream drop-plugin TYPE NAME --force=restart',
    descr: 'Drop a plugin, which takes effect when the stream service restarts',
    errorPrefix: ({ type, name }) => `delete ${type} plugin ${name} error`,
    query: objectOf({ restart: FLAG, stop: FLAG }),
    run: async ({ plugins }, { params: { type, name }, query: { restart, stop } }) => {
      const isStopped = restart === '1' || stop === '1';
      const found = typeOf(type);
      await plugins.delete(found, name, { restart: isStopped });
      const deleted = `${found} plugin ${name} is deleted and Kuiper`;
      return isStopped ? `${deleted} will be stopped` : `${deleted} must restart for the change to take effect.`;
    }
  }),
  operation({
    name: 'prebuiltPlugins',
    method: 'GET',
    path: '/plugins/:type/prebuild',
    descr: 'The plugins of a type that can be downloaded, with their addresses',
    errorPrefix: ({ type }) => `${type} plugins prebuild command error`,
    data: recordOf(text()),
    run: ({ plugins }, { params: { type } }) => plugins.prebuild(typeOf(type))
  })
];

/** The functions of plugins. */
const UDFS: readonly Operation[] = [
  operation({
    name: 'registerFunctions',
    method: 'POST',
    path: '/plugins/functions/:plugin_name/register',
    ctl: 'stream register PLUGIN FUNCTIONS=functions',
    descr: 'Register the functions that a plugin exports',
    errorPrefix: ({ plugin_name: name }) => `function plugins ${name} regiser functions error`,
    body: objectOf({ functions: FUNCTIONS }),
    notJson: (_body, reason, { plugin_name: name }) =>
      `Invalid body: Error decoding the functions of plugin ${name}: ${reason}`,
    first: ({ functions }) => {
      if (functions === undefined || functions === null)
        throw new Fault('refused', "property 'functions' must not be empty");
    },
    loadsCode: true,
    faultOf: (error, { params: { plugin_name: name } }) => {
      if (faultOf(error)?.kind !== 'notFound') return undefined;
      return new Fault('notFound', `register functions plugin ${name} error: not found`, undefined, { isWhole: true });
    },
    run: async ({ plugins }, { params: { plugin_name: name }, body: { functions } }) => {
      await plugins.register(name, functions);
      return `function plugin ${name} function list is registered`;
    }
  }),
  operation({
    name: 'listFunctions',
    method: 'GET',
    path: '/plugins/udfs',
    ctl: { 'stream functions': 'name plugin' },
    descr: 'List the names of the functions of plugins',
    errorPrefix: 'udfs list command error',
    data: listOf(text()),
    run: ({ plugins }) => plugins.udfs()
  }),
  operation({
    name: 'describeFunction',
    method: 'GET',
    path: '/plugins/udfs/:name',
    ctl: 'stream functions',
    descr: 'The plugin that defines a function',
    errorPrefix: ({ name }) => `describe function ${name} error`,
    data: componentOf('PluginFunction', 'The plugin that defines a function', {
      name: text('The name of the function'),
      plugin: text('The name of the plugin')
    }),
    run: async ({ plugins }, { params: { name } }) => {
      const found = await plugins.udf(name);
      return { name: found.name, plugin: found.plugin };
    }
  })
];

const NOT_SCRIPT = (_body: string, reason: string) => `Invalid body: Error decoding the function json: ${reason}`;

/** Functions in JavaScript. */
const SCRIPTS: readonly Operation[] = [
  operation({
    name: 'createScript',
    method: 'POST',
    path: '/udf/javascript',
    descr: 'Create a function in JavaScript',
    errorPrefix: 'javascript function create command error',
    body: SCRIPT,
    notJson: NOT_SCRIPT,
    status: 201,
    loadsCode: true,
    run: async ({ plugins }, { body }) => {
      await plugins.scripts.create(body);
      return `javascript function ${body.id} is created`;
    }
  }),
  operation({
    name: 'listScripts',
    method: 'GET',
    path: '/udf/javascript',
    descr: 'List the names of the functions in JavaScript',
    errorPrefix: 'javascript functions list command error',
    data: listOf(text()),
    run: ({ plugins }) => plugins.scripts.list()
  }),
  operation({
    name: 'describeScript',
    method: 'GET',
    path: '/udf/javascript/:id',
    descr: 'Describe a function in JavaScript',
    errorPrefix: ({ id }) => `describe javascript function ${id} error`,
    data: SCRIPT_ROW,
    run: async ({ plugins }, { params }) => {
      const { id, description, script, isAgg } = await plugins.scripts.get(params.id);
      return { id, description, script, isAgg };
    }
  }),
  operation({
    name: 'replaceScript',
    method: 'PUT',
    path: '/udf/javascript/:id',
    descr: 'Replace a function in JavaScript, or create it',
    errorPrefix: 'javascript function update command error',
    body: objectOf({
      ...SCRIPT.properties,
      id: optional(text('The same as in the path'))
    }),
    notJson: NOT_SCRIPT,
    loadsCode: true,
    run: async ({ plugins }, { params: { id }, body }) => {
      if (body.id !== undefined && body.id !== id)
        throw new Fault('refused', `invalid id ${body.id}: the path has ${id}`);
      await plugins.scripts.replace({ ...body, id });
      return `javascript function ${id} is updated`;
    }
  }),
  operation({
    name: 'dropScript',
    method: 'DELETE',
    path: '/udf/javascript/:id',
    descr: 'Drop a function in JavaScript',
    errorPrefix: ({ id }) => `delete javascript function ${id} error`,
    run: async ({ plugins }, { params: { id } }) => {
      await plugins.scripts.delete(id);
      return `javascript function ${id} is deleted`;
    }
  })
];

/** Plugins and what they define. */
export const PLUGIN_OPERATIONS: readonly Operation[] = [...UDFS, ...PLUGINS, ...SCRIPTS];
