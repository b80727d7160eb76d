// Public types: apps and adapters write actions and resources against them. Titles and descriptions are in two
// languages, because the documented interface shows both. A member that is added to a type which apps implement must
// be optional. Secrets are marked in `ParamRow`; whatever is returned to a caller has been through `hideSecrets`.

import type { Clock } from '../base/clock.ts';
import type { Awaitable } from '../events/hooks.ts';
import type { Attempt } from '../outbox/attempt.ts';
import type { OutboxOptions } from '../outbox/options.ts';
import type { SqlFunction } from '../sql/functions/function.ts';
import type { Value, ValueObject } from '../sql/values.ts';
import type { RuleEventName } from './events/event-name.ts';

/** A string for people, in the languages of the documented interface. */
export interface Localized {
  readonly en: string;
  readonly zh: string;
}

/** Definition of a parameter of an action or a resource, as the management interface shows it. */
export interface ParamRow {
  readonly type: 'string' | 'number' | 'float' | 'boolean' | 'object' | 'array';
  readonly title: Localized;
  readonly description: Localized;
  /** Place in a form, from 0. */
  readonly order?: number;
  /** It must be given. A `default` is shown, but never filled in. */
  readonly required?: boolean;
  readonly default?: unknown;
  /** The values that it can have. */
  readonly enum?: readonly unknown[];
  /** `url`: begins with http:// or https://; `duration`: `30s`; others are only shown. */
  readonly format?: string;
  /** Least and greatest value of a number. */
  readonly range?: readonly [number, number];
  readonly input?: 'textarea' | 'password' | 'file';
  /** Parameters of the object. */
  readonly schema?: ParamTable;
  /** Definition of the items of an array. */
  readonly items?: object;
  /** It is shown as `******`, and `******` in a change means the present value. */
  readonly isSecret?: true;
}

/** The parameters of an action or a resource, by name. Others are accepted, kept and ignored. */
export type ParamTable = Readonly<Record<string, ParamRow>>;

/** Parameters as they were given. They satisfy the table of their type. */
export type Params = Readonly<Record<string, unknown>>;

/** The event for which a rule has produced an output. */
export interface RuleEvent {
  readonly name: RuleEventName;
  /** The value of a column, such as `clientid`; undefined if the event does not have it. */
  column(name: string): Value;
  /** All columns that the event has. */
  columns(): ValueObject;
}

/** What an action is made for. */
export interface ActionContext {
  readonly ruleId: string;
  /** Id of the action: its name, `_` and a number. */
  readonly actionId: string;
  /** Name of the node of the broker. */
  readonly node: string;
  /** The configuration of the resource that the action uses; empty if it uses none. */
  readonly config: Params;
}

/** An action that does its work in this process. */
export interface LocalAction {
  /** Act for one output. The action has failed if this throws, or if the promise that it returns rejects. */
  run(output: Value, event: RuleEvent): unknown;
  /** The action is not used any more. */
  close?(): void;
}

/** An action that sends something to the target of its resource: over the outbox of the resource, in the order of the rule. */
export interface SendingAction {
  /** What is to be sent for an output. The action has failed if this throws. */
  prepare(output: Value, event: RuleEvent): string | Buffer;
  close?(): void;
}

/** A kind of action: `inspect`, `republish`, or one of the app. */
export interface ActionType {
  /** Letters, digits, `_`, `-` and `.`. */
  readonly name: string;
  /** Who provides it. Default: `app`. */
  readonly app?: string;
  /** The events that it is meant for, for people. Default `$any`. */
  readonly for?: string;
  /** The types of resources that it can use. It then has a required parameter `$resource`. Default: none. */
  readonly types?: readonly string[];
  /** Default `other`. */
  readonly category?: 'debug' | 'data_forward' | 'other';
  readonly title: Localized;
  readonly description: Localized;
  readonly params?: ParamTable;
  /**
   * Make an action for a rule. Called when the rule is attached.
   * @param params satisfy `params`
   * @throws why it cannot be made: the rule is refused, or disconnected with this reason
   */
  make(params: Params, context: ActionContext): Awaitable<LocalAction | SendingAction>;
}

/** An action that is a function of the app. It has failed if it throws or rejects. */
export type RuleFunction = (output: Value, event: RuleEvent) => unknown;

/** Something to be sent to the target of a resource. */
export interface ResourceEntry {
  /** The same at each attempt, also after a restart of the process. */
  readonly id: string;
  /** What the action has prepared. */
  readonly content: string | Buffer;
  readonly ruleId: string;
  readonly actionId: string;
}

/** What a resource is made for. */
export interface ResourceContext {
  readonly id: string;
  /** Name of the node of the broker. */
  readonly node: string;
  readonly clock: Clock;
  /** Report an error that has no caller. */
  failed(error: unknown, during: string): void;
}

/** A connection to a target outside of this process, which actions share. */
export interface Resource {
  /** The limits of its outbox, `isPersisted` among them. */
  readonly outbox?: Omit<OutboxOptions, 'name' | 'send' | 'settled'>;
  /**
   * Find out whether the target can be reached: connect, unless there is a connection.
   * @param signal aborts when it takes too long
   * @throws why the target cannot be reached
   */
  check(signal: AbortSignal): Awaitable<void>;
  /**
   * Send entries: of one rule each, in their order.
   * @throws if they are to be sent again; `SendError` can say more
   */
  send(entries: readonly ResourceEntry[], attempt: Attempt): Awaitable<void>;
  /** Release everything. Called once: the resource was changed or deleted, or the broker has stopped, which makes it again when it starts again. */
  close(): Awaitable<void>;
}

/** A kind of resource: `web_hook`, `bridge_mqtt`, or one of the app. */
export interface ResourceType {
  readonly name: string;
  /** Who provides it. Default: `app`. */
  readonly provider?: string;
  readonly title: Localized;
  readonly description: Localized;
  readonly params?: ParamTable;
  /** The actions that come with it. */
  readonly actions?: readonly ActionType[];
  /**
   * Make a resource. It connects when `check` is called.
   * @param config satisfies `params`
   * @throws InvalidInput why the configuration cannot be used
   */
  make(config: Params, context: ResourceContext): Resource;
}

/** An action of a rule, as it is given: an object, the name of an action without parameters, or a function of the app. */
export type ActionGiven = ActionInput | RuleFunction | string;

export interface ActionInput {
  readonly name: string;
  readonly params?: Params | undefined;
  /** Run in this order if the action has failed. */
  readonly fallbacks?: readonly ActionGiven[] | undefined;
}

/** A rule, as it is given. The documented names `rawsql`, `enabled` and `on_action_failed` are accepted as well. */
export interface RuleInput {
  /** 1 to 64 letters, digits, `:`, `_`, `-` and `.`. Default: `rule:` and 8 hexadecimal digits. */
  readonly id?: string | undefined;
  readonly sql: string;
  readonly actions: readonly ActionGiven[];
  /** Default: empty. */
  readonly description?: string | undefined;
  /** Default true. */
  readonly isEnabled?: boolean | undefined;
  /** Whether the later actions run for an output if one has failed. Default `continue`. */
  readonly onActionFailed?: 'continue' | 'stop' | undefined;
}

/** What is changed of a rule. Its id and its figures stay; new actions begin with figures of 0. */
export type RuleChange = Partial<Omit<RuleInput, 'id'>>;

/** The figures of a rule since it was made, or since they were reset. */
export interface RuleFigures {
  /** Events of its topics. */
  readonly matched: number;
  /** Events with an output. */
  readonly passed: number;
  /** Events without one: `exception` and `noResult`. */
  readonly failed: number;
  /** Events for which the evaluation has failed. */
  readonly exception: number;
  /** Events that WHERE has excluded. */
  readonly noResult: number;
  /** Matched events per second, over the last 10 s. */
  readonly speed: number;
  readonly speedMax: number;
  /** Mean of the last 5 minutes. */
  readonly speedLast5m: number;
}

/** The figures of an action. */
export interface ActionFigures {
  readonly taken: number;
  readonly success: number;
  readonly failed: number;
}

/** An action of a rule. */
export interface ActionState {
  readonly id: string;
  /** `function` for a function of the app. */
  readonly name: string;
  /** As they were given, with `******` for secrets. */
  readonly params: Params;
  readonly figures: ActionFigures;
  readonly fallbacks: readonly ActionState[];
}

/** A rule, as `broker.rules` lists it. */
export interface RuleState {
  readonly id: string;
  readonly sql: string;
  /** The topic filters of FROM, in their order. */
  readonly topics: readonly string[];
  readonly description: string;
  readonly isEnabled: boolean;
  readonly onActionFailed: 'continue' | 'stop';
  /** `idle`: disabled; `connected`: events reach it; `disconnected`: stopped, see `reason`. */
  readonly state: 'idle' | 'connected' | 'disconnected';
  /** Why it is disconnected. */
  readonly reason: string | undefined;
  /** Wall-clock milliseconds. */
  readonly createdAt: number;
  /** False: the app has made it with functions, or it is in the options. It ends with the process, or is made again by it. */
  readonly isPersisted: boolean;
  readonly figures: RuleFigures;
  readonly actions: readonly ActionState[];
}

/** What a list of rules is limited to. */
export interface RuleQuery {
  readonly isEnabled?: boolean | undefined;
  /** A topic filter that FROM has. */
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

/** A resource, as it is given. */
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
  /** As it was given, with `******` for secrets. */
  readonly config: Params;
  readonly description: string;
  /** As the last check has found it. */
  readonly isAlive: boolean;
  /** Why it is not alive, or why the last delivery has failed. */
  readonly lastError: Error | undefined;
  /** Number of entries that wait to be sent. */
  readonly size: number;
  readonly createdAt: number;
  /** False: it is in the options. */
  readonly isPersisted: boolean;
}

/** A kind of action, as it is listed. Absent fields of `ActionType` have their defaults. */
export type ActionInfo = Required<Omit<ActionType, 'make'>>;

/** A kind of resource, as it is listed. */
export type ResourceTypeInfo = Required<Omit<ResourceType, 'make' | 'actions'>>;

/** A rule topic, for people. */
export interface RuleEventInfo {
  /** `$events/client_connected`. */
  readonly event: string;
  readonly title: Localized;
  readonly description: Localized;
  /** Columns with their defaults in a test. */
  readonly testColumns: ValueObject;
  readonly columns: readonly string[];
  /** A statement that can be used. */
  readonly example: string;
}

/** What a statement gives for an event. */
export interface RuleTest {
  /** `topic`: no filter of FROM matches the topic; `where`: WHERE is not true. */
  readonly result: 'matched' | 'topic' | 'where';
  /** FOREACH gives a list of outputs. */
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
  /** Kinds of resources, such as `webHook()` of `embermq/webhook`, and resources of such a kind: `{ id, type, config }`. */
  readonly resources?: readonly (ResourceType | ResourceInput)[] | undefined;
  /** Kinds of actions. */
  readonly actions?: readonly ActionType[] | undefined;
  /** Functions for statements. */
  readonly functions?: readonly SqlFunction[] | undefined;
  /** Rules, each with an id. They cannot be changed at run time, and are not persisted. */
  readonly rules?: readonly RuleInput[] | undefined;
  /** Events that are published as messages to their topics: `{ client_connected: 'on, qos1' }`. Default: none. */
  readonly events?: Readonly<Record<string, string>> | undefined;
  /** Messages below `$SYS` reach no rule. Default true. */
  readonly ignoreSysMessage?: boolean | undefined;
  /** `is_null` is also true for the null of JSON. Default false. */
  readonly nullIsNull?: boolean | undefined;
}
