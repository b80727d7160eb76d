// A tail bounds its own rows and counts what it leaves out, so the next part is taken only when the reader has taken the
// last one, and a part with large rows is several events: a reader that takes nothing costs what waits in the tail. Parts
// are a tenth of a second apart: an event for each row would cost more than the rows. The busiest publishers and topics are sent once a second.

import type { EventName, Tail, TailBusiest, TailRecord } from '../../../lib/index.ts';
import { plainProperties } from '../../management/parts/index.ts';
import type { LiveKind, WatchContext } from './live-kind.ts';
import { optionalText, optionalTexts } from './params.ts';

const INTERVAL_MS = 100;
/** Bytes of a payload that are shown. */
const SHOWN_BYTES = 4_096;
/** Rows are sent together up to this size, in characters. */
const EVENT_LENGTH = 65_536;
const MAX_NAMES = 64;
/** Number of publishers and of topics that are shown. */
const BUSIEST = 5;

interface TailParams {
  readonly filter: string | undefined;
  readonly where: string | undefined;
  readonly names: readonly EventName[] | undefined;
}

/** Messages as they are published, or other events. */
export const TAIL: LiveKind<TailParams> = {
  read: (params) => ({
    filter: optionalText(params, 'filter'),
    where: optionalText(params, 'where'),
    names: optionalTexts(params, 'names', MAX_NAMES) as readonly EventName[] | undefined
  }),
  async open(context, selection) {
    const { broker, hidesPayloads } = context;
    const tail = await broker.monitor.tail({ ...selection, maxPayloadBytes: SHOWN_BYTES, hidesPayloads });
    context.emit({ rows: [] }); // the view knows that it waits
    let isClosed = false;
    // a part with large rows is several events, and the reader may take them after another tail has begun under the same name
    const own: WatchContext = { ...context, emit: (data) => isClosed || context.emit(data) };
    forward(tail, own).catch((error: unknown) => broker.failed(error, 'a tail in the console'));
    let isBusy = false;
    const stop = context.everySecond(() => {
      const busiest = tail.busiest();
      if (isBusy || busiest.events > 0) own.emit({ busiest: first(busiest) });
      isBusy = busiest.events > 0;
    });
    return {
      close() {
        isClosed = true;
        stop();
        void tail.return();
      }
    };
  }
};

async function forward(tail: Tail, { broker, emit, drained }: WatchContext): Promise<void> {
  for await (const { rows, ...counts } of tail) {
    let counted: object = counts;
    let ready: object[] = [];
    let length = 0;
    for (const row of rows) {
      ready.push(shown(row));
      length += row.size;
      if (length < EVENT_LENGTH) continue;
      emit({ ...counted, rows: ready });
      await drained();
      [counted, ready, length] = [{}, [], 0];
    }
    if (ready.length > 0 || counted === counts) emit({ ...counted, rows: ready });
    await new Promise<void>((resolve) => void broker.clock.setTimeout(resolve, INTERVAL_MS));
    await drained();
  }
}

function first({ events, publishers, topics }: TailBusiest): TailBusiest {
  return { events, publishers: publishers.slice(0, BUSIEST), topics: topics.slice(0, BUSIEST) };
}

function shown({ number, at, event, columns, payload, payloadBytes, rule }: TailRecord): object {
  const { pub_props: properties } = columns;
  const written = properties === undefined ? columns : { ...columns, pub_props: plainProperties(properties as object) };
  return { number, at, event, columns: written, payload: payload?.toString('base64'), payloadBytes, rule };
}
