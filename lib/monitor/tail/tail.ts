// A tail must never slow the broker, and must not grow. Order of the steps for an event: its condition, if that has time
// left; then the number of rows of the last second; only then a row is made, as a copy, because the message references
// a read chunk. Where a step says no, a count is all that is left, and the reader gets it with the next rows, or within a
// second. The condition comes before the limit of rows, so that `skipped` and `busiest` count what satisfies it.

import type { BaseServices } from '../../base/base-services.ts';
import { errorText } from '../../base/errors.ts';
import type { TimeReading } from '../../base/time-reading.ts';
import { FunctionTimer } from '../../base/timing-wheel.ts';
import type { EventName } from '../../events/catalogue.ts';
import type { BrokerEvents } from '../../events/event-types.ts';
import type { Message } from '../../packets/message.ts';
import { ruleBehind } from '../../packets/named-publisher.ts';
import type { EventContext } from '../../rules/events/column.ts';
import { cut } from '../cut-text.ts';
import { BusyNames, type TailBusiest } from './busy-names.ts';
import type { Condition } from './condition.ts';
import { PUBLISH, SeenEvent, type TailedEvent } from './tail-columns.ts';
import { eventRow, messageRow, type TailRecord } from './tail-row.ts';

/** Maximum number of rows in any second. */
const ROWS_PER_SECOND = 500;
const SECOND_MS = 1_000;
/** Maximum number of rows that wait for the reader, and the maximum of their memory, by estimate. Beyond it the oldest are discarded. */
const MAX_WAITING = 1_000;
const MAX_WAITING_BYTES = 2_097_152;
/** Time that the conditions of all tails may take in each second, in equal shares: a tenth of a processor. Later events of the second are not examined. */
const CONDITION_MS = 100;
/**
 * A condition that takes this time twice ends the tail, if the second time is processor time: a pause of the process looks the same the first time. Its
 * work is bounded, so this comes only on a machine that is very slow.
 */
const EVALUATION_MS = 100;

/** The time that the conditions of all tails of a broker take. */
export interface ConditionTime {
  /** Number of tails with a condition. */
  tails: number;
  /** Start of the second in which their time is counted, and this time. */
  secondMs: number;
  spentMs: number;
  /** The processor time of the process, in milliseconds. */
  processorMs(): number;
}

/** Counts of what a tail left out since the previous part. */
export interface TailCounts {
  /** Number of events left out because there were more than 500 in a second. */
  readonly skipped: number;
  /** Number of rows discarded because they were not read: at most 1,000 rows and 2 MB of memory wait. */
  readonly overflowed: number;
  /** Number of events that were not examined because the condition, or those of all tails together, had taken their time of the second. */
  readonly unchecked: number;
  /** Number of events for which the condition failed. */
  readonly failed: number;
  /** The last failure of the condition, cut at 256 characters; undefined: it did not fail. */
  readonly error: string | undefined;
}

/** Rows, counts, or both. */
export interface TailPart extends TailCounts {
  /** The rows, the oldest first. */
  readonly rows: readonly TailRecord[];
}

/** The selection of a tail. */
interface TailSelection {
  /** Undefined: every event. */
  readonly condition: Condition | undefined;
  readonly conditionTime: ConditionTime;
  readonly maxPayloadBytes: number;
  /** True if neither rows nor the condition have payloads. */
  readonly hidesPayloads: boolean;
}

/** The services that a tail uses. */
type TailServices = Pick<BaseServices, 'clock' | 'wheel'> & { readonly time: TimeReading };

type Counts = { -readonly [N in keyof TailCounts]: TailCounts[N] };

/** Limits the number of rows in any second by the times of the last ones. */
class RowRate {
  readonly #times = new Float64Array(ROWS_PER_SECOND).fill(-Infinity);
  #at = 0;

  /** @returns false: there were 500 rows in the last second */
  take(nowMs: number): boolean {
    if (nowMs - this.#times[this.#at] < SECOND_MS) return false;
    this.#times[this.#at] = nowMs;
    this.#at = (this.#at + 1) % ROWS_PER_SECOND;
    return true;
  }
}

/**
 * Events and messages as they happen: the result of `broker.monitor.tail`. Iterate over it to read its parts; leave the loop or call `close`
 * to end it. It ends when the broker stops.
 */
export class Tail implements AsyncIterableIterator<TailPart> {
  readonly #services: TailServices;
  readonly #context: EventContext;
  readonly #condition: Condition | undefined;
  readonly #conditionTime: ConditionTime;
  /** Undefined: rows have no payload. */
  readonly #maxPayloadBytes: number | undefined;
  readonly #hidesPayloads: boolean;
  readonly #onClose: () => void;
  readonly #rate = new RowRate();
  readonly #names: BusyNames;
  readonly #timer: FunctionTimer;
  #rows: TailRecord[] = [];
  /** Index of the oldest row that waits. */
  #oldest = 0;
  #waitingBytes = 0;
  #number = 0;
  #counts: Counts = noCounts();
  #hasCounts = false;
  /** Start of the second in which the condition of this tail was last examined, and the time that it took in it. */
  #secondMs = -Infinity;
  #spentMs = 0;
  /** True after an evaluation that took long, perhaps because the process was stopped: the processor time of the next ones is read, too. */
  #isSuspect = false;
  #isClosed = false;
  readonly #readers: ((result: IteratorResult<TailPart>) => void)[] = [];

  /** @internal */
  constructor(services: TailServices, context: EventContext, selection: TailSelection, onClose: () => void) {
    this.#services = services;
    this.#context = context;
    this.#condition = selection.condition;
    this.#conditionTime = selection.conditionTime;
    if (selection.condition !== undefined) this.#conditionTime.tails++;
    this.#maxPayloadBytes = selection.hidesPayloads ? undefined : selection.maxPayloadBytes;
    this.#hidesPayloads = selection.hidesPayloads;
    this.#names = new BusyNames(services.time);
    this.#onClose = onClose;
    this.#timer = new FunctionTimer(() => {
      services.wheel.arm(this.#timer, SECOND_MS);
      if (this.#hasCounts) this.#wake();
    });
    services.wheel.arm(this.#timer, SECOND_MS);
  }

  /** Wait for rows, or for counts, which are reported once a second if there are no rows. */
  next(): Promise<IteratorResult<TailPart>> {
    if (this.#rows.length > this.#oldest || (this.#isClosed && this.#hasCounts))
      return Promise.resolve({ value: this.#take(), done: false });
    if (this.#isClosed) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  /** End the tail, and discard what was not read. */
  return(): Promise<IteratorResult<TailPart>> {
    this.#discard();
    this.close();
    return Promise.resolve({ value: undefined, done: true });
  }

  /** The tail itself. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** End the tail. Rows and counts that wait can still be read. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#condition !== undefined) this.#conditionTime.tails--;
    this.#services.wheel.disarm(this.#timer);
    this.#onClose();
    for (const resolve of this.#readers.splice(0)) resolve({ value: undefined, done: true });
  }

  /**
   * List the publishers and topics of most events in the last 10 seconds. All events are counted that the filter and the condition select, also
   * those that are left out of the rows; those that were not examined (`unchecked`) are not.
   */
  busiest(): TailBusiest {
    return this.#names.busiest(this.#services.clock.monotonic());
  }

  /** Take a published message. It never throws. @internal */
  seeMessage(message: Message): void {
    if (this.#isClosed) return;
    const condition = this.#condition;
    const { node } = this.#context;
    try {
      if (condition !== undefined && !this.#satisfies(condition, PUBLISH, { message, client: undefined })) return;
      this.#names.add(message.clientId, message.topic, ruleBehind(message));
      if (!this.#hasRoom()) return;
      this.#push(messageRow(++this.#number, this.#context.now(), message, node, this.#maxPayloadBytes));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Take another event. It never throws. @internal */
  see(row: TailedEvent, value: BrokerEvents[EventName]): void {
    if (this.#isClosed) return;
    const condition = this.#condition;
    try {
      if (condition !== undefined && !this.#satisfies(condition, row, value)) return;
      const event = this.#eventOf(row, value);
      const { message } = event;
      if (message === undefined) this.#names.add(event.column('clientid'), event.column('topic'), undefined);
      else this.#names.add(message.clientId, message.topic, ruleBehind(message));
      if (!this.#hasRoom()) return;
      this.#push(eventRow(++this.#number, row, event, this.#maxPayloadBytes));
    } catch (error) {
      this.#failed(error);
    }
  }

  #satisfies(condition: Condition, row: TailedEvent, value: BrokerEvents[EventName]): boolean {
    const { clock } = this.#services;
    const ofAll = this.#conditionTime;
    const beginMs = clock.monotonic();
    if (beginMs - ofAll.secondMs >= SECOND_MS) {
      ofAll.secondMs = beginMs;
      ofAll.spentMs = 0;
    }
    if (this.#secondMs !== ofAll.secondMs) {
      this.#secondMs = ofAll.secondMs;
      this.#spentMs = 0;
    }
    if (this.#spentMs >= CONDITION_MS / ofAll.tails || ofAll.spentMs >= CONDITION_MS) {
      this.#count('unchecked');
      return false;
    }
    const processorMs = this.#isSuspect ? ofAll.processorMs() : Infinity;
    try {
      return condition(this.#eventOf(row, value));
    } finally {
      const tookMs = clock.monotonic() - beginMs;
      this.#spentMs += tookMs;
      ofAll.spentMs += tookMs;
      if (tookMs > EVALUATION_MS) {
        if (ofAll.processorMs() - processorMs > EVALUATION_MS) this.#endSlow();
        this.#isSuspect = true;
      }
    }
  }

  #endSlow(): void {
    this.#failed(
      `the tail has ended, because its condition took more than ${EVALUATION_MS} ms for one event: use fewer functions of long texts, or a topic filter`
    );
    if (this.#readers.length > 0) this.#wake();
    this.close();
  }

  #count(name: Exclude<keyof TailCounts, 'error'>): void {
    this.#counts[name]++;
    this.#hasCounts = true;
  }

  #eventOf(row: TailedEvent, value: BrokerEvents[EventName]): SeenEvent {
    return new SeenEvent(row, value, this.#context, this.#hidesPayloads);
  }

  /** Count a failure, with its reason. After the end, the reason of the end stays: a condition that is too slow may also fail. */
  #failed(error: unknown): void {
    if (this.#isClosed) return;
    this.#counts.error = cut(errorText(error));
    this.#count('failed');
  }

  /** Take one of the rows of this second. */
  #hasRoom(): boolean {
    const hasRoom = this.#rate.take(this.#services.time.nowMs);
    if (!hasRoom) this.#count('skipped');
    return hasRoom;
  }

  #push(row: TailRecord): void {
    this.#rows.push(row);
    this.#waitingBytes += row.size;
    while (this.#rows.length - this.#oldest > MAX_WAITING || this.#waitingBytes > MAX_WAITING_BYTES) {
      this.#waitingBytes -= this.#rows[this.#oldest].size;
      (this.#rows as (TailRecord | undefined)[])[this.#oldest++] = undefined;
      this.#count('overflowed');
    }
    if (this.#oldest > MAX_WAITING) {
      this.#rows = this.#rows.slice(this.#oldest);
      this.#oldest = 0;
    }
    if (this.#readers.length > 0 && this.#rows.length > this.#oldest) this.#wake();
  }

  #wake(): void {
    this.#readers.shift()?.({ value: this.#take(), done: false });
  }

  #take(): TailPart {
    const rows = this.#oldest === 0 ? this.#rows : this.#rows.slice(this.#oldest);
    const part = { rows, ...this.#counts };
    this.#discard();
    return part;
  }

  #discard(): void {
    this.#rows = [];
    this.#oldest = 0;
    this.#waitingBytes = 0;
    this.#counts = noCounts();
    this.#hasCounts = false;
  }
}

function noCounts(): Counts {
  return { skipped: 0, overflowed: 0, unchecked: 0, failed: 0, error: undefined };
}
