// Loaded when the first rule or resource needs it. Changes run one after the other (`#inTurn`), and a definition is
// written to the store before it takes effect. A rule that cannot run does not fail a start: it is disconnected with
// a reason and tried again, at intervals and whenever a kind or a resource appears that it may have waited for. Rules
// of the options are made before those of the store, win over them by id, and cannot be changed at run time.

import type { ActorRef } from '../base/actor.ts';
import { SamplePace } from '../base/collections/samples.ts';
import { ErrorReports } from '../base/error-reports.ts';
import { BrokerError, InvalidInput, NotFound, StateError } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import type { SqlFunction } from '../sql/functions/function.ts';
import { covers, matches } from '../topics/topic.ts';
import { ownActions } from './actions/index.ts';
import { checkFunction } from './app-function.ts';
import {
  allActions,
  byId,
  fixedActionIds,
  hasFunctions,
  idOf,
  newActionIds,
  type RuleDefinition,
  readChange,
  readRule
} from './definition.ts';
import { EventFeeds } from './event-feeds.ts';
import type { RulesHost } from './host.ts';
import { keptActions } from './kept-actions.ts';
import { Kinds } from './kinds.ts';
import { Meters } from './meter.ts';
import { OutputIterations } from './output-iterations.ts';
import type { RuleEngineParts } from './parts.ts';
import { missingPlan, type Plan, Planner } from './plan.ts';
import { BrokerRule } from './rule.ts';
import { RuleActionList, resourcesIn } from './rule-actions.ts';
import { RuleLanguage } from './rule-test.ts';
import { ActionTargets } from './targets/action-targets.ts';
import { Resources } from './targets/resources.ts';
import type { SettledEarlier } from './targets/target-queue.ts';
import type {
  ActionInfo,
  ActionType,
  Params,
  ResourceInput,
  ResourceType,
  ResourceTypeInfo,
  RuleChange,
  RuleInput,
  RuleOutput,
  RuleQuery,
  RuleSamples,
  RuleState,
  RulesApi
} from './types.ts';

/** The loaded rule engine of a broker, called by `broker.rules`. */
export class RuleEngine
  implements
    Omit<RulesApi, keyof RuleLanguage | 'resetFigures' | 'defineAction' | 'defineResourceType' | 'defineFunction'>
{
  readonly resources: Resources;
  readonly language: RuleLanguage;
  readonly #host: RulesHost;
  readonly #parts: RuleEngineParts;
  readonly #rules = new Map<string, BrokerRule>();
  /** Reports errors, with repetitions suppressed. */
  readonly #reports: ErrorReports;
  #lastNumber = 0;
  /** The rule that is being created or changed. Its actions already use what they name. */
  #changing: { readonly id: string; readonly definition: RuleDefinition } | undefined;
  /** The last change. Changes are made one at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(host: RulesHost) {
    this.#host = host;
    const { options, clock } = host;
    this.#reports = new ErrorReports(() => clock.monotonic());
    const kinds = new Kinds(() => host.sinkActions());
    const settled: SettledEarlier = (ruleId, { actionId, origin }, isSent, error) =>
      this.#rules.get(ruleId)?.resume(actionId, isSent, error, origin);
    this.resources = new Resources({
      ...{ broker: host, kinds, settled },
      inTurn: (run) => this.#inTurn(run),
      userOf: (id) => this.#userOf(id),
      changed: (id) => this.#resourceChanged(id)
    });
    this.#parts = {
      ...{ host, kinds, resources: this.resources },
      planner: new Planner({ now: () => clock.now(), random: Math.random, nullIsNull: options.nullIsNull ?? false }),
      feeds: new EventFeeds(host),
      meters: new Meters(host.wheel),
      iterations: new OutputIterations(),
      pace: new SamplePace(clock),
      targets: new ActionTargets(host, settled),
      failed: (ruleId, during, error) => this.#failed(ruleId, during, error),
      actionFailed: (ruleId, actionId, error, topic) => {
        this.#rules.get(ruleId)?.actionFailed(actionId, error, topic);
        this.#failed(ruleId, `action ${actionId} of rule ${ruleId}`, error);
      }
    };
    this.language = new RuleLanguage(this.#parts.planner, host);
    for (const type of ownActions(host)) kinds.defineAction(type);
    for (const type of options.actions ?? []) kinds.defineAction(type);
    for (const given of options.resources ?? []) if ('make' in given) kinds.defineResource(given);
    for (const row of options.functions ?? []) this.#define(row);
  }

  /** Numbers of rules, and of action types. */
  get counts(): { readonly rules: number; readonly actions: number } {
    return { rules: this.#rules.size, actions: this.#parts.kinds.actionCount };
  }

  /** The rules by id. */
  get byId(): ReadonlyMap<string, BrokerRule> {
    return this.#rules;
  }

  /** The actions of all rules, with their fallbacks. */
  *ruleActions(): Generator<{ readonly rule: string; readonly type: string; readonly properties: Params }> {
    const rules = [...this.#rules.values(), ...(this.#changing === undefined ? [] : [this.#changing])];
    for (const { id: rule, definition } of rules)
      for (const { name, params } of allActions(definition.actions)) yield { rule, type: name, properties: params };
  }

  /**
   * Create the resources and rules of the options and of the store. Called when the store is open, and again after a failure: what exists
   * already is kept.
   */
  async restore(): Promise<void> {
    const { options, rules } = this.#host;
    await this.resources.restore(
      (options.resources ?? []).filter((given): given is ResourceInput => !('make' in given))
    );
    for (const [id, input] of byId(options.rules ?? [], 'rule', exists)) {
      if (this.#rules.has(id)) continue;
      const rule = await this.#ruleOfOptions(id, input);
      await rule.start();
    }
    const stored = [...rules].sort(([, a], [, b]) => a.number - b.number);
    for (const [id, definition] of stored) {
      this.#lastNumber = Math.max(this.#lastNumber, definition.number);
      if (!this.#rules.has(id)) await this.#restoreRule(id, definition);
    }
    this.#parts.targets.deleteOthers(this.#rules);
  }

  /** Called when the broker has started. */
  begin(): void {
    this.resources.begin();
    this.#parts.targets.begin((id, error) => this.#targetFailed(id, error));
    for (const rule of this.#rules.values()) if (rule.state.state === 'disconnected') rule.awaitRetry(); // timers end at a stop
    this.#parts.meters.begin();
    this.#parts.feeds.begin();
  }

  /**
   * Called when the broker has stopped, and the queues of resources with it. Resolves when the connections of resources
   * are closed.
   */
  async halt(): Promise<void> {
    await Promise.all([this.resources.halt(), this.#parts.targets.halt()]);
  }

  /** End all iterations and timers, because the broker has stopped. */
  end(): void {
    this.#parts.pace.end();
    this.#parts.iterations.end();
  }

  // ------------------------------------------------------------------------------------------------------------------ rules

  create(input: RuleInput): Promise<RuleState> {
    return this.#inTurn(async () => {
      checkObject(input, 'rule');
      const read = readRule(input, newActionIds(this.#host.clock.now()));
      const id = idOf(input.id, 'rule', (taken) => this.#rules.has(taken));
      if (this.#rules.has(id)) throw exists(id);
      const plan = await this.#parts.planner.plan(read.sql);
      const definition = withDefaults(read, this.#place());
      const list = await this.#makeActions(id, definition);
      try {
        if (!hasFunctions(definition.actions)) await this.#host.rules.set(id, definition);
      } catch (error) {
        list?.retire();
        throw error;
      }
      const rule = this.#add(id, definition, plan, false);
      if (list !== undefined) rule.use(list);
      return rule.state;
    });
  }

  update(id: string, change: RuleChange): Promise<RuleState> {
    return this.#inTurn(async () => {
      const rule = this.#changeable(id);
      const { actions: given, ...read } = readChange(change, newActionIds(this.#host.clock.now()));
      const before = rule.definition;
      await this.#parts.kinds.find([...(given ?? []), ...before.actions]);
      const present = { definitions: before.actions, states: rule.state.actions };
      const actions =
        given === undefined ? before.actions : keptActions(given, present, (name) => this.#parts.kinds.paramsOf(name));
      const after: RuleDefinition = { ...before, ...read, actions };
      const isPlanKept = after.sql === before.sql && !(rule.plan.isMissing && after.isEnabled);
      const plan = isPlanKept ? rule.plan : await this.#parts.planner.plan(after.sql);
      const hasOtherActions = actions !== before.actions;
      const needsActions =
        after.isEnabled && (hasOtherActions || after.onActionFailed !== before.onActionFailed || !rule.isAttached);
      const list = needsActions || hasOtherActions ? await this.#makeActions(id, after) : undefined;
      try {
        if (!hasFunctions(after.actions)) await this.#host.rules.set(id, after);
        else if (rule.isPersisted) await this.#host.rules.delete(id);
      } catch (error) {
        list?.retire();
        throw error;
      }
      rule.change(after, plan, list);
      if (!after.isEnabled) rule.disable();
      return rule.state;
    });
  }

  delete(id: string): Promise<boolean> {
    return this.#inTurn(async () => {
      if (!this.#rules.has(id)) return false;
      const rule = this.#changeable(id);
      await this.#host.rules.delete(id);
      rule.drop();
      this.#parts.targets.delete(id, rule.definition.actions);
      this.#rules.delete(id);
      this.#reports.forget(id);
      this.#parts.iterations.end(id);
      return true;
    });
  }

  async get(id: string): Promise<RuleState | undefined> {
    const rule = this.#rules.get(id);
    return rule && (await this.#statesOf([rule]))[0];
  }

  async actor(id: string): Promise<ActorRef> {
    return this.#existing(id).actor;
  }

  async list(query: RuleQuery = {}): Promise<RuleState[]> {
    checkObject(query, 'query');
    checkQuery(query);
    const rules = [...this.#rules.values()].filter((rule) => isWanted(rule, query));
    return this.#statesOf(rules.sort((a, b) => a.order - b.order));
  }

  async samples(id: string): Promise<RuleSamples> {
    return this.#existing(id).samples;
  }

  async resetCounters(id: string): Promise<void> {
    this.#existing(id).resetCounters();
  }

  outputs(id?: string): AsyncIterableIterator<RuleOutput> {
    return this.#parts.iterations.iterate(id);
  }

  // ------------------------------------------------------------------------------------------------------------------ kinds

  async actions(): Promise<ActionInfo[]> {
    await this.#parts.kinds.findSinks();
    return this.#parts.kinds.actions();
  }

  async resourceTypes(): Promise<ResourceTypeInfo[]> {
    return this.#parts.kinds.resourceTypes();
  }

  async createAction(type: ActionType): Promise<void> {
    this.#parts.kinds.defineAction(type);
    await this.reconnect();
  }

  async createResourceType(type: ResourceType): Promise<void> {
    this.#parts.kinds.defineResource(type);
    await this.resources.remake();
    await this.reconnect();
  }

  async createFunction(definition: SqlFunction): Promise<void> {
    this.#define(definition);
    await this.reconnect();
  }

  /** Connect rules that are disconnected. */
  async reconnect(): Promise<void> {
    for (const rule of [...this.#rules.values()]) if (!rule.isAttached) await rule.start();
  }

  /** Open the own targets of actions of rules again, and start those rules that are disconnected. */
  reopen(ids: readonly string[]): Promise<void> {
    return this.#inTurn(async () => {
      for (const id of new Set(ids)) {
        const rule = this.#rules.get(id);
        if (rule?.isAttached) await this.#parts.targets.reopen(id).catch((error) => this.#targetFailed(id, error));
        else await rule?.start();
      }
    });
  }

  /** The states of rules. A parameter is shown as its action type says, which may be a sink. */
  async #statesOf(rules: readonly BrokerRule[]): Promise<RuleState[]> {
    await this.#parts.kinds.find(rules.flatMap(({ definition }) => definition.actions));
    return rules.map(({ state }) => state);
  }

  #define(row: SqlFunction): void {
    checkFunction(row);
    if (this.#parts.planner.functions.has(row.name))
      throw new StateError('FUNCTION_EXISTS', `function ${row.name}() already exists`);
    this.#parts.planner.define(row);
  }

  // ---------------------------------------------------------------------------------------------------------------- private

  #add(id: string, definition: RuleDefinition, plan: Plan, isFromOptions: boolean): BrokerRule {
    const rule = new BrokerRule(id, definition, plan, isFromOptions, this.#parts);
    this.#rules.set(id, rule);
    this.#host.noted('rules', this.#rules.size);
    return rule;
  }

  /** @throws BrokerError with the reason why the rule cannot be used; the message names the rule */
  async #ruleOfOptions(id: string, input: RuleInput): Promise<BrokerRule> {
    try {
      const read = readRule(input, fixedActionIds(id));
      return this.#add(id, withDefaults(read, this.#place()), await this.#parts.planner.plan(read.sql), true);
    } catch (error) {
      if (error instanceof BrokerError)
        throw new BrokerError(error.code, `rule "${id}": ${error.message}`, { cause: error });
      throw error;
    }
  }

  async #restoreRule(id: string, definition: RuleDefinition): Promise<void> {
    const plan = await this.#parts.planner.plan(definition.sql).catch(() => missingPlan(definition.sql));
    const rule = this.#add(id, definition, plan, false);
    await rule.start();
  }

  /** The actions of an enabled rule; those of a disabled rule are created and closed, as a check. */
  async #makeActions(id: string, definition: RuleDefinition): Promise<RuleActionList | undefined> {
    this.#changing = { id, definition };
    const list = await RuleActionList.make(id, definition, this.#parts);
    if (definition.isEnabled) return list;
    list.retire();
    return undefined;
  }

  #failed(ruleId: string, during: string, error: unknown): void {
    if (this.#reports.isFirst(ruleId, during, error)) this.#host.failed(error, during);
  }

  /** Called if the target of an action cannot be opened again. */
  #targetFailed(id: string, error: unknown): void {
    const rule = this.#rules.get(id);
    if (rule?.isAttached) rule.fail(error);
  }

  #place(): { readonly createdAt: number; readonly number: number } {
    return { createdAt: this.#host.clock.now(), number: ++this.#lastNumber };
  }

  async #resourceChanged(id: string): Promise<void> {
    for (const rule of [...this.#rules.values()])
      if (resourcesIn(rule.definition.actions).includes(id)) await rule.start();
  }

  #userOf(resourceId: string): string | undefined {
    for (const rule of this.#rules.values())
      if (resourcesIn(rule.definition.actions).includes(resourceId)) return rule.id;
    return undefined;
  }

  #existing(id: string): BrokerRule {
    const rule = this.#rules.get(id);
    if (rule === undefined) throw new NotFound('RULE_NOT_FOUND', `rule "${id}" does not exist`);
    return rule;
  }

  #changeable(id: string): BrokerRule {
    const rule = this.#existing(id);
    if (!rule.isFromOptions) return rule;
    throw new StateError('RULE_OF_APP', `the rule "${id}" is in the options of the broker; change it there`);
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const done = this.#last.then(run).finally(() => {
      this.#changing = undefined;
    });
    this.#last = done.catch(() => undefined);
    return done;
  }
}

function withDefaults(
  read: ReturnType<typeof readRule>,
  place: Pick<RuleDefinition, 'createdAt' | 'number'>
): RuleDefinition {
  return { description: '', isEnabled: true, onActionFailed: 'continue', ...read, ...place };
}

const QUERY_FIELDS = ['isEnabled', 'for', 'likeId', 'likeFor', 'matchFor', 'likeDescription'];

/** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
function checkQuery(query: RuleQuery): void {
  checkNames(query, QUERY_FIELDS, 'a query for rules');
  for (const [name, value] of Object.entries(query) as [string, unknown][]) {
    const type = name === 'isEnabled' ? 'boolean' : 'string';
    if (value !== undefined && typeof value !== type)
      throw new InvalidInput('OPTION_INVALID', name, `a ${type}`, value);
  }
}

function isWanted({ id, definition, plan }: BrokerRule, query: RuleQuery): boolean {
  const { isEnabled, for: topic, likeId, likeFor, matchFor, likeDescription } = query;
  const { topics } = plan;
  return (
    (isEnabled === undefined || definition.isEnabled === isEnabled) &&
    (topic === undefined || topics.includes(topic)) &&
    (likeId === undefined || id.includes(likeId)) &&
    (likeFor === undefined || topics.some((each) => each.includes(likeFor))) &&
    (matchFor === undefined ||
      topics.some((each) => each === matchFor || matches(matchFor, each) || covers(matchFor, each))) &&
    (likeDescription === undefined || definition.description.includes(likeDescription))
  );
}

function exists(id: string): StateError {
  return new StateError('RULE_EXISTS', `rule "${id}" already exists`);
}
