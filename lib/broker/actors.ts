import type { ActorRef, Inspection } from '../base/actor.ts';
import { type Chart, type Charted, type ChartHost, ChartRun } from '../base/charted.ts';
import { Replay } from '../base/replay.ts';
import { ReplayedActors } from '../base/replayed-actor.ts';

/** A running chart. */
export interface Running<Name extends string = string> {
  /** Name of the outermost state. */
  readonly state: Name;
  readonly at: { readonly path: string };
  readonly actor: ActorRef;
  send(type: string): void;
}

/** Starts a chart for an object with the actions. */
export type StartChart<A> = <Name extends string>(actions: A, id: string) => Running<Name>;

/** The actors of a broker: its own, and those of its sessions and rules. */
export class Actors {
  readonly #actors: ReplayedActors;

  /** @param onError called with errors of observers; the errors of actions go to `failed` of `ChartHost` */
  constructor(onError: (error: unknown) => void) {
    this.#actors = new ReplayedActors(onError);
  }

  /**
   * Prepare to run a chart for many objects that keep its state.
   * @param machine a chart of `embermq/machines`. Its type is not declared, so that no public declaration refers to xstate
   */
  chart<S extends Charted, A extends object>(machine: object, host: ChartHost<S, A>): Chart<S> {
    return new Replay<S, A>(machine as Replay<S, A>['machine'], this.#actors, host);
  }

  /** Prepare to run a chart for objects with its actions. @param machine as for `chart` */
  starter<A extends object>(
    machine: object,
    { key, failed, methodsFor }: Pick<ChartHost<ChartRun<A>, A>, 'key' | 'failed' | 'methodsFor'>
  ): StartChart<A> {
    const host = { key, failed, methodsFor, actionsOf: ({ actions }: ChartRun<A>) => actions };
    const chart = this.chart<ChartRun<A>, A>(machine, { ...host, idOf: ({ id }) => id });
    return (actions, id) => new ChartRun(chart, actions, id) as ChartRun<A, never>;
  }

  /** Report every step of every actor. @returns a function that ends the inspection */
  inspect(observer: (event: Inspection) => void): () => void {
    const { unsubscribe } = this.#actors.inspect(observer);
    return unsubscribe;
  }
}
