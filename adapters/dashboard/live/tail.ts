import { type Broker, BrokerError, SqlError, type Tail, type TailRecord } from '../../../lib/index.ts';
import type { LiveKind, WatchContext } from './live-kind.ts';
import { wrong } from './params.ts';

/** Bytes of a payload in a row. */
const MAX_PAYLOAD_BYTES = 4_096;
/** Rows are sent together, at most ten times a second. */
const INTERVAL_MS = 100;

interface TailParams {
  readonly filter: string;
  /** Empty: all events. */
  readonly where: string;
}

/** Messages as they are published: `rows`, and the counts of those left out. A condition that is not valid is the event `error`. */
export const TAIL: LiveKind<TailParams> = {
  read({ filter = '#', where = '' }) {
    if (typeof filter !== 'string' || typeof where !== 'string') throw wrong('filter', 'a text, like "where"');
    return { filter: filter || '#', where };
  },
  open(context, params) {
    const aborted = new AbortController();
    void send(context, params, aborted.signal);
    return { close: () => aborted.abort() };
  }
};

async function send({ broker, emit, hidesPayloads }: WatchContext, { filter, where }: TailParams, signal: AbortSignal) {
  let tail: Tail;
  try {
    const options = { filter, ...(where !== '' && { where }), hidesPayloads, maxPayloadBytes: MAX_PAYLOAD_BYTES };
    tail = await broker.monitor.tail(options);
  } catch (error) {
    if (!(error instanceof BrokerError)) broker.failed(error, 'a live tail of the console');
    const { message } = error as Error;
    const place = error instanceof SqlError ? { line: error.line, column: error.column } : {};
    if (!signal.aborted) emit({ failure: { message, ...place } });
    return;
  }
  signal.addEventListener('abort', () => tail.close());
  if (signal.aborted) tail.close();
  else emit({ rows: [] });
  for await (const { rows, ...counts } of tail) {
    if (signal.aborted) return;
    emit({ rows: rows.map(shown), ...counts });
    await pause(broker);
  }
}

function shown({ number, at, event, columns, payload, payloadBytes }: TailRecord): object {
  return { number, at, event, columns, payload: payload?.toString('base64'), payloadBytes };
}

function pause({ clock }: Broker): Promise<void> {
  return new Promise((resolve) => clock.setTimeout(() => resolve(), INTERVAL_MS));
}
