/** Whether the broker runs, and which of its lives this is. */
export class Life {
  /** It has started, and not every client has been told to disconnect. */
  isRunning = false;
  /** Changes when the broker stops: what a hook decides afterwards belongs to a life that has ended. */
  number = 0;
}
