// Definitions are what the store has, so their fields are a format: a new one must be optional when it is read.
// Checks here concern types only; whether an action or a resource exists is decided when it is made, because kinds
// can be defined later. Ids of actions are new for each rule, but the same at each start for a rule of the options,
// since entries of a persisted outbox name them.

import { randomBytes } from '../base/builtins.ts';
import { InvalidInput, show } from '../base/errors.ts';
import { checkNames, checkObject, isPlainObject, nearest } from '../base/fields.ts';
import type { ActionGiven, ActionInput, Params, ResourceInput, RuleChange, RuleFunction, RuleInput } from './types.ts';

/** An action as stored. */
export interface ActionDefinition {
  /** The id of the action: its name, `_` and a number. */
  readonly id: string;
  /** The name of its type; `function` for a function of the app. */
  readonly name: string;
  /** The parameters, as given. */
  readonly params: Params;
  /** The actions that run, in this order, if this one has failed. */
  readonly fallbacks: readonly ActionDefinition[];
  /** A function of the app, which is not stored. */
  readonly run?: RuleFunction;
}

/** A rule as stored. */
export interface RuleDefinition {
  /** The statement. */
  readonly sql: string;
  /** The actions, in their order. */
  readonly actions: readonly ActionDefinition[];
  /** A description for people; may be empty. */
  readonly description: string;
  /** False: the rule gets no events. */
  readonly isEnabled: boolean;
  /** The consequence of a failed action for the later actions of the output. */
  readonly onActionFailed: 'continue' | 'stop';
  /** Time of creation, in milliseconds since 1970. */
  readonly createdAt: number;
  /** Position in the order of all rules. */
  readonly number: number;
}

/** A resource as stored. */
export interface ResourceDefinition {
  /** The name of the resource type. */
  readonly type: string;
  /** The configuration, as given. */
  readonly config: Params;
  /** A description for people; may be empty. */
  readonly description: string;
  /** Time of creation, in milliseconds since 1970. */
  readonly createdAt: number;
  /** Position in the order of all resources. */
  readonly number: number;
}

/** `.` and `..` are excluded, because clients remove them from URLs. */
const ID = /^(?!\.{1,2}$)[\w:.-]{1,64}$/;
/** Maximum number of actions of a rule, including fallbacks. */
const MAX_ACTIONS = 100;
/** Maximum nesting of fallbacks. */
const MAX_LEVELS = 10;

const RULE_FIELDS = ['sql', 'actions', 'description', 'isEnabled', 'onActionFailed'];
/**
 * `metrics` occurs in the records of rules that interfaces show. It is accepted without effect, so that such a record
 * can be sent back.
 */
const ACTION_FIELDS = ['id', 'name', 'params', 'fallbacks', 'metrics', 'last_error'];

/** Other spellings of fields, as used in files and documents. */
const ALIASES = { rawsql: 'sql', enabled: 'isEnabled', on_action_failed: 'onActionFailed' } as const;

/** The given fields of a rule, with their types checked. */
type ReadRuleInput = Partial<Omit<RuleDefinition, 'createdAt' | 'number'>>;

/** Check the id of a rule or a resource. @throws InvalidInput RULE_INVALID, RESOURCE_INVALID */
export function checkRuleId(given: unknown, kind: 'rule' | 'resource' = 'rule'): string {
  if (typeof given === 'string' && ID.test(given)) return given;
  const code = kind === 'rule' ? 'RULE_INVALID' : 'RESOURCE_INVALID';
  throw new InvalidInput(code, 'id', '1 to 64 letters, digits, ":", "_", "-" and ".", except "." and ".."', given);
}

/** The rules or resources of the options by their ids. @throws InvalidInput RULE_INVALID, RESOURCE_INVALID; `exists` for an id that occurs twice */
export function byId<T extends { readonly id?: string }>(
  given: readonly T[],
  kind: 'rule' | 'resource',
  exists: (id: string) => Error
): Map<string, T> {
  const all = new Map<string, T>();
  for (const input of given) {
    const id = checkRuleId(input.id, kind);
    if (all.has(id)) throw exists(id);
    all.set(id, input);
  }
  return all;
}

/** The given id, or a new one. @throws InvalidInput RULE_INVALID, RESOURCE_INVALID */
export function idOf(given: unknown, kind: 'rule' | 'resource', isTaken: (id: string) => boolean): string {
  if (given !== undefined) return checkRuleId(given, kind);
  for (;;) {
    const id = `${kind}:${randomBytes(4).toString('hex')}`;
    if (!isTaken(id)) return id;
  }
}

/** Returns an id for an action of this name. */
type ActionIds = (name: string) => string;

/** Check the types of a rule's fields. @throws InvalidInput RULE_INVALID, OPTION_UNKNOWN */
export function readRule(input: RuleInput, ids: ActionIds): ReadRuleInput & Pick<RuleDefinition, 'sql' | 'actions'> {
  checkObject(input, 'rule');
  const { id: _id, ...fields } = input;
  const rule = readChange(fields, ids);
  if (rule.sql === undefined) throw invalid('sql', 'a statement', undefined);
  if (rule.actions === undefined) throw invalid('actions', 'a list of actions', undefined);
  return rule as ReturnType<typeof readRule>;
}

/** Check a change of a rule. @throws InvalidInput RULE_INVALID, OPTION_UNKNOWN */
export function readChange(given: RuleChange, ids: ActionIds): ReadRuleInput {
  checkObject(given, 'rule');
  checkNames(given, [...RULE_FIELDS, ...Object.keys(ALIASES)], 'a rule');
  const { sql, actions, description, isEnabled, onActionFailed } = withoutAliases(given);
  if (sql !== undefined && typeof sql !== 'string') throw invalid('sql', 'a statement', sql);
  if (description !== undefined && typeof description !== 'string')
    throw invalid('description', 'a string', description);
  if (isEnabled !== undefined && typeof isEnabled !== 'boolean') throw invalid('isEnabled', 'true or false', isEnabled);
  if (onActionFailed !== undefined && onActionFailed !== 'continue' && onActionFailed !== 'stop')
    throw invalid('onActionFailed', 'continue or stop', onActionFailed);
  return {
    ...(sql !== undefined && { sql }),
    ...(actions !== undefined && { actions: new ActionReader(ids).read(actions, 'actions', 0) }),
    ...(description !== undefined && { description }),
    ...(isEnabled !== undefined && { isEnabled }),
    ...(onActionFailed !== undefined && { onActionFailed })
  };
}

/** Check the types of a resource's fields. @throws InvalidInput RESOURCE_INVALID, OPTION_UNKNOWN */
export function readResource(input: ResourceInput): Pick<ResourceDefinition, 'type' | 'config' | 'description'> {
  checkObject(input, 'resource');
  checkNames(input, ['id', 'type', 'config', 'description'], 'a resource');
  const { type, config = {}, description = '' } = input;
  if (typeof type !== 'string') throw invalidResource('type', 'the name of a resource type', type);
  return { type, ...readResourceChange({ config, description }) } as ReturnType<typeof readResource>;
}

/** Check a change of a resource. @throws InvalidInput RESOURCE_INVALID, OPTION_UNKNOWN */
export function readResourceChange(change: { config?: unknown; description?: unknown }) {
  checkNames(change, ['config', 'description'], 'a change of a resource');
  const { config, description } = change;
  if (config !== undefined && !isPlainObject(config)) throw invalidResource('config', 'an object', config);
  if (description !== undefined && typeof description !== 'string')
    throw invalidResource('description', 'a string', description);
  return { ...(config !== undefined && { config }), ...(description !== undefined && { description }) };
}

/** Actions with their fallbacks at every level. */
export function allActions(actions: readonly ActionDefinition[]): ActionDefinition[] {
  return actions.flatMap((action) => [action, ...allActions(action.fallbacks)]);
}

/** Check whether a rule has actions that cannot be persisted. */
export function hasFunctions(actions: readonly ActionDefinition[]): boolean {
  return allActions(actions).some(({ run }) => run !== undefined);
}

/** Reads the actions of one rule. */
class ActionReader {
  readonly #ids: ActionIds;
  #count = 0;

  constructor(ids: ActionIds) {
    this.#ids = ids;
  }

  read(given: unknown, field: string, level: number): ActionDefinition[] {
    if (!Array.isArray(given)) throw invalid(field, 'a list of actions', given);
    if (level > MAX_LEVELS) throw invalid(field, `at most ${MAX_LEVELS} levels of fallbacks`, given);
    return given.map((action: ActionGiven, at) => this.#action(action, `${field}[${at}]`, level));
  }

  #action(given: ActionGiven, field: string, level: number): ActionDefinition {
    if (++this.#count > MAX_ACTIONS) throw invalid(field, `at most ${MAX_ACTIONS} actions of a rule`, given);
    if (typeof given === 'function')
      return { id: this.#ids('function'), name: 'function', params: {}, fallbacks: [], run: given };
    const action = typeof given === 'string' ? { name: given } : given;
    if (!isPlainObject(action)) throw invalid(field, 'an object with name and params, a name or a function', given);
    checkForm(action, field);
    const { name, params = {}, fallbacks = [] } = action as ActionInput & { params?: unknown };
    if (typeof name !== 'string' || name === '') throw invalid(`${field}.name`, 'the name of an action', name);
    if (!isPlainObject(params)) throw invalid(`${field}.params`, 'an object', params);
    const read = this.read(fallbacks, `${field}.fallbacks`, level + 1);
    return { id: this.#ids(name), name, params: params as Params, fallbacks: read };
  }
}

/**
 * @throws InvalidInput OPTION_UNKNOWN. Detects the form of stream rules, which name a sink by the key of an object, `{
 *   mqtt: { ... } }`; an action of a rule has a name.
 */
function checkForm(action: object, field: string): void {
  const [key, ...others] = Object.keys(action);
  if (key !== undefined && others.length === 0 && nearest(key, ACTION_FIELDS) === undefined) {
    const form = `{ name: ${show(key)}, params: { ... } }`;
    const message = `${field}: unknown option ${show(key)}; if it is the name of the action, write ${form}`;
    throw new InvalidInput('OPTION_UNKNOWN', key, form, key, message);
  }
  checkNames(action, ACTION_FIELDS, `an action of a rule (${field})`);
}

let lastNumber = 0n;

/**
 * Makes new ids: the name of the action and an increasing number, in nanoseconds as in the original products.
 * @param nowMs wall-clock time in milliseconds
 */
export function newActionIds(nowMs: number): ActionIds {
  return (name) => {
    const now = BigInt(Math.trunc(nowMs)) * 1_000_000n;
    lastNumber = now > lastNumber ? now : lastNumber + 1n;
    return `${name}_${lastNumber}`;
  };
}

/** Makes the same ids at each start, for a rule that is not stored: entries waiting in an outbox refer to them. */
export function fixedActionIds(ruleId: string): ActionIds {
  let count = 0;
  return (name) => `${name}_${ruleId}_${++count}`;
}

function withoutAliases(given: object): Record<keyof RuleChange, unknown> {
  const fields: Record<string, unknown> = { ...given };
  for (const [alias, name] of Object.entries(ALIASES)) if (Object.hasOwn(fields, alias)) fields[name] ??= fields[alias];
  return fields as Record<keyof RuleChange, unknown>;
}

function invalid(field: string, expected: string, got: unknown): InvalidInput {
  return new InvalidInput('RULE_INVALID', field, expected, got);
}

function invalidResource(field: string, expected: string, got: unknown): InvalidInput {
  return new InvalidInput('RESOURCE_INVALID', field, expected, got);
}
