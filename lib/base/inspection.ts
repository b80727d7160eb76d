/** An event of a chart. */
export interface ChartEvent {
  readonly type: string;
}

/** The state of a replayed actor. All actors that are in the same state share one snapshot. */
export interface ReplaySnapshot {
  /** `done` when the actor has ended. */
  readonly status: 'active' | 'done';
  /** Names of the nested states, joined by dots: `idle.authenticating`. */
  readonly value: string;
  readonly output: undefined;
  readonly error: undefined;
}

/** Functions that observe an actor: `next` for each new snapshot, `complete` when the actor has ended. `error` is never called. */
export interface ReplayObserver {
  next?(snapshot: ReplaySnapshot): void;
  error?(error: unknown): void;
  complete?(): void;
}

/** The view of an actor for its observers. It has the members of an xstate actor that xstate's `waitFor` and inspectors use. */
export interface ActorView {
  /** `broker`, a client id, or `session` if the client id was not known when the actor was created. */
  readonly id: string;
  /** Identifies the actor among those of its broker. */
  readonly sessionId: string;
  /** The state machine, for inspectors that draw it. */
  readonly logic: object;
  getSnapshot(): ReplaySnapshot;
  /** Observe the snapshots of the actor. @returns an object that ends the observation */
  subscribe(
    observer: ReplayObserver | ((snapshot: ReplaySnapshot) => void),
    onError?: (error: unknown) => void,
    onComplete?: () => void
  ): { unsubscribe(): void };
}

/** One step of an actor, with the fields of xstate's inspection events. */
export interface Inspection {
  /** `@xstate.actor`: an actor was created. `@xstate.event`: it received an event. `@xstate.snapshot`: it has taken the event. */
  readonly type: '@xstate.actor' | '@xstate.event' | '@xstate.snapshot';
  /** `sessionId` of the first actor that the inspected broker created. */
  readonly rootId: string;
  readonly actorRef: ActorView;
  readonly event?: ChartEvent;
  readonly snapshot?: ReplaySnapshot;
}
