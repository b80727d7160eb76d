// The engine of rules is imported when it is needed, so that a broker without rules does not load it: every member
// loads it, and those that need the rules of the store also restore them, once; what failed is tried again by the next
// call. Functions of the app (actions, resource types, SQL functions) can be defined before the start. After a start
// the engine is loaded if anything is stored, configured, or was loaded before. Exported rules have no numbers; an
// import gives them new ones.

import { StateError } from '../../base/errors.ts';
import { checkNames, checkObject } from '../../base/fields.ts';
import { lazy, lazyIterator, onceMade } from '../../base/lazy.ts';
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
import type { RulesApi } from '../../rules/types.ts';

/** The tables in the store. */
export const RULES_TABLE = '$rules';
export const RESOURCES_TABLE = '$resources';

/** A rule in its exported form. Its counters are left out. */
export interface ExportedRule extends Omit<RuleDefinition, 'number'> {
  /** The id of the rule. */
  readonly id: string;
}

/** A resource in its exported form: with its secrets. */
export interface ExportedResource extends Omit<ResourceDefinition, 'number'> {
  /** The id of the resource. */
  readonly id: string;
}

/** The part of the broker that `Rules` uses. */
interface RulesFacetHost extends RulesHost {
  /** True if the content of the store is known. */
  readonly isOpen: boolean;
}

/**
 * The rules of a broker. The engine is loaded by the first call, or by the start of the broker if there is a rule or a resource in the store
 * or in the options.
 */
export class Rules {
  /** `broker.rules`. */
  readonly api: RulesApi;
  readonly #host: RulesFacetHost;
  #engine: RuleEngine | undefined;
  /** True if the broker has stopped. */
  #isHalted = false;
  readonly #load = onceMade(async () => {
    const { RuleEngine } = await import('../../rules/engine.ts');
    this.#engine = new RuleEngine(this.#host);
    return this.#engine;
  });
  readonly #restored = onceMade(async () => {
    const engine = await this.#load();
    await engine.restore();
    if (this.#host.isStarted) engine.begin();
    else if (this.#isHalted) await engine.halt();
  });

  constructor(host: RulesFacetHost) {
    this.#host = host;
    this.api = this.#methods();
  }

  /** Numbers of rules, kinds of actions and resources, as far as the engine is loaded. */
  get counts(): { readonly rules: number; readonly actions: number; readonly resources: number } {
    const engine = this.#engine;
    return { ...(engine?.counts ?? { rules: 0, actions: 0 }), resources: engine?.resources.size ?? 0 };
  }

  /** The rules by id, as far as the engine is loaded. */
  get byId(): RuleEngine['byId'] {
    return this.#engine?.byId ?? new Map();
  }

  /** The actions of all rules, with their fallbacks. */
  actions(): ReturnType<RuleEngine['ruleActions']> | [] {
    return this.#engine?.ruleActions() ?? [];
  }

  /** The persisted rules, for an export. */
  exportedRules(): ExportedRule[] {
    return exported(this.#host.rules);
  }

  /** The persisted resources, for an export. */
  exportedResources(): ExportedResource[] {
    return exported(this.#host.resources);
  }

  /** Create a rule in its exported form, or change it. */
  async putRule({ id, createdAt: _, ...rule }: ExportedRule): Promise<void> {
    const engine = await this.#loaded();
    if ((await engine.get(id)) === undefined) await engine.create({ id, ...rule });
    else await engine.update(id, rule);
  }

  /** Create a resource in its exported form, or change it. */
  async putResource({ id, createdAt: _, type, config, description }: ExportedResource): Promise<void> {
    const { resources } = await this.#loaded();
    const before = await resources.get(id);
    if (before !== undefined && before.type !== type) await resources.remove(id);
    if (before?.type === type) await resources.update(id, { config, description });
    else await resources.create({ id, type, config, description });
  }

  /** Delete a resource, even if a rule uses it. */
  async removeResource(id: string): Promise<void> {
    await (await this.#loaded()).resources.remove(id);
  }

  /** Called when the store is open, and the broker is about to accept connections. */
  async restore(): Promise<void> {
    this.#isHalted = false;
    const { options, rules, resources } = this.#host;
    const isNeeded =
      this.#engine !== undefined ||
      [...rules].length > 0 ||
      [...resources].length > 0 ||
      (options.rules ?? []).length > 0 ||
      (options.resources ?? []).some((given) => !('make' in given)) ||
      Object.keys(options.events ?? {}).length > 0;
    if (isNeeded) await this.#restored();
  }

  /** Connect rules that are disconnected, because a sink was defined that they may use. */
  async reconnect(): Promise<void> {
    await this.#engine?.reconnect();
  }

  /** Open the targets of rules again, because a connection or a schema has changed. */
  async reopen(ids: readonly string[]): Promise<void> {
    await this.#engine?.reopen(ids);
  }

  /** Called when the broker has started. */
  begin(): void {
    this.#engine?.begin();
  }

  /** Called when the broker no longer sends. Resolves when the connections of resources are closed. */
  async halt(): Promise<void> {
    this.#isHalted = true;
    await this.#engine?.halt();
  }

  /** Called when the broker has stopped. */
  end(): void {
    this.#engine?.end();
  }

  #methods(): RulesApi {
    const loaded = () => this.#loaded();
    const methods = {
      ...lazy(loaded, 'create', 'update', 'delete', 'get', 'actor', 'list', 'samples', 'resetCounters'),
      ...lazy(this.#load, 'actions', 'resourceTypes'),
      ...lazy(async () => (await this.#load()).language, 'test', 'validate', 'functions', 'events'),
      ...lazy(this.#load, 'createAction', 'createResourceType', 'createFunction')
    };
    const resources = async () => (await loaded()).resources;
    return {
      ...methods,
      resources: lazy(resources, 'create', 'update', 'delete', 'get', 'list', 'test', 'start', 'check'),
      outputs: (id) => this.#engine?.outputs(id) ?? lazyIterator(this.#load().then((engine) => engine.outputs(id))),
      resetFigures: methods.resetCounters,
      defineAction: methods.createAction,
      defineResourceType: methods.createResourceType,
      defineFunction: methods.createFunction
    };
  }

  /** The engine, with the rules of the store. @throws StateError BROKER_NOT_STARTED */
  async #loaded(): Promise<RuleEngine> {
    const engine = await this.#load();
    if (!this.#host.isOpen)
      throw new StateError('BROKER_NOT_STARTED', 'the broker is not started, so its rules are not known yet');
    await this.#restored();
    return engine;
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
