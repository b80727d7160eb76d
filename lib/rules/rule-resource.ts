import { BrokerError } from '../base/errors.ts';
import { FunctionTimer, type TimingWheel } from '../base/timing-wheel.ts';
import type { OutboxOptions } from '../outbox/options.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { Outboxes } from '../outbox/outboxes.ts';
import { actionIdOf, contentOf, type EntryHead, headOf, withHead } from './continuation.ts';
import type { ResourceDefinition } from './definition.ts';
import type { Kinds } from './kinds.ts';
import { checkParams, hideSecrets } from './params.ts';
import type { Resource, ResourceContext, ResourceState } from './types.ts';

/** Time between two attempts to reach a target that is not alive, in milliseconds. */
const RETRY_MS = 60_000;
/** A check that takes longer has failed. */
const CHECK_MS = 5_000;

/** What resources use of the engine. */
export interface ResourceHost {
  readonly kinds: Kinds;
  readonly wheel: TimingWheel;
  readonly outboxes: Pick<Outboxes, 'open' | 'discard'>;
  contextOf(id: string): ResourceContext;
  /** Work of another process is in progress. */
  during(work: Promise<unknown>): void;
  raise(id: string, title: string, summary: string): void;
  clear(id: string): void;
  /** An entry that was added before the present start of the process has left the outbox. */
  settled(ruleId: string, head: EntryHead, isSent: boolean, error: Error | undefined): void;
}

/** Called when the outcome of an entry is known. */
export type Settled = (isSent: boolean, error: Error | undefined) => void;

/** An entry that has left the outbox, and why. */
type OutcomeOfEntry = Parameters<NonNullable<OutboxOptions['settled']>>;

/** A resource: what its type has made, its outbox, and whether its target can be reached. */
export class RuleResource {
  readonly id: string;
  readonly isPersisted: boolean;
  definition: ResourceDefinition;
  isAlive = false;
  readonly #host: ResourceHost;
  #made: Resource | undefined;
  #outbox: Outbox | undefined;
  #lastError: Error | undefined;
  #checking: Promise<boolean> | undefined;
  #isClosed = false;
  readonly #retry = new FunctionTimer(() => void this.check());
  readonly #pending = new Map<string, Settled>();
  /** What has left the full outbox for a new entry, or is too large itself. While there is some, nothing more is added. */
  #dropped: OutcomeOfEntry[] | undefined = undefined;

  constructor(id: string, definition: ResourceDefinition, isPersisted: boolean, host: ResourceHost) {
    this.id = id;
    this.definition = definition;
    this.isPersisted = isPersisted;
    this.#host = host;
  }

  /** Whether its type was there, and has made it. */
  get isMade(): boolean {
    return this.#made !== undefined;
  }

  get state(): ResourceState {
    const { id, definition, isAlive, isPersisted } = this;
    const { type, config, description, createdAt } = definition;
    const table = this.#host.kinds.findResource(type)?.params;
    return {
      ...{ id, type, description, isAlive, createdAt, isPersisted },
      config: hideSecrets(table ?? {}, config),
      lastError: this.#lastError ?? this.#outbox?.lastError,
      size: this.#outbox?.size ?? 0
    };
  }

  /** Make what the type makes, and the outbox. @throws NotFound RESOURCE_TYPE_NOT_FOUND; InvalidInput PARAM_REQUIRED, PARAM_INVALID, and what the type throws */
  make(): void {
    const made = makeResource(this.definition, this.#host.kinds, this.#host.contextOf(this.id));
    this.#made = made;
    this.#outbox = this.#open(made);
  }

  /**
   * Change the configuration. Queued entries are kept, unless the limits of the outbox change and it is not persisted.
   * @param persist writes the definition to the store
   * @throws as `make`, and what `persist` throws: nothing has changed then
   */
  async change(definition: ResourceDefinition, persist: () => Promise<void>): Promise<void> {
    const made = makeResource(definition, this.#host.kinds, this.#host.contextOf(this.id));
    try {
      await persist();
    } catch (error) {
      await made.close();
      throw error;
    }
    const before = this.#made;
    this.definition = definition;
    this.#made = made;
    if (this.#outbox === undefined || JSON.stringify(before?.outbox) !== JSON.stringify(made.outbox)) {
      this.#closeOutbox();
      this.#outbox = this.#open(made);
    }
    await before?.close();
  }

  /** Take over a definition that differs in what people read. */
  describe(definition: ResourceDefinition): void {
    this.definition = definition;
  }

  /** Note why it cannot be made. */
  failed(error: Error): void {
    this.#lastError = error;
    this.#down(error);
  }

  /** Whether an entry with this head has to be known after a restart. */
  get isDurable(): boolean {
    return this.#outbox?.limits.isPersisted ?? false;
  }

  /**
   * Send something.
   * @param settled called when the outcome is known, if that is in this process
   * @param keptBytes memory that `settled` keeps
   * @throws BrokerError RESOURCE_NOT_INITIALIZED; ENTRY_DROPPED for the fallback of an entry that was dropped, which would drop the next one
   */
  add(ruleId: string, head: EntryHead, content: string | Buffer, settled: Settled, keptBytes: number): void {
    if (this.#outbox === undefined) throw this.#lastError ?? notMade(this.id);
    if (this.#dropped !== undefined)
      throw new BrokerError('ENTRY_DROPPED', `the queue of the resource "${this.id}" is full`);
    const dropped: OutcomeOfEntry[] = [];
    this.#dropped = dropped;
    try {
      const id = this.#outbox.add(ruleId, withHead(head, content), keptBytes);
      this.#pending.set(id, settled);
      for (const outcome of dropped) this.#conclude(...outcome);
    } finally {
      this.#dropped = undefined;
    }
  }

  /** Find out whether the target can be reached. Calls at the same time have one answer. */
  check(): Promise<boolean> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  /** Release everything. What is persisted waits in the store. @param isDeleted it is deleted there as well */
  async close(isDeleted = false): Promise<void> {
    this.#isClosed = true;
    this.#host.wheel.disarm(this.#retry);
    await this.#release();
    this.#host.clear(this.#alarm);
    if (isDeleted) this.#host.outboxes.discard(outboxName(this.id));
  }

  get #alarm(): string {
    return `resource/${this.definition.type}/${this.id}/down`;
  }

  async #release(): Promise<void> {
    this.#closeOutbox();
    const made = this.#made;
    this.#made = undefined;
    await made?.close();
  }

  #open({ outbox }: Resource): Outbox {
    return this.#host.outboxes.open({
      ...outbox,
      name: outboxName(this.id),
      send: (entries, attempt) => {
        const sent = entries.map(({ id, key, content }) => ({
          ...{ id, ruleId: key, actionId: actionIdOf(content) },
          content: contentOf(content)
        }));
        return this.#made?.send(sent, attempt);
      },
      settled: (...outcome) => {
        if (this.#dropped === undefined) this.#conclude(...outcome);
        else this.#dropped.push(outcome);
      }
    });
  }

  /** Close the outbox. What is not persisted has failed. */
  #closeOutbox(): void {
    const outbox = this.#outbox;
    if (outbox === undefined) return;
    const lost = this.isDurable ? [] : [...this.#pending.values()];
    this.#outbox = undefined;
    this.#pending.clear();
    outbox.close();
    for (const settled of lost)
      settled(false, new BrokerError('ENTRY_DROPPED', `the resource "${this.id}" was closed`));
  }

  async #check(): Promise<boolean> {
    const made = this.#made;
    if (made === undefined) return false;
    try {
      await this.#withinTime(made);
      if (this.#isClosed || made !== this.#made) return this.isAlive;
      this.#alive();
    } catch (error) {
      if (!this.#isClosed && made === this.#made) this.#down(error instanceof Error ? error : new Error(String(error)));
    }
    return this.isAlive;
  }

  #withinTime(made: Resource): Promise<void> {
    const { wheel } = this.#host;
    const controller = new AbortController();
    const done = new Promise<void>((resolve, reject) => {
      const timer = new FunctionTimer(() => {
        const error = new BrokerError('RESOURCE_DOWN', `no connection within ${CHECK_MS} ms`);
        controller.abort(error);
        reject(error);
      });
      wheel.arm(timer, CHECK_MS);
      Promise.resolve()
        .then(() => made.check(controller.signal))
        .finally(() => wheel.disarm(timer))
        .then(resolve, reject);
    });
    this.#host.during(done.catch(() => undefined));
    return done;
  }

  #alive(): void {
    this.#lastError = undefined;
    this.#host.wheel.disarm(this.#retry);
    if (this.isAlive) return;
    this.isAlive = true;
    this.#host.clear(this.#alarm);
    this.#outbox?.retryNow();
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

  /** Tell the outcome of an entry. */
  #conclude(...[entry, outcome, error]: OutcomeOfEntry): void {
    const pending = this.#pending.get(entry.id);
    const isSent = outcome === 'sent';
    const why = error ?? new BrokerError('ENTRY_DROPPED', `it was dropped: ${outcome}`);
    if (pending !== undefined) {
      this.#pending.delete(entry.id);
      pending(isSent, isSent ? undefined : why);
    } else this.#host.settled(entry.key, headOf(entry.content), isSent, isSent ? undefined : why);
  }
}

/** Make what a type makes. @throws as `RuleResource.make` */
export function makeResource(
  { type: name, config }: Pick<ResourceDefinition, 'type' | 'config'>,
  kinds: Kinds,
  context: ResourceContext
): Resource {
  const type = kinds.resource(name);
  return type.make(checkParams(type.params ?? {}, config, `a resource of type ${name}`), context);
}

function outboxName(id: string): string {
  return id.startsWith('resource:') ? id : `resource:${id}`;
}

function notMade(id: string): BrokerError {
  return new BrokerError('RESOURCE_NOT_INITIALIZED', `the resource "${id}" is not made`);
}
