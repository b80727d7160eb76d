/** Plugins of the stream service: sources, sinks and functions from archives, and functions in JavaScript. */
export {
  PLUGIN_TYPES,
  type PluginDescription,
  type PluginFunction,
  type PluginInput,
  type PluginsApi,
  type PluginType,
  type ScriptDescription,
  type ScriptFigures,
  type ScriptInput,
  type ScriptsApi
} from './api.ts';
