// The actors are our own; the machines are xstate's. An actor of xstate that runs a machine costs 54 us for a short
// life and 2.2 KB. `Replay` asks the machine once for each pair of state and event and repeats the answer. As the
// logic of an xstate actor this still cost 13 us and 1.7 KB, the largest single cost of a connection. `ReplayedActor`
// costs 0.2 us and 100 bytes (`npm run bench -- --only session-life`), a connection a quarter less CPU time and a
// third less memory. It has what observers of an xstate actor use: `getSnapshot`, `subscribe`, xstate's `waitFor`,
// and inspection events. A test compares machine and replay for every state and event. An offline session has no
// actor.

import { type AnyActorScope, type AnyMachineSnapshot, type AnyStateMachine, createEmptyActor } from 'xstate';
import type { ActorView, ChartEvent, Inspection, ReplayObserver, ReplaySnapshot } from './inspection.ts';

/** What the actors of one broker share. */
export interface ReplaySystem {
  readonly inspectors: Set<(event: Inspection) => void>;
  /** Called with what an observer or an inspector throws. */
  onError(error: unknown): void;
  /** Number of actors created so far, which gives each its `sessionId`. */
  actorCount: number;
}

/** A state of a chart, with the steps that are known to leave it. */
export interface State {
  readonly snapshot: ReplaySnapshot;
  readonly steps: Map<string, Step>;
  /** The state as the machine sees it. */
  readonly origin: AnyMachineSnapshot;
}

export interface Step {
  readonly to: State;
  /** Names of the actions, in order. */
  readonly actions: readonly string[];
}

const NOTHING = (): void => {};
const INIT: ChartEvent = { type: 'xstate.init' };

/** What is known of each machine. The first broker of a process asks the machines; the following ones know the answers. */
const TABLES = new WeakMap<AnyStateMachine, Map<string, Table>>();

/** The states and steps of a machine, as far as they have been needed. */
class Table {
  readonly #machine: AnyStateMachine;
  readonly #input: object;
  readonly #rest: string | undefined;
  readonly #states = new Map<string, State>();
  readonly #scope: AnyActorScope;
  /** The actions of the step that the machine computes. */
  #actions: string[] = [];
  #resumed: State | undefined;
  #first: Step | undefined;

  constructor(machine: AnyStateMachine, key: string, rest: string | undefined) {
    this.#machine = machine;
    this.#input = { [key]: {} };
    this.#rest = rest;
    // xstate's own `transition` creates an actor of the machine in each call, which computes the initial state
    const self = createEmptyActor();
    this.#scope = {
      self,
      system: self.system,
      id: self.id,
      sessionId: self.sessionId,
      logger: NOTHING,
      defer: NOTHING,
      emit: NOTHING,
      stopChild: NOTHING,
      actionExecutor: ({ type }) => this.#actions.push(type)
    };
  }

  static of(machine: AnyStateMachine, key: string, rest: string | undefined): Table {
    let tables = TABLES.get(machine);
    if (tables === undefined) TABLES.set(machine, (tables = new Map()));
    const name = `${key} ${rest}`;
    let table = tables.get(name);
    if (table === undefined) tables.set(name, (table = new Table(machine, key, rest)));
    return table;
  }

  get first(): Step {
    this.#first ??= this.#step(() => this.#machine.getInitialSnapshot(this.#scope, this.#input as never));
    return this.#first;
  }

  stateToBeginIn(value: string): State {
    const isResumed = value === this.#rest;
    const known = isResumed ? this.#resumed : this.#states.get(value);
    if (known !== undefined) return known;
    const origin = this.#machine.resolveState({ value: splitState(value), context: this.#input } as never);
    if (!isResumed) return this.#state(origin);
    this.#resumed = newState(value, 'active', origin);
    return this.#resumed;
  }

  step(from: State, type: string): Step {
    let step = from.steps.get(type);
    if (step === undefined) {
      step = this.#step(() => this.#machine.transition(from.origin, { type }, this.#scope));
      from.steps.set(type, step);
    }
    return step;
  }

  #step(take: () => AnyMachineSnapshot): Step {
    this.#actions = [];
    const to = this.#state(take());
    return { to, actions: this.#actions };
  }

  #state(origin: AnyMachineSnapshot): State {
    const value = joinState(origin.value);
    let state = this.#states.get(value);
    if (state === undefined) {
      const hasEnded = value === this.#rest || origin.status === 'done';
      state = newState(value, hasEnded ? 'done' : 'active', origin);
      this.#states.set(value, state);
    }
    return state;
  }
}

/**
 * Runs many actors of one machine at low cost.
 *
 * For each pair of state and event the machine computes the transition once in a process: the next state and the names of the actions in
 * order. All actors then repeat it. This works only for machines whose transitions depend on nothing but state and event.
 */
export class Replay<D extends object> {
  readonly machine: AnyStateMachine;
  readonly system: ReplaySystem;
  readonly #table: Table;
  readonly #onError: (actions: D, error: unknown, action: string) => void;

  /**
   * @param key the field of context and input of the machine that contains the object with the actions
   * @param onError called when an action throws; the actor stays alive, and the remaining actions of the transition are performed
   * @param rest a state in which the actor ends although the machine does not; another actor can be created in that state later
   */
  constructor(
    machine: AnyStateMachine,
    key: string,
    system: ReplaySystem,
    onError: (actions: D, error: unknown, action: string) => void,
    rest?: string
  ) {
    this.machine = machine;
    this.system = system;
    this.#table = Table.of(machine, key, rest);
    this.#onError = onError;
  }

  /** The step into the initial state. */
  get first(): Step {
    return this.#table.first;
  }

  /** Find the state of an actor that begins in it. An actor that begins in `rest` has not ended. */
  stateToBeginIn(value: string): State {
    return this.#table.stateToBeginIn(value);
  }

  /** Find the step that an event causes in a state. */
  step(from: State, type: string): Step {
    return this.#table.step(from, type);
  }

  /** Perform the actions of a step. */
  perform(step: Step, actions: D): void {
    for (const action of step.actions) {
      try {
        (actions as unknown as Record<string, () => void>)[action]();
      } catch (error) {
        this.#onError(actions, error, action);
      }
    }
  }
}

/** An actor of a chart. An event that arrives while the actor takes another one waits for it. An actor that has ended ignores events. */
export class ReplayedActor<D extends object> implements ActorView {
  readonly id: string;
  readonly #number: number;
  readonly #replay: Replay<D>;
  readonly #actions: D;
  #state: State;
  #isBusy = true;
  #waiting: ChartEvent[] | undefined;
  #observers: Set<ReplayObserver> | undefined;

  /** @param from the state to begin in, without performing actions; undefined: the initial state of the chart, whose actions are performed */
  constructor(replay: Replay<D>, actions: D, id: string, from?: string) {
    this.id = id;
    this.#number = replay.system.actorCount++;
    this.#replay = replay;
    this.#actions = actions;
    const step = from === undefined ? replay.first : undefined;
    this.#state = step === undefined ? replay.stateToBeginIn(from as string) : step.to;
    if (this.#isInspected) {
      this.#report('@xstate.actor');
      this.#report('@xstate.event', INIT);
    }
    if (step !== undefined) replay.perform(step, actions);
    if (this.#isInspected) this.#report('@xstate.snapshot', INIT);
    this.#takeWaiting();
  }

  get sessionId(): string {
    return `x:${this.#number}`;
  }

  get logic(): object {
    return this.#replay.machine;
  }

  getSnapshot(): ReplaySnapshot {
    return this.#state.snapshot;
  }

  send(event: ChartEvent): void {
    if (this.#isBusy) {
      this.#waiting ??= [];
      this.#waiting.push(event);
      return;
    }
    this.#isBusy = true;
    this.#take(event);
    this.#takeWaiting();
  }

  subscribe(
    observer: ReplayObserver | ((snapshot: ReplaySnapshot) => void),
    _onError?: (error: unknown) => void,
    onComplete?: () => void
  ): { unsubscribe(): void } {
    const added: ReplayObserver =
      typeof observer === 'function' ? { next: observer, complete: onComplete } : { ...observer };
    if (this.#state.snapshot.status === 'done') this.#tell(() => added.complete?.());
    else {
      this.#observers ??= new Set();
      this.#observers.add(added);
    }
    return { unsubscribe: () => void this.#observers?.delete(added) };
  }

  #take(event: ChartEvent): void {
    if (this.#isInspected) this.#report('@xstate.event', event);
    if (this.#state.snapshot.status === 'done') return;
    const step = this.#replay.step(this.#state, event.type);
    this.#state = step.to;
    this.#replay.perform(step, this.#actions);
    if (this.#observers !== undefined) this.#notify(step.to.snapshot);
    if (this.#isInspected) this.#report('@xstate.snapshot', event);
  }

  #takeWaiting(): void {
    if (this.#waiting !== undefined) {
      for (const event of this.#waiting) this.#take(event); // more may be added meanwhile
      this.#waiting = undefined;
    }
    this.#isBusy = false;
  }

  #notify(snapshot: ReplaySnapshot): void {
    const observers = [...(this.#observers ?? [])];
    for (const observer of observers) this.#tell(() => observer.next?.(snapshot));
    if (snapshot.status !== 'done') return;
    this.#observers = undefined;
    for (const observer of observers) this.#tell(() => observer.complete?.());
  }

  get #isInspected(): boolean {
    return this.#replay.system.inspectors.size > 0;
  }

  #report(type: Inspection['type'], event?: ChartEvent): void {
    const snapshot = type === '@xstate.snapshot' ? this.#state.snapshot : undefined;
    for (const inspect of this.#replay.system.inspectors)
      this.#tell(() => inspect({ type, rootId: 'x:0', actorRef: this, event, snapshot }));
  }

  /** Call a function of an observer. What it throws must not reach the operation that sent the event. */
  #tell(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#replay.system.onError(error);
    }
  }
}

function newState(value: string, status: ReplaySnapshot['status'], origin: AnyMachineSnapshot): State {
  return { snapshot: Object.freeze({ status, value, output: undefined, error: undefined }), steps: new Map(), origin };
}

function joinState(value: unknown): string {
  if (typeof value === 'string') return value;
  const [[name, inner]] = Object.entries(value as Record<string, unknown>);
  return `${name}.${joinState(inner)}`;
}

function splitState(value: string): unknown {
  const dot = value.indexOf('.');
  return dot < 0 ? value : { [value.slice(0, dot)]: splitState(value.slice(dot + 1)) };
}
