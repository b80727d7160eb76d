// An action with its own target, such as a sink of streams, has an outbox whose name contains the id of the action. It
// outlives lists of actions: a change of the rule that keeps the action makes a new list, and entries of the old one may
// still be waiting. `users` counts the lists. Entries of actions that were removed from their rules are deleted.

import { createHash } from '../../base/builtins.ts';
import { asError } from '../../base/errors.ts';
import { type ActionDefinition, allActions } from '../definition.ts';
import type { RulesHost } from '../host.ts';
import type { ActionTarget, LocalAction, SendingAction } from '../types.ts';
import { type SettledEarlier, TargetQueue } from './target-queue.ts';

/** The broker, as far as the targets use it. */
type Broker = Pick<RulesHost, 'outboxes' | 'failed'>;

/** Creates the action again, after the broker was stopped. */
type MakeAction = () => Promise<LocalAction | SendingAction>;

/** An action with its own target. */
type OwnAction = SendingAction & { readonly target: ActionTarget };

/** An action whose own target is opened. */
interface OwnTargetSetup {
  readonly id: string;
  readonly ruleId: string;
  readonly made: OwnAction;
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

/** The own target of an action, with its queue. */
export class OwnTarget {
  readonly id: string;
  readonly ruleId: string;
  readonly made: SendingAction;
  /** Number of lists of actions that use it. */
  #users = 0;
  readonly #queue: TargetQueue;
  readonly #make: MakeAction;
  readonly #host: Broker;
  /** Undefined while the broker is stopped, and until it is open again. */
  #target: Promise<ActionTarget> | undefined;

  /** @throws as `Outboxes.open` */
  constructor(host: Broker, settledEarlier: SettledEarlier, { id, ruleId, made, make }: OwnTargetSetup) {
    this.id = id;
    this.ruleId = ruleId;
    this.made = made;
    this.#host = host;
    this.#make = make;
    this.#target = Promise.resolve(made.target);
    this.#queue = new TargetQueue(host.outboxes, outboxOf(id), {
      ...{ settledEarlier, what: `the action "${id}"`, label: `action ${id} of rule ${ruleId}` },
      target: () => ({ send: async (entries, attempt) => (await this.open()).send(entries, attempt) })
    });
    this.#queue.open(made.target.outbox);
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

  /** Open the target unless it is open. @throws the reason why it cannot be opened */
  open(): Promise<ActionTarget> {
    this.#target ??= this.#make().then(
      (made) => (made as SendingAction).target as ActionTarget,
      (error: unknown) => {
        this.#target = undefined;
        throw error;
      }
    );
    return this.#target;
  }

  /** Close the target. The queue stays unchanged. */
  async halt(): Promise<void> {
    const target = this.#target;
    this.#target = undefined;
    try {
      await (await target?.catch(() => undefined))?.close();
    } catch (error) {
      this.#host.failed(asError(error), `closing the target of the action ${this.id}`);
    }
  }

  /** Close the target and the queue. @param isDeleted true to drop the entries, including those in the store */
  close(isDeleted: boolean): Promise<void> {
    if (isDeleted) this.#queue.delete();
    else this.#queue.close();
    return this.halt();
  }
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

  /** The target that an action already has, for another list of actions; undefined if it has none. */
  use(id: string): OwnTarget | undefined {
    return this.#all.get(id)?.use();
  }

  /**
   * Open the queue for the own target of an action, unless a concurrent start of the rule has opened it.
   * @returns undefined: the action has no own target
   * @throws as `Outboxes.open`; the target is closed
   */
  async open(
    id: string,
    ruleId: string,
    made: LocalAction | SendingAction,
    make: MakeAction
  ): Promise<OwnTarget | undefined> {
    const { target } = made as Partial<SendingAction>;
    if (target === undefined) return undefined;
    const known = this.use(id);
    if (known !== undefined) {
      await target.close();
      made.close?.();
      return known;
    }
    try {
      const own = new OwnTarget(this.#host, this.#settledEarlier, { id, ruleId, made: made as OwnAction, make });
      this.#all.set(id, own.use());
      if (this.#isHalted) await own.halt();
      return own;
    } catch (error) {
      await target.close();
      throw error;
    }
  }

  /** Note that a list of actions no longer uses a target, which the last one closes. */
  release(own: OwnTarget): void {
    if (!own.leave()) return;
    if (this.#all.get(own.id) === own) this.#all.delete(own.id);
    void own.close(false);
    own.made.close?.();
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
      else void own.close(true);
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
      own.open().catch((error) => this.#host.failed(error, `opening the target of the action ${own.id}`));
  }

  /** Close the targets, because the broker has stopped. The queues stay unchanged. */
  async halt(): Promise<void> {
    this.#isHalted = true;
    await Promise.all([...this.#all.values()].map((own) => own.halt()));
  }
}
