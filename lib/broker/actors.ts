import { type Actor, type ActorLogic, createActor, type EventObject, type Snapshot } from 'xstate';
import { replay } from '../base/replay.ts';

/** One step of an actor, as `inspect` shows it: xstate's inspection event, of which the fields that matter are told here. */
export interface Inspection {
  /** `@xstate.actor`: one was made. `@xstate.event`: it is sent something. `@xstate.snapshot`: that is where it is now. */
  readonly type: `@xstate.${string}`;
  /** Which actor; `id` is `broker`, a client id, or `session` where none was known when the actor was made. */
  readonly actorRef: { readonly id?: string; readonly sessionId: string };
  readonly event?: { readonly type: string };
  /** `snapshot.value` is the state. */
  readonly snapshot?: unknown;
}

/** An actor that runs. */
export interface Running {
  send(event: { readonly type: string }): void;
  /** State names joined by dots. */
  getSnapshot(): { readonly value: string };
}

/** Makes actors of one kind: of a chart, replayed. */
export type StartActor<D> = (actions: D, id: string, from?: string) => Running;

type AnyLogic = ActorLogic<Snapshot<unknown>, EventObject, unknown>;

/** The actor system of a broker. Its root has no life of its own; the broker's actor and the sessions' stand below it. */
export class Actors {
  readonly #root: Actor<AnyLogic>;
  readonly #onError: (error: unknown) => void;

  /** @param onError told of what an actor itself, or an observer, fails with; deeds are guarded apart */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
    this.#root = createActor(ROOT as AnyLogic);
    this.#root.subscribe({ error: onError });
    this.#root.start();
  }

  /**
   * Prepare to run actors of a machine.
   * @param machine a chart of `embermq/machines`; its type is xstate's, which no other declaration may show
   * @param key the field of the machine's context that holds the deeds
   * @param onActionError told when a deed throws
   * @param rest the state in which no actor is kept
   * @returns makes and starts one; `from` is the state it begins in, the machine's first by default
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
      // xstate does not read its options after the start. They take 360 bytes: each copy has a hidden class of its own.
      (actor as { options: object }).options = NO_OPTIONS;
      return actor as unknown as Running;
    };
  }

  /** Show every step of every actor. @returns a function that ends it */
  inspect(observer: (event: Inspection) => void): () => void {
    const next = (event: Inspection) => {
      try {
        observer(event);
      } catch (error) {
        this.#onError(error); // else it would come out of whatever the step was part of
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
