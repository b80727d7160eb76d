import type { AnalyticFunction, AnalyticState, ArgumentNames, StreamFunctionTools } from '../function.ts';
import { type Collection, type Evaluate, type Frame, isCollection, PENDING, type Tuple } from '../values/tuple.ts';
import { StreamFailure, type StreamValue } from '../values/values.ts';
import { type Test, testOf } from './condition.ts';
import { type Key, keyOf } from './keys.ts';
import type { MakeOperator, Operator, OperatorSetup } from './operator.ts';

/** A call of an analytic function. */
interface AnalyticCall {
  readonly function: AnalyticFunction;
  /** The names passed to `make` and `load` of the function. */
  readonly names: ArgumentNames;
  readonly args: readonly Evaluate[];
  /** The slot of a tuple that receives the result. */
  readonly slot: number;
  /** OVER (PARTITION BY ...): each partition has a separate state. */
  readonly partitionBy: readonly Evaluate[];
  /**
   * OVER (WHEN ...): if it is false, the function determines the result, or the previous one of the partition is
   * repeated.
   */
  readonly when?: Evaluate;
}

interface AnalyticSpec {
  /** In the order in which they are computed; the arguments of a call may use the slots of earlier ones. */
  readonly calls: readonly AnalyticCall[];
  /** Number of slots of the statement's tuples. */
  readonly slots: number;
  readonly tools: StreamFunctionTools;
  readonly frame: Frame;
  /** The limit `groups`, for the partitions of each call. */
  readonly mostGroups: number;
}

interface Partition {
  readonly state: AnalyticState;
  result: StreamValue;
}

type SavedCall = readonly (readonly [key: Key, state: unknown, result: StreamValue])[];

/**
 * Make the operator that computes analytic functions, before WHERE [stream rules 6.7].
 * @returns its `push` throws StreamFailure
 */
export function makeAnalytic(spec: AnalyticSpec): MakeOperator<Tuple | Collection, Tuple | Collection> {
  return (setup) => new Analytic(spec, setup);
}

class Analytic implements Operator<Tuple | Collection> {
  readonly #spec: AnalyticSpec;
  readonly #setup: OperatorSetup<Tuple | Collection>;
  readonly #calls: readonly CallRun[];

  constructor(spec: AnalyticSpec, setup: OperatorSetup<Tuple | Collection>) {
    this.#spec = spec;
    this.#setup = setup;
    this.#calls = spec.calls.map((call) => new CallRun(call, spec));
  }

  push(item: Tuple | Collection): void {
    if (!isCollection(item)) {
      this.#setup.output.push(this.#compute(item));
      return;
    }
    const { frame } = this.#spec;
    frame.range = item.range;
    const tuples = item.tuples.map((tuple, index) => {
      frame.rowNumber = index + 1;
      return this.#compute(tuple);
    });
    this.#setup.output.push({ ...item, tuples });
  }

  save(): SavedCall[] {
    return this.#calls.map((call) => call.save());
  }

  load(state: unknown): void {
    for (const [index, saved] of (state as SavedCall[]).entries()) this.#calls[index].load(saved);
  }

  #compute(tuple: Tuple): Tuple {
    const slots = tuple.slots.slice();
    while (slots.length < this.#spec.slots) slots.push(PENDING);
    const computed = tuple.with(slots);
    for (const call of this.#calls) slots[call.slot] = call.next(computed);
    return computed;
  }
}

/** The state of a call in a running rule. */
class CallRun {
  readonly slot: number;
  readonly #call: AnalyticCall;
  readonly #spec: AnalyticSpec;
  readonly #keyOf: (tuple: Tuple) => Key;
  readonly #isDue: Test | undefined;
  readonly #partitions = new Map<Key, Partition>();

  constructor(call: AnalyticCall, spec: AnalyticSpec) {
    this.slot = call.slot;
    this.#call = call;
    this.#spec = spec;
    this.#keyOf = keyOf(call.partitionBy);
    this.#isDue = call.when && testOf(call.when);
  }

  next(tuple: Tuple): StreamValue {
    const partition = this.#partition(this.#keyOf(tuple));
    const { state } = partition;
    const isDue = this.#isDue === undefined || this.#isDue(tuple);
    if (!isDue && state.skipped === undefined) return partition.result;
    const args = this.#call.args.map((arg) => arg(tuple));
    return (partition.result = isDue ? state.next(args, tuple) : state.skipped?.(args, tuple));
  }

  save(): SavedCall {
    return Array.from(this.#partitions, ([key, { state, result }]) => [key, state.save?.(), result] as const);
  }

  load(saved: SavedCall): void {
    const { function: each, names } = this.#call;
    for (const [key, state, result] of saved)
      this.#partitions.set(key, { state: each.load(this.#spec.tools, names, state), result });
  }

  #partition(key: Key): Partition {
    const found = this.#partitions.get(key);
    if (found !== undefined) return found;
    const { tools, mostGroups } = this.#spec;
    if (this.#partitions.size >= mostGroups)
      throw new StreamFailure(
        `${this.#call.function.name} has at most ${mostGroups} partitions: partition by an expression with fewer values, or raise bounds.groups`
      );
    const partition = { state: this.#call.function.make(tools, this.#call.names), result: undefined };
    this.#partitions.set(key, partition);
    return partition;
  }
}
