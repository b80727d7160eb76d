// A change of the list of resources runs in turn with the changes of rules; finding out whether a target can be
// reached does not, so that a target that does not answer delays no other change. A resource whose type is missing,
// or that cannot be made, stays in the list with its error and is made again when its type is defined. Two ids must
// not have the same outbox (`x` and `resource:x`). `delete` refuses a resource that a rule uses; `remove`, for an
// import, does not.

import { BrokerError, NotFound, StateError } from '../../base/errors.ts';
import { checkObject } from '../../base/fields.ts';
import { FunctionTimer } from '../../base/timing-wheel.ts';
import type { Opener } from '../../targets/opener.ts';
import { byId, idOf, type ResourceDefinition, readResource, readResourceChange } from '../definition.ts';
import type { RulesHost } from '../host.ts';
import type { Kinds } from '../kinds.ts';
import { TICK_SEC } from '../meter.ts';
import { checkParams, keepParams } from '../params.ts';
import type {
  Resource,
  ResourceChange,
  ResourceContext,
  ResourceInput,
  ResourceState,
  ResourcesApi
} from '../types.ts';
import { makeResource, outboxName, type ResourceHost, RuleResource, resourceOpener } from './rule-resource.ts';

/** Dependencies of `Resources` on the engine. */
interface ResourcesHost {
  readonly broker: RulesHost;
  readonly kinds: Kinds;
  /** Run changes one at a time. */
  inTurn<T>(run: () => Promise<T>): Promise<T>;
  /** A rule that uses a resource; undefined if there is none. */
  userOf(resourceId: string): string | undefined;
  /** Called when a resource has become usable or was changed. */
  changed(resourceId: string): Promise<void>;
  settled: ResourceHost['settled'];
}

/** The resources of rules: `broker.rules.resources`. */
export class Resources implements ResourcesApi {
  readonly #host: ResourcesHost;
  readonly #all = new Map<string, RuleResource>();
  readonly #resourceHost: ResourceHost;
  /** The tests in progress. */
  readonly #tests = new Set<Opener<Resource>>();
  /** Checks again whether the targets that were alive can be reached. */
  readonly #tick = new FunctionTimer(() => {
    for (const resource of this.#all.values()) if (resource.isAlive) void resource.check();
    this.#armTick();
  });
  #lastNumber = 0;
  /** True if the broker has stopped. */
  #isHalted = false;

  constructor(host: ResourcesHost) {
    this.#host = host;
    const { broker, kinds } = host;
    this.#resourceHost = {
      kinds,
      clock: broker.clock.internal ?? broker.clock,
      outboxes: broker.outboxes,
      contextOf: (id) => this.#contextOf(id),
      during: (work) => broker.during(work),
      raise: (id, title, summary) => broker.raise(id, title, summary),
      clear: (id) => broker.clear(id),
      settled: (...entry) => host.settled(...entry)
    };
  }

  get size(): number {
    return this.#all.size;
  }

  find(id: string): RuleResource | undefined {
    return this.#all.get(id);
  }

  /** Create the resources of the options and the store that do not exist yet. */
  async restore(given: readonly ResourceInput[]): Promise<void> {
    const { broker } = this.#host;
    for (const [id, input] of byId(given, 'resource', exists))
      if (!this.#all.has(id)) await this.#restore(id, { ...readResource(input), ...this.#place() }, false);
    const stored = [...broker.resources].sort(([, a], [, b]) => a.number - b.number);
    for (const [id, definition] of stored) {
      this.#lastNumber = Math.max(this.#lastNumber, definition.number);
      if (!this.#all.has(id)) await this.#restore(id, definition, true);
    }
  }

  /** Called when the broker has started. */
  begin(): void {
    this.#isHalted = false;
    for (const resource of this.#all.values()) resource.begin();
    this.#armTick();
  }

  /** Close the resources, because the broker has stopped. */
  async halt(): Promise<void> {
    this.#isHalted = true;
    const stopped = new BrokerError('RESOURCE_DOWN', 'the broker has stopped');
    const tests = [...this.#tests].map((opener) => opener.halt(stopped));
    await Promise.all([...tests, ...[...this.#all.values()].map((resource) => resource.halt())]);
  }

  /** Try again to create the resources whose type was missing. */
  async remake(): Promise<void> {
    for (const resource of this.#all.values()) {
      if (resource.isMade || !(await resource.tryToMake())) continue;
      void resource.check();
      await this.#host.changed(resource.id);
    }
  }

  async create(input: ResourceInput): Promise<ResourceState> {
    const created = await this.#host.inTurn(async () => {
      const { broker, kinds } = this.#host;
      const read = readResource(input);
      const id = idOf(input.id, 'resource', (taken) => this.#all.has(taken));
      const similar = [...this.#all.keys()].find((other) => outboxName(other) === outboxName(id));
      if (similar !== undefined) throw exists(similar);
      const what = input.id === undefined ? `a resource of type ${read.type}` : `the resource "${id}"`;
      const config = checkParams(kinds.resource(read.type).params, read.config, what);
      const definition: ResourceDefinition = { ...read, config, ...this.#place() };
      const resource = new RuleResource(id, definition, true, this.#resourceHost);
      await resource.make();
      try {
        await broker.resources.set(id, definition);
      } catch (error) {
        await resource.close();
        throw error;
      }
      this.#all.set(id, resource);
      broker.noted('resources', this.#all.size);
      this.#armTick();
      if (this.#isHalted) await resource.halt();
      await this.#host.changed(id);
      return resource;
    });
    // other changes do not wait for a target that does not answer
    await created.check();
    return created.state;
  }

  async update(id: string, change: ResourceChange): Promise<ResourceState> {
    const { resource, isChecked } = await this.#host.inTurn(async () => {
      checkObject(change, 'resource');
      const resource = this.#changeable(id);
      const { config: given, ...read } = readResourceChange(change);
      const { definition } = resource;
      const table = this.#host.kinds.resource(definition.type).params;
      const what = `the resource "${id}"`;
      const kept = keepParams(table, given, { present: definition.config, what });
      const config = given === undefined ? definition.config : checkParams(table, kept, what);
      const after = { ...definition, ...read, config };
      const persist = () => this.#host.broker.resources.set(id, after);
      if (given === undefined) {
        await persist();
        resource.describe(after);
        return { resource, isChecked: false };
      }
      await resource.change(after, persist);
      await this.#host.changed(id);
      return { resource, isChecked: true };
    });
    if (isChecked) await resource.check();
    return resource.state;
  }

  delete(id: string): Promise<boolean> {
    return this.#host.inTurn(async () => {
      if (!this.#all.has(id)) return false;
      const resource = this.#changeable(id);
      const rule = this.#host.userOf(id);
      if (rule !== undefined)
        throw new StateError(
          'RESOURCE_IN_USE',
          `the resource "${id}" is used by the rule "${rule}"; delete the rule first`
        );
      await this.#remove(resource);
      return true;
    });
  }

  /** Delete a resource even if a rule uses it: such a rule is disconnected. */
  remove(id: string): Promise<void> {
    return this.#host.inTurn(async () => {
      if (!this.#all.has(id)) return;
      await this.#remove(this.#changeable(id));
      await this.#host.changed(id);
    });
  }

  async get(id: string): Promise<ResourceState | undefined> {
    return this.#all.get(id)?.state;
  }

  async list(type?: string): Promise<ResourceState[]> {
    const all = [...this.#all.values()];
    return all.filter(({ definition }) => type === undefined || definition.type === type).map(({ state }) => state);
  }

  async test(input: ResourceInput): Promise<void> {
    const read = readResource(input);
    const context = this.#contextOf('resource:test');
    const { kinds } = this.#host;
    const opener = resourceOpener(this.#resourceHost, context.id, { open: () => makeResource(read, kinds, context) });
    this.#tests.add(opener);
    try {
      await opener.open();
      await opener.reach().catch((error) => Promise.reject(down(error)));
    } finally {
      this.#tests.delete(opener);
      await opener.close(new BrokerError('RESOURCE_DOWN', 'the test is complete'));
    }
  }

  async start(id: string): Promise<void> {
    const resource = this.#existing(id);
    if (!resource.isMade && !(await resource.tryToMake())) throw down(resource.state.lastError);
    if (!(await resource.check())) throw down(resource.state.lastError);
    await this.#host.changed(id);
  }

  async check(id: string): Promise<boolean> {
    return this.#existing(id).check();
  }

  async #remove(resource: RuleResource): Promise<void> {
    await this.#host.broker.resources.delete(resource.id);
    this.#all.delete(resource.id);
    await resource.close();
  }

  async #restore(id: string, definition: ResourceDefinition, isPersisted: boolean): Promise<void> {
    const resource = new RuleResource(id, definition, isPersisted, this.#resourceHost);
    this.#all.set(id, resource);
    await resource.tryToMake();
  }

  #armTick(): void {
    const isNeeded = this.#all.size > 0 && this.#tick.dueMs === Infinity;
    if (isNeeded) this.#host.broker.wheel.arm(this.#tick, TICK_SEC * 1000);
  }

  #place(): { readonly createdAt: number; readonly number: number } {
    return { createdAt: this.#host.broker.clock.now(), number: ++this.#lastNumber };
  }

  #contextOf(id: string): ResourceContext {
    const { node, clock, failed } = this.#host.broker;
    return { id, node, clock, failed };
  }

  #existing(id: string): RuleResource {
    const resource = this.#all.get(id);
    if (resource === undefined) throw new NotFound('RESOURCE_NOT_FOUND', `resource "${id}" does not exist`);
    return resource;
  }

  #changeable(id: string): RuleResource {
    const resource = this.#existing(id);
    if (resource.isPersisted) return resource;
    throw new StateError('RESOURCE_OF_APP', `the resource "${id}" is in the options of the broker; change it there`);
  }
}

function exists(id: string): StateError {
  return new StateError('RESOURCE_EXISTS', `resource "${id}" already exists`);
}

function down(error: unknown): BrokerError {
  const why = error instanceof Error ? error.message : 'its target cannot be reached';
  return new BrokerError('RESOURCE_DOWN', why, { cause: error });
}
