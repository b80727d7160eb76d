// The engine of rules is imported when it is needed, so that a broker without rules does not load it: every member
// loads it, and those that need the rules of the store also restore them, once. Functions of the app (actions,
// resource types, SQL functions) can be defined before the start. After a start the engine is loaded if anything is
// stored, configured, or was loaded before. Exported rules have no numbers; an import gives them new ones.

import type { ActorRef } from '../../base/actor.ts';
import { StateError } from '../../base/errors.ts';
import { checkNames, checkObject } from '../../base/fields.ts';
import type { ResourceChange, ResourcesApi, RulesApi } from '../../rules/api.ts';
import {
  checkRuleId,
  newActionIds,
  type ResourceDefinition,
  type RuleDefinition,
  readResource,
  readRule
} from '../../rules/definition.ts';
import type { RuleEngine } from '../../rules/engine.ts';
import type { RulesHost } from '../../rules/host.ts';
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
} from '../../rules/types.ts';
import type { SqlFunction } from '../../sql/functions/function.ts';

/** The tables in the store. */
export const RULES_TABLE = '$rules';
export const RESOURCES_TABLE = '$resources';

/** A rule in its exported form. Its counters are left out. */
export interface ExportedRule extends Omit<RuleDefinition, 'number'> {
  readonly id: string;
}

/** A resource in its exported form: with its secrets. */
export interface ExportedResource extends Omit<ResourceDefinition, 'number'> {
  readonly id: string;
}

/** The part of the broker that `Rules` uses. */
interface RulesFacetHost extends RulesHost {
  /** True if the content of the store is known. */
  readonly isOpen: boolean;
}

/**
 * The rules of a broker: `broker.rules`. The engine is loaded by the first call, or by the start of the broker if there is a rule or a
 * resource in the store or in the options.
 */
export class Rules implements RulesApi {
  readonly resources: ResourcesApi;
  readonly #host: RulesFacetHost;
  #engine: RuleEngine | undefined;
  #loading: Promise<RuleEngine> | undefined;
  #restored: Promise<void> | undefined;

  /** @internal */
  constructor(host: RulesFacetHost) {
    this.#host = host;
    this.resources = new RuleResources(() => this.#loaded());
  }

  create(input: RuleInput): Promise<RuleState> {
    return this.#loaded().then((engine) => engine.create(input));
  }

  update(id: string, change: RuleChange): Promise<RuleState> {
    return this.#loaded().then((engine) => engine.update(id, change));
  }

  delete(id: string): Promise<boolean> {
    return this.#loaded().then((engine) => engine.delete(id));
  }

  get(id: string): Promise<RuleState | undefined> {
    return this.#loaded().then((engine) => engine.get(id));
  }

  actor(id: string): Promise<ActorRef> {
    return this.#loaded().then((engine) => engine.actor(id));
  }

  list(query?: RuleQuery): Promise<RuleState[]> {
    return this.#loaded().then((engine) => engine.list(query));
  }

  resetCounters(id: string): Promise<void> {
    return this.#loaded().then((engine) => engine.resetCounters(id));
  }

  /** @deprecated Use `resetCounters`. */
  resetFigures(id: string): Promise<void> {
    return this.resetCounters(id);
  }

  test(sql: string, event?: Readonly<Record<string, unknown>>): Promise<RuleTest> {
    return this.#load().then((engine) => engine.test(sql, event));
  }

  outputs(id?: string): AsyncIterableIterator<RuleOutput> {
    return this.#engine?.outputs(id) ?? this.#outputsLater(id);
  }

  actions(): Promise<ActionInfo[]> {
    return this.#load().then((engine) => engine.actions());
  }

  resourceTypes(): Promise<ResourceTypeInfo[]> {
    return this.#load().then((engine) => engine.resourceTypes());
  }

  events(): Promise<RuleEventInfo[]> {
    return this.#load().then((engine) => engine.events());
  }

  createAction(type: ActionType): Promise<void> {
    return this.#load().then((engine) => engine.createAction(type));
  }

  /** @deprecated Use `createAction`. */
  defineAction(type: ActionType): Promise<void> {
    return this.createAction(type);
  }

  createResourceType(type: ResourceType): Promise<void> {
    return this.#load().then((engine) => engine.createResourceType(type));
  }

  /** @deprecated Use `createResourceType`. */
  defineResourceType(type: ResourceType): Promise<void> {
    return this.createResourceType(type);
  }

  createFunction(definition: SqlFunction): Promise<void> {
    return this.#load().then((engine) => engine.createFunction(definition));
  }

  /** @deprecated Use `createFunction`. */
  defineFunction(definition: SqlFunction): Promise<void> {
    return this.createFunction(definition);
  }

  /** Numbers of rules, kinds of actions and resources, as far as the engine is loaded. @internal */
  get counts(): { readonly rules: number; readonly actions: number; readonly resources: number } {
    const engine = this.#engine;
    return { rules: engine?.ruleCount ?? 0, actions: engine?.actionCount ?? 0, resources: engine?.resources.size ?? 0 };
  }

  /** The persisted rules, for an export. @internal */
  exportedRules(): ExportedRule[] {
    return exported(this.#host.rules);
  }

  /** The persisted resources, for an export. @internal */
  exportedResources(): ExportedResource[] {
    return exported(this.#host.resources);
  }

  /** Create a rule in its exported form, or change it. @internal */
  async putRule({ id, createdAt: _, ...rule }: ExportedRule): Promise<void> {
    const engine = await this.#loaded();
    if ((await engine.get(id)) === undefined) await engine.create({ id, ...rule });
    else await engine.update(id, rule);
  }

  /** Create a resource in its exported form, or change it. @internal */
  async putResource({ id, createdAt: _, type, config, description }: ExportedResource): Promise<void> {
    const { resources } = await this.#loaded();
    const before = await resources.get(id);
    if (before !== undefined && before.type !== type) await resources.remove(id);
    if (before?.type === type) await resources.update(id, { config, description });
    else await resources.create({ id, type, config, description });
  }

  /** Delete a resource, even if a rule uses it. @internal */
  async removeResource(id: string): Promise<void> {
    await (await this.#loaded()).resources.remove(id);
  }

  /** Called when the store is open, and the broker is about to accept connections. @internal */
  async restore(): Promise<void> {
    const { options, rules, resources } = this.#host;
    const isNeeded =
      this.#engine !== undefined ||
      [...rules].length > 0 ||
      [...resources].length > 0 ||
      (options.rules ?? []).length > 0 ||
      (options.resources ?? []).some((given) => !('make' in given)) ||
      Object.keys(options.events ?? {}).length > 0;
    if (isNeeded) await this.#restore(await this.#load());
  }

  /** Called when the broker has started. @internal */
  begin(): void {
    this.#engine?.begin();
  }

  /** Called when the broker no longer sends. Resolves when the connections of resources are closed. @internal */
  async halt(): Promise<void> {
    await this.#engine?.halt();
  }

  /** Called when the broker has stopped. @internal */
  end(): void {
    this.#engine?.end();
  }

  /** The engine, with the rules of the store. @throws StateError BROKER_NOT_STARTED */
  async #loaded(): Promise<RuleEngine> {
    const engine = await this.#load();
    if (!this.#host.isOpen)
      throw new StateError('BROKER_NOT_STARTED', 'the broker is not started, so its rules are not known yet');
    await this.#restore(engine);
    return engine;
  }

  /** The outputs from now on, even though the engine is not loaded. */
  #outputsLater(id: string | undefined): AsyncIterableIterator<RuleOutput> {
    const loading = this.#load().then((engine) => engine.outputs(id));
    loading.catch(() => undefined); // `next` throws it
    return {
      next: () => loading.then((outputs) => outputs.next()),
      return: () => loading.then((outputs) => outputs.return!()),
      [Symbol.asyncIterator]() {
        return this;
      }
    };
  }

  #restore(engine: RuleEngine): Promise<void> {
    this.#restored ??= engine.restore().then(() => {
      if (this.#host.isStarted) engine.begin();
    });
    return this.#restored;
  }

  #load(): Promise<RuleEngine> {
    this.#loading ??= import('../../rules/engine.ts').then(({ RuleEngine }) => {
      this.#engine = new RuleEngine(this.#host);
      return this.#engine;
    });
    return this.#loading;
  }
}

/** `broker.rules.resources`. */
class RuleResources implements ResourcesApi {
  readonly #loaded: () => Promise<RuleEngine>;

  constructor(loaded: () => Promise<RuleEngine>) {
    this.#loaded = loaded;
  }

  create(input: ResourceInput): Promise<ResourceState> {
    return this.#all().then((all) => all.create(input));
  }

  update(id: string, change: ResourceChange): Promise<ResourceState> {
    return this.#all().then((all) => all.update(id, change));
  }

  delete(id: string): Promise<boolean> {
    return this.#all().then((all) => all.delete(id));
  }

  get(id: string): Promise<ResourceState | undefined> {
    return this.#all().then((all) => all.get(id));
  }

  list(type?: string): Promise<ResourceState[]> {
    return this.#all().then((all) => all.list(type));
  }

  test(input: ResourceInput): Promise<void> {
    return this.#all().then((all) => all.test(input));
  }

  start(id: string): Promise<void> {
    return this.#all().then((all) => all.start(id));
  }

  check(id: string): Promise<boolean> {
    return this.#all().then((all) => all.check(id));
  }

  async #all(): Promise<ResourcesApi> {
    return (await this.#loaded()).resources;
  }
}

const RULE_FIELDS = ['id', 'sql', 'actions', 'description', 'isEnabled', 'onActionFailed', 'createdAt'];
const RESOURCE_FIELDS = ['id', 'type', 'config', 'description', 'createdAt'];

/** @throws InvalidInput RULE_INVALID, OPTION_UNKNOWN */
export function checkExportedRule(rule: ExportedRule): void {
  checkObject(rule, 'rule');
  checkNames(rule, RULE_FIELDS, 'a rule');
  checkRuleId(rule.id);
  const { createdAt: _, ...given } = rule;
  readRule(given, newActionIds(0));
}

/** @throws InvalidInput RESOURCE_INVALID, RULE_INVALID, OPTION_UNKNOWN */
export function checkExportedResource(resource: ExportedResource): void {
  checkObject(resource, 'resource');
  checkNames(resource, RESOURCE_FIELDS, 'a resource');
  checkRuleId(resource.id);
  const { createdAt: _, ...given } = resource;
  readResource(given);
}

function exported<D extends { readonly number: number }>(
  table: Iterable<readonly [string, D]>
): (Omit<D, 'number'> & { readonly id: string })[] {
  const sorted = [...table].sort(([, a], [, b]) => a.number - b.number);
  return sorted.map(([id, { number: _number, ...rest }]) => ({ id, ...rest }));
}
