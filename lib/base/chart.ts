/**
 * A state of a chart. The fields are those of xstate's machine configurations, as far as the charts of the broker use them, so that a
 * chart can be made a machine of xstate.
 */
export interface ChartState<E extends string = string, A extends string = string> {
  /** The nested state that is entered with this one. */
  readonly initial?: string;
  readonly states?: Readonly<Record<string, ChartState<E, A>>>;
  /** `final`: an actor in this state has ended. */
  readonly type?: 'final';
  /** Names of the actions when the state is entered. */
  readonly entry?: A | readonly A[];
  /** Names of the actions when the state is left. */
  readonly exit?: A | readonly A[];
  /**
   * The targets of events: `name` of a state beside this one, `name.nested`, or `#id.name` from the top. A target that is this state needs
   * `reenter`. An event without a target here is taken by the state around this one; if none has a target, the event changes nothing.
   */
  readonly on?: { readonly [event in E]?: string | { readonly target: string; readonly reenter: true } };
}

/**
 * A state chart: the states of an actor, and which events lead from one to another. It has no guards: a transition depends on nothing but
 * state and event.
 * @typeParam E the types of the events
 * @typeParam A the names of the actions
 */
export interface Chart<E extends string = string, A extends string = string> extends ChartState<E, A> {
  readonly id: string;
  readonly initial: string;
  readonly states: Readonly<Record<string, ChartState<E, A>>>;
}

/** One step of an actor. States are named with the states around them, joined by dots. */
export interface ChartStep {
  readonly to: string;
  /** Names of the actions, in order: those of the states that are left, from the innermost, then those of the states that are entered. */
  readonly actions: readonly string[];
}

/** The step into the initial state. */
export function firstStep(chart: Chart): ChartStep {
  return stepTo(chart, [], [], 0);
}

/** The step that an event causes; undefined: the event changes nothing. @param from name of the present state */
export function nextStep(chart: Chart, from: string, event: string): ChartStep | undefined {
  const active = from.split('.');
  for (let depth = active.length; depth >= 0; depth--) {
    const source = active.slice(0, depth);
    const target = stateOf(chart, source).on?.[event];
    if (target === undefined) continue;
    const name = typeof target === 'string' ? target : target.target;
    const to = name.startsWith('#') ? name.split('.').slice(1) : [...source.slice(0, -1), ...name.split('.')];
    return stepTo(chart, active, to, typeof target === 'string' ? sharedDepth(source, to) : depth - 1);
  }
  return undefined;
}

/** Whether an actor has ended in a state. */
export function isFinal(chart: Chart, state: string): boolean {
  return stateOf(chart, state.split('.')).type === 'final';
}

/** Leave states and enter others. @param kept number of names in both paths whose states are neither left nor entered */
function stepTo(chart: Chart, from: readonly string[], to: readonly string[], kept: number): ChartStep {
  const target = [...to];
  for (let { initial } = stateOf(chart, target); initial !== undefined; { initial } = stateOf(chart, target))
    target.push(initial);
  const left = pathsBelow(from, kept).reverse();
  const entered = pathsBelow(target, kept);
  const actions = [
    ...left.flatMap((path) => stateOf(chart, path).exit ?? []),
    ...entered.flatMap((path) => stateOf(chart, path).entry ?? [])
  ];
  return { to: target.join('.'), actions };
}

/** How many of the outermost states contain both a state and the target of its event. The target itself is always entered. */
function sharedDepth(source: readonly string[], target: readonly string[]): number {
  let depth = 0;
  while (depth < Math.min(source.length, target.length - 1) && source[depth] === target[depth]) depth++;
  return depth;
}

/** The paths of a state and the states around it that have more names than `depth`, from the outermost. */
function pathsBelow(path: readonly string[], depth: number): string[][] {
  return path.slice(depth).map((_, at) => path.slice(0, depth + at + 1));
}

function stateOf(chart: Chart, path: readonly string[]): ChartState {
  let state: ChartState = chart;
  for (const name of path) {
    const inner = state.states?.[name];
    if (inner === undefined) throw new Error(`the chart ${chart.id} has no state ${path.join('.')}`);
    state = inner;
  }
  return state;
}
