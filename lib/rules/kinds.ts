// A kind of action has a name, parameters, and a function that makes actions of a rule with values for them. A kind of
// resource does the same for a connection, such as one to a database; it defines the actions that send over it, too.
// Kinds come from the engine itself, from the app and its options, and from the streams, each of whose sinks is also an
// action. Looking for sinks loads the streams, so they are looked up only for a list of kinds, and for an action that no
// other kind has.

import { InvalidInput, NotFound, StateError } from '../base/errors.ts';
import { type FieldTable, fieldsOf, type GivenTable, nearest } from '../base/fields.ts';
import { checkTable } from '../targets/type-checks.ts';
import { type ActionDefinition, allActions } from './definition.ts';
import { documentedParams, RESOURCE_PARAMS } from './params.ts';
import type { ActionInfo, ActionType, ResourceType, ResourceTypeInfo } from './types.ts';

const NAME = /^[\w.-]{1,64}$/;

/** The action types and resource types of a broker. */
export class Kinds {
  readonly #actions = new Map<string, ActionType>();
  readonly #resources = new Map<string, ResourceType>();
  /** The action types for sinks of streams, by name. An action type of rules with the same name takes precedence. */
  #sinks = new Map<string, ActionType>();
  readonly #loadSinks: () => Promise<readonly ActionType[]>;

  /** @param loadSinks returns the action types for the sinks of streams */
  constructor(loadSinks: () => Promise<readonly ActionType[]>) {
    this.#loadSinks = loadSinks;
  }

  /** Number of action types of rules. */
  get actionCount(): number {
    return this.#actions.size;
  }

  /** Look up the present sinks of streams, unless all of these actions, with their fallbacks, are of rules. */
  async find(actions: readonly ActionDefinition[]): Promise<void> {
    const isOwn = ({ name, run }: ActionDefinition) => run !== undefined || this.#actions.has(name);
    if (!allActions(actions).every(isOwn)) await this.findSinks();
  }

  /** Look up the present sinks of streams. */
  async findSinks(): Promise<void> {
    this.#sinks = new Map((await this.#loadSinks()).map((type) => [type.name, type]));
  }

  /** @throws InvalidInput ACTION_INVALID; StateError ACTION_EXISTS */
  defineAction(type: ActionType): void {
    this.#checkAction(type);
    this.#actions.set(type.name, type);
  }

  #checkAction(type: ActionType): void {
    checkKind(type, ['create', type?.create ?? type?.make], 'ACTION_INVALID', 'an action type');
    checkTable(type.params, `${type.name}.params`, 'ACTION_INVALID');
    const known = this.#actions.get(type.name);
    // several resource types can share an action
    if (known !== undefined && known !== type)
      throw new StateError('ACTION_EXISTS', `action "${type.name}" already exists`);
  }

  /** @throws InvalidInput RESOURCE_TYPE_INVALID, ACTION_INVALID; StateError RESOURCE_TYPE_EXISTS, ACTION_EXISTS */
  defineResource(type: ResourceType): void {
    checkKind(type, ['make', type?.make], 'RESOURCE_TYPE_INVALID', 'a resource type, such as webHook(),');
    checkTable(type.params, `${type.name}.params`, 'RESOURCE_TYPE_INVALID');
    if (this.#resources.has(type.name))
      throw new StateError('RESOURCE_TYPE_EXISTS', `resource type "${type.name}" already exists`);
    for (const action of type.actions ?? []) this.#checkAction(action); // all of them, before one is defined
    for (const action of type.actions ?? []) this.defineAction(action);
    this.#resources.set(type.name, type);
  }

  /** @throws NotFound ACTION_NOT_FOUND with a suggestion */
  action(name: string): ActionType {
    const type = this.#actions.get(name) ?? this.#sinks.get(name);
    if (type !== undefined) return type;
    const names = new Set([...this.#actions.keys(), ...this.#sinks.keys()]);
    const why = missing(`action "${name}"`, name, names, `use one of ${[...names].join(', ')}`);
    throw new NotFound('ACTION_NOT_FOUND', why);
  }

  /** The parameters of an action; undefined if this broker does not have the action. */
  paramsOf(name: string): FieldTable | undefined {
    const type = this.#actions.get(name) ?? this.#sinks.get(name);
    return type && fieldsOf(type.params);
  }

  /** Undefined if this broker does not have the type. */
  findResource(name: string): ResourceType | undefined {
    return this.#resources.get(name);
  }

  /** @throws NotFound RESOURCE_TYPE_NOT_FOUND with a suggestion */
  resource(name: string): ResourceType {
    const type = this.#resources.get(name);
    if (type !== undefined) return type;
    const remedy = 'define types with the option rules.resources of the broker';
    const why = missing(`resource type "${name}"`, name, this.#resources.keys(), remedy);
    throw new NotFound('RESOURCE_TYPE_NOT_FOUND', why);
  }

  actions(): ActionInfo[] {
    const sinks = [...this.#sinks.values()].filter(({ name }) => !this.#actions.has(name));
    return [...this.#actions.values(), ...sinks].map(
      ({ name, app, for: event, types, category, title, description, params }) => ({
        name,
        app: app ?? 'app',
        for: event ?? '$any',
        types: types ?? [],
        category: category ?? 'other',
        title,
        description,
        params: { ...((types ?? []).length > 0 && documentedParams(RESOURCE_PARAMS)), ...documentedParams(params) }
      })
    );
  }

  resourceTypes(): ResourceTypeInfo[] {
    return [...this.#resources.values()]
      .map(({ name, provider, title, description, params }) => ({
        name,
        provider: provider ?? 'app',
        title,
        description,
        params: documentedParams(params)
      }))
      .sort((a, b) => (a.title.en < b.title.en ? -1 : 1));
  }
}

interface Kind {
  readonly name: string;
  readonly params?: GivenTable;
  readonly title: { readonly en: string };
}

/** @param maker the function that creates actions or resources, and its name */
function checkKind(type: Kind, maker: readonly [string, unknown], code: string, expected: string): void {
  const fail = (field: string, what: string, got: unknown) => new InvalidInput(code, field, what, got);
  if (typeof type !== 'object' || type === null || typeof maker[1] !== 'function' || typeof type.title?.en !== 'string')
    throw fail('type', `${expected} with name, title, description and ${maker[0]}`, type);
  if (!NAME.test(type.name)) throw fail('type.name', '1 to 64 letters, digits, "_", "-" and "."', type.name);
}

function missing(what: string, name: string, names: Iterable<string>, remedy?: string): string {
  const similar = nearest(name, [...names]);
  const hint = similar === undefined ? remedy : `did you mean "${similar}"?`;
  return `unknown ${what}${hint === undefined ? '' : `; ${hint}`}`;
}
