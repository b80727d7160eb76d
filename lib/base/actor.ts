declare global {
  interface SymbolConstructor {
    /** As xstate and RxJS declare it; the actors of xstate have a member of this name. */
    readonly observable: symbol;
  }
}

/** An event of a chart. */
export interface ChartEvent {
  readonly type: string;
}

/** Name of a state, or an object with the name of a state and the value inside it: `{ idle: 'authenticating' }`. */
export type StateValue = string | { readonly [state: string]: StateValue | undefined };

/** The state of an actor at one moment: a machine snapshot of xstate. */
export interface ActorSnapshot {
  /** `done` when the actor has reached its final state. */
  readonly status: 'active' | 'done';
  readonly value: StateValue;
  /** One field, named after the kind of actor (`broker`, `store`, `session` or `rule`), with the id of the actor. */
  readonly context: Readonly<Record<string, string>>;
  readonly output: undefined;
  readonly error: undefined;
  readonly tags: ReadonlySet<string>;
  readonly children: Readonly<Record<string, never>>;
  /** Test for a state: in `{ idle: 'authenticating' }`, both `matches('idle')` and `matches({ idle: 'authenticating' })` are true. */
  matches(value: StateValue): boolean;
  /** Test whether an event would cause a transition. */
  can(event: ChartEvent): boolean;
  hasTag(tag: string): boolean;
  getMeta(): Readonly<Record<string, unknown>>;
  toJSON(): unknown;
}

/** Functions that observe an actor: `next` for each new snapshot, `complete` when the actor is done. `error` is never called. */
export interface ActorObserver<T = ActorSnapshot> {
  next?(value: T): void;
  error?(error: unknown): void;
  complete?(): void;
}

/** Ends an observation. */
export interface ActorSubscription {
  unsubscribe(): void;
}

/** A part of the snapshots of an actor, see `ActorRef.select`. */
export interface ActorSelection<T> {
  get(): T;
  subscribe(
    observer: ActorObserver<T> | ((value: T) => void),
    onError?: (error: unknown) => void,
    onComplete?: () => void
  ): ActorSubscription;
}

/**
 * The actor of a broker, a session or a rule, for reading and observing. It has the members of an actor of xstate, so that `waitFor`,
 * `toPromise` and inspectors of xstate work with it. Its events come from the broker: `send` and `stop` throw.
 */
export interface ActorRef {
  /** `broker`, `store`, the id of a rule, a client id, or `session` before the CONNECT. A rule and a stream rule may have the same id. */
  readonly id: string;
  /** Identifies the actor among those of its broker. */
  readonly sessionId: string;
  /** The state machine, for inspectors that draw it. */
  readonly logic: object;
  /** The kind of actor: `broker`, `store`, `session` or `rule`. */
  readonly src: string;
  /** The actors of the broker. */
  readonly system: ActorSystem;
  getSnapshot(): ActorSnapshot;
  /** The snapshot as a plain object. The broker cannot be restored from it. */
  getPersistedSnapshot(): ActorSnapshot;
  /** Observe the snapshots of the actor. @returns an object that ends the observation */
  subscribe(
    observer?: ActorObserver | ((snapshot: ActorSnapshot) => void),
    onError?: (error: unknown) => void,
    onComplete?: () => void
  ): ActorSubscription;
  /** The actor itself, for libraries that observe it. */
  [Symbol.observable](): ActorRef;
  /** Observe a part of the snapshots: observers are called when it changes. @param isEqual default: `Object.is` */
  select<T>(selector: (snapshot: ActorSnapshot) => T, isEqual?: (one: T, other: T) => boolean): ActorSelection<T>;
  /** The actor emits no events: the handler is never called. */
  on(type: string, handler: (emitted: never) => void): ActorSubscription;
  /** Has no effect, because the actor has been started. */
  start(): this;
  /** @throws StateError ACTOR_CLOSED, which names the methods to call instead */
  send(event: ChartEvent): void;
  /** @throws StateError ACTOR_CLOSED, which names the methods to call instead */
  stop(): never;
  toJSON(): { readonly xstate$$type: 1; readonly id: string };
}

/** The actors of a broker, with the members of a system of xstate. */
export interface ActorSystem {
  /** @returns undefined: the actors have no names in the system */
  get(name: PropertyKey): undefined;
  getAll(): Record<string, never>;
  /** Observe every transition of every actor, as `broker.inspect` does. */
  inspect(observer: ActorObserver<Inspection> | ((event: Inspection) => void)): ActorSubscription;
  getSnapshot(): { readonly _scheduledEvents: Record<string, never> };
  /** Has no effect, because the actors are started. */
  start(): void;
  /** Part of the systems of xstate. Its methods have no effect: the actors have no delayed events. */
  readonly scheduler: { schedule(): void; cancel(): void; cancelAll(): void };
  /** Part of the systems of xstate, and not used. */
  readonly _clock: { setTimeout(run: () => void, ms: number): unknown; clearTimeout(timer: never): void };
  /** Part of the systems of xstate, and not used. */
  _logger(...values: unknown[]): void;
}

/** The running chart of a rule. */
export interface RuleRun<Event extends { readonly type: string }> {
  readonly state: 'idle' | 'connected' | 'disconnected' | 'gone';
  readonly actor: ActorRef;
  send(type: Event['type']): void;
}

/**
 * One step of an actor, with the fields of xstate's inspection events: it was created (`@xstate.actor`), has received an event (`@xstate.event`),
 * or has handled it (`@xstate.snapshot`).
 */
export type Inspection = {
  /** `sessionId` of the actor of the inspected broker. */
  readonly rootId: string;
  readonly actorRef: ActorRef;
} & (
  | { readonly type: '@xstate.actor'; readonly event?: undefined; readonly snapshot?: undefined }
  | {
      readonly type: '@xstate.event';
      readonly event: ChartEvent;
      /** The actor that has sent the event; always undefined, because the broker sends them. */
      readonly sourceRef: undefined;
      readonly snapshot?: undefined;
    }
  | { readonly type: '@xstate.snapshot'; readonly event: ChartEvent; readonly snapshot: ActorSnapshot }
);
