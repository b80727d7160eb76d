/** The codes of causes that follow from what the broker knows when it is asked, or from the last examples of share groups and rules. */
export type DerivedCode =
  | 'no_subscriber'
  | 'filter_case'
  | 'filter_slash'
  | 'filter_levels'
  | 'filter_system'
  | 'filter_space'
  | 'filter_share'
  | 'mount_point'
  | 'rewritten'
  | 'no_local'
  | 'retained_missing'
  | 'share_member'
  | 'delayed'
  | 'will_delayed'
  | 'no_will'
  | 'publish_limited'
  | 'publisher_unknown'
  | 'offline_no_session'
  | 'offline_qos0'
  | 'offline_queued'
  | 'bridge_disconnected'
  | 'expired'
  | 'queued'
  | 'awaiting_acknowledgements'
  | 'qos_lowered'
  | 'right_withdrawn'
  | 'rule_stopped'
  | 'from_unmatched'
  | 'where_false'
  | 'field_missing'
  | 'window_open'
  | 'payload_invalid'
  | 'function_failed'
  | 'target_refused'
  | 'row_late';

/**
 * A cause that no record names.
 *
 * Its evidence has the topic and the client id that it is about, and `detail`, the end of a sentence about it, such as "the topic has a
 * leading slash". Texts of clients have at most 256 characters.
 */
export interface DerivedCause {
  readonly code: DerivedCode;
  /** `recorded`: of a rule that should have published the message. */
  readonly kind: 'derived' | 'sampled' | 'recorded';
  /** Milliseconds since 1970: of an example or a record its time, otherwise the time of the question. */
  readonly at: number;
  /** Number of messages or subscriptions; 1 if they are not counted. */
  readonly count: number;
  readonly evidence: Readonly<Record<string, string | number | boolean>>;
}

/** Causes, and whether all of them were found. */
export interface DerivedCauses {
  readonly causes: readonly DerivedCause[];
  /** Causes that are true now, but explain a message only if nothing else does; default: none. */
  readonly otherwise?: readonly DerivedCause[];
  /** False: a bound of the search was reached, so there may be more. */
  readonly isComplete: boolean;
}

/** Make a cause. Values that are undefined are left out of its evidence. */
export function derived(
  code: DerivedCode,
  at: number,
  evidence: Readonly<Record<string, string | number | boolean | undefined>>,
  count = 1
): DerivedCause {
  const known = Object.entries(evidence).filter(([, value]) => value !== undefined);
  return { code, kind: 'derived', at, count, evidence: Object.fromEntries(known) as DerivedCause['evidence'] };
}
