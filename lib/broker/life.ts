/** True if the broker is running, and a number for each run. */
export class Life {
  /** The broker has started, and the stop has not disconnected all clients yet. */
  isRunning = false;
  /** Changes when the broker stops. Decisions of hooks that arrive in a later run are discarded. */
  number = 0;

  /** The broker has started. */
  begin(): void {
    this.isRunning = true;
  }

  /** Decisions that are made before this call are discarded from now on. */
  next(): void {
    this.number++;
  }

  /** All clients are disconnected. */
  end(): void {
    this.isRunning = false;
  }
}
