import { isDeepStrictEqual } from 'node:util';
import type { FieldTable } from '../base/fields.ts';
import { counterparts } from '../base/secret-lists.ts';
import { hideSecrets, mapped } from '../base/secrets.ts';
import type { ActionDefinition } from './definition.ts';
import { keepParams } from './params.ts';
import type { ActionState, Params } from './types.ts';

/** The current actions of a rule. */
interface Present {
  readonly definitions: readonly ActionDefinition[];
  /** The actions as interfaces show them, with `******` for secrets. */
  readonly states: readonly ActionState[];
}

/**
 * The actions of a change. An action keeps the id of the current one that it replaces, so its counters and its queue: an
 * equal one, also as shown, or else that of its type with the same address or name (`counterparts`), or else that of its
 * type at its place. `******` stands for the values of the first two.
 * @param paramsOf the parameters of an action type; undefined if it does not exist
 * @returns the current list if it stays the same
 * @throws InvalidInput PARAM_INVALID as `keepParams`
 */
export function keptActions(
  given: readonly ActionDefinition[],
  { definitions, states }: Present,
  paramsOf: (name: string) => FieldTable | undefined
): readonly ActionDefinition[] {
  const unused = new Set(definitions.keys());
  const equals = (action: ActionDefinition, at: number) =>
    isDeepStrictEqual(contentOf(action), contentOf(states[at])) ||
    isDeepStrictEqual(contentOf(action), contentOf(definitions[at]));
  const take = (action: ActionDefinition, places: Iterable<number>) => {
    const found = [...places].find((at) => unused.has(at) && equals(action, at));
    if (found !== undefined) unused.delete(found);
    return found;
  };
  const inPlace = given.map((action, at) => take(action, [at]));
  const places = given.map((action, at) => inPlace[at] ?? take(action, unused));
  const changed = given.filter((_, at) => places[at] === undefined);
  const others = new Map([...unused].map((place) => [elementOf(definitions[place]), place]));
  const found = counterparts(changed.map(elementOf), [...others.keys()], (one) =>
    mapped(one as Params, (params, name) => hideSecrets(paramsOf(name), params as Params))
  ).map(({ present }) => others.get(present as object));
  for (const place of found) if (place !== undefined) unused.delete(place);
  const kept = given.map((action, at) => {
    const same = places[at];
    const counterpart = same ?? found[changed.indexOf(action)];
    const isInPlace = unused.has(at) && definitions[at].name === action.name;
    const place = counterpart ?? (isInPlace ? at : undefined);
    const table = paramsOf(action.name);
    if (place === undefined || (same === undefined && table === undefined)) return action;
    const before = definitions[place];
    const present = { definitions: before.fallbacks, states: states[place].fallbacks };
    const fallbacks = keptActions(action.fallbacks, present, paramsOf);
    if (same !== undefined) return fallbacks === before.fallbacks ? before : { ...before, fallbacks };
    const keeping = { present: before.params, what: `the action "${action.name}"` };
    const params = counterpart === undefined ? action.params : (keepParams(table, action.params, keeping) as Params);
    return { ...action, id: before.id, params, fallbacks };
  });
  const isUnchanged = kept.length === definitions.length && kept.every((action, at) => action === definitions[at]);
  return isUnchanged ? definitions : kept;
}

/** The parameters of an action by its name, as `counterparts` compares them. */
function elementOf({ name, params }: ActionDefinition): object {
  return { [name]: { ...params } };
}

/** The definition of an action, without its fallbacks. A function of the app equals only itself. */
function contentOf(action: ActionDefinition | ActionState): object {
  const run = 'run' in action ? action.run : undefined;
  return { name: action.name, params: { ...action.params }, run };
}
