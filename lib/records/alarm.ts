/** The urgency of an alarm. */
export type AlarmSeverity = 'notice' | 'warning' | 'error' | 'critical';

/** A current condition. */
export interface PresentAlarm {
  readonly id: string;
  readonly severity: AlarmSeverity;
  readonly title: string;
  readonly summary: string;
  /** Time in milliseconds since 1970. */
  readonly raisedAt: number;
}

/** A condition that has ended. */
export interface PastAlarm extends PresentAlarm {
  /** Time in milliseconds since 1970. */
  readonly clearedAt: number;
}
