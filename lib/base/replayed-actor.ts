// Actors only show: `Replay` runs the chart of a subject, and an actor reads the state from the subject, so `send`
// and `stop` throw. An actor is held only while it has observers; otherwise there is a weak reference to it, and its
// number is kept for an actor that is created again. The id may change: a session gets its client id with the CONNECT.
// Errors of observers and inspectors are reported and never reach the operation that sent the event. Members that do
// nothing are those of an actor system of xstate.

import type {
  ActorObserver,
  ActorRef,
  ActorSelection,
  ActorSnapshot,
  ActorSubscription,
  ActorSystem,
  ChartEvent,
  Inspection
} from './actor.ts';
import type { Charted, ChartState } from './charted.ts';
import { InvalidInput, StateError } from './errors.ts';

/** The view of a chart for its actors; `Replay` implements it. */
export interface ActorLogic<S extends Charted> {
  /** See `ActorRef.src`. */
  readonly key: string;
  /** See `ActorRef.logic`. */
  readonly machine: object;
  /** See `ActorRef.id`. */
  idOf(subject: S): string;
  /** The snapshot of an object. */
  snapshotOf(subject: S): ActorSnapshot;
  /** The methods that users call to cause events, for the error of `ActorRef.send`. */
  methodsFor(id: string): string;
}

/** The identity of an actor. It is kept as long as the subject exists, for an actor that is created again. */
interface Entry {
  readonly number: number;
  actor: WeakRef<ReplayedActor>;
}

const NOTHING = (): void => {};
const NO_SUBSCRIPTION: ActorSubscription = { unsubscribe: NOTHING };

/**
 * The actors of a broker, for observers. An actor is created on demand and exists as long as it is held or observed. A session without an
 * actor costs nothing here.
 */
export class ReplayedActors implements ActorSystem {
  readonly scheduler: ActorSystem['scheduler'] = { schedule: NOTHING, cancel: NOTHING, cancelAll: NOTHING };
  readonly _clock: ActorSystem['_clock'] = { setTimeout: NOTHING, clearTimeout: NOTHING };
  readonly #onError: (error: unknown) => void;
  readonly #entries = new WeakMap<Charted, Entry>();
  /** The actors that have observers. */
  readonly #observed = new Map<Charted, ReplayedActor>();
  readonly #inspectors = new Set<(event: Inspection) => void>();
  #count = 0;

  /** @param onError called with errors of an observer or an inspector */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  // ----------------------------------------------------------------------------------------------------- members of xstate

  get(): undefined {
    return undefined;
  }

  getAll(): Record<string, never> {
    return {};
  }

  inspect(observer: ActorObserver<Inspection> | ((event: Inspection) => void)): ActorSubscription {
    // an observer that is added twice is called twice
    const given = observerOf<Inspection>(observer);
    const inspector = (event: Inspection) => given.next?.(event);
    this.#inspectors.add(inspector);
    return { unsubscribe: () => void this.#inspectors.delete(inspector) };
  }

  getSnapshot(): ReturnType<ActorSystem['getSnapshot']> {
    return { _scheduledEvents: {} };
  }

  start(): void {}

  _logger(): void {}

  // ---------------------------------------------------------------------------------------------------------------- actors

  /** True if there is an observer of all transitions. */
  get isInspected(): boolean {
    return this.#inspectors.size > 0;
  }

  /** The actor of an object, which is created if it does not exist. */
  of<S extends Charted>(logic: ActorLogic<S>, subject: S): ReplayedActor {
    const entry = this.#entries.get(subject);
    const present = entry?.actor.deref();
    if (present !== undefined) return present;
    const number = entry?.number ?? this.#count++;
    const actor = new ReplayedActor(this, logic as unknown as ActorLogic<Charted>, subject, number);
    if (entry === undefined) {
      this.#entries.set(subject, { number, actor: new WeakRef(actor) });
      this.#report({ type: '@xstate.actor', rootId: 'x:0', actorRef: actor });
    } else entry.actor = new WeakRef(actor);
    return actor;
  }

  /** The actor of a subject, if it has observers. */
  observed(subject: Charted): ReplayedActor | undefined {
    return this.#observed.size === 0 ? undefined : this.#observed.get(subject);
  }

  /** Keep an actor while it has observers. */
  keep(subject: Charted, actor: ReplayedActor, isObserved: boolean): void {
    if (isObserved) this.#observed.set(subject, actor);
    else this.#observed.delete(subject);
  }

  /** Report that an actor has received an event. */
  received(actorRef: ReplayedActor, type: string): void {
    if (this.isInspected)
      this.#report({ type: '@xstate.event', rootId: 'x:0', actorRef, event: { type }, sourceRef: undefined });
  }

  /** Report that an actor has taken an event. */
  taken(actorRef: ReplayedActor, type: string): void {
    actorRef.changed();
    if (!this.isInspected) return;
    const snapshot = actorRef.getSnapshot();
    this.#report({ type: '@xstate.snapshot', rootId: 'x:0', actorRef, event: { type }, snapshot });
  }

  #report(event: Inspection): void {
    for (const inspect of [...this.#inspectors]) if (this.#inspectors.has(inspect)) this.tell(() => inspect(event));
  }

  /** Call a function of an observer. Its errors must not reach the operation that sent the event, nor end the process. */
  tell(call: () => unknown): void {
    try {
      const result = call();
      if (result instanceof Promise) result.catch((error: unknown) => this.#onError(error));
    } catch (error) {
      this.#onError(error);
    }
  }
}

/** An actor for observers. The state is that of the subject. */
export class ReplayedActor implements ActorRef {
  /** The actor itself, for libraries that observe it. */
  declare readonly [Symbol.observable]: () => this;
  readonly sessionId: string;
  readonly system: ReplayedActors;
  readonly #logic: ActorLogic<Charted>;
  readonly #subject: Charted;
  readonly #observers = new Set<ActorObserver>();
  /** The state of the last snapshot that was created. */
  #seen: ChartState | undefined;
  #snapshot: ActorSnapshot | undefined;

  static {
    // Node.js has no Symbol.observable; xstate then uses this name
    Object.defineProperty(ReplayedActor.prototype, Symbol.observable ?? '@@observable', {
      value(this: ReplayedActor) {
        return this;
      }
    });
  }

  constructor(system: ReplayedActors, logic: ActorLogic<Charted>, subject: Charted, number: number) {
    this.sessionId = `x:${number}`;
    this.system = system;
    this.#logic = logic;
    this.#subject = subject;
  }

  get id(): string {
    return this.#logic.idOf(this.#subject);
  }

  get logic(): object {
    return this.#logic.machine;
  }

  get src(): string {
    return this.#logic.key;
  }

  getSnapshot(): ActorSnapshot {
    const { at } = this.#subject;
    if (this.#snapshot === undefined || this.#seen !== at) {
      this.#seen = at;
      this.#snapshot = this.#logic.snapshotOf(this.#subject);
    }
    return this.#snapshot;
  }

  getPersistedSnapshot(): ActorSnapshot {
    return this.getSnapshot().toJSON() as ActorSnapshot;
  }

  subscribe(
    observer: ActorObserver | ((snapshot: ActorSnapshot) => void) = {},
    _onError?: (error: unknown) => void,
    onComplete?: () => void
  ): ActorSubscription {
    const added = observerOf(observer, onComplete);
    if (this.#subject.at.isFinal) {
      this.system.tell(() => added.complete?.());
      return NO_SUBSCRIPTION;
    }
    this.#observers.add(added);
    this.system.keep(this.#subject, this, true);
    return {
      unsubscribe: () => {
        this.#observers.delete(added);
        if (this.#observers.size === 0) this.system.keep(this.#subject, this, false);
      }
    };
  }

  select<T>(
    selector: (snapshot: ActorSnapshot) => T,
    isEqual: (one: T, other: T) => boolean = Object.is
  ): ActorSelection<T> {
    if (typeof selector !== 'function') throw new InvalidInput('HANDLER_INVALID', 'selector', 'a function', selector);
    const get = () => selector(this.getSnapshot());
    return {
      get,
      subscribe: (observer, onError, onComplete) => {
        const { next, complete } = observerOf(observer, onComplete);
        let last = get();
        const changed = (snapshot: ActorSnapshot) => {
          const value = selector(snapshot);
          if (isEqual(last, value)) return undefined;
          last = value;
          return next?.(value);
        };
        return this.subscribe(changed, onError, complete);
      }
    };
  }

  on(): ActorSubscription {
    return NO_SUBSCRIPTION;
  }

  start(): this {
    return this;
  }

  send(event: ChartEvent): never {
    throw this.#closed(`takes no events from outside, such as "${String(event?.type)}"`);
  }

  stop(): never {
    throw this.#closed('cannot be stopped from outside');
  }

  toJSON(): ReturnType<ActorRef['toJSON']> {
    return { xstate$$type: 1, id: this.id };
  }

  /** Notify the observers, because the subject has taken an event. */
  changed(): void {
    if (this.#observers.size === 0) return;
    const snapshot = this.getSnapshot();
    // one that is removed meanwhile is not called, nor one that is added
    const call = (tell: (observer: ActorObserver) => unknown) => {
      for (const observer of [...this.#observers])
        if (this.#observers.has(observer)) this.system.tell(() => tell(observer));
    };
    call((observer) => observer.next?.(snapshot));
    if (snapshot.status !== 'done') return;
    call((observer) => observer.complete?.());
    this.#observers.clear();
    this.system.keep(this.#subject, this, false);
  }

  #closed(what: string): StateError {
    const { id } = this;
    const { key } = this.#logic;
    const name = key === id ? `the ${key}` : `the ${key} "${id}"`;
    return new StateError('ACTOR_CLOSED', `the actor of ${name} ${what}; call ${this.#logic.methodsFor(id)}`);
  }
}

/**
 * A copy with the functions bound, so that an observer that is added twice is called twice.
 * @throws InvalidInput HANDLER_INVALID
 */
function observerOf<T>(observer: ActorObserver<T> | ((value: T) => void), complete?: () => void): ActorObserver<T> {
  if (typeof observer === 'function') return { next: (value) => observer(value), complete };
  if (typeof observer !== 'object' || observer === null)
    throw new InvalidInput('HANDLER_INVALID', 'observer', 'a function, or an object with next and complete', observer);
  return {
    next: (value) => observer.next?.(value),
    complete: () => observer.complete?.()
  };
}
