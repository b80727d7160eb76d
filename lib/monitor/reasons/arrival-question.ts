import type { Cause } from './causes.ts';

/** A question about a message that did not arrive. */
export interface ArrivalQuestion {
  /** The topic name, as its publisher writes it. */
  readonly topic: string;
  /** Client id of the receiver; absent: any. */
  readonly clientId?: string | undefined;
  /** Client id of the publisher; '' is the app; absent: any. */
  readonly publisher?: string | undefined;
  /** Id of a rule that should have received the message. */
  readonly rule?: string | undefined;
  /**
   * When it was published, in milliseconds since 1970: a whole minute or second is taken as approximate, and a time in the future as now.
   * Absent: at any time until now, so what is over is a cause as well.
   */
  readonly at?: number | undefined;
}

/** The causes for which a message may not have arrived. */
export interface ArrivalAnswer {
  /** False if records of the time of the question are no longer kept, or a search was cut off: there may be other causes. */
  readonly isComplete: boolean;
  /** Since when all records about the question are kept, in milliseconds since 1970; absent: nothing is recorded. */
  readonly knownSince?: number;
  /**
   * At most 100. What holds comes before what is over (`evidence.until`), what is near to the time of the question, if it has one, before
   * what is not, what is about messages of the topic before what is about connections. Empty: nothing is known that kept the message back.
   */
  readonly causes: readonly Cause[];
}
