import { BaseTimer, type TimingWheel } from '../../base/timing-wheel.ts';
import type { Message } from '../../packets/message.ts';
import type { DelayedMessage } from '../../store/delayed-record.ts';

const PREFIX = '$delayed/';

/** Seconds from here on are a point in time, not a delay; also the longest wait (about 49 days 17 hours). */
const LONGEST_DELAY_SEC = 4_294_967;

/** What `$delayed/<seconds>/<topic>` asks for. */
export interface Delay {
  readonly delayMs: number;
  /** The topic to publish to when the time has come. */
  readonly topic: string;
}

/**
 * Read the topic `$delayed/<seconds>/<topic>`: fewer than 4,294,967 seconds are a delay, more are seconds since 1970 (past: no delay).
 *
 * @returns undefined for any other topic; `invalid` when seconds or topic are missing, or the point in time is over 4,294,967 s ahead
 */
export function parseDelayed(topic: string, nowWallSec: number): Delay | undefined | 'invalid' {
  if (!topic.startsWith(PREFIX)) return undefined;
  const end = topic.indexOf('/', PREFIX.length);
  const digits = topic.slice(PREFIX.length, end);
  if (end === -1 || end + 1 === topic.length || !/^\d{1,15}$/.test(digits)) return 'invalid';
  const seconds = Number(digits);
  const delaySec = seconds < LONGEST_DELAY_SEC ? seconds : Math.max(0, seconds - nowWallSec);
  return delaySec > LONGEST_DELAY_SEC ? 'invalid' : { delayMs: delaySec * 1000, topic: topic.slice(end + 1) };
}

/** What `DelayedMessages` is made with. */
export interface DelayedSettings {
  readonly wheel: TimingWheel;
  /** Most messages waiting; 0: unlimited. */
  readonly maxMessages: number;
  /** Most bytes of whole packets waiting; 0: unlimited. */
  readonly maxBytes: number;
  /** Told of each that waits from now on, and of each that does no longer. */
  readonly onAdded?: (waiting: DelayedMessage) => void;
  readonly onRemoved?: (waiting: DelayedMessage) => void;
  readonly wallMs: () => number;
  /**
   * Publish a message whose time has come to its inner topic. What it throws goes to the wheel's `onError`.
   * @returns where that takes its time: whether it is done; if not, the broker has stopped, and the message waits for its next start
   */
  readonly release: (message: Message, topic: string) => undefined | Promise<boolean>;
}

/** Messages that wait for their delay. They become due to the tick of the timing wheel, in order of arrival within a tick. */
export class DelayedMessages {
  readonly #settings: DelayedSettings;
  readonly #waiting = new Set<Waiting>();
  #bytes = 0;

  constructor(settings: DelayedSettings) {
    this.#settings = settings;
  }

  /** Messages waiting. */
  get count(): number {
    return this.#waiting.size;
  }

  /** Bytes of their packets. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Keep a message until it is due; it is copied out of the read chunk. @returns `refused` when a bound would be passed */
  add(message: Message, topic: string, delayMs: number): 'added' | 'refused' {
    const { maxMessages, maxBytes, wheel } = this.#settings;
    const bytes = message.bytes;
    if (maxMessages > 0 && this.#waiting.size >= maxMessages) return 'refused';
    if (maxBytes > 0 && this.#bytes + bytes > maxBytes) return 'refused';
    message.detachFromPublisher();
    const waiting = new Waiting(this, message, topic, this.#settings.wallMs() + delayMs);
    this.#waiting.add(waiting);
    this.#bytes += bytes;
    wheel.arm(waiting, delayMs);
    this.#settings.onAdded?.(waiting);
    return 'added';
  }

  /** A message that waited before the process ended. It rings when `rearm` is called. */
  restore({ message, topic, dueWallMs }: DelayedMessage): DelayedMessage {
    const waiting = new Waiting(this, message, topic, dueWallMs);
    this.#waiting.add(waiting);
    this.#bytes += message.bytes;
    return waiting;
  }

  /** The broker begins: the wheel knows nothing of what waits. Nothing waits for longer than when it came, though the clock was set back. */
  rearm(): void {
    const wallMs = this.#settings.wallMs();
    for (const waiting of this.#waiting) {
      const sinceMs = Math.max(wallMs, waiting.message.timestamp);
      this.#settings.wheel.arm(waiting, Math.max(0, waiting.dueWallMs - sinceMs));
    }
  }

  /** Forget one, if it still waits. */
  cancel(waiting: DelayedMessage): void {
    if (!this.#waiting.delete(waiting as Waiting)) return;
    this.#bytes -= waiting.message.bytes;
    this.#settings.wheel.disarm(waiting as Waiting);
  }

  /** Forget all of them. @param onDrop told of each, in order of arrival, when none is left */
  clear(onDrop: (message: Message) => void): void {
    const dropped = [...this.#waiting];
    this.#waiting.clear();
    this.#bytes = 0;
    for (const waiting of dropped) this.#settings.wheel.disarm(waiting);
    for (const { message } of dropped) onDrop(message);
  }

  /** Called by a message's alarm. */
  release(waiting: Waiting): void {
    const { message, topic } = waiting;
    this.#waiting.delete(waiting);
    this.#bytes -= message.bytes;
    let done: undefined | Promise<boolean>;
    try {
      done = this.#settings.release(message, topic);
    } finally {
      // not before: what becomes of it has to be kept by the same commit
      if (done === undefined) this.#settings.onRemoved?.(waiting);
    }
    if (done === undefined) return;
    // it waits on meanwhile: should the broker stop before that is done, its next start tries again
    this.#waiting.add(waiting);
    this.#bytes += message.bytes;
    void done.then((isDone) => {
      if (!isDone) return;
      this.cancel(waiting);
      this.#settings.onRemoved?.(waiting);
    });
  }
}

class Waiting extends BaseTimer implements DelayedMessage {
  readonly message: Message;
  readonly topic: string;
  readonly dueWallMs: number;
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
