// The lines of a trace as a view shows them. They come again from the first one after the stream was lost.

import { reasonName } from '../../../../lib/packets/reason-codes.ts';
import { T } from '../texts.ts';
import { codeText } from './mqtt-log.ts';

/** A line of a trace. */
export interface TraceLine {
  readonly number: number;
  readonly record: Readonly<Record<string, unknown>>;
}

/** Maximum number of lines: as many as the broker keeps. */
export const MAX_LINES = 1_000;

/** The lines of a trace in the page. */
export interface TraceState {
  /** The newest last. */
  readonly lines: readonly TraceLine[];
  /** Lines that came while the view was paused. */
  readonly held: readonly TraceLine[];
  /** Number of lines that the broker discarded before it sent them: they were written faster than it sends lines, or before the page was opened. */
  readonly missed: number;
}

export const NO_LINES: TraceState = { lines: [], held: [], missed: 0 };

/** Add the lines that are not known yet. @param isPaused they are held, so that what is read does not move */
export function withLines(state: TraceState, lines: readonly TraceLine[], isPaused: boolean): TraceState {
  const last = state.held.at(-1)?.number ?? state.lines.at(-1)?.number ?? 0;
  const added = lines.filter(({ number }) => number > last);
  if (added.length === 0) return state;
  const name = isPaused ? 'held' : 'lines';
  return {
    ...state,
    [name]: [...state[name], ...added].slice(-MAX_LINES),
    missed: state.missed + added[0].number - last - 1
  };
}

/** Show the lines that were held. */
export function resumedLines({ lines, held, missed }: TraceState): TraceState {
  return { lines: [...lines, ...held].slice(-MAX_LINES), held: [], missed };
}

/** The fields that have a column. */
const IN_COLUMNS = new Set(['time', 'clientId', 'direction', 'packet', 'event', 'topic', 'filter', 'payload']);

/** The other fields of a record in one line. */
export function restOf(record: TraceLine['record']): string {
  return Object.entries(record)
    .filter(([name, value]) => !IN_COLUMNS.has(name) && value !== false && value !== '')
    .map(
      ([name, value]) =>
        codesText(name, value, record) ?? `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`
    )
    .join(', ');
}

/** Reason codes in words. @returns undefined: the field has none */
function codesText(name: string, value: unknown, { packet }: TraceLine['record']): string | undefined {
  const codes = name === 'reasonCodes' ? value : name === 'reasonCode' ? [value] : undefined;
  if (!Array.isArray(codes) || codes.some((code) => typeof code !== 'number')) return undefined;
  return codes
    .map((code) => (packet === 'suback' && code < 3 ? T.websocket.words.granted(code) : codeText(code, reasonName)))
    .join(', ');
}

/** True for a refusal: a reason code from 0x80, or a dropped message. */
export function isRefusal({ reasonCode, reasonCodes, event, error }: TraceLine['record']): boolean {
  const codes = [reasonCode, ...(Array.isArray(reasonCodes) ? reasonCodes : [])];
  return (
    error !== undefined ||
    event === 'message.dropped' ||
    event === 'client.rejected' ||
    codes.some((code) => typeof code === 'number' && code >= 0x80)
  );
}
