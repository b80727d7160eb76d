import { BrokerError, StateError } from '../../lib/index.ts';
import type { Definition } from './definitions.ts';
import { functionExists } from './names.ts';
import type { PluginsHost } from './options.ts';

/**
 * Replace a definition in the stream service. After a failure the previous definition is restored.
 * @throws StateError PLUGIN_EXISTS, FUNCTION_EXISTS: the service has another definition with this name; InvalidInput
 */
export async function redefine(
  streams: PluginsHost['streams'],
  old: readonly Definition[],
  fresh: readonly Definition[]
): Promise<void> {
  const defined: Definition[] = [];
  for (const each of old) await streams.deleteType(each.what, each.type.name);
  try {
    for (const each of fresh) {
      await define(streams, each);
      defined.push(each);
    }
  } catch (error) {
    for (const each of defined) await streams.deleteType(each.what, each.type.name);
    for (const each of old) await define(streams, each);
    throw error;
  }
}

async function define(streams: PluginsHost['streams'], definition: Definition): Promise<void> {
  const { what, name, type } = definition;
  try {
    if (what === 'source') await streams.createSource(type);
    else if (what === 'sink') await streams.createSink(type);
    else await streams.createFunction(type);
  } catch (cause) {
    const code = cause instanceof BrokerError ? cause.code : undefined;
    if (code === 'FUNCTION_EXISTS') throw functionExists(name, cause);
    if (code !== 'SOURCE_EXISTS' && code !== 'SINK_EXISTS') throw cause;
    const error = new StateError('PLUGIN_EXISTS', `invalid name ${name}: duplicate`);
    error.cause = cause;
    throw error;
  }
}
