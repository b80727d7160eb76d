/** One delivery of an outbox, the argument of its function `send`. */
export class Attempt {
  #controller: AbortController | undefined = undefined;
  #reason: Error | undefined = undefined;
  #run: ((reason: Error) => void) | undefined = undefined;

  /** Aborts if the delivery takes too long, the outbox is closed or the broker stops. Created by the first call, because it costs 2 us. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** The reason why it was aborted; undefined if it was not. */
  get reason(): Error | undefined {
    return this.#reason;
  }

  /** Call a function if the delivery is aborted, replacing the previous one. This costs less than `signal`. */
  onAbort(run: ((reason: Error) => void) | undefined): void {
    this.#run = run;
  }

  /** @internal */
  abort(reason: Error): void {
    this.#reason = reason;
    this.#controller?.abort(reason);
    this.#run?.(reason);
  }
}
