import { type Chart, firstStep, isFinal, nextStep } from './chart.ts';
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
interface State {
  readonly snapshot: ReplaySnapshot;
  readonly steps: Map<string, Step>;
}

interface Step {
  readonly to: State;
  /** Names of the actions, in order. */
  readonly actions: readonly string[];
}

const INIT: ChartEvent = { type: 'xstate.init' };

/** What is known of each chart. The first broker of a process finds the steps; the following ones know them. */
const TABLES = new WeakMap<Chart, Map<string | undefined, Table>>();

/** The states and steps of a chart, as far as they have been needed. */
class Table {
  readonly #chart: Chart;
  readonly #rest: string | undefined;
  readonly #states = new Map<string, State>();
  #resumed: State | undefined;
  #first: Step | undefined;

  constructor(chart: Chart, rest: string | undefined) {
    this.#chart = chart;
    this.#rest = rest;
  }

  static of(chart: Chart, rest: string | undefined): Table {
    let tables = TABLES.get(chart);
    if (tables === undefined) TABLES.set(chart, (tables = new Map()));
    let table = tables.get(rest);
    if (table === undefined) tables.set(rest, (table = new Table(chart, rest)));
    return table;
  }

  get first(): Step {
    if (this.#first === undefined) {
      const { to, actions } = firstStep(this.#chart);
      this.#first = { to: this.#state(to), actions };
    }
    return this.#first;
  }

  stateToBeginIn(value: string): State {
    if (value !== this.#rest) return this.#state(value);
    this.#resumed ??= newState(value, 'active');
    return this.#resumed;
  }

  step(from: State, type: string): Step {
    let step = from.steps.get(type);
    if (step === undefined) {
      const next = nextStep(this.#chart, from.snapshot.value, type);
      step = next === undefined ? { to: from, actions: [] } : { to: this.#state(next.to), actions: next.actions };
      from.steps.set(type, step);
    }
    return step;
  }

  #state(value: string): State {
    let state = this.#states.get(value);
    if (state === undefined) {
      const hasEnded = value === this.#rest || isFinal(this.#chart, value);
      state = newState(value, hasEnded ? 'done' : 'active');
      this.#states.set(value, state);
    }
    return state;
  }
}

/**
 * Runs many actors of one chart at low cost.
 *
 * For each pair of state and event the transition is found once in a process: the next state and the names of the actions in order. All
 * actors then repeat it.
 */
export class Replay<D extends object> {
  /** The chart, as `config` of a machine of xstate. */
  readonly logic: { readonly config: Chart };
  readonly system: ReplaySystem;
  readonly #table: Table;
  readonly #onError: (actions: D, error: unknown, action: string) => void;

  /**
   * @param onError called when an action throws; the actor stays alive, and the remaining actions of the transition are performed
   * @param rest a state in which the actor ends although the chart does not; another actor can be created in that state later
   */
  constructor(
    chart: Chart,
    system: ReplaySystem,
    onError: (actions: D, error: unknown, action: string) => void,
    rest?: string
  ) {
    this.logic = { config: chart };
    this.system = system;
    this.#table = Table.of(chart, rest);
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

  get logic(): { readonly config: Chart } {
    return this.#replay.logic;
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

function newState(value: string, status: ReplaySnapshot['status']): State {
  return { snapshot: Object.freeze({ status, value, output: undefined, error: undefined }), steps: new Map() };
}
