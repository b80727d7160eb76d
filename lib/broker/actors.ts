import type { Inspection } from '../base/inspection.ts';
import { Replay, ReplayedActor, type ReplaySystem } from '../base/replay.ts';

/** A running actor. */
export interface Running {
  send(event: { readonly type: string }): void;
  /** @returns a snapshot whose `value` is the names of the state and its substates, joined by dots */
  getSnapshot(): { readonly value: string };
}

/** Creates and starts an actor of one chart. @param from the initial state; default: that of the chart */
export type StartActor<D> = (actions: D, id: string, from?: string) => Running;

/** The actors of a broker: its own, and those of its sessions and rules. */
export class Actors {
  readonly #system: ReplaySystem;

  /** @param onError called with what observers throw; the errors of actions go to `onActionError` of `logic` */
  constructor(onError: (error: unknown) => void) {
    this.#system = { inspectors: new Set(), onError, actorCount: 0 };
  }

  /**
   * Prepare to run actors of a state machine.
   * @param machine a chart of `embermq/machines`. Its type is not declared, so that no public declaration refers to xstate
   * @param key the field of the machine's context that contains the actions
   * @param onActionError called if an action throws
   * @param rest the state in which sessions have no actor
   * @returns a function that creates and starts an actor
   */
  logic<D extends object>(
    machine: object,
    key: string,
    onActionError: (actions: D, error: unknown, action: string) => void,
    rest?: string
  ): StartActor<D> {
    const steps = new Replay<D>(machine as Replay<D>['machine'], key, this.#system, onActionError, rest);
    return (actions, id, from) => new ReplayedActor(steps, actions, id, from);
  }

  /** Report every step of every actor. @returns a function that ends the inspection */
  inspect(observer: (event: Inspection) => void): () => void {
    const inspector = (event: Inspection) => observer(event); // an observer that is added twice is called twice
    this.#system.inspectors.add(inspector);
    return () => void this.#system.inspectors.delete(inspector);
  }
}
