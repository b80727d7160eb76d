// The machines are xstate's, the actors are our own. An actor of xstate that runs a machine costs 54 us for a short life
// and 2.2 KB, the largest single cost of a connection. `Replay` asks the machine once for each state, event and answer of
// the guards, with the pure functions `getInitialMicrosteps` and `getMicrosteps` of xstate 5, and repeats the answers. An object
// with a chart (`Charted`) has its state in one field, so that an offline session costs nothing more. A `ReplayedActor`,
// for observers, is created on demand and has the members of an actor of xstate. A test compares machine, replay and
// actors of xstate for every state, event and answer of the guards.

import { type AnyMachineSnapshot, type AnyStateMachine, getInitialMicrosteps, getMicrosteps } from 'xstate';
import type { ActorRef, ActorSnapshot, ChartEvent } from './actor.ts';
import { type Chart, type Charted, type ChartHost, type ChartState, enter } from './charted.ts';
import type { ActorLogic, ReplayedActors } from './replayed-actor.ts';

/** A state in the form of the machine, with the known transitions that leave it. */
interface State extends ChartState {
  readonly origin: AnyMachineSnapshot;
  readonly choices: Map<string, Choice>;
}

/** The transitions that an event can cause in a state. */
interface Choice {
  /** The guards that decide, in the order in which the machine asks them. */
  readonly guards: readonly string[];
  /** A step for each combination of answers. The answer of the guard at index `i` is bit `i` of the index. */
  readonly steps: readonly Step[];
}

/** A transition: one part, and one more for each state that is left at once (`always`). */
interface Step {
  readonly parts: readonly Part[];
  /** True if the chart has a transition for the event. */
  readonly isTaken: boolean;
}

/** A part of a transition. The object is in the state `to` while the actions are performed. */
interface Part {
  readonly to: State;
  /** Names of the actions, in order. */
  readonly actions: readonly string[];
}

const INIT = 'xstate.init';

/** The tables of each machine. The first broker of a process asks the machines; later brokers reuse the answers. */
const TABLES = new WeakMap<AnyStateMachine, Map<string, Table>>();

/** The states and steps of a machine, as far as they have been needed. */
class Table {
  readonly #machine: AnyStateMachine;
  readonly #input: object;
  readonly #states = new Map<string, State>();
  #first: Step | undefined;
  /** The guards that the machine has evaluated in the current state for the current event. */
  #guards: string[] = [];
  /** The answers of these guards, as bits. */
  #answers = 0;

  constructor(machine: AnyStateMachine, key: string) {
    this.#machine = machine;
    const standIn = new Proxy({}, { get: (_, name) => () => this.#answer(String(name)) });
    this.#input = { [key]: standIn };
  }

  static of(machine: AnyStateMachine, key: string): Table {
    let tables = TABLES.get(machine);
    if (tables === undefined) TABLES.set(machine, (tables = new Map()));
    let table = tables.get(key);
    if (table === undefined) tables.set(key, (table = new Table(machine, key)));
    return table;
  }

  /** The types of all events of the machine. Those that an application asks about are not recorded unless they are among these. */
  get events(): readonly string[] {
    return this.#machine.events;
  }

  /** The step into the initial state. */
  get first(): Step {
    this.#first ??= this.#step(getInitialMicrosteps(this.#machine, this.#input as never), true);
    return this.#first;
  }

  /** @param path see `ChartState` */
  stateAt(path: string): State {
    const known = this.#states.get(path);
    if (known !== undefined) return known;
    return this.#state(this.#machine.resolveState({ value: splitPath(path), context: this.#input } as never));
  }

  choice(from: State, type: string): Choice {
    let choice = from.choices.get(type);
    if (choice === undefined) from.choices.set(type, (choice = this.#learn(from, { type })));
    return choice;
  }

  /** Ask the machine for each combination of answers of the guards that it asks. */
  #learn(from: State, event: ChartEvent): Choice {
    const steps: Step[] = [];
    this.#guards = [];
    for (this.#answers = 0; this.#answers < 2 ** this.#guards.length; this.#answers++) {
      const isTaken = from.origin.can(event);
      steps.push(this.#step(getMicrosteps(this.#machine, from.origin, event), isTaken));
    }
    return { guards: this.#guards, steps };
  }

  #step(microsteps: readonly [AnyMachineSnapshot, readonly ChartEvent[]][], isTaken: boolean): Step {
    const parts = microsteps.map(([origin, actions]) => {
      return { to: this.#state(origin), actions: actions.map(({ type }) => type) };
    });
    return { parts, isTaken };
  }

  #answer(guard: string): boolean {
    let index = this.#guards.indexOf(guard);
    if (index < 0) index = this.#guards.push(guard) - 1;
    return ((this.#answers >> index) & 1) === 1;
  }

  #state(origin: AnyMachineSnapshot): State {
    const path = joinPath(origin.value);
    let state = this.#states.get(path);
    if (state === undefined) {
      freeze(origin.value);
      const [name] = path.split('.', 1);
      state = { name, path, isFinal: origin.status === 'done', origin, choices: new Map() };
      this.#states.set(path, state);
    }
    return state;
  }
}

/** A transition in progress, and the events that arrive during it. Transitions are nested if an action sends an event to another object. */
interface Frame {
  readonly subject: Charted;
  waiting: string[] | undefined;
  readonly below: Frame | undefined;
}

/**
 * Runs the chart of many objects at low cost: for each state, event and answer of the guards, the machine computes the transition once in a
 * process, and all objects repeat it. Guards are methods of the object with the actions, without arguments and without effect; each is
 * evaluated once when an event is taken. An event that arrives during a transition of the same object waits for its end. In a final state,
 * events are ignored.
 */
export class Replay<S extends Charted, A extends object> implements Chart<S>, ActorLogic<S> {
  readonly machine: AnyStateMachine;
  readonly #table: Table;
  readonly #host: ChartHost<S, A>;
  readonly #actors: ReplayedActors;
  #frame: Frame | undefined;

  constructor(machine: AnyStateMachine, actors: ReplayedActors, host: ChartHost<S, A>) {
    this.machine = machine;
    this.#table = Table.of(machine, host.key);
    this.#actors = actors;
    this.#host = host;
  }

  get initial(): ChartState {
    const { parts } = this.#table.first;
    return parts[parts.length - 1].to;
  }

  stateAt(path: string): ChartState {
    return this.#table.stateAt(path);
  }

  begin(subject: S): void {
    this.#run(subject, INIT);
  }

  send(subject: S, type: string): void {
    for (let frame = this.#frame; frame !== undefined; frame = frame.below) {
      if (frame.subject !== subject) continue;
      frame.waiting ??= [];
      frame.waiting.push(type);
      return;
    }
    this.#run(subject, type);
  }

  actorOf(subject: S): ActorRef {
    return this.#actors.of(this, subject);
  }

  // ------------------------------------------------------------------------------------------------- the logic of an actor

  get key(): string {
    return this.#host.key;
  }

  /** See `ActorRef.id`. */
  idOf(subject: S): string {
    return this.#host.idOf(subject);
  }

  /** The methods that users call to cause events, for the error of `ActorRef.send`. */
  methodsFor(id: string): string {
    return this.#host.methodsFor(id);
  }

  /** The snapshot of an object. */
  snapshotOf(subject: S): ActorSnapshot {
    const state = subject.at as State;
    const { origin } = state;
    const context = Object.freeze({ [this.#host.key]: this.idOf(subject) });
    const can = ({ type }: ChartEvent) =>
      this.#table.events.includes(type) && this.#choose(state, type, subject).isTaken;
    const own = { context, can, tags: new Set(origin.tags), children: {}, historyValue: {} };
    return Object.freeze({ ...origin, ...own }) as unknown as ActorSnapshot;
  }

  // ------------------------------------------------------------------------------------------------------------ transitions

  #run(subject: S, type: string): void {
    const frame: Frame = { subject, waiting: undefined, below: this.#frame };
    this.#frame = frame;
    try {
      this.#take(subject, type);
      if (frame.waiting !== undefined) for (const next of frame.waiting) this.#take(subject, next); // more may be added in the meantime
    } finally {
      this.#frame = frame.below;
    }
  }

  #take(subject: S, type: string): void {
    const actors = this.#actors;
    const observed = actors.isInspected ? actors.of(this, subject) : actors.observed(subject);
    const left = subject.at as State;
    if (observed !== undefined) actors.received(observed, type);
    if (left.isFinal) return;
    const step = type === INIT ? this.#table.first : this.#choose(left, type, subject);
    this.#perform(step, subject, left);
    const observing = observed ?? actors.observed(subject); // an action may have added an observer
    if (observing !== undefined) actors.taken(observing, type);
  }

  #choose(state: State, type: string, subject: S): Step {
    const { guards, steps } = this.#table.choice(state, type);
    return guards.length === 0 ? steps[0] : steps[this.#answersOf(guards, subject)];
  }

  #answersOf(guards: readonly string[], subject: S): number {
    const actions = this.#host.actionsOf(subject) as Record<string, () => boolean>;
    let answers = 0;
    for (const [index, guard] of guards.entries()) {
      try {
        if (actions[guard]()) answers |= 1 << index;
      } catch (error) {
        this.#host.failed(subject, error, guard);
      }
    }
    return answers;
  }

  #perform({ parts }: Step, subject: S, from: ChartState): void {
    let left = from;
    let actions: Record<string, (left: string) => void> | undefined;
    for (const part of parts) {
      enter(subject, part.to);
      for (const action of part.actions) {
        actions ??= this.#host.actionsOf(subject) as Record<string, (left: string) => void>;
        try {
          actions[action](left.name);
        } catch (error) {
          this.#host.failed(subject, error, action);
        }
      }
      left = part.to;
    }
  }
}

/** Freeze the value of a state, which all actors share. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  Object.freeze(value);
  for (const inner of Object.values(value)) freeze(inner);
}

function joinPath(value: unknown): string {
  if (typeof value === 'string') return value;
  const [[name, inner]] = Object.entries(value as Record<string, unknown>);
  return `${name}.${joinPath(inner)}`;
}

function splitPath(path: string): unknown {
  const dot = path.indexOf('.');
  return dot < 0 ? path : { [path.slice(0, dot)]: splitPath(path.slice(dot + 1)) };
}
