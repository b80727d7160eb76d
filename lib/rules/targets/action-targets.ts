// An action with its own target, such as a sink of streams, has an outbox whose name contains the ids of the rule and of
// the action. It outlives lists of actions: a change of the rule makes a new list, and entries of the old one may still
// be waiting. If the action has other parameters then, it gets another target, which receives all entries as soon as the
// list is put in use. `users` counts the lists. If all lists of a target are retired, the rule starts
// again, and the target is opened again for it, perhaps with other properties of its connection. The queue is opened when
// a list is put in use, which continues after the outcome of stored entries. Entries of actions that were removed from
// their rules are deleted.

import { createHash } from '../../base/builtins.ts';
import { BrokerError } from '../../base/errors.ts';
import { Opener } from '../../targets/opener.ts';
import { type ActionDefinition, allActions, type RuleDefinition } from '../definition.ts';
import type { RulesHost } from '../host.ts';
import type { ActionTarget, LocalAction, Params, SendingAction } from '../types.ts';
import { type SettledEarlier, TargetQueue } from './target-queue.ts';

/** The broker, as far as the targets use it. */
type Broker = Pick<RulesHost, 'outboxes' | 'failed' | 'during' | 'clock'>;

/** Creates an action, again after the broker was stopped. */
type MakeAction = () => Promise<LocalAction | SendingAction>;

/** An action to be opened. */
interface OwnTargetSetup extends Pick<ActionDefinition, 'id' | 'params'> {
  readonly ruleId: string;
  readonly make: MakeAction;
}

/** The beginning of the names of outboxes. Those of the app do not begin with "$", and are not deleted. */
const PREFIX = '$action:';
/** Longer ids are shortened in the names of outboxes. */
const MAX_ID = 100;

/** Identifies an action among those of all rules. Ids of rules contain no slash. */
function keyOf(ruleId: string, id: string): string {
  return `${ruleId}/${id}`;
}

/** The name of the outbox of an action. */
function outboxOf(ruleId: string, actionId: string): string {
  const id = keyOf(ruleId, actionId);
  if (id.length <= MAX_ID) return PREFIX + id;
  return `${PREFIX}${id.slice(0, MAX_ID / 2)}~${createHash('sha256').update(id).digest('base64url')}`;
}

const STOPPED = new BrokerError('RESOURCE_DOWN', 'the broker has stopped');

/** The queue of an action, which the targets of its former and its present parameters share. */
class ActionQueue extends TargetQueue {
  readonly ruleId: string;
  readonly key: string;
  readonly targets = new Set<OwnTarget>();
  /** The target that was put in use last. */
  receiver: OwnTarget | undefined;

  constructor(host: Broker, settledEarlier: SettledEarlier, { id, ruleId }: Pick<OwnTargetSetup, 'id' | 'ruleId'>) {
    const what = `action ${id} of rule ${ruleId}`;
    super(host.outboxes, outboxOf(ruleId, id), {
      ...{ settledEarlier, what, label: what },
      send: async (entries, attempt) => (await this.receiver!.opened()).send(entries, attempt)
    });
    this.ruleId = ruleId;
    this.key = keyOf(ruleId, id);
  }

  /** Close all targets. The queue stays unchanged. */
  async halt(): Promise<void> {
    await Promise.all(Array.from(new Set([...this.targets, this.receiver]), (own) => own?.halt()));
  }
}

/** The own target of an action, with its queue. */
export class OwnTarget implements SendingAction {
  /** The parameters of the action. */
  readonly params: Params;
  /** Set when it is made. */
  queue!: ActionQueue;
  readonly #id: string;
  readonly #host: Broker;
  /** Number of lists of actions that use it, and of those that are not retired. */
  #users = 0;
  #current = 0;
  readonly #opener: Opener<LocalAction | SendingAction>;
  readonly #make: MakeAction;
  /** The action that was made last. */
  #made: LocalAction | SendingAction | undefined;
  /** Resolves when the target is open for the last start of the rule. */
  #reopened: Promise<void> = Promise.resolve();

  constructor(host: Broker, { id, ruleId, params, make }: OwnTargetSetup) {
    this.params = params;
    this.#id = id;
    this.#host = host;
    this.#make = make;
    this.#opener = new Opener({
      ...{ what: `action ${id} of rule ${ruleId}`, code: 'ACTION_FAILED', clock: host.clock.internal ?? host.clock },
      open: async () => {
        const made = await make();
        this.#made = made;
        return made;
      },
      async close(made) {
        await targetOf(made)?.close();
        await made.close?.();
      },
      during: (work) => host.during(work),
      failed: (error, work) => host.failed(error, work)
    });
  }

  /** See `SendingAction`. */
  prepare(...output: Parameters<SendingAction['prepare']>): ReturnType<SendingAction['prepare']> {
    return (this.#made as SendingAction).prepare(...output);
  }

  /** Note that a list of actions uses it. */
  use(): this {
    this.hold();
    this.#current++;
    return this;
  }

  /** Keep it until `leave`, as a retired list does. */
  hold(): void {
    this.#users++;
  }

  /** Note that a list is retired: its entries may still be waiting. */
  retire(): void {
    this.#current--;
  }

  /** Note that a retired list no longer uses it. @returns false if another one does */
  leave(): boolean {
    return --this.#users === 0;
  }

  /** True if a list that is not retired uses it. */
  get isCurrent(): boolean {
    return this.#current > 0;
  }

  /** As `use`, for a list that is being made. If all others are retired, the target is opened again. @throws as `make` */
  async reuse(make: MakeAction): Promise<void> {
    const reopened = this.isCurrent ? this.#reopened : this.reopen(make);
    this.use();
    await reopened;
  }

  /** Open the target again, perhaps with other properties of its connection. The queue stays. @throws as `make` */
  reopen(make = this.#make): Promise<void> {
    this.#reopened = this.#opener.change(make, (made) => {
      this.queue.check(this.#targetOf(made).outbox);
      this.#made = made;
      this.#limit();
    });
    return this.#reopened;
  }

  /** True if an entry with its head has to be known after a restart. */
  get isDurable(): boolean {
    return this.queue.isDurable;
  }

  /** Number of entries in the queue. */
  get size(): number {
    return this.queue.size;
  }

  /** See `TargetQueue.lastError`. */
  get lastError(): Error | undefined {
    return this.queue.lastError;
  }

  /** See `TargetQueue.add`. */
  add(...entry: Parameters<TargetQueue['add']>): void {
    this.queue.add(...entry);
  }

  /** Make the action, unless it is made. @throws the reason why it cannot be made */
  make(): Promise<LocalAction | SendingAction> {
    return this.#opener.open();
  }

  /** Note its queue. @throws as `Outboxes.open` */
  join(queue: ActionQueue): void {
    queue.check(targetOf(this.#made)?.outbox);
    queue.targets.add(this);
    this.queue = queue;
  }

  /** Open the queue, because a list of actions was put in use, and receive its entries. */
  open(): void {
    const { receiver } = this.queue;
    this.queue.receiver = this;
    this.queue.change(targetOf(this.#made)?.outbox);
    if (receiver !== undefined && receiver !== this) this.#host.during(receiver.halt());
  }

  /** Open the target again, because the broker has started. @throws as `make` */
  async begin(): Promise<void> {
    await this.opened();
    this.#limit();
  }

  /** Close the target, because the broker has stopped, or another one receives the entries. The queue stays unchanged. */
  halt(): Promise<void> {
    return this.#opener.close(STOPPED);
  }

  /** The open target. @throws as `make` */
  async opened(): Promise<ActionTarget> {
    return this.#targetOf(await this.make());
  }

  /** Give the queue the limits of the target, which may be others than before. */
  #limit(): void {
    const { queue } = this;
    if (queue.isOpen && queue.receiver === this) queue.change(targetOf(this.#made)?.outbox);
  }

  #targetOf(made: LocalAction | SendingAction): ActionTarget {
    const target = targetOf(made);
    if (target === undefined) throw new BrokerError('ACTION_FAILED', `action ${this.#id} no longer has a target`);
    return target;
  }
}

/** The own target of an action; undefined if it has none. */
function targetOf(made: LocalAction | SendingAction | undefined): ActionTarget | undefined {
  return made !== undefined && 'prepare' in made ? made.target : undefined;
}

/** The own targets of the actions of rules. */
export class ActionTargets {
  readonly #host: Broker;
  readonly #settledEarlier: SettledEarlier;
  /** By `keyOf`. */
  readonly #queues = new Map<string, ActionQueue>();
  /** True if the broker has stopped. */
  #isHalted = false;

  constructor(host: Broker, settledEarlier: SettledEarlier) {
    this.#host = host;
    this.#settledEarlier = settledEarlier;
  }

  /**
   * Create an action, or use its own target if it has one with these parameters already.
   * @throws as `make` and `Outboxes.open`; the target is closed
   */
  async open(
    { id, params }: Pick<ActionDefinition, 'id' | 'params'>,
    ruleId: string,
    make: MakeAction
  ): Promise<OwnTarget | LocalAction | SendingAction> {
    const key = keyOf(ruleId, id);
    const find = () => [...(this.#queues.get(key)?.targets ?? [])].find((one) => one.params === params);
    const before = find();
    if (before !== undefined) {
      try {
        await before.reuse(make);
      } catch (error) {
        before.retire();
        this.release(before);
        throw error;
      }
      if (this.#isHalted) await before.halt();
      return before;
    }
    const own = new OwnTarget(this.#host, { id, ruleId, params, make });
    const made = await own.make();
    if (targetOf(made) === undefined) return made;
    const other = find()?.use(); // of a concurrent start of the rule
    try {
      if (other === undefined) {
        const queue = this.#queues.get(key) ?? new ActionQueue(this.#host, this.#settledEarlier, { id, ruleId });
        own.use().join(queue);
        this.#queues.set(key, queue);
      }
    } catch (error) {
      await own.halt();
      throw error;
    }
    if (other !== undefined || this.#isHalted) await own.halt();
    return other ?? own;
  }

  /** Open the targets of a rule again. @throws the reason why one of them cannot be opened */
  async reopen(ruleId: string): Promise<void> {
    const queues = [...this.#queues.values()].filter((one) => one.ruleId === ruleId);
    for (const own of queues.flatMap(({ targets }) => [...targets].filter(({ isCurrent }) => isCurrent))) {
      own.hold(); // the rule may be disconnected meanwhile
      try {
        await own.reopen();
        if (this.#isHalted) await own.halt();
      } finally {
        this.release(own);
      }
    }
  }

  /** Note that a retired list of actions no longer uses a target. The last list closes it, but the receiver only with the queue. */
  release(own: OwnTarget): void {
    if (!own.leave()) return;
    const { queue } = own;
    queue.targets.delete(own);
    if (queue.receiver !== own) this.#host.during(own.halt());
    if (queue.targets.size > 0) return;
    if (this.#queues.get(queue.key) === queue) this.#queues.delete(queue.key);
    queue.close();
    this.#host.during(queue.halt());
  }

  /**
   * Drop the entries of the actions of a rule that was deleted, including those in the store, and those of actions that
   * these have replaced.
   */
  delete(ruleId: string, actions: readonly ActionDefinition[]): void {
    for (const { id } of allActions(actions)) this.#host.outboxes.delete(outboxOf(ruleId, id));
    for (const queue of [...this.#queues.values()].filter((one) => one.ruleId === ruleId)) {
      this.#queues.delete(queue.key);
      queue.delete();
      this.#host.during(queue.halt());
    }
  }

  /** Delete the stored entries of actions that none of the rules has. */
  deleteOthers(rules: Iterable<readonly [id: string, rule: { readonly definition: RuleDefinition }]>): void {
    const known = new Set<string>();
    for (const [ruleId, { definition }] of rules)
      for (const { id } of allActions(definition.actions)) known.add(outboxOf(ruleId, id));
    for (const { name, size } of this.#host.outboxes.kept()) {
      if (!name.startsWith(PREFIX) || known.has(name)) continue;
      this.#host.outboxes.delete(name);
      const what = `outputs dropped because their action was changed before the restart: ${size}, ${name.slice(PREFIX.length)}`;
      this.#host.failed(new BrokerError('ACTION_FAILED', what), 'restoring the queues of actions');
    }
  }

  /**
   * Open the targets again, because the broker has started.
   * @param fail called for each rule with a target that cannot be opened. One that only waiting entries use is opened again for them
   */
  begin(fail: (ruleId: string, error: unknown) => void): void {
    this.#isHalted = false;
    for (const { receiver, ruleId } of this.#queues.values())
      receiver?.begin().catch((error) => {
        if (error !== STOPPED && receiver.isCurrent) fail(ruleId, error);
      });
  }

  /** Close the targets, because the broker has stopped. The queues stay unchanged. */
  async halt(): Promise<void> {
    this.#isHalted = true;
    await Promise.all(Array.from(this.#queues.values(), (queue) => queue.halt()));
  }
}
