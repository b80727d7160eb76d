import type { StreamFunctionTools } from '../function.ts';
import type { Emission } from '../values/tuple.ts';
import { StreamFailure } from '../values/values.ts';
import type { MakeOperator, Operator, OperatorSetup } from './operator.ts';

/** An emission that waits. */
interface Waiting extends Emission {
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
  readonly #tools: Pick<StreamFunctionTools, 'delayed'>;
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

  push(emission: Emission): void {
    const { delayed } = this.#tools;
    const { timers, output } = this.#setup;
    if (this.#waiting.length === 0 && delayed.until <= timers.now()) {
      output.push(emission);
      return;
    }
    if (this.#waiting.length >= this.#mostWaiting) {
      delayed.until = this.#waiting[this.#waiting.length - 1].until; // the delay of this emission is not added
      const text = `${this.#waiting.length} emissions wait for delay(): make it shorter, or raise the option bufferLength`;
      throw new StreamFailure(text);
    }
    this.#waiting.push({ ...emission, until: delayed.until });
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
    const nowMs = timers.now();
    const due = this.#waiting.findIndex(({ until }) => until > nowMs);
    const passed = this.#waiting.splice(0, due === -1 ? this.#waiting.length : due);
    this.#wait();
    for (const emission of passed) output.push(emission);
  }
}
