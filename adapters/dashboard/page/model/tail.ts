// The last rows of a live tail, and the busiest publishers and topics.
import { bytesOf } from './payload.ts';

/** A row, as the live stream has it. */
export interface TailRow {
  readonly number: number;
  readonly at: number;
  readonly event: string;
  readonly columns: Readonly<Record<string, unknown>>;
  /** Rows are missing before this one: their number, or undefined if the connection was lost meanwhile. */
  readonly missing?: { readonly count: number | undefined };
  /** base64; undefined: hidden, or not a message. */
  readonly payload?: string;
  readonly payloadBytes?: number;
  /** The rule that has published the message. */
  readonly rule?: RuleReference;
}

/** A rule over events (`rule`) or over streams that has published a message. */
export interface RuleReference {
  readonly kind: 'rule' | 'streamRule';
  readonly id: string;
}

/** A publisher or a topic with its number of events. */
export interface BusyName {
  readonly name: string;
  readonly count: number;
  /** The rule that has published under this name. */
  readonly rule?: RuleReference;
}

/** The publishers and topics of most events in the last 10 seconds, also of those that are left out of the rows. */
export interface Busiest {
  readonly events: number;
  readonly publishers: readonly BusyName[];
  readonly topics: readonly BusyName[];
}

/** Maximum number of rows. */
export const MAX_ROWS = 1_000;

/** The state of a tail in the page. */
export interface TailState {
  /** The newest last. */
  readonly rows: readonly TailRow[];
  /** Rows that came while the tail was paused; at most as many as are kept. */
  readonly held: readonly TailRow[];
  readonly busiest: Busiest;
  readonly skipped: number;
  readonly failed: number;
  readonly error: string | undefined;
  /** Rows that the page has received, which numbers them. */
  readonly received: number;
  /** The number of the last row in the live stream; undefined: there has been none. */
  readonly last: number | undefined;
}

export const EMPTY_TAIL: TailState = {
  rows: [],
  held: [],
  busiest: { events: 0, publishers: [], topics: [] },
  skipped: 0,
  failed: 0,
  error: undefined,
  received: 0,
  last: undefined
};

/** A tail without its rows. What comes next is still compared with the last row. */
export function emptied({ received, last, busiest }: TailState): TailState {
  return { ...EMPTY_TAIL, received, last, busiest };
}

/** The counts and rows of an event. */
interface TailPart {
  readonly rows?: readonly TailRow[];
  readonly busiest?: Busiest;
  readonly skipped?: number;
  readonly overflowed?: number;
  readonly unchecked?: number;
  readonly failed?: number;
  readonly error?: string;
}

/**
 * Rows with the numbers of the page, and with marks where some are missing: a stream that is opened again numbers its rows from the first, and one whose
 * events were discarded because the page was slow skips numbers.
 */
function numbered(state: TailState, rows: readonly TailRow[]): readonly TailRow[] {
  let { received, last } = state;
  return rows.map((row) => {
    const isNext = last === undefined || row.number === last + 1;
    const count = last !== undefined && row.number > last ? row.number - last - 1 : undefined;
    last = row.number;
    return { ...row, number: received++, ...(!isNext && { missing: { count } }) };
  });
}

/** Add new rows. While the tail is paused, they are held, so that the rows that are read do not move. */
export function withPart(state: TailState, part: TailPart, isPaused: boolean): TailState {
  const { rows = [], skipped = 0, overflowed = 0, unchecked = 0, failed = 0, error } = part;
  const target = isPaused ? 'held' : 'rows';
  return {
    ...state,
    [target]: rows.length === 0 ? state[target] : [...state[target], ...numbered(state, rows)].slice(-MAX_ROWS),
    busiest: (isPaused ? undefined : part.busiest) ?? state.busiest,
    received: state.received + rows.length,
    last: rows.at(-1)?.number ?? state.last,
    skipped: state.skipped + skipped + overflowed + unchecked,
    failed: state.failed + failed,
    error: error ?? state.error
  };
}

/** Show the rows that were held. */
export function resumed(state: TailState): TailState {
  return { ...state, rows: [...state.rows, ...state.held].slice(-MAX_ROWS), held: [] };
}

/** True if a row has only the beginning of its payload. */
export function isCut({ payload = '', payloadBytes = 0 }: TailRow): boolean {
  return payloadBytes > (bytesOf(payload)?.length ?? 0);
}
