import { type Actor, type ActorLogic, createActor, type EventObject, type Snapshot } from 'xstate';
import { replay } from '../base/replay.ts';

/** One step of an actor, as reported by `broker.inspect`. It is an inspection event of xstate; this type declares its main fields. */
export interface Inspection {
  /** `@xstate.actor`: an actor was created. `@xstate.event`: it received an event. `@xstate.snapshot`: it entered a state. */
  readonly type: `@xstate.${string}`;
  /** The actor. Its `id` is `broker`, a client id, or `session` if the client id was not known when the actor was created. */
  readonly actorRef: { readonly id?: string; readonly sessionId: string };
  readonly event?: { readonly type: string };
  /** The snapshot of the actor; its `value` is the name of the state. */
  readonly snapshot?: unknown;
}

/** A running actor. */
export interface Running {
  send(event: { readonly type: string }): void;
  /** @returns a snapshot whose `value` is the names of the state and its substates, joined by dots */
  getSnapshot(): { readonly value: string };
}

/** Creates and starts an actor of one chart. @param from the initial state; default: that of the chart */
export type StartActor<D> = (actions: D, id: string, from?: string) => Running;

type AnyLogic = ActorLogic<Snapshot<unknown>, EventObject, unknown>;

/** The actor system of a broker. Its root is a placeholder; the actors of the broker and of the sessions are its children. */
export class Actors {
  readonly #root: Actor<AnyLogic>;
  readonly #onError: (error: unknown) => void;

  /** @param onError called with the errors of actors and observers; the errors of actions go to `onActionError` of `logic` */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
    this.#root = createActor(ROOT as AnyLogic);
    this.#root.subscribe({ error: onError });
    this.#root.start();
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
    const logic = replay<D>(machine as Parameters<typeof replay>[0], key, onActionError, rest);
    return (actions, id, from) => {
      const options = { parent: this.#root, input: { actions }, id };
      const snapshot = { status: 'active', value: from, actions, output: undefined, error: undefined };
      const actor = createActor(logic as never, (from === undefined ? options : { ...options, snapshot }) as never);
      (actor as Actor<AnyLogic>).start();
      // xstate does not read the options after the start. They take 360 bytes, because each copy has its own hidden class.
      (actor as { options: object }).options = NO_OPTIONS;
      return actor as unknown as Running;
    };
  }

  /** Report every step of every actor. @returns a function that ends the inspection */
  inspect(observer: (event: Inspection) => void): () => void {
    const next = (event: Inspection) => {
      try {
        observer(event);
      } catch (error) {
        this.#onError(error); // otherwise the operation that caused the step would throw it
      }
    };
    const subscription = this.#root.system.inspect({ next });
    return () => subscription.unsubscribe();
  }
}

const NO_OPTIONS = Object.freeze({});

const ROOT = {
  transition: (snapshot: unknown) => snapshot,
  getInitialSnapshot: () => ({ status: 'active', output: undefined, error: undefined }),
  getPersistedSnapshot: (snapshot: unknown) => snapshot
};
