import type { ActorRef } from '../base/actor.ts';
import type { SqlFunction } from '../sql/functions/function.ts';
import type {
  ActionInfo,
  ActionType,
  ResourceInput,
  ResourceState,
  ResourceType,
  ResourceTypeInfo,
  RuleChange,
  RuleEventInfo,
  RuleInput,
  RuleOutput,
  RuleQuery,
  RuleState,
  RuleTest
} from './types.ts';

/** The fields of a resource that are changed. */
export type ResourceChange = Partial<Pick<ResourceInput, 'config' | 'description'>>;

/**
 * The resources of the rules of a broker: `broker.rules.resources`.
 *
 * Errors of all calls: BrokerError STORE_FAILED; StateError BROKER_NOT_STARTED with a store that is not open yet.
 */
export interface ResourcesApi {
  /**
   * Create a resource. It is persisted, even if its target cannot be reached at present.
   * @throws NotFound RESOURCE_TYPE_NOT_FOUND; InvalidInput PARAM_REQUIRED, PARAM_INVALID (the parameter is `field`),
   *   RESOURCE_INVALID; StateError
   * RESOURCE_EXISTS; BrokerError RESOURCE_NOT_INITIALIZED, and the errors of the type
   */
  create(input: ResourceInput): Promise<ResourceState>;
  /** Change a resource. Its queued entries are kept. @throws as `create`; NotFound RESOURCE_NOT_FOUND; StateError RESOURCE_OF_APP */
  update(id: string, change: ResourceChange): Promise<ResourceState>;
  /**
   * Delete a resource and its queued entries.
   * @returns false if the resource does not exist
   * @throws StateError RESOURCE_IN_USE, which names a rule; RESOURCE_OF_APP
   */
  delete(id: string): Promise<boolean>;
  get(id: string): Promise<ResourceState | undefined>;
  /** All resources, or those of a type, in the order in which they were created. */
  list(type?: string): Promise<ResourceState[]>;
  /**
   * Check whether the target of a resource can be reached, without creating the resource.
   * @throws as `create`; BrokerError RESOURCE_DOWN
   */
  test(input: ResourceInput): Promise<void>;
  /** Connect to the target now. @throws NotFound RESOURCE_NOT_FOUND; BrokerError RESOURCE_DOWN with the reason */
  start(id: string): Promise<void>;
  /** Check whether the target can be reached at present. @throws NotFound RESOURCE_NOT_FOUND */
  check(id: string): Promise<boolean>;
}

/**
 * The rules of a broker: `broker.rules`.
 *
 * Errors of all calls: BrokerError STORE_FAILED; StateError BROKER_NOT_STARTED with a store that is not open yet.
 */
export interface RulesApi {
  readonly resources: ResourcesApi;
  /**
   * Create a rule, and attach it unless it is disabled. The rule is persisted, unless one of its actions is a function.
   * @throws SqlError SQL_INVALID; InvalidInput RULE_INVALID, PARAM_REQUIRED, PARAM_INVALID (the parameter is `field`);
   *   NotFound ACTION_NOT_FOUND;
   * StateError RULE_EXISTS; BrokerError RESOURCE_NOT_INITIALIZED (an action names a resource that does not exist, has
   * the wrong type or cannot be created), ACTION_FAILED (an action cannot be created), PACKAGE_MISSING (regular
   * expressions need the package `re2js`)
   */
  create(input: RuleInput): Promise<RuleState>;
  /** Change a rule without losing an event. @throws as `create`; NotFound RULE_NOT_FOUND; StateError RULE_OF_APP */
  update(id: string, change: RuleChange): Promise<RuleState>;
  /**
   * Delete a rule. Entries that its actions have handed to resources are still sent.
   * @returns false if the rule does not exist
   * @throws StateError RULE_OF_APP
   */
  delete(id: string): Promise<boolean>;
  get(id: string): Promise<RuleState | undefined>;
  /**
   * The actor of a rule, for reading and observing. xstate's `waitFor` and `toPromise` accept it. It is done when the rule has been deleted.
   * @throws NotFound RULE_NOT_FOUND
   */
  actor(id: string): Promise<ActorRef>;
  /** The rules, in the order in which they were created. */
  list(query?: RuleQuery): Promise<RuleState[]>;
  /** Set the counters of a rule and its actions to 0. @throws NotFound RULE_NOT_FOUND */
  resetCounters(id: string): Promise<void>;
  /** @deprecated Use `resetCounters`. */
  resetFigures(id: string): Promise<void>;
  /**
   * Evaluate a statement for an event, without actions. The time limit is 1 s, spent in slices between the elements of
   * FOREACH; a longer test fails, even within one element.
   * @param event columns and their values; absent ones have the defaults of the first topic of FROM
   * @throws SqlError SQL_INVALID; SqlFailure SQL_FAILED; InvalidInput RULE_INVALID
   */
  test(sql: string, event?: Readonly<Record<string, unknown>>): Promise<RuleTest>;
  /**
   * Iterate over the outputs of a rule, or of all rules, from now on. The iteration ends when the broker stops or the
   * rule is deleted.
   */
  outputs(id?: string): AsyncIterableIterator<RuleOutput>;
  /** The action types, in the order in which they were defined. */
  actions(): Promise<ActionInfo[]>;
  /** The resource types, sorted by their English title. */
  resourceTypes(): Promise<ResourceTypeInfo[]>;
  /** The topics of events; the eight documented ones first. */
  events(): Promise<RuleEventInfo[]>;
  /** Define an action type. @throws InvalidInput ACTION_INVALID; StateError ACTION_EXISTS */
  createAction(type: ActionType): Promise<void>;
  /** @deprecated Use `createAction`. */
  defineAction(type: ActionType): Promise<void>;
  /**
   * Define a resource type, with its actions.
   * @throws InvalidInput RESOURCE_TYPE_INVALID; StateError RESOURCE_TYPE_EXISTS, ACTION_EXISTS
   */
  createResourceType(type: ResourceType): Promise<void>;
  /** @deprecated Use `createResourceType`. */
  defineResourceType(type: ResourceType): Promise<void>;
  /** Define a function for statements. @throws InvalidInput FUNCTION_INVALID; StateError FUNCTION_EXISTS */
  createFunction(definition: SqlFunction): Promise<void>;
  /** @deprecated Use `createFunction`. */
  defineFunction(definition: SqlFunction): Promise<void>;
}
