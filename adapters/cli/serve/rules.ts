import { InvalidInput, type RulesOptions } from '../../../lib/index.ts';
import type { Shell } from '../command.ts';
import { filledOptions } from '../config-values.ts';

/** Parts of the option `rules` that need code. */
const IN_CODE = ['actions', 'functions'] as const;

/**
 * Read the object `rules` of the config file: rules, resources, and events that are published as messages.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN, whose message names the place
 */
export async function configuredRules(given: unknown, config: string | undefined, shell: Shell): Promise<RulesOptions> {
  const place = `${config}: rules`;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new InvalidInput('OPTION_INVALID', place, 'an object with "rules" and "resources"', given);
  for (const name of IN_CODE)
    if (name in given)
      throw new InvalidInput('OPTION_UNKNOWN', `${place}.${name}`, 'an option that a config file can contain', name);
  return (await filledOptions(given as Readonly<Record<string, unknown>>, place, shell)).filled as RulesOptions;
}
