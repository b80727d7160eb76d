import type { StreamFunctionTools } from '../function.ts';
import type { Cause } from '../values/cause.ts';
import { StreamFailure, type StreamValueObject } from '../values/values.ts';
import type { MakeOperator, Operator, OperatorSetup } from './operator.ts';

type Emission = readonly StreamValueObject[];

/** An emission that waits. */
interface Waiting {
  readonly rows: Emission;
  readonly cause: Cause | undefined;
  /** Wall-clock milliseconds. */
  readonly until: number;
}

/**
 * Make the operator after SELECT for statements that call `delay`: emissions wait, in order, until the delays of
 * earlier calls have elapsed.
 * @param mostWaiting maximum number of waiting emissions: the option `bufferLength`
 * @returns its `push` throws StreamFailure if more would wait
 */
export function makeDelay(tools: StreamFunctionTools, mostWaiting: number): MakeOperator<Emission, Emission> {
  return (setup) => new Delay(tools, mostWaiting, setup);
}

class Delay implements Operator<Emission> {
  readonly #tools: Pick<StreamFunctionTools, 'delayed' | 'frame'>;
  readonly #mostWaiting: number;
  readonly #setup: OperatorSetup<Emission>;
  /** In order of arrival, which is also the order of their times. */
  #waiting: Waiting[] = [];
  #hasTimer = false;

  constructor(tools: StreamFunctionTools, mostWaiting: number, setup: OperatorSetup<Emission>) {
    this.#tools = tools;
    this.#mostWaiting = mostWaiting;
    this.#setup = setup;
  }

  open(): void {
    this.#wait();
  }

  push(rows: Emission): void {
    const { delayed, frame } = this.#tools;
    const { timers, output } = this.#setup;
    if (this.#waiting.length === 0 && delayed.until <= timers.now()) {
      output.push(rows);
      return;
    }
    if (this.#waiting.length >= this.#mostWaiting) {
      delayed.until = this.#waiting[this.#waiting.length - 1].until; // the delay of this emission is not added
      const text = `${this.#waiting.length} emissions wait for delay(): make it shorter, or raise the option bufferLength`;
      throw new StreamFailure(text);
    }
    this.#waiting.push({ rows, cause: frame.cause, until: delayed.until });
    this.#wait();
  }

  save(): Waiting[] {
    return [...this.#waiting];
  }

  load(state: unknown): void {
    this.#waiting = [...(state as Waiting[])];
    this.#tools.delayed.until = this.#waiting.at(-1)?.until ?? 0;
  }

  /** Wait for the first emission. */
  #wait(): void {
    const [first] = this.#waiting;
    if (first === undefined || this.#hasTimer) return;
    this.#hasTimer = true;
    this.#setup.timers.at(first.until, () => {
      this.#hasTimer = false;
      this.#pass();
    });
  }

  #pass(): void {
    const { timers, output } = this.#setup;
    const { frame } = this.#tools;
    const nowMs = timers.now();
    const due = this.#waiting.findIndex(({ until }) => until > nowMs);
    const passed = this.#waiting.splice(0, due === -1 ? this.#waiting.length : due);
    this.#wait();
    for (const { rows, cause } of passed) {
      frame.cause = cause;
      frame.many = undefined;
      output.push(rows);
    }
  }
}
