import type { Tuple } from '../values/tuple.ts';
import { StreamFailure } from '../values/values.ts';
import type { MakeOperator, Operator, OperatorSetup } from './operator.ts';
import { loadTuple, type SavedTuple, saveTuple } from './saved-tuples.ts';
import { TimeQueue } from './time-queue.ts';

interface WatermarkSpec {
  /** Number of streams; each is a port. */
  readonly streams: number;
  /** Maximum delay of rows behind the latest one, in milliseconds. */
  readonly lateTolerance: number;
  /** Time without rows, in milliseconds, after which a stream no longer holds back the others; 0: never. */
  readonly idleTimeout: number;
  /** The limit `windowRows`: maximum number of waiting rows. */
  readonly mostRows: number;
}

interface SavedWatermark {
  readonly latest: readonly number[];
  readonly watermark: number;
  readonly rows: readonly (readonly [time: number, tuple: SavedTuple])[];
}

/**
 * Make the operator before windows in event time. The watermark is the smallest of the latest times of the streams,
 * minus the tolerance; it never decreases. A stream that is idle, because it has had no row for `idleTimeout`, does not
 * count, unless all are idle. When the watermark reaches the time of waiting rows, they are released in the order of
 * their times, then the watermark is passed on. Rows that are earlier than the watermark are dropped and counted as
 * `late_total` [stream rules 5.3, 17.26].
 */
export function makeWatermark(spec: WatermarkSpec): MakeOperator<Tuple, Tuple> {
  return (setup) => new Watermark(spec, setup);
}

class Watermark implements Operator<Tuple> {
  readonly #spec: WatermarkSpec;
  readonly #setup: OperatorSetup<Tuple>;
  readonly #queue = new TimeQueue<Tuple>();
  #latest: number[];
  /** Time of the last row of each stream, by the clock. */
  readonly #seenAt: number[];
  readonly #isIdle: boolean[];
  #cancel: (() => void) | undefined;
  #watermark = Number.NEGATIVE_INFINITY;

  constructor(spec: WatermarkSpec, setup: OperatorSetup<Tuple>) {
    this.#spec = spec;
    this.#setup = setup;
    this.#latest = new Array(spec.streams).fill(Number.NEGATIVE_INFINITY);
    this.#seenAt = new Array(spec.streams).fill(0);
    this.#isIdle = new Array(spec.streams).fill(false);
  }

  /** Number of waiting rows. */
  get pending(): number {
    return this.#queue.length;
  }

  open(): void {
    if (!this.#watchesIdle) return;
    this.#setup.count('idle_streams', 0);
    this.#seenAt.fill(this.#setup.timers.now());
    this.#watch();
  }

  close(): void {
    this.#cancel?.();
  }

  push(tuple: Tuple, port: number): void {
    const time = tuple.timestamp;
    if (this.#watchesIdle) this.#note(port);
    if (time < this.#watermark) {
      this.#setup.count('late_total');
      this.#setup.rejected?.('late', tuple, (late) => late.columns());
      return;
    }
    if (!Number.isFinite(time)) throw new StreamFailure(`row timestamp ${time} is not a finite number`);
    if (this.#queue.length >= this.#spec.mostRows)
      throw new StreamFailure(
        `at most ${this.#spec.mostRows} rows wait for the watermark: check that all streams send rows, or raise bounds.windowRows`
      );
    this.#queue.push(time, tuple);
    const hasRisen = time > this.#latest[port] && this.#rise(time, port);
    if (hasRisen || this.#queue.firstTime <= this.#watermark) this.#release();
  }

  save(): SavedWatermark {
    const rows = this.#queue.entries().map(({ time, item }) => [time, saveTuple(item)] as const);
    return { latest: this.#latest, watermark: this.#watermark, rows };
  }

  load(state: unknown): void {
    const { latest, watermark, rows } = state as SavedWatermark;
    this.#latest = [...latest];
    this.#watermark = watermark;
    for (const [time, tuple] of rows) this.#queue.push(time, loadTuple(tuple));
  }

  /** Record the latest time of a stream. @returns whether the watermark has risen */
  #rise(time: number, port: number): boolean {
    this.#latest[port] = time;
    return this.#advance();
  }

  #advance(): boolean {
    const active = this.#latest.filter((_, port) => !this.#isIdle[port]);
    const latest = active.length > 0 ? Math.min(...active) : Math.max(...this.#latest);
    const watermark = latest - this.#spec.lateTolerance;
    if (watermark <= this.#watermark) return false;
    this.#watermark = watermark;
    return true;
  }

  get #watchesIdle(): boolean {
    return this.#spec.idleTimeout > 0 && this.#spec.streams > 1;
  }

  /** Record that a stream has had a row. */
  #note(port: number): void {
    this.#seenAt[port] = this.#setup.timers.now();
    if (!this.#isIdle[port]) return;
    this.#isIdle[port] = false;
    this.#setup.count('idle_streams', -1);
    if (this.#cancel === undefined) this.#watch();
  }

  /** Check for idle streams at the next possible time. */
  #watch(): void {
    const { idleTimeout } = this.#spec;
    const next = Math.min(...this.#seenAt.filter((_, port) => !this.#isIdle[port])) + idleTimeout;
    this.#cancel = next === Infinity ? undefined : this.#setup.timers.at(next, () => this.#look());
  }

  #look(): void {
    const { timers, count } = this.#setup;
    const before = timers.now() - this.#spec.idleTimeout;
    for (const [port, seenAt] of this.#seenAt.entries()) {
      if (this.#isIdle[port] || seenAt > before) continue;
      this.#isIdle[port] = true;
      count('idle_streams', 1);
    }
    this.#watch();
    if (this.#advance()) this.#release();
  }

  #release(): void {
    const { output } = this.#setup;
    while (this.#queue.firstTime <= this.#watermark) output.push(this.#queue.shift() as Tuple);
    output.flush(this.#watermark);
  }
}
