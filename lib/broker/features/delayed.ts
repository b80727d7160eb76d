// A delayed message has a timer in the timing wheel, and with a store a record, which is removed in the commit that
// contains the effects of its publication. A stop of the broker clears the wheel, so `rearm` is called at the next
// start. There is no index by topic: only a question about a topic (`waitingFor`) looks for one, and it is bounded.

import type { Clock } from '../../base/clock.ts';
import { BaseTimer, type TimingWheel } from '../../base/timing-wheel.ts';
import { detachFromPublisher, type Message } from '../../packets/message.ts';
import type { DelayedMessage } from '../../store/delayed-record.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { NumberedRecords } from '../../store/numbered-records.ts';
import { delayedRecords } from './delayed-records.ts';
import type { Feature } from './feature.ts';
import { Stops } from './stops.ts';

const PREFIX = '$delayed/';

/** The longest delay (about 49 days 17 hours). Numbers from here on are a point in time instead of a delay. */
const MAX_DELAY_SEC = 4_294_967;

/** Maximum number of delayed messages that are compared with a topic (about 5 ms). */
const MAX_COMPARED = 100_000;

/** The delay and the topic of `$delayed/<seconds>/<topic>`. */
interface Delay {
  readonly delayMs: number;
  /** The topic to which the message is published after the delay. */
  readonly topic: string;
}

/**
 * Parse the topic `$delayed/<seconds>/<topic>`.
 *
 * Numbers below 4,294,967 are a delay in seconds. Other numbers are a point in time in seconds since 1970; one in the past means no delay.
 * @returns undefined for any other topic; `invalid` if seconds or topic are missing or the point in time is more than 4,294,967 s ahead
 */
export function parseDelayed(topic: string, nowWallSec: number): Delay | undefined | 'invalid' {
  if (!topic.startsWith(PREFIX)) return undefined;
  const end = topic.indexOf('/', PREFIX.length);
  const digits = topic.slice(PREFIX.length, end);
  if (end === -1 || end + 1 === topic.length || !/^\d{1,15}$/.test(digits)) return 'invalid';
  const seconds = Number(digits);
  const delaySec = seconds < MAX_DELAY_SEC ? seconds : Math.max(0, seconds - nowWallSec);
  return delaySec > MAX_DELAY_SEC ? 'invalid' : { delayMs: delaySec * 1000, topic: topic.slice(end + 1) };
}

/** The messages that are delayed to one topic. */
interface DelayedTo {
  readonly count: number;
  /** When the first of them is due, in milliseconds since 1970; `Infinity` if there is none. */
  readonly nextAt: number;
  /** False: there are too many delayed messages to look at each. */
  readonly isComplete: boolean;
}

/** The services of the broker that `DelayedMessages` uses. */
interface DelayedServices {
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  /** Tells whether the broker is started. While it is not, no timers are set. */
  readonly life: { readonly isRunning: boolean };
  readonly settings: {
    /** Maximum number of delayed messages; 0: unlimited. */
    readonly maxDelayedMessages: number;
    /** Maximum size of the packets of all delayed messages in bytes; 0: unlimited. */
    readonly maxDelayedBytes: number;
  };
}

/**
 * Publishes a message to its inner topic after its delay. The timing wheel reports errors.
 * @returns a promise if this takes time. It resolves to false if the broker has stopped first; the message then waits for the next start
 */
type Release = (message: Message, topic: string) => undefined | Promise<boolean>;

/**
 * The delayed messages. They are published at a tick of the timing wheel; messages of the same tick in order of arrival. While the feature
 * is stopped they wait; those that are due by then are published at the next start.
 */
export class DelayedMessages implements Feature {
  readonly name = 'delayed';
  readonly about = 'Publishes messages to $delayed/<seconds>/<topic> after that delay.';
  readonly stops: Stops;
  isStarted = false;
  readonly #services: DelayedServices;
  readonly #release: Release;
  /** undefined: there is no store. */
  readonly #records: NumberedRecords<DelayedMessage> | undefined;
  readonly #waiting = new Set<Waiting>();
  #bytes = 0;

  /** @param ledger undefined: there is no store */
  constructor(services: DelayedServices, ledger: Ledger | undefined, release: Release) {
    this.#services = services;
    this.stops = new Stops(() => services.clock.now());
    this.#release = release;
    this.#records = ledger && delayedRecords(ledger, (waiting) => this.cancel(waiting));
  }

  start(): void {
    this.isStarted = true;
    this.stops.end();
    if (this.#services.life.isRunning)
      for (const waiting of this.#waiting) if (!waiting.isReleasing) this.#arm(waiting);
  }

  stop(): void {
    this.isStarted = false;
    this.stops.begin();
    for (const waiting of this.#waiting) this.#services.wheel.disarm(waiting);
  }

  /** Number of delayed messages. */
  get count(): number {
    return this.#waiting.size;
  }

  /** Size of their packets in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * The messages that are delayed to a topic. Of very many delayed messages, only the oldest are looked at.
   * @param publisher client id of their publisher; undefined: any
   */
  waitingFor(topic: string, publisher: string | undefined): DelayedTo {
    let [count, nextAt, left] = [0, Infinity, MAX_COMPARED];
    for (const { topic: inner, message, dueWallMs } of this.#waiting) {
      if (left-- === 0) break;
      if (inner !== topic || (publisher !== undefined && message.clientId !== publisher)) continue;
      count++;
      nextAt = Math.min(nextAt, dueWallMs);
    }
    return { count, nextAt, isComplete: left >= 0 };
  }

  /** Add a message. It is detached from the read chunk. @returns `refused` if a limit would be exceeded */
  add(message: Message, topic: string, delayMs: number): 'added' | 'refused' {
    const { settings, clock, wheel } = this.#services;
    const { maxDelayedMessages, maxDelayedBytes } = settings;
    const bytes = message.bytes;
    if (maxDelayedMessages > 0 && this.#waiting.size >= maxDelayedMessages) return 'refused';
    if (maxDelayedBytes > 0 && this.#bytes + bytes > maxDelayedBytes) return 'refused';
    detachFromPublisher(message);
    const waiting = new Waiting(this, message, topic, clock.now() + delayMs);
    this.#waiting.add(waiting);
    this.#bytes += bytes;
    wheel.arm(waiting, delayMs);
    this.#records?.added(waiting, bytes + 64);
    return 'added';
  }

  /** Add a delayed message from the store. `rearm` starts its timer. @param number its number in the store */
  restore({ message, topic, dueWallMs, number }: DelayedMessage & { readonly number: number }): void {
    const waiting = new Waiting(this, message, topic, dueWallMs);
    this.#waiting.add(waiting);
    this.#bytes += message.bytes;
    this.#records?.restored(waiting, number);
  }

  /** Start the timers of all messages, when the broker starts. */
  rearm(): void {
    if (this.isStarted) for (const waiting of this.#waiting) this.#arm(waiting);
  }

  /** Set the timer of a message. If the clock was set back, no message waits longer than its original delay. */
  #arm(waiting: Waiting): void {
    const { wheel, clock } = this.#services;
    const sinceMs = Math.max(clock.now(), waiting.message.timestamp);
    wheel.arm(waiting, Math.max(0, waiting.dueWallMs - sinceMs));
  }

  /** Remove a message, unless it has been removed already. */
  cancel(waiting: DelayedMessage): void {
    if (!this.#waiting.delete(waiting as Waiting)) return;
    this.#bytes -= waiting.message.bytes;
    this.#services.wheel.disarm(waiting as Waiting);
  }

  /** Remove all messages. @param onDrop called for each in order of arrival, after all are removed */
  clear(onDrop: (message: Message) => void): void {
    const dropped = [...this.#waiting];
    this.#waiting.clear();
    this.#bytes = 0;
    for (const waiting of dropped) this.#services.wheel.disarm(waiting);
    for (const { message } of dropped) onDrop(message);
  }

  /** Publish a message whose timer rings. */
  release(waiting: Waiting): void {
    const { message, topic } = waiting;
    this.#waiting.delete(waiting);
    this.#bytes -= message.bytes;
    let done: undefined | Promise<boolean>;
    try {
      done = this.#release(message, topic);
    } finally {
      // After `release`, so that the effects of the publication are in the same commit as the removal.
      if (done === undefined) this.#records?.removed(waiting);
    }
    if (done === undefined) return;
    // The message stays in the set until it is published. If the broker stops first, the next start tries again.
    this.#waiting.add(waiting);
    this.#bytes += message.bytes;
    waiting.isReleasing = true;
    void done.then((isDone) => {
      waiting.isReleasing = false;
      if (!isDone) return;
      this.cancel(waiting);
      this.#records?.removed(waiting);
    });
  }
}

class Waiting extends BaseTimer implements DelayedMessage {
  readonly message: Message;
  readonly topic: string;
  readonly dueWallMs: number;
  /** True while its publication is in progress: a hook decides about it, or it waits for a commit. */
  isReleasing = false;
  readonly #owner: DelayedMessages;

  constructor(owner: DelayedMessages, message: Message, topic: string, dueWallMs: number) {
    super();
    this.#owner = owner;
    this.message = message;
    this.topic = topic;
    this.dueWallMs = dueWallMs;
  }

  ring(): void {
    this.#owner.release(this);
  }
}
