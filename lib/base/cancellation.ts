/** Aborts a signal that is made when it is read for the first time: making an `AbortSignal` takes more than a microsecond. */
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

  /** The signal is aborted, or will be when it is made. */
  get isAborted(): boolean {
    return this.#reason !== undefined;
  }

  /** Abort the signal. Further calls have no effect. */
  abort(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
}
