/** Tracks whether the broker is running, with a number for each run. */
export class Life {
  /** True after the start, until the stop has disconnected all clients. */
  isRunning = false;
  /** Changes when the broker stops. Decisions of hooks that arrive in a later run are discarded. */
  number = 0;

  /** Note that the broker has started. */
  begin(): void {
    this.isRunning = true;
  }

  /** Discard decisions that were made before this call from now on. */
  next(): void {
    this.number++;
  }

  /** Note that all clients are disconnected. */
  end(): void {
    this.isRunning = false;
  }
}
