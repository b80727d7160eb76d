import { isDeepStrictEqual } from 'node:util';
import { keepSecrets } from '../base/secrets.ts';
import type { ActionDefinition } from './definition.ts';
import type { ActionState, Params } from './types.ts';

/** The current actions of a rule. */
interface Present {
  readonly definitions: readonly ActionDefinition[];
  /** The actions as interfaces show them, with `******` for secrets. */
  readonly states: readonly ActionState[];
}

/**
 * The actions of a change. If they equal the actions as shown, they are the current ones, with their ids and counters.
 * Otherwise, `******` stands for the secret of the current action in the same place, if it has the same name.
 * @param isKnown tells whether an action type exists
 */
export function keptActions(
  given: readonly ActionDefinition[],
  { definitions, states }: Present,
  isKnown: (name: string) => boolean
): readonly ActionDefinition[] {
  if (isDeepStrictEqual(given.map(contentOf), states.map(contentOf))) return definitions;
  return withSecrets(given, definitions, isKnown);
}

function withSecrets(
  given: readonly ActionDefinition[],
  present: readonly ActionDefinition[],
  isKnown: (name: string) => boolean
): ActionDefinition[] {
  return given.map((action, at) => {
    const before = present[at];
    if (before?.name !== action.name || !isKnown(action.name)) return action;
    const params = keepSecrets(action.params, before.params) as Params;
    return { ...action, params, fallbacks: withSecrets(action.fallbacks, before.fallbacks, isKnown) };
  });
}

/** The definition of an action. A function of the app equals only itself. */
function contentOf(action: ActionDefinition | ActionState): object {
  const { name, params, fallbacks } = action;
  const run = 'run' in action ? action.run : undefined;
  return { name, params: { ...params }, fallbacks: fallbacks.map(contentOf), run };
}
