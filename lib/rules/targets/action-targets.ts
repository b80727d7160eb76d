// An action with its own target, such as a sink of streams, has an outbox whose name contains the id of the action. It
// outlives lists of actions: a change of the rule that keeps the action makes a new list, and entries of the old one may
// still be waiting. `users` counts the lists. Entries of actions that were removed from their rules are deleted.

import { createHash } from '../../base/builtins.ts';
import { BrokerError } from '../../base/errors.ts';
import { Opener } from '../../targets/opener.ts';
import { type ActionDefinition, allActions } from '../definition.ts';
import type { RulesHost } from '../host.ts';
import type { ActionTarget, LocalAction, SendingAction } from '../types.ts';
import { type SettledEarlier, TargetQueue } from './target-queue.ts';

/** The broker, as far as the targets use it. */
type Broker = Pick<RulesHost, 'outboxes' | 'failed' | 'during' | 'clock'>;

/** Creates an action, again after the broker was stopped. */
type MakeAction = () => Promise<LocalAction | SendingAction>;

/** An action to be opened. */
interface OwnTargetSetup {
  readonly id: string;
  readonly ruleId: string;
  readonly make: MakeAction;
}

/** The beginning of the names of outboxes. Those of the app do not begin with "$", and are not deleted. */
const PREFIX = '$action:';
/** Longer ids are shortened in the names of outboxes. */
const MAX_ID = 100;

/** The name of the outbox of an action. */
function outboxOf(id: string): string {
  if (id.length <= MAX_ID) return PREFIX + id;
  return `${PREFIX}${id.slice(0, MAX_ID / 2)}~${createHash('sha256').update(id).digest('base64url')}`;
}

const STOPPED = new BrokerError('RESOURCE_DOWN', 'the broker has stopped');

/** The own target of an action, with its queue. */
export class OwnTarget implements SendingAction {
  readonly id: string;
  readonly ruleId: string;
  /** Number of lists of actions that use it. */
  #users = 0;
  readonly #queue: TargetQueue;
  readonly #opener: Opener<LocalAction | SendingAction>;
  /** The action that was made last. */
  #made: LocalAction | SendingAction | undefined;

  constructor(host: Broker, settledEarlier: SettledEarlier, { id, ruleId, make }: OwnTargetSetup) {
    this.id = id;
    this.ruleId = ruleId;
    const what = `action ${id} of rule ${ruleId}`;
    this.#opener = new Opener({
      ...{ what, code: 'ACTION_FAILED', clock: host.clock.internal ?? host.clock },
      open: async () => {
        const made = await make();
        this.#made = made;
        return made;
      },
      async close(made) {
        await targetOf(made)?.close();
        made.close?.();
      },
      during: (work) => host.during(work),
      failed: (error, work) => host.failed(error, work)
    });
    this.#queue = new TargetQueue(host.outboxes, outboxOf(id), {
      ...{ settledEarlier, what, label: what },
      send: async (entries, attempt) => (await this.#target()).send(entries, attempt)
    });
  }

  /** See `SendingAction`. */
  prepare(...output: Parameters<SendingAction['prepare']>): ReturnType<SendingAction['prepare']> {
    return (this.#made as SendingAction).prepare(...output);
  }

  /** Note that a list of actions uses it. */
  use(): this {
    this.#users++;
    return this;
  }

  /** Note that a list no longer uses it. @returns false if another one does */
  leave(): boolean {
    return --this.#users === 0;
  }

  /** True if an entry with its head has to be known after a restart. */
  get isDurable(): boolean {
    return this.#queue.isDurable;
  }

  /** See `TargetQueue.add`. */
  add(...entry: Parameters<TargetQueue['add']>): void {
    this.#queue.add(...entry);
  }

  /** Make the action, unless it is made. @throws the reason why it cannot be made */
  make(): Promise<LocalAction | SendingAction> {
    return this.#opener.open();
  }

  /** Open the queue of a target. @throws as `Outboxes.open` */
  queueFor({ outbox }: ActionTarget): void {
    this.#queue.change(outbox);
  }

  /** Open the target again, because the broker has started. @throws as `make` */
  async begin(): Promise<void> {
    const target = await this.#target();
    if (this.#queue.isOpen) this.queueFor(target); // with other limits, perhaps
  }

  /** Close the target, because the broker has stopped. The queue stays unchanged. */
  halt(): Promise<void> {
    return this.#opener.close(STOPPED);
  }

  /** Close the target and the queue. Persisted entries stay in the store. */
  close(): void {
    this.#queue.close();
    void this.halt();
  }

  /** Drop the entries of the queue, including those in the store, and close the target. */
  delete(): void {
    this.#queue.delete();
    void this.halt();
  }

  async #target(): Promise<ActionTarget> {
    const target = targetOf(await this.make());
    if (target === undefined) throw new BrokerError('ACTION_FAILED', `action ${this.id} no longer has a target`);
    return target;
  }
}

/** The own target of an action; undefined if it has none. */
function targetOf(made: LocalAction | SendingAction): ActionTarget | undefined {
  return 'prepare' in made ? made.target : undefined;
}

/** The own targets of the actions of rules, by the id of the action. */
export class ActionTargets {
  readonly #host: Broker;
  readonly #settledEarlier: SettledEarlier;
  readonly #all = new Map<string, OwnTarget>();
  /** True if the broker has stopped. */
  #isHalted = false;

  constructor(host: Broker, settledEarlier: SettledEarlier) {
    this.#host = host;
    this.#settledEarlier = settledEarlier;
  }

  /**
   * Create an action, or use its own target if it has one already, with its queue.
   * @throws as `make` and `Outboxes.open`; the target is closed
   */
  async open(id: string, ruleId: string, make: MakeAction): Promise<OwnTarget | LocalAction | SendingAction> {
    const known = () => this.#all.get(id)?.use();
    const before = known();
    if (before !== undefined) return before;
    const own = new OwnTarget(this.#host, this.#settledEarlier, { id, ruleId, make });
    const made = await own.make();
    const target = targetOf(made);
    if (target === undefined) return made;
    const other = known(); // of a concurrent start of the rule
    try {
      if (other === undefined) own.queueFor(target);
    } catch (error) {
      await own.halt();
      throw error;
    }
    if (other === undefined) this.#all.set(id, own.use());
    if (other !== undefined || this.#isHalted) await own.halt();
    return other ?? own;
  }

  /** Note that a list of actions no longer uses a target, which the last one closes. */
  release(own: OwnTarget): void {
    if (!own.leave()) return;
    if (this.#all.get(own.id) === own) this.#all.delete(own.id);
    own.close();
  }

  /**
   * Drop the entries of the actions of a rule that was deleted, including those in the store, and those of actions that
   * these have replaced.
   */
  delete(ruleId: string, actions: readonly ActionDefinition[]): void {
    const replaced = [...this.#all.values()].filter((own) => own.ruleId === ruleId).map(({ id }) => id);
    for (const id of new Set([...replaced, ...allActions(actions).map((action) => action.id)])) {
      const own = this.#all.get(id);
      this.#all.delete(id);
      if (own === undefined) this.#host.outboxes.delete(outboxOf(id));
      else own.delete();
    }
  }

  /** Delete the stored entries of actions that no rule has. */
  deleteOthers(actions: readonly ActionDefinition[]): void {
    const known = new Set(allActions(actions).map(({ id }) => outboxOf(id)));
    for (const { name } of this.#host.outboxes.kept())
      if (name.startsWith(PREFIX) && !known.has(name)) this.#host.outboxes.delete(name);
  }

  /** Open the targets again, because the broker has started. */
  begin(): void {
    this.#isHalted = false;
    for (const own of this.#all.values())
      own.begin().catch((error) => this.#host.failed(error, `opening the target of the action ${own.id}`));
  }

  /** Close the targets, because the broker has stopped. The queues stay unchanged. */
  async halt(): Promise<void> {
    this.#isHalted = true;
    await Promise.all([...this.#all.values()].map((own) => own.halt()));
  }
}
