/** What a code of an error means. */
export interface ErrorCodeRow {
  /** What has happened, for people. */
  readonly about: string;
  /** What to do about it. The message of an error is more exact, if it names a remedy. */
  readonly remedy: string;
}
