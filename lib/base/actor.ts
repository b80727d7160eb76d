declare global {
  interface SymbolConstructor {
    /** As xstate and RxJS declare it; the actors of xstate have a member of this name. */
    readonly observable: symbol;
  }
}

/** An event of a chart. */
export interface ChartEvent {
  /** The name of the event. */
  readonly type: string;
}

/** Name of a state, or an object with the name of a state and the value inside it: `{ idle: 'authenticating' }`. */
export type StateValue = string | { readonly [state: string]: StateValue | undefined };

/** The state of an actor at one moment: a machine snapshot of xstate. */
export interface ActorSnapshot {
  /** `done` when the actor has reached its final state. */
  readonly status: 'active' | 'done';
  /** The state. */
  readonly value: StateValue;
  /** One field, named after the kind of actor (`broker`, `store`, `session` or `rule`), with the id of the actor. */
  readonly context: Readonly<Record<string, string>>;
  /** The actors have no output. */
  readonly output: undefined;
  /** Always undefined: the actors do not fail. */
  readonly error: undefined;
  /** The tags of the state; the charts have none. */
  readonly tags: ReadonlySet<string>;
  /** The actors have no children. */
  readonly children: Readonly<Record<string, never>>;
  /** Test for a state: in `{ idle: 'authenticating' }`, both `matches('idle')` and `matches({ idle: 'authenticating' })` are true. */
  matches(value: StateValue): boolean;
  /** Test whether an event would cause a transition. */
  can(event: ChartEvent): boolean;
  /** Test for a tag of the state. */
  hasTag(tag: string): boolean;
  /** The meta data of the state; the charts have none. */
  getMeta(): Readonly<Record<string, unknown>>;
  /** The snapshot as a plain object. */
  toJSON(): unknown;
}

/** Functions that observe an actor: `next` for each new snapshot, `complete` when the actor is done. `error` is never called. */
export interface ActorObserver<T = ActorSnapshot> {
  /** Called with each new value. */
  next?(value: T): void;
  /** Never called. */
  error?(error: unknown): void;
  /** Called when the actor is done. */
  complete?(): void;
}

/** Ends an observation. */
export interface ActorSubscription {
  /** End the observation. */
  unsubscribe(): void;
}

/** A part of the snapshots of an actor, see `ActorRef.select`. */
export interface ActorSelection<T> {
  /** The current value. */
  get(): T;
  /** Observe the value: observers are called when it changes. */
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
  /** The current snapshot. */
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
  /** The form of actors of xstate in JSON. */
  toJSON(): {
    /** The mark of an actor. */
    readonly xstate$$type: 1;
    /** The id of the actor. */
    readonly id: string;
  };
}

/** The actors of a broker, with the members of a system of xstate. */
export interface ActorSystem {
  /** @returns undefined: the actors have no names in the system */
  get(name: PropertyKey): undefined;
  /** The actors by their names in the system; they have none. */
  getAll(): Record<string, never>;
  /** Observe every transition of every actor, as `broker.inspect` does. */
  inspect(observer: ActorObserver<Inspection> | ((event: Inspection) => void)): ActorSubscription;
  /** The state of the system. */
  getSnapshot(): {
    /** The delayed events: there are none. */
    readonly _scheduledEvents: Record<string, never>;
  };
  /** Has no effect, because the actors are started. */
  start(): void;
  /** Part of the systems of xstate. Its methods have no effect: the actors have no delayed events. */
  readonly scheduler: {
    /** Has no effect. */
    schedule(): void;
    /** Has no effect. */
    cancel(): void;
    /** Has no effect. */
    cancelAll(): void;
  };
  /** Part of the systems of xstate, and not used. */
  readonly _clock: {
    /** Has no effect. */
    setTimeout(run: () => void, ms: number): unknown;
    /** Has no effect. */
    clearTimeout(timer: never): void;
  };
  /** Part of the systems of xstate, and not used. */
  _logger(...values: unknown[]): void;
}

/** The running chart of a rule. */
export interface RuleRun<Event extends { readonly type: string }> {
  /** The outermost state. */
  readonly state: 'idle' | 'connected' | 'disconnected' | 'gone';
  /** The actor for observers. */
  readonly actor: ActorRef;
  /** Take an event. */
  send(type: Event['type']): void;
}

/**
 * One step of an actor, with the fields of xstate's inspection events: it was created (`@xstate.actor`), has received an event (`@xstate.event`),
 * or has handled it (`@xstate.snapshot`).
 */
export type Inspection = {
  /** `sessionId` of the actor of the inspected broker. */
  readonly rootId: string;
  /** The actor. */
  readonly actorRef: ActorRef;
} & (
  | {
      /** The actor was created. */
      readonly type: '@xstate.actor';
      /** Not in this step. */
      readonly event?: undefined;
      /** Not in this step. */
      readonly snapshot?: undefined;
    }
  | {
      /** The actor has received an event. */
      readonly type: '@xstate.event';
      /** The event. */
      readonly event: ChartEvent;
      /** The actor that has sent the event; always undefined, because the broker sends them. */
      readonly sourceRef: undefined;
      /** Not in this step. */
      readonly snapshot?: undefined;
    }
  | {
      /** The actor has handled an event. */
      readonly type: '@xstate.snapshot';
      /** The event. */
      readonly event: ChartEvent;
      /** The state after the event. */
      readonly snapshot: ActorSnapshot;
    }
);
