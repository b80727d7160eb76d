import type { ActorRef } from './actor.ts';

/** A state of a chart. All objects in this state share one `ChartState`. */
export interface ChartState {
  /** Name of the outermost state. */
  readonly name: string;
  /** Names of the nested states, joined by dots: `idle.authenticating`. */
  readonly path: string;
  /** True if the state is final. */
  readonly isFinal: boolean;
}

/** Put an object into a state of its chart. Only `Replay` calls it. */
export let enter: (charted: Charted, state: ChartState) => void;

/** Base class of objects with a state chart. The state is one field, which only the replay of the chart writes. */
export abstract class Charted<Name extends string = string> {
  #at: ChartState;

  static {
    enter = (charted, state) => {
      charted.#at = state;
    };
  }

  /** @param initial the state before the chart has performed its first actions */
  constructor(initial: ChartState) {
    this.#at = initial;
  }

  /** The state. While actions of a transition are performed, this is its target. */
  get at(): ChartState {
    return this.#at;
  }

  /** Name of the outermost state. */
  get state(): Name {
    return this.#at.name as Name;
  }
}

/** A chart that runs for many objects; `Replay` implements it. */
export interface Chart<S extends Charted> {
  /** The initial state. */
  readonly initial: ChartState;
  /** Find a state by its path, for an object that starts in it. No actions are performed. */
  stateAt(path: string): ChartState;
  /** Perform the actions of the initial state. */
  begin(subject: S): void;
  /** Take an event, now or after the current transition. */
  send(subject: S, type: string): void;
  /** The actor for observers. It stays the same as long as it is held or observed. */
  actorOf(subject: S): ActorRef;
}

/** Functions that a chart calls. `S` is an object with the chart, `A` the object with its actions and guards. */
export interface ChartHost<S extends Charted, A extends object> {
  /** The field of context and input of the machine that contains the object with the actions. */
  readonly key: string;
  /** The object with the actions and guards. */
  actionsOf(subject: S): A;
  /** See `ActorRef.id`. */
  idOf(subject: S): string;
  /**
   * Called when an action or a guard has thrown. The remaining actions of the transition are performed; a guard that throws counts as
   * false.
   */
  failed(subject: S, error: unknown, action: string): void;
  /** The methods that users call to cause events, for the error of `ActorRef.send`. */
  methodsFor(id: string): string;
}

/** The chart of an object that has no field for the state. */
export class ChartRun<A extends object, Name extends string = string> extends Charted<Name> {
  /** See `ActorRef.id`. */
  readonly id: string;
  /** The object with the actions and guards. */
  readonly actions: A;
  readonly #chart: Chart<ChartRun<A, Name>>;

  /** @param from the initial state, without performing actions; undefined: the initial state of the chart, whose actions are performed */
  constructor(chart: Chart<ChartRun<A, Name>>, actions: A, id: string, from?: string) {
    super(from === undefined ? chart.initial : chart.stateAt(from));
    this.id = id;
    this.actions = actions;
    this.#chart = chart;
    if (from === undefined) chart.begin(this);
  }

  /** See `Chart.actorOf`. */
  get actor(): ActorRef {
    return this.#chart.actorOf(this);
  }

  /** Take an event, now or after the current transition. */
  send(type: string): void {
    this.#chart.send(this, type);
  }
}
