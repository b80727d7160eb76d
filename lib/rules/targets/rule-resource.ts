// The outbox outlives what the type has made: after a stop and a start, and mostly after a change, its entries are
// still there.

import type { Clock } from '../../base/clock.ts';
import { BrokerError } from '../../base/errors.ts';
import { hideSecrets } from '../../base/secrets.ts';
import type { Awaitable } from '../../events/hooks.ts';
import type { Outboxes } from '../../outbox/outboxes.ts';
import { Opener } from '../../targets/opener.ts';
import type { ResourceDefinition } from '../definition.ts';
import type { EntryHead } from '../entry-head.ts';
import type { Kinds } from '../kinds.ts';
import { checkParams, hideAll } from '../params.ts';
import type { Resource, ResourceContext, ResourceState } from '../types.ts';
import { type Settled, type SettledEarlier, TargetQueue } from './target-queue.ts';

/** Dependencies of resources on the engine. */
export interface ResourceHost {
  readonly outboxes: Pick<Outboxes, 'open' | 'delete'>;
  readonly settled: SettledEarlier;
  readonly kinds: Kinds;
  readonly clock: Clock;
  contextOf(id: string): ResourceContext;
  /** Note that work of another process is in progress. */
  during(work: Promise<unknown>): void;
  raise(id: string, title: string, summary: string): void;
  clear(id: string): void;
}

/** A resource: the connection that its type has created, its outbox, and whether its target can be reached. */
export class RuleResource {
  readonly id: string;
  readonly isPersisted: boolean;
  definition: ResourceDefinition;
  readonly #host: ResourceHost;
  readonly #opener: Opener<Resource>;
  readonly #queue: TargetQueue;

  constructor(id: string, definition: ResourceDefinition, isPersisted: boolean, host: ResourceHost) {
    this.id = id;
    this.definition = definition;
    this.isPersisted = isPersisted;
    this.#host = host;
    this.#opener = resourceOpener(host, id, {
      open: () => this.#open(),
      changed: (reason) => this.#changed(reason)
    });
    this.#queue = new TargetQueue(host.outboxes, outboxName(id), {
      settledEarlier: host.settled,
      what: `the resource "${id}"`,
      send: async (entries, attempt) => (await this.#opener.open()).send(entries, attempt),
      // an entry that the target has accepted shows that it can be reached again
      sent: () => void (this.isAlive || this.check())
    });
  }

  /** True if its type was registered and has created it. */
  get isMade(): boolean {
    return this.#queue.isOpen;
  }

  /** The result of the last check. */
  get isAlive(): boolean {
    return this.#opener.isAlive;
  }

  /** The reason why its target could not be reached, or why the last delivery failed. */
  get lastError(): Error | undefined {
    return this.#opener.lastError ?? this.#queue.lastError;
  }

  get state(): ResourceState {
    const { id, definition, isAlive, isPersisted } = this;
    const { type, config, description, createdAt } = definition;
    const kind = this.#host.kinds.findResource(type);
    return {
      ...{ id, type, description, isAlive, createdAt, isPersisted },
      config: kind === undefined ? hideAll(config) : hideSecrets(kind.params, config),
      lastError: this.lastError,
      size: this.#queue.size
    };
  }

  /**
   * Create the connection and the outbox.
   * @throws NotFound RESOURCE_TYPE_NOT_FOUND; InvalidInput PARAM_REQUIRED, PARAM_INVALID, and the errors of the type
   */
  async make(): Promise<void> {
    await this.#opener.open();
  }

  /** As `make`, but the reason why it cannot be created is recorded: it counts as down. @returns whether it is created */
  async tryToMake(): Promise<boolean> {
    try {
      await this.make();
      return true;
    } catch (error) {
      this.#opener.down(error as Error);
      return false;
    }
  }

  /**
   * Change the configuration. Queued entries are kept, unless the limits of the outbox change and it is not persisted.
   * @param persist writes the definition to the store
   * @throws as `make`, and the errors of `persist`; nothing has then changed
   */
  change(definition: ResourceDefinition, persist: () => Promise<void>): Promise<void> {
    const { kinds, contextOf } = this.#host;
    const open = () => makeResource(definition, kinds, contextOf(this.id));
    return this.#opener.change(open, async ({ outbox }) => {
      this.#queue.check(outbox);
      await persist();
      this.definition = definition;
      this.#queue.change(outbox);
    });
  }

  /** Take over a definition that differs only in its description. */
  describe(definition: ResourceDefinition): void {
    this.definition = definition;
  }

  /** True if an entry with this head has to be known after a restart. */
  get isDurable(): boolean {
    return this.#queue.isDurable;
  }

  /**
   * Add a content to be sent.
   * @param settled called when the outcome is known, if that is in this process
   * @param keptBytes memory that `settled` retains
   * @throws BrokerError RESOURCE_NOT_INITIALIZED; ENTRY_DROPPED for the fallback of an entry that was dropped, which
   *   would drop the next one
   */
  add(ruleId: string, head: EntryHead, content: string | Buffer, settled: Settled, keptBytes: number): void {
    if (!this.isMade) throw this.#opener.lastError ?? notMade(this.id);
    this.#queue.add(ruleId, head, content, settled, keptBytes);
  }

  /** Check whether the target can be reached. Concurrent calls share one result. */
  check(): Promise<boolean> {
    return this.isMade ? this.#opener.check() : Promise.resolve(false);
  }

  /** Release the connection, and drop the entries of the queue, including those in the store. */
  async close(): Promise<void> {
    this.#host.clear(this.#alarm);
    this.#queue.delete();
    await this.#opener.close(new BrokerError('RESOURCE_DOWN', `the resource "${this.id}" has been deleted`));
  }

  /** Close the connection, because the broker has stopped. The queue stays unchanged. */
  halt(): Promise<void> {
    return this.#opener.halt(new BrokerError('RESOURCE_DOWN', 'the broker has stopped'));
  }

  /** Open the connection again, because the broker has started, and check whether the target can be reached. */
  begin(): void {
    this.#opener.begin();
    void this.check();
  }

  async #open(): Promise<Resource> {
    const { kinds, contextOf } = this.#host;
    const made = makeResource(this.definition, kinds, contextOf(this.id));
    try {
      this.#queue.change(made.outbox);
    } catch (error) {
      await made.close();
      throw error;
    }
    return made;
  }

  get #alarm(): string {
    return `resource/${this.definition.type}/${this.id}/down`;
  }

  #changed(reason: Error | undefined): void {
    if (reason === undefined) {
      this.#host.clear(this.#alarm);
      this.#queue.retryNow();
      return;
    }
    const { type } = this.definition;
    const summary = `The target of the ${type} resource "${this.id}" cannot be reached: ${reason.message}`;
    this.#host.raise(this.#alarm, `resource ${this.id} is down`, summary);
  }
}

/** The opener of a resource. */
export function resourceOpener(
  { clock, during, contextOf }: Pick<ResourceHost, 'clock' | 'during' | 'contextOf'>,
  id: string,
  own: { open(): Awaitable<Resource>; changed?(reason: Error | undefined): void }
): Opener<Resource> {
  return new Opener<Resource>({
    ...{ clock, during, ...own, what: `the resource "${id}"`, code: 'RESOURCE_NOT_INITIALIZED' },
    check: (made, signal) => made.check(signal),
    close: (made) => made.close(),
    failed: (error, work) => contextOf(id).failed(error, work)
  });
}

/** Create the connection of a resource type. @throws as `RuleResource.make` */
export function makeResource(
  { type: name, config }: Pick<ResourceDefinition, 'type' | 'config'>,
  kinds: Kinds,
  context: ResourceContext
): Resource {
  const type = kinds.resource(name);
  const made = type.make(checkParams(type.params, config, `a resource of type ${name}`), context);
  if (isResource(made)) return made;
  Promise.resolve(made).catch(() => undefined); // the resource cannot be used in any case
  const fault = 'make() must return an object with check(), send() and close()';
  throw new BrokerError('RESOURCE_NOT_INITIALIZED', `the resource type "${name}": ${fault}`);
}

/** Check whether a type of the app has returned a valid resource. */
function isResource(made: Partial<Resource> | null | undefined): boolean {
  return [made?.check, made?.send, made?.close].every((method) => typeof method === 'function');
}

/** The name of the outbox of a resource: `x` and `resource:x` share one. */
export function outboxName(id: string): string {
  return id.startsWith('resource:') ? id : `resource:${id}`;
}

function notMade(id: string): BrokerError {
  return new BrokerError('RESOURCE_NOT_INITIALIZED', `the resource "${id}" could not be created`);
}
