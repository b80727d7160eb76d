// The outbox outlives what the type has made: after a stop and a start, and mostly after a change, its entries are
// still there. Checks have a time limit, and the answer to an old one has no effect.

import { asError, BrokerError } from '../base/errors.ts';
import { hideSecrets } from '../base/secrets.ts';
import { FunctionTimer, type TimingWheel } from '../base/timing-wheel.ts';
import type { Outboxes } from '../outbox/outboxes.ts';
import type { ResourceDefinition } from './definition.ts';
import type { EntryHead } from './entry-head.ts';
import type { Kinds } from './kinds.ts';
import { checkParams, hideAll } from './params.ts';
import { type Settled, type SettledEarlier, TargetQueue } from './targets/target-queue.ts';
import type { Resource, ResourceContext, ResourceState } from './types.ts';

/** Interval between attempts to reach a target that is not alive, in milliseconds. */
const RETRY_MS = 60_000;
/** Time limit of a check, in milliseconds. */
const CHECK_MS = 5_000;

/** Dependencies of resources on the engine. */
export interface ResourceHost {
  readonly outboxes: Pick<Outboxes, 'open' | 'delete'>;
  readonly settled: SettledEarlier;
  readonly kinds: Kinds;
  readonly wheel: TimingWheel;
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
  isAlive = false;
  readonly #host: ResourceHost;
  #made: Resource | undefined;
  readonly #queue: TargetQueue;
  #lastError: Error | undefined;
  /** The check in progress. */
  #checking: { readonly limit: AbortController; readonly answer: Promise<boolean> } | undefined;
  /** True if the broker has stopped and the connection is closed. */
  #isHalted = false;
  /** The connection that was closed last. */
  #closed: Resource | undefined;
  readonly #retry = new FunctionTimer(() => void this.check());

  constructor(id: string, definition: ResourceDefinition, isPersisted: boolean, host: ResourceHost) {
    this.id = id;
    this.definition = definition;
    this.isPersisted = isPersisted;
    this.#host = host;
    this.#queue = new TargetQueue(host.outboxes, outboxName(id), {
      settledEarlier: host.settled,
      what: `the resource "${id}"`,
      target: () => this.#made!,
      // an entry that the target has accepted shows that it can be reached again
      sent: () => void (this.isAlive || this.check())
    });
  }

  /** True if its type was registered and has created it. */
  get isMade(): boolean {
    return this.#made !== undefined;
  }

  get state(): ResourceState {
    const { id, definition, isAlive, isPersisted } = this;
    const { type, config, description, createdAt } = definition;
    const kind = this.#host.kinds.findResource(type);
    return {
      ...{ id, type, description, isAlive, createdAt, isPersisted },
      config: kind === undefined ? hideAll(config) : hideSecrets(kind.params, config),
      lastError: this.#lastError ?? this.#queue.lastError,
      size: this.#queue.size
    };
  }

  /**
   * Create the connection and the outbox.
   * @throws NotFound RESOURCE_TYPE_NOT_FOUND; InvalidInput PARAM_REQUIRED, PARAM_INVALID, and the errors of the type
   */
  make(): void {
    const made = makeResource(this.definition, this.#host.kinds, this.#host.contextOf(this.id));
    try {
      this.#queue.open(made.outbox);
    } catch (error) {
      void this.#close(made);
      throw error;
    }
    this.#made = made;
  }

  /**
   * Change the configuration. Queued entries are kept, unless the limits of the outbox change and it is not persisted.
   * @param persist writes the definition to the store
   * @throws as `make`, and the errors of `persist`; nothing has then changed
   */
  async change(definition: ResourceDefinition, persist: () => Promise<void>): Promise<void> {
    const made = makeResource(definition, this.#host.kinds, this.#host.contextOf(this.id));
    try {
      this.#queue.check(made.outbox);
      await persist();
    } catch (error) {
      await this.#close(made);
      throw error;
    }
    const before = this.#made;
    this.definition = definition;
    this.#endCheck(new BrokerError('RESOURCE_DOWN', `the resource "${this.id}" has been changed`));
    this.#made = made;
    this.#queue.change(made.outbox);
    await this.#close(before);
  }

  /** Take over a definition that differs only in its description. */
  describe(definition: ResourceDefinition): void {
    this.definition = definition;
  }

  /** Record why it cannot be created: it counts as down. */
  failed(error: Error): void {
    this.#down(error);
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
    if (!this.isMade) throw this.#lastError ?? notMade(this.id);
    this.#queue.add(ruleId, head, content, settled, keptBytes);
  }

  /** Check whether the target can be reached. Concurrent calls share one result. */
  check(): Promise<boolean> {
    const made = this.#made;
    if (made === undefined || this.#isHalted) return Promise.resolve(false);
    if (this.#checking === undefined) {
      const limit = new AbortController();
      this.#checking = { limit, answer: this.#check(made, limit) };
    }
    return this.#checking.answer;
  }

  /** Release the connection, and drop the entries of the queue, including those in the store. */
  async close(): Promise<void> {
    const made = this.#made;
    this.#endCheck(new BrokerError('RESOURCE_DOWN', `the resource "${this.id}" has been deleted`));
    this.#host.wheel.disarm(this.#retry);
    this.#host.clear(this.#alarm);
    this.#made = undefined;
    this.#queue.delete();
    await this.#close(made);
  }

  /** Close the connection, because the broker has stopped. The queue stays unchanged. */
  async halt(): Promise<void> {
    this.#isHalted = true;
    this.isAlive = false;
    this.#endCheck(new BrokerError('RESOURCE_DOWN', 'the broker has stopped'));
    await this.#close(this.#made);
  }

  /** Reopen a closed connection, because the broker has started, and check whether the target can be reached. */
  begin(): void {
    if (this.#isHalted) {
      this.#isHalted = false;
      void this.#close(this.#made); // if it was created while the broker was stopped
      this.#makeAgain();
    }
    void this.check();
  }

  #makeAgain(): void {
    if (this.#made === undefined) return;
    try {
      this.#made = makeResource(this.definition, this.#host.kinds, this.#host.contextOf(this.id));
    } catch (error) {
      this.failed(error as Error);
    }
  }

  get #alarm(): string {
    return `resource/${this.definition.type}/${this.id}/down`;
  }

  /** Close the connection, once. */
  async #close(made: Resource | undefined): Promise<void> {
    if (made === undefined || made === this.#closed) return;
    this.#closed = made;
    try {
      await made.close();
    } catch (error) {
      this.#host.contextOf(this.id).failed(error, `closing the resource "${this.id}"`);
    }
  }

  /**
   * @param limit identifies the check in progress; the result has no effect if there is another check by then, or none
   */
  async #check(made: Resource, limit: AbortController): Promise<boolean> {
    const { wheel, during } = this.#host;
    const done = checkWithin(made, limit, wheel);
    during(done.catch(() => undefined));
    let fault: Error | undefined;
    try {
      await done;
    } catch (error) {
      fault = asError(error);
    }
    if (this.#checking?.limit === limit) {
      this.#checking = undefined;
      if (fault === undefined) this.#alive();
      else this.#down(fault);
    }
    return this.isAlive;
  }

  #endCheck(reason: Error): void {
    const checking = this.#checking;
    this.#checking = undefined;
    checking?.limit.abort(reason);
  }

  #alive(): void {
    this.#lastError = undefined;
    this.#host.wheel.disarm(this.#retry);
    if (this.isAlive) return;
    this.isAlive = true;
    this.#host.clear(this.#alarm);
    this.#queue.retryNow();
  }

  #down(error: Error): void {
    const wasAlive = this.isAlive;
    this.isAlive = false;
    const isNew = this.#lastError === undefined;
    this.#lastError = error;
    this.#host.wheel.arm(this.#retry, RETRY_MS);
    if (!wasAlive && !isNew) return;
    const { type } = this.definition;
    const summary = `The target of the ${type} resource "${this.id}" cannot be reached: ${error.message}`;
    this.#host.raise(this.#alarm, `resource ${this.id} is down`, summary);
  }
}

/**
 * Check whether the target of a resource can be reached.
 * @param limit aborted when the check takes too long. If the caller aborts it earlier, the check ends, too
 * @throws the reason why the target cannot be reached
 */
export function checkWithin(made: Resource, limit: AbortController, wheel: TimingWheel): Promise<void> {
  const { signal } = limit;
  return new Promise<void>((resolve, reject) => {
    const timer = new FunctionTimer(() =>
      limit.abort(new BrokerError('RESOURCE_DOWN', `no connection within ${CHECK_MS} ms`))
    );
    wheel.arm(timer, CHECK_MS);
    const end = () => wheel.disarm(timer);
    signal.addEventListener('abort', () => {
      end();
      reject(signal.reason as Error);
    });
    Promise.resolve()
      .then(() => made.check(signal))
      .finally(end)
      .then(resolve, reject);
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
