import { plainValue, type StreamAccumulator, type StreamFunction } from '../../lib/adapter.ts';
import { StreamFailure, type StreamValue } from '../../lib/index.ts';
import { messageOf } from './errors.ts';
import { instance } from './library.ts';

/**
 * A function of a plugin in the form of the original. Each call in a rule has a separate one if the library exports a
 * constructor or a function.
 */
export interface PluginFunctionObject {
  /**
   * Check the arguments of a call when the rule is created; undefined stands for arguments that are not literals.
   * @returns the fault
   * @throws the fault
   */
  validate?(args: readonly unknown[]): unknown;
  /**
   * @param args integers are numbers where these are exact, otherwise bigints. For an aggregate, each is an array with
   * the values of the rows
   * @returns the result, synchronously
   */
  exec(
    args: unknown[],
    context: {
      /** The id of the rule. */
      readonly ruleId: string;
    }
  ): unknown;
  /** True, or a function that returns true, for an aggregate. Default false. */
  readonly isAggregate?: boolean | (() => boolean);
}

/** Evaluates a call, for `callable`. */
type Exec = (args: unknown[], ruleId: string) => unknown;

/**
 * The function for an export.
 * @throws Error if it is not a function
 */
export function functionOf(name: string, exported: unknown): StreamFunction {
  const sample = instance(exported) as (Partial<PluginFunctionObject> & Partial<StreamFunction>) | undefined | null;
  if (typeof sample !== 'object' || sample === null) throw new TypeError('a function must be an object');
  if (typeof sample.kind === 'string') return { ...(sample as StreamFunction), name: name.toLowerCase() };
  if (typeof sample.exec !== 'function') throw new TypeError('a function must have the method exec');
  const { isAggregate } = sample;
  const start = (): Exec => {
    const made = instance(exported) as PluginFunctionObject;
    return (args, ruleId) => made.exec(args, { ruleId });
  };
  const validated = sample as PluginFunctionObject;
  return callable(name, {
    about: `Function of a plugin: ${name}.`,
    isAggregate: typeof isAggregate === 'function' ? isAggregate.call(sample) : isAggregate === true,
    start,
    ...(validated.validate === undefined ? {} : { check: (literals) => problemOf(validated, literals) })
  });
}

function problemOf(
  validated: PluginFunctionObject,
  literals: readonly (StreamValue | undefined)[]
): string | undefined {
  try {
    const problem = validated.validate?.(literals.map((each) => plainValue(each)));
    if (problem === undefined || problem === null || problem === true) return undefined;
    return problem === false ? 'the arguments are invalid' : messageOf(problem);
  } catch (error) {
    return messageOf(error);
  }
}

/** The evaluation of a function that was not written for this service. */
interface Callable {
  readonly about: string;
  readonly isAggregate: boolean;
  /** Called when a rule starts. */
  readonly start: () => Exec;
  readonly check?: (literals: readonly (StreamValue | undefined)[]) => string | undefined;
}

/** Make a function of statements from one that takes and returns plain values. */
export function callable(name: string, { about, isAggregate, start, check }: Callable): StreamFunction {
  const base = {
    name: name.toLowerCase(),
    family: 'plugins',
    params: ['any...'] as const,
    about,
    ...(check === undefined ? {} : { check })
  };
  const begin = () => {
    try {
      return start();
    } catch (error) {
      throw failure(name, error);
    }
  };
  if (isAggregate) {
    const make = (ruleId: string, columns: StreamValue[][] = []) => new Columns(name, begin(), ruleId, columns);
    return {
      ...base,
      kind: 'aggregate',
      wildcard: 'rows',
      make: ({ ruleId }) => make(ruleId),
      makeSliding: ({ ruleId }) => make(ruleId),
      load: ({ ruleId }, state) => make(ruleId, state as StreamValue[][])
    };
  }
  return {
    ...base,
    kind: 'context',
    make: ({ ruleId }) => {
      const exec = begin();
      return (_tuple, ...args) => call(name, exec, args.map(plainValue), ruleId);
    }
  };
}

/** Keeps the values of the rows by argument. */
class Columns implements StreamAccumulator {
  readonly #name: string;
  readonly #exec: Exec;
  readonly #ruleId: string;
  readonly #columns: StreamValue[][];
  /** Number of removed values at the start of each column. */
  #removed = 0;

  constructor(name: string, exec: Exec, ruleId: string, columns: StreamValue[][]) {
    this.#name = name;
    this.#exec = exec;
    this.#ruleId = ruleId;
    this.#columns = columns;
  }

  add(args: readonly StreamValue[]): void {
    for (let i = 0; i < args.length; i++) {
      const column = this.#columns[i];
      if (column === undefined) this.#columns[i] = [args[i]];
      else column.push(args[i]);
    }
  }

  remove(): void {
    this.#removed++;
    // moving all values for each removed one would take too long
    if (this.#removed * 2 > (this.#columns[0]?.length ?? 0)) this.#compact();
  }

  result(): StreamValue {
    this.#compact();
    return call(
      this.#name,
      this.#exec,
      this.#columns.map((column) => column.map(plainValue)),
      this.#ruleId
    );
  }

  save(): unknown {
    this.#compact();
    return this.#columns;
  }

  #compact(): void {
    if (this.#removed > 0) for (const column of this.#columns) column.splice(0, this.#removed);
    this.#removed = 0;
  }
}

function call(name: string, exec: Exec, args: unknown[], ruleId: string): StreamValue {
  let result: unknown;
  try {
    result = exec(args, ruleId);
  } catch (error) {
    throw failure(name, error);
  }
  if (typeof result === 'function' || typeof result === 'symbol')
    throw new StreamFailure(`function ${name}: its result is a ${typeof result}, which is not a value`);
  if (typeof (result as PromiseLike<unknown> | undefined)?.then === 'function') {
    (result as PromiseLike<unknown>).then(undefined, () => {}); // only the error below is reported
    throw new StreamFailure(`function ${name}: it must return its result at once, not a promise`);
  }
  return result as StreamValue;
}

function failure(name: string, error: unknown): StreamFailure {
  return new StreamFailure(`function ${name}: ${messageOf(error)}`, error);
}
