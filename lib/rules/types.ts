// Public types: apps and adapters write actions and resources against them. Titles and descriptions are in two
// languages, because the documented interface shows both. A member that is added to a type which apps implement must
// be optional. Secrets are marked in the fields of parameters; whatever is returned to a caller has been through `hideSecrets`.

import type { Clock } from '../base/clock.ts';
import type { GivenTable, Localized, ParamTable } from '../base/fields.ts';
import type { Awaitable } from '../events/hooks.ts';
import type { Attempt } from '../outbox/attempt.ts';
import type { SqlFunction } from '../sql/functions/function.ts';
import type { Value, ValueObject } from '../sql/values.ts';
import type { Target, TargetLimits } from '../targets/target.ts';
import type { RuleEventName } from './events/event-name.ts';

/** Parameters as given. They satisfy the table of their type. */
export type Params = Readonly<Record<string, unknown>>;

/** The event for which a rule has produced an output. */
export interface RuleEvent {
  readonly name: RuleEventName;
  /** The value of a column, such as `clientid`; undefined if the event does not have it. */
  column(name: string): Value;
  /** All columns that the event has. */
  columns(): ValueObject;
}

/** The argument of `ActionType.make`. */
export interface ActionContext {
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
  readonly title: Localized;
  readonly description: Localized;
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
  readonly ruleId: string;
  readonly actionId: string;
  /** Number of failed attempts of this process so far. */
  readonly attempts: number;
}

/** The argument of `ResourceType.make`. */
export interface ResourceContext {
  readonly id: string;
  /** Name of the node of the broker. */
  readonly node: string;
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
  readonly name: string;
  /** The provider. Default: `app`. */
  readonly provider?: string;
  readonly title: Localized;
  readonly description: Localized;
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

export interface ActionInput {
  readonly name: string;
  readonly params?: Params | undefined;
  /** Actions that run, in this order, if the action has failed. */
  readonly fallbacks?: readonly ActionGiven[] | undefined;
}

/** A rule, as given. The documented names `rawsql`, `enabled` and `on_action_failed` are also accepted. */
export interface RuleInput {
  /** 1 to 64 letters, digits, `:`, `_`, `-` and `.`. Default: `rule:` and 8 hexadecimal digits. */
  readonly id?: string | undefined;
  readonly sql: string;
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
  readonly speedMax: number;
  /** Mean speed over the last 5 minutes. */
  readonly speedLast5m: number;
}

/** The counters of an action. */
export interface ActionCounters {
  readonly taken: number;
  readonly success: number;
  readonly failed: number;
}

/** An action of a rule. */
export interface ActionState {
  readonly id: string;
  /** `function` for a function of the app. */
  readonly name: string;
  /** As given, with `******` for secrets. */
  readonly params: Params;
  readonly counters: ActionCounters;
  readonly fallbacks: readonly ActionState[];
}

/** A rule, as `broker.rules` lists it. */
export interface RuleState {
  readonly id: string;
  readonly sql: string;
  /** The topic filters of FROM, in order. */
  readonly topics: readonly string[];
  readonly description: string;
  readonly isEnabled: boolean;
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
  readonly counters: RuleCounters;
  readonly actions: readonly ActionState[];
}

/** Criteria for a list of rules. */
export interface RuleQuery {
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
  readonly type: string;
  readonly config: Params;
  /** Default: empty. */
  readonly description?: string | undefined;
}

/** A resource, as `broker.rules.resources` lists it. */
export interface ResourceState {
  readonly id: string;
  readonly type: string;
  /** As given, with `******` for secrets. */
  readonly config: Params;
  readonly description: string;
  /** The result of the last check. */
  readonly isAlive: boolean;
  /** The reason why it is not alive, or why the last delivery failed. */
  readonly lastError: Error | undefined;
  /** Number of entries waiting to be sent. */
  readonly size: number;
  readonly createdAt: number;
  /** False if it is in the options. */
  readonly isPersisted: boolean;
}

/** An action type, as listed. Absent fields of `ActionType` have their defaults. */
export type ActionInfo = Required<Omit<ActionType, 'create' | 'connected' | 'make' | 'params'>> & {
  readonly params: ParamTable;
};

/** A resource type, as listed. */
export type ResourceTypeInfo = Required<Omit<ResourceType, 'make' | 'actions' | 'params'>> & {
  readonly params: ParamTable;
};

/** A rule topic with its description. */
export interface RuleEventInfo {
  /** `$events/client_connected`. */
  readonly event: string;
  readonly title: Localized;
  readonly description: Localized;
  /** Columns with their defaults in a test. */
  readonly testColumns: ValueObject;
  readonly columns: readonly string[];
  /** A valid example statement. */
  readonly example: string;
}

/** The result of a statement for an event. */
export interface RuleTest {
  /** `topic`: no filter of FROM matches the topic; `where`: WHERE is not true. */
  readonly result: 'matched' | 'topic' | 'where';
  /** True if FOREACH returns a list of outputs. */
  readonly isForeach: boolean;
  readonly outputs: readonly Value[];
  /** Possible mistakes in the statement or in the event, such as a string in double quotes; empty if there are none. */
  readonly hints: readonly string[];
}

/** An output of a rule. */
export interface RuleOutput {
  readonly ruleId: string;
  readonly output: Value;
  readonly event: RuleEvent;
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
