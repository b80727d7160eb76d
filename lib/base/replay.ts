import {
  type ActorLogic,
  type ActorScope,
  type AnyEventObject,
  type AnyStateMachine,
  initialTransition,
  type Snapshot,
  transition
} from 'xstate';

/** The object that implements the actions of a chart, by the names of the actions. */
type ActionRunner = Record<string, () => void>;

/** The state of a replayed actor. */
export type ReplaySnapshot = Snapshot<undefined> & {
  /** Names of the nested states, joined by dots: `connected.live`. */
  readonly value: string;
};

interface Step {
  readonly value: string;
  readonly actions: readonly string[];
  readonly isFinal: boolean;
}

/** The input of a replayed actor: the object that implements the actions. */
export interface ReplayInput<D> {
  readonly actions: D;
}

/**
 * Create actor logic that runs many actors of one machine at low cost.
 *
 * For each pair of state and event the machine computes the transition once: the next state and the names of the actions in order. All
 * actors then repeat it. This works only for machines whose transitions depend on nothing but state and event.
 *
 * An actor of the machine itself costs about 20 us and 3.6 KB, an actor of this logic about 3 us and 1.5 KB.
 *
 * @param key the field of context and input of the machine that holds the object with the actions
 * @param rest a state in which the actor ends although the machine does not; another actor can be created in that state later
 * @param onError called when an action throws; the actor stays alive, and the remaining actions of the transition are performed
 */
export function replay<D extends object>(
  machine: AnyStateMachine,
  key: string,
  onError: (actions: D, error: unknown, action: string) => void,
  rest?: string
): ActorLogic<ReplaySnapshot & { readonly actions: D }, AnyEventObject, ReplayInput<D>> {
  type At = ReplaySnapshot & { readonly actions: D };
  const input = { [key]: {} };
  const steps = new Map<string, Map<string, Step>>();
  let first: Step | undefined;

  function begin(): Step {
    const [snapshot, actions] = initialTransition(machine, input as never);
    first = step(snapshot, actions);
    return first;
  }

  function learn(value: string, type: string): Step {
    const from = machine.resolveState({ value: splitState(value), context: { ...input } } as never);
    const [snapshot, actions] = transition(machine, from, { type } as never);
    const known = steps.get(value) ?? new Map<string, Step>();
    steps.set(value, known);
    const taken = step(snapshot, actions);
    known.set(type, taken);
    return taken;
  }

  function perform(step: Step, actions: D): void {
    for (const action of step.actions) {
      try {
        (actions as unknown as ActionRunner)[action]();
      } catch (error) {
        onError(actions, error, action);
      }
    }
  }

  function at(step: Step, actions: D): At {
    return {
      status: step.isFinal || step.value === rest ? 'done' : 'active',
      value: step.value,
      actions,
      output: undefined,
      error: undefined
    } as At;
  }

  return {
    transition(snapshot: At, event: AnyEventObject, scope: ActorScope<At, AnyEventObject>): At {
      const taken = steps.get(snapshot.value)?.get(event.type) ?? learn(snapshot.value, event.type);
      if (taken.actions.length > 0) scope.defer(() => perform(taken, snapshot.actions));
      return taken.value === snapshot.value ? snapshot : at(taken, snapshot.actions);
    },
    getInitialSnapshot(scope: ActorScope<At, AnyEventObject>, { actions }: ReplayInput<D>): At {
      const step = first ?? begin();
      if (step.actions.length > 0) scope.defer(() => perform(step, actions));
      return at(step, actions);
    },
    getPersistedSnapshot: (snapshot: At) => snapshot
  } as ActorLogic<At, AnyEventObject, ReplayInput<D>>;
}

function step(snapshot: { value: unknown; status: string }, actions: readonly { type: string }[]): Step {
  return {
    value: joinState(snapshot.value),
    actions: actions.map(({ type }) => type),
    isFinal: snapshot.status === 'done'
  };
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
