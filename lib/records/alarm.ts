/** How urgent an alarm is. */
export type AlarmSeverity = 'notice' | 'warning' | 'error' | 'critical';

/** A condition that exists at present. */
export interface PresentAlarm {
  readonly id: string;
  readonly severity: AlarmSeverity;
  readonly title: string;
  readonly summary: string;
  /** In milliseconds since 1970. */
  readonly raisedAt: number;
}

/** A condition that has ended. */
export interface PastAlarm extends PresentAlarm {
  /** In milliseconds since 1970. */
  readonly clearedAt: number;
}
