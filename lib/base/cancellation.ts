/** Aborts a signal that is only made when somebody asks for it: making an `AbortSignal` takes more than a microsecond. */
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

  /** Abort the signal. Further calls have no effect. */
  abort(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
}
