// The tail bounds its own rows, so the stream takes a part only when the text of the one before has been read, and makes
// the text piece by piece. Rows that come within a tenth of a second are written together: a write for each costs more than
// the rows (10 to 20 us of CPU time each, 500 times a second).

import type { Clock, Tail, TailPart, TailRecord } from '../../../lib/index.ts';
import type { EventPayload } from './event-fields.ts';
import { HEARTBEAT, HEARTBEAT_MS, ServerSentEvents, WRITTEN_AT_ONCE } from './server-sent-events.ts';
import { shownRule } from './shown-rule.ts';

/** Minimum interval between two writes. */
const INTERVAL_MS = 100;

/** The rows of a tail as server-sent events, and an event `missed` with the counts of what is not shown. */
export class TailStream extends ServerSentEvents {
  readonly #tail: Tail;
  readonly #payload: EventPayload;
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  #hasBegun = false;
  /** The part that is being written, and the index of its next row. */
  #part: TailPart | undefined = undefined;
  #next = 0;
  /** The part that is being waited for, and its arrival. */
  #waiting: Promise<void> | undefined = undefined;
  #arrived: IteratorResult<TailPart> | undefined = undefined;
  #writtenMs = -Infinity;
  #resume: (() => void) | undefined;
  #isOver = false;

  /** @param onEnd called once, when the stream ends */
  constructor(clock: Clock, tail: Tail, payload: EventPayload, onEnd: () => void) {
    super();
    this.#clock = clock;
    this.#tail = tail;
    this.#payload = payload;
    this.#onEnd = onEnd;
  }

  async next(): Promise<IteratorResult<string>> {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return { done: false, value: ': the rows follow\n\n' }; // sent together with the headers
    }
    if (this.#part === undefined) {
      await this.#sleep(INTERVAL_MS - (this.#clock.monotonic() - this.#writtenMs));
      const result = await this.#read();
      if (result === undefined) return this.#isOver ? this.#end() : { done: false, value: HEARTBEAT };
      if (result.done) return this.#end();
      this.#part = result.value;
      this.#next = 0;
    }
    return { done: false, value: this.#text(this.#part) };
  }

  async return(): Promise<IteratorResult<string>> {
    await this.#tail.return();
    const end = this.#end();
    this.#resume?.();
    return end;
  }

  /** The next part of the tail; undefined: there was none for a while. */
  async #read(): Promise<IteratorResult<TailPart> | undefined> {
    this.#waiting ??= this.#tail.next().then((result) => {
      this.#arrived = result;
      this.#resume?.();
    });
    if (this.#arrived === undefined) await this.#sleep(HEARTBEAT_MS);
    const result = this.#arrived;
    if (result === undefined) return undefined;
    this.#waiting = undefined;
    this.#arrived = undefined;
    return result;
  }

  /** Wait for this time, or until the stream has something to do. */
  async #sleep(ms: number): Promise<void> {
    if (ms <= 0 || this.#isOver) return;
    let timer: unknown;
    await new Promise<void>((resolve) => {
      this.#resume = resolve;
      timer = this.#clock.setTimeout(resolve, ms);
    });
    this.#resume = undefined;
    this.#clock.clearTimeout(timer);
  }

  #text(part: TailPart): string {
    const { rows } = part;
    let text = this.#next === 0 ? missedIn(part) : '';
    while (this.#next < rows.length && text.length < WRITTEN_AT_ONCE) {
      const row = rows[this.#next++];
      text += `id: ${row.number}\nevent: ${row.event}\ndata: ${JSON.stringify(tailFields(row, this.#payload))}\n\n`;
    }
    if (this.#next === rows.length) {
      this.#part = undefined;
      this.#writtenMs = this.#clock.monotonic();
    }
    return text;
  }

  #end(): IteratorReturnResult<undefined> {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#onEnd();
    }
    return { done: true, value: undefined };
  }
}

/** The text of the counts of a part; empty if nothing is missing. */
function missedIn({ skipped, overflowed, unchecked, failed, error }: TailPart): string {
  if (skipped + overflowed + unchecked + failed === 0) return '';
  return `event: missed\ndata: ${JSON.stringify({ skipped, overflowed, unchecked, failed, error })}\n\n`;
}

/** The fields of a row of a tail: its columns, and the payload under a name that tells its form, as in events. */
function tailFields(row: TailRecord, payload: EventPayload): object {
  const { at, columns, payloadBytes, rule } = row;
  const props =
    columns.pub_props === undefined ? undefined : { pub_props: plainProperties(columns.pub_props as object) };
  if (payloadBytes === undefined) return { at, ...columns, ...props };
  return { at, ...columns, ...props, ...shownRule(rule), ...payloadIn(row, payload), payload_bytes: payloadBytes };
}

function payloadIn(row: TailRecord, form: EventPayload): object | undefined {
  if (form === 'none') return undefined;
  const text = form === 'text' ? row.payloadText : undefined;
  if (text !== undefined) return { payload: text };
  const bytes = row.payload;
  if (bytes === undefined) return undefined;
  return form === 'base64' ? { payload_base64: bytes.toString('base64') } : { payload_hex: bytes.toString('hex') };
}

/** Properties as JSON can represent them: bytes in hexadecimal. */
export function plainProperties(properties: object): object {
  return Object.fromEntries(
    Object.entries(properties).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value
    ])
  );
}
