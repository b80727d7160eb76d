/** The urgency of an alarm. */
export type AlarmSeverity = 'notice' | 'warning' | 'error' | 'critical';

/** A current condition. */
export interface PresentAlarm {
  /** Identifies the condition, for example `cpu_high_watermark`. */
  readonly id: string;
  /** The urgency. */
  readonly severity: AlarmSeverity;
  /** A few words. */
  readonly title: string;
  /** A description of the condition, for people. */
  readonly summary: string;
  /** Time in milliseconds since 1970. */
  readonly raisedAt: number;
}

/** A condition that has ended. */
export interface PastAlarm extends PresentAlarm {
  /** Time in milliseconds since 1970. */
  readonly clearedAt: number;
}
