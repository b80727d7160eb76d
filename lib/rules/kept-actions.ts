import { isDeepStrictEqual } from 'node:util';
import type { ActionDefinition } from './definition.ts';
import { keepSecrets } from './params.ts';
import type { ActionState, Params, ParamTable } from './types.ts';

/** The actions of a rule at present. */
interface Present {
  readonly definitions: readonly ActionDefinition[];
  /** As interfaces show them, with `******` for secrets. */
  readonly states: readonly ActionState[];
}

/**
 * The actions of a change. If they are as they are shown, they are the present ones, with their ids and figures. Otherwise `******` stands for
 * the secret of the present action in the same place, if that has the same name.
 * @param paramsOf the parameters of a kind of actions; undefined: there is no such kind
 */
export function keptActions(
  given: readonly ActionDefinition[],
  { definitions, states }: Present,
  paramsOf: (name: string) => ParamTable | undefined
): readonly ActionDefinition[] {
  if (isDeepStrictEqual(given.map(contentOf), states.map(contentOf))) return definitions;
  return withSecrets(given, definitions, paramsOf);
}

function withSecrets(
  given: readonly ActionDefinition[],
  present: readonly ActionDefinition[],
  paramsOf: (name: string) => ParamTable | undefined
): ActionDefinition[] {
  return given.map((action, at) => {
    const before = present[at];
    const table = paramsOf(action.name);
    if (before?.name !== action.name || table === undefined) return action;
    const params = keepSecrets(table, action.params, before.params) as Params;
    return { ...action, params, fallbacks: withSecrets(action.fallbacks, before.fallbacks, paramsOf) };
  });
}

/** What a rule says of an action. A function of the app is equal to itself only. */
function contentOf(action: ActionDefinition | ActionState): object {
  const { name, params, fallbacks } = action;
  const run = 'run' in action ? action.run : undefined;
  return { name, params: { ...params }, fallbacks: fallbacks.map(contentOf), run };
}
