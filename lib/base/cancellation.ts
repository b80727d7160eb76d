/** Aborts a signal that is created when it is read for the first time: creating an `AbortSignal` takes more than a microsecond. */
export class Cancellation {
  #controller: AbortController | undefined = undefined;
  #reason: Error | undefined = undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** True if the signal is aborted, or will be when it is created. */
  get isAborted(): boolean {
    return this.#reason !== undefined;
  }

  /** Abort the signal. Further calls have no effect. */
  abort(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
}
