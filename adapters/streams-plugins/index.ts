/** Plugins of the stream service: sources, sinks and functions from archives, and functions in JavaScript. */

export type {
  /** @deprecated Use `ScriptCounters`. */
  ScriptCounters as ScriptFigures
} from './api.ts';
export {
  PLUGIN_TYPES,
  type PluginDescription,
  type PluginFunction,
  type PluginInput,
  type PluginsApi,
  type PluginType,
  type ScriptCounters,
  type ScriptDescription,
  type ScriptInput,
  type ScriptsApi
} from './api.ts';
export type { PluginFunctionObject } from './function-object.ts';
export type { PluginPlace } from './library.ts';
export { PLUGIN_OPTIONS, type PluginOptions, type PluginsHost } from './options.ts';
export { type StreamPlugins, streamPlugins } from './plugins.ts';
export type { Scripts as StreamScripts } from './scripts.ts';
export type { PluginSink, PluginSinkContext } from './sink-object.ts';
export type { Consumer, PluginSource, PluginSourceContext } from './source-object.ts';
