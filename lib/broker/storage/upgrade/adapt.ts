import type { ResourceDefinition } from '../../../rules/definition.ts';
import { RESOURCES_TABLE } from '../../computing/rules.ts';

/** A table of the broker whose definitions may be replaced. */
interface AdaptedTable extends Iterable<readonly [key: string, value: unknown]> {
  set(key: string, value: unknown): Promise<void>;
}

/**
 * Convert the definitions of a store of an earlier release to the form of this one, before they are used. Nothing is removed.
 *
 * Until 0.2, resources were stored with all defaults, so that nearly all of them have `fail_on_status: false` without having asked for it.
 * @param version of the definitions in the store, see `DEFINITIONS_VERSION`
 */
export async function adaptDefinitions(own: (name: string) => AdaptedTable, version: number): Promise<void> {
  if (version >= 3) return;
  const resources = own(RESOURCES_TABLE);
  for (const [id, value] of [...resources]) {
    const { type, config, ...rest } = value as ResourceDefinition;
    if (type === 'web_hook' && config.fail_on_status === false)
      await resources.set(id, { type, ...rest, config: { ...config, fail_on_status: true } });
  }
}
