import type { SinkType, SourceType, StreamFunction } from '../../lib/adapter.ts';
import type { StreamProperties } from '../../lib/index.ts';
import type { PluginType } from './api.ts';
import { upperFirst } from './content.ts';
import { installError, messageOf } from './errors.ts';
import { functionOf } from './function-object.ts';
import type { Library, PluginPlace } from './library.ts';
import { sinkOf } from './sink-object.ts';
import { sourceOf } from './source-object.ts';

/** The definition of a plugin in the stream service. */
export type Definition =
  | { readonly what: 'source'; readonly name: string; readonly type: SourceType }
  | { readonly what: 'sink'; readonly name: string; readonly type: SinkType }
  | { readonly what: 'function'; readonly name: string; readonly type: StreamFunction };

/**
 * The definitions of a library.
 * @param names the name of the plugin, or for functions the list of their names
 * @param sections properties of a source, from its YAML file
 * @throws BrokerError PLUGIN_INSTALL_FAILED
 */
export async function definitionsOf(
  type: PluginType,
  library: Library,
  names: readonly string[],
  place: PluginPlace,
  sections: Readonly<Record<string, StreamProperties>>
): Promise<Definition[]> {
  const definitions: Definition[] = [];
  for (const name of names) {
    const exported = library.find(name);
    if (exported === undefined || exported === null)
      throw installError(`the library exports neither "${upperFirst(name)}" nor "${name}"`);
    try {
      if (type === 'sources')
        definitions.push({ what: 'source', name, type: await sourceOf(name, exported, place, sections) });
      else if (type === 'sinks') definitions.push({ what: 'sink', name, type: await sinkOf(name, exported, place) });
      else definitions.push({ what: 'function', name, type: functionOf(name, exported) });
    } catch (error) {
      throw installError(`"${upperFirst(name)}" cannot be used: ${messageOf(error)}`, { cause: error });
    }
  }
  return definitions;
}
