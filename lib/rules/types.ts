// Public types: apps and adapters write actions and resources against them. Titles and descriptions are in two
// languages, because the documented interface shows both. A member that is added to a type which apps implement must
// be optional. Secrets are marked in the fields of parameters; whatever is returned to a caller has been through `hideSecrets`.

import type { ActorRef } from '../base/actor.ts';
import type { Clock } from '../base/clock.ts';
import type { GivenTable, Localized, ParamTable } from '../base/fields.ts';
import type { Awaitable } from '../events/hooks.ts';
import type { Attempt } from '../outbox/attempt.ts';
import type { SqlFunction } from '../sql/functions/function.ts';
import type { StatementError } from '../sql/sql-error.ts';
import type { Value, ValueObject } from '../sql/values.ts';
import type { Target, TargetLimits } from '../targets/target.ts';
import type { RuleEventName } from './events/event-name.ts';

/** Parameters as given. They satisfy the table of their type. */
export type Params = Readonly<Record<string, unknown>>;

/** The event for which a rule has produced an output. */
export interface RuleEvent {
  /** The name of the event, such as `client.connected`. */
  readonly name: RuleEventName;
  /** The value of a column, such as `clientid`; undefined if the event does not have it. */
  column(name: string): Value;
  /** All columns that the event has. */
  columns(): ValueObject;
}

/** The argument of `ActionType.make`. */
export interface ActionContext {
  /** The id of the rule. */
  readonly ruleId: string;
  /** Id of the action: its name, `_` and a number. */
  readonly actionId: string;
  /** Name of the node of the broker. */
  readonly node: string;
  /** The configuration of the resource that the action uses; empty if it uses none. */
  readonly config: Params;
}

/** An action that runs in this process. */
export interface LocalAction {
  /** Run for one output. The action fails if this throws, or if the returned promise rejects. */
  run(output: Value, event: RuleEvent): unknown;
  /** Called when the action is no longer used. */
  close?(): void;
}

/**
 * An action that sends entries to a target: that of its resource, or its own. They are sent through the outbox of the
 * resource or of the action, in the order of the rule.
 */
export interface SendingAction {
  /**
   * Prepare the content to be sent for an output. null: there is nothing to send. The action fails if this throws.
   */
  prepare(output: Value, event: RuleEvent): string | Buffer | null;
  /** The target of the action, if it uses no resource. It is closed with the action. */
  readonly target?: ActionTarget;
  /** Called when the action is removed. */
  close?(): void;
}

/** A target to which actions send. */
export interface ActionTarget extends Target<readonly ResourceEntry[]> {
  /** The limits of its outbox, including `isPersisted`. */
  readonly outbox?: TargetLimits;
  /**
   * Send entries, those of each rule in order.
   * @throws if they should be sent again; `SendError` can be more specific
   */
  send(entries: readonly ResourceEntry[], attempt: Attempt): Awaitable<void>;
}

/** An action type: `inspect`, `republish`, or one of the app. */
export interface ActionType {
  /** Letters, digits, `_`, `-` and `.`. */
  readonly name: string;
  /** The provider. Default: `app`. */
  readonly app?: string;
  /** The events for which it is intended, for display. Default `$any`. */
  readonly for?: string;
  /** The resource types that it can use. If given, the action has a required parameter `$resource`. Default: none. */
  readonly types?: readonly string[];
  /** Default `other`. */
  readonly category?: 'debug' | 'data_forward' | 'other';
  /** The title in a form. */
  readonly title: Localized;
  /** The description. */
  readonly description: Localized;
  /** The parameters that rules give. Default: none. */
  readonly params?: GivenTable;
  /** The parameters with those of the connection that they name, before they are checked. @internal */
  connected?(params: Params): Params;
  /**
   * Create an action for a rule. Called when the rule is attached. It is required; `make` takes its place in this version.
   * @param params satisfy `params`
   * @throws the reason why it cannot be created: the rule is refused, or disconnected with this reason
   */
  create?(params: Params, context: ActionContext): Awaitable<LocalAction | SendingAction>;
  /** @deprecated Use `create`. */
  make?(params: Params, context: ActionContext): Awaitable<LocalAction | SendingAction>;
}

/** An action that is a function of the app. It fails if the function throws or rejects. */
export type RuleFunction = (output: Value, event: RuleEvent) => unknown;

/** An entry to be sent to the target of a resource. */
export interface ResourceEntry {
  /** An id that is the same at each attempt, also after a restart of the process. */
  readonly id: string;
  /** The content that the action has prepared. */
  readonly content: string | Buffer;
  /** The id of the rule. */
  readonly ruleId: string;
  /** The id of the action. */
  readonly actionId: string;
  /** Number of failed attempts of this process so far. */
  readonly attempts: number;
}

/** The argument of `ResourceType.make`. */
export interface ResourceContext {
  /** The id of the resource. */
  readonly id: string;
  /** Name of the node of the broker. */
  readonly node: string;
  /** The clock of the broker. */
  readonly clock: Clock;
  /** Report an error that cannot be returned to a caller. */
  failed(error: unknown, during: string): void;
}

/** A connection to a target outside of this process, which actions share. */
export interface Resource extends ActionTarget {
  /**
   * Check whether the target can be reached: connect, unless there is a connection.
   * @param signal aborted when the check takes too long
   * @throws the reason why the target cannot be reached
   */
  check(signal: AbortSignal): Awaitable<void>;
  /**
   * Release all resources. Called once, when the resource was changed or deleted, or when the broker has stopped; after
   * a restart of the broker, `make` is called again.
   */
  close(): Awaitable<void>;
}

/** A resource type: `web_hook`, `bridge_mqtt`, or one of the app. */
export interface ResourceType {
  /** The name, which resources give as their type. */
  readonly name: string;
  /** The provider. Default: `app`. */
  readonly provider?: string;
  /** The title in a form. */
  readonly title: Localized;
  /** The description. */
  readonly description: Localized;
  /** The parameters of the configuration. Default: none. */
  readonly params?: GivenTable;
  /** The actions that it defines. */
  readonly actions?: readonly ActionType[];
  /**
   * Create a resource. It connects when `check` is called.
   * @param config satisfies `params`
   * @throws InvalidInput with the reason why the configuration cannot be used
   */
  make(config: Params, context: ResourceContext): Resource;
}

/** An action of a rule, as given: an object, the name of an action without parameters, or a function of the app. */
export type ActionGiven = ActionInput | RuleFunction | string;

/** An action of a rule, as given. */
export interface ActionInput {
  /** The name of the action type. */
  readonly name: string;
  /** The parameters of the type. Default: none. */
  readonly params?: Params | undefined;
  /** Actions that run, in this order, if the action has failed. */
  readonly fallbacks?: readonly ActionGiven[] | undefined;
}

/** A rule, as given. The documented names `rawsql`, `enabled` and `on_action_failed` are also accepted. */
export interface RuleInput {
  /** 1 to 64 letters, digits, `:`, `_`, `-` and `.`. Default: `rule:` and 8 hexadecimal digits. */
  readonly id?: string | undefined;
  /** The statement, such as `SELECT * FROM "a/#"`. */
  readonly sql: string;
  /** The actions, in the order in which they run for each output: inputs of action types, or functions. */
  readonly actions: readonly ActionGiven[];
  /** Default: empty. */
  readonly description?: string | undefined;
  /** Default true. */
  readonly isEnabled?: boolean | undefined;
  /** Continue with the later actions of an output after a failed one, or stop. Default `continue`. */
  readonly onActionFailed?: 'continue' | 'stop' | undefined;
}

/** The fields of a rule that are changed. Its id and counters stay; the counters of new actions begin at 0. */
export type RuleChange = Partial<Omit<RuleInput, 'id'>>;

/** The counters of a rule since it was created or reset. */
export interface RuleCounters {
  /** Number of events of its topics. */
  readonly matched: number;
  /** Number of events with an output. */
  readonly passed: number;
  /** Number of events without an output: `exception` and `noResult`. */
  readonly failed: number;
  /** Number of events for which the evaluation failed. */
  readonly exception: number;
  /** Number of events that WHERE excluded. */
  readonly noResult: number;
  /** Matched events per second, over the last 10 s. */
  readonly speed: number;
  /** The maximum of `speed`. */
  readonly speedMax: number;
  /** Mean speed over the last 5 minutes. */
  readonly speedLast5m: number;
}

/** The counters of an action. */
export interface ActionCounters {
  /** Number of runs that have begun. */
  readonly taken: number;
  /** Number of runs that have succeeded. */
  readonly success: number;
  /** Number of runs that have failed. */
  readonly failed: number;
}

/** An action of a rule. */
export interface ActionState {
  /** The id of the action: its name, `_` and a number. */
  readonly id: string;
  /** `function` for a function of the app. */
  readonly name: string;
  /** As given, with `******` for secrets. */
  readonly params: Params;
  /** The counters since the rule was created or reset. */
  readonly counters: ActionCounters;
  /** Number of outputs in its queue. Absent if it has none: outputs for a resource wait in the queue of the resource. */
  readonly size?: number;
  /** The reason why its last run, or the last delivery to its target or resource, failed. Absent after a success. */
  readonly lastError?: Error;
  /** The actions that run, in this order, if this one has failed. */
  readonly fallbacks: readonly ActionState[];
}

/** A rule, as `broker.rules` lists it. */
export interface RuleState {
  /** The id of the rule. */
  readonly id: string;
  /** The statement. */
  readonly sql: string;
  /** The topic filters of FROM, in order. */
  readonly topics: readonly string[];
  /** A description for people; may be empty. */
  readonly description: string;
  /** False: the rule gets no events. */
  readonly isEnabled: boolean;
  /** The consequence of a failed action for the later actions of the output. */
  readonly onActionFailed: 'continue' | 'stop';
  /** `idle`: disabled; `connected`: events reach it; `disconnected`: stopped, see `reason`. */
  readonly state: 'idle' | 'connected' | 'disconnected';
  /** The reason why it is disconnected. */
  readonly reason: string | undefined;
  /** Time of creation in milliseconds since 1970. */
  readonly createdAt: number;
  /**
   * False if the app has created it with functions, or if it is in the options. Such a rule ends with the process, or
   * is created again at each start.
   */
  readonly isPersisted: boolean;
  /** The counters since the rule was created or reset. */
  readonly counters: RuleCounters;
  /** Time of the last sample, in milliseconds since 1970; 0: there is none. While it is the same, so are the samples. */
  readonly sampledAt: number;
  /** The actions, in their order. */
  readonly actions: readonly ActionState[];
}

/** Criteria for a list of rules. */
export interface RuleQuery {
  /** True: only enabled rules; false: only others. */
  readonly isEnabled?: boolean | undefined;
  /** A topic filter that FROM contains. */
  readonly for?: string | undefined;
  /** A part of the id. */
  readonly likeId?: string | undefined;
  /** A part of a topic filter of FROM. */
  readonly likeFor?: string | undefined;
  /** A topic filter that covers one of FROM. */
  readonly matchFor?: string | undefined;
  /** A part of the description. */
  readonly likeDescription?: string | undefined;
}

/** A resource, as given. */
export interface ResourceInput {
  /** As for rules. Default: `resource:` and 8 hexadecimal digits. */
  readonly id?: string | undefined;
  /** The name of the resource type, such as `web_hook`. */
  readonly type: string;
  /** The values of the parameters of the type. */
  readonly config: Params;
  /** Default: empty. */
  readonly description?: string | undefined;
}

/** A resource, as `broker.rules.resources` lists it. */
export interface ResourceState {
  /** The id of the resource. */
  readonly id: string;
  /** The name of the resource type. */
  readonly type: string;
  /** As given, with `******` for secrets. */
  readonly config: Params;
  /** A description for people; may be empty. */
  readonly description: string;
  /** The result of the last check. */
  readonly isAlive: boolean;
  /** The reason why it is not alive, or why the last delivery failed. */
  readonly lastError: Error | undefined;
  /** Number of entries waiting to be sent. */
  readonly size: number;
  /** Time of creation, in milliseconds since 1970. */
  readonly createdAt: number;
  /** False if it is in the options. */
  readonly isPersisted: boolean;
}

/** An action type, as listed. Absent fields of `ActionType` have their defaults. */
export type ActionInfo = Required<Omit<ActionType, 'create' | 'connected' | 'make' | 'params'>> & {
  /** The parameters, as the documented interface shows them. */
  readonly params: ParamTable;
};

/** A resource type, as listed. */
export type ResourceTypeInfo = Required<Omit<ResourceType, 'make' | 'actions' | 'params'>> & {
  /** The parameters, as the documented interface shows them. */
  readonly params: ParamTable;
};

/** A rule topic with its description. */
export interface RuleEventInfo {
  /** `$events/client_connected`. */
  readonly event: string;
  /** The title in a form. */
  readonly title: Localized;
  /** The description. */
  readonly description: Localized;
  /** Columns with their defaults in a test. */
  readonly testColumns: ValueObject;
  /** The names of the columns. */
  readonly columns: readonly string[];
  /** An example value of each column that has one. */
  readonly examples: ValueObject;
  /** A valid example statement. */
  readonly example: string;
}

/** The result of a statement for an event. */
export interface RuleTest {
  /** `topic`: no filter of FROM matches the topic; `where`: WHERE is not true. */
  readonly result: 'matched' | 'topic' | 'where';
  /** True if FOREACH returns a list of outputs. */
  readonly isForeach: boolean;
  /** The outputs; empty if there is none. */
  readonly outputs: readonly Value[];
  /** Possible mistakes in the statement or in the event, such as a string in double quotes; empty if there are none. */
  readonly hints: readonly string[];
}

/** A function that statements can call, for documentation and for the completion of an editor. */
export type RuleFunctionInfo = Pick<SqlFunction, 'name' | 'family' | 'params' | 'returns' | 'about'>;

/** The result of a check of a statement. */
export interface RuleValidation {
  /** Empty if the statement is valid. */
  readonly errors: readonly StatementError[];
  /** Possible mistakes in a valid statement, such as a string in double quotes. */
  readonly hints: readonly string[];
  /** True if FOREACH returns a list of outputs. */
  readonly isForeach: boolean;
  /** The names after FROM; empty if the statement is not valid, as the two that follow. */
  readonly topics: readonly string[];
  /** The events from which it selects. */
  readonly events: readonly RuleEventName[];
  /** The columns of these events that it reads. `*` is all of them. */
  readonly columns: readonly string[];
}

/** An output of a rule. */
export interface RuleOutput {
  /** The id of the rule. */
  readonly ruleId: string;
  /** The output: the columns of SELECT. */
  readonly output: Value;
  /** The event from which it was produced. */
  readonly event: RuleEvent;
}

/** An example that a rule has kept. */
export interface RuleSample {
  /** Time in milliseconds since 1970. */
  readonly at: number;
  /** True if a part of the value was left out, because its JSON is longer than 4,096 characters. */
  readonly isCut: boolean;
}

/** An event that has reached a rule. */
export interface RuleInputSample extends RuleSample {
  /** The name of the event, such as `client.connected`. */
  readonly event: RuleEventName;
  /** The columns of the event. `rules.test` takes them as its event. */
  readonly columns: ValueObject;
}

/** An output of a rule. */
export interface RuleOutputSample extends RuleSample {
  /** The output: the columns of SELECT. */
  readonly output: Value;
}

/** An event that WHERE has excluded. */
export interface RuleRejectedSample extends RuleSample {
  /** The name of the event, such as `client.connected`. */
  readonly event: RuleEventName;
  /** Of the event, cut at 256 characters; undefined if it has none. */
  readonly topic: string | undefined;
  /** Of the event, cut at 256 characters; undefined if it has none. */
  readonly clientId: string | undefined;
  /** The values that WHERE has read, by their text in the statement: `{ 'payload.t': 75 }`. Absent values are left out. */
  readonly columns: ValueObject;
}

/** An error of a rule. */
export interface RuleErrorSample extends RuleSample {
  /**
   * `PAYLOAD_NOT_JSON`: the statement reads values below a column that is not JSON; `SQL_FAILED`: the evaluation failed, in most cases a
   * function; `ACTION_FAILED`: an action failed.
   */
  readonly code: 'PAYLOAD_NOT_JSON' | 'SQL_FAILED' | 'ACTION_FAILED';
  /** The message, without secrets, cut at 256 characters. */
  readonly message: string;
  /** The action that has failed. */
  readonly actionId?: string;
  /** Of the event; undefined if an action failed that ran before a restart. */
  readonly topic?: string | undefined;
  /** Of the event, unless an action has failed. */
  readonly clientId?: string | undefined;
  /** The columns of the event; absent if an action has failed. */
  readonly columns?: ValueObject;
}

/** The last examples of a rule, the oldest first. */
export interface RuleSamples {
  /** The last five. */
  readonly inputs: readonly RuleInputSample[];
  /** The last five. */
  readonly outputs: readonly RuleOutputSample[];
  /** The last five of each code. */
  readonly errors: readonly RuleErrorSample[];
  /** The last five. */
  readonly rejected: readonly RuleRejectedSample[];
  /** Number of events that WHERE has excluded, of which `rejected` are examples. It begins again when the statement changes; `resetCounters` does not change it. */
  readonly excluded: number;
}

/** The option `rules` of `createBroker`. */
export interface RulesOptions {
  /** Resource types, such as `webHook()` of `embermq/webhook`, and resources of such a type: `{ id, type, config }`. */
  readonly resources?: readonly (ResourceType | ResourceInput)[] | undefined;
  /** Action types. */
  readonly actions?: readonly ActionType[] | undefined;
  /** Functions for statements. */
  readonly functions?: readonly SqlFunction[] | undefined;
  /** Rules, each with an id. They cannot be changed at run time, and are not persisted. */
  readonly rules?: readonly RuleInput[] | undefined;
  /** Events that are published as messages to their topics: `{ client_connected: 'on, qos1' }`. Default: none. */
  readonly events?: Readonly<Record<string, string>> | undefined;
  /** If true, messages below `$SYS` reach no rule. Default true. */
  readonly ignoreSysMessage?: boolean | undefined;
  /** If true, `is_null` is also true for JSON null. Default false. */
  readonly nullIsNull?: boolean | undefined;
}

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
  /** A resource; undefined if it does not exist. */
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
  /** The resources that actions use. */
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
  /** A rule; undefined if it does not exist. */
  get(id: string): Promise<RuleState | undefined>;
  /**
   * The actor of a rule, for reading and observing. xstate's `waitFor` and `toPromise` accept it. It is done when the rule has been deleted.
   * @throws NotFound RULE_NOT_FOUND
   */
  actor(id: string): Promise<ActorRef>;
  /** The rules, in the order in which they were created. */
  list(query?: RuleQuery): Promise<RuleState[]>;
  /**
   * The last inputs, outputs and errors of a rule, and the last events that WHERE has excluded. At most one of each is kept in 100 ms, in a
   * broker with many rules fewer, so a sample that is not there proves nothing. They are lost with the process, and when the statement
   * changes. They contain payloads of clients.
   * @throws NotFound RULE_NOT_FOUND
   */
  samples(id: string): Promise<RuleSamples>;
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
   * Check a statement, for an editor: its errors are the result, and are not thrown.
   * @throws InvalidInput RULE_INVALID if `sql` is not a string; BrokerError PACKAGE_MISSING
   */
  validate(sql: string): Promise<RuleValidation>;
  /** The functions that statements can call, with those of the app. */
  functions(): Promise<RuleFunctionInfo[]>;
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
