/** The meaning of an error code. */
export interface ErrorCodeEntry {
  /** Description for display. */
  readonly about: string;
  /** The remedy. The message of an error is more specific, if it names one. */
  readonly remedy: string;
}
