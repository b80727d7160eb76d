import type { DropReason } from '../events/events.ts';
import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { PersistedMessage } from './segment.ts';
import { Shortenable, type TotalBacklog } from './total-backlog.ts';

/** A message that waits in a session's backlog, with what delivery will need. */
export interface Queued {
  readonly message: Message;
  readonly qos: QoS;
  readonly retain: boolean;
  readonly ids: readonly number[] | undefined;
  /** The message as the store has it; undefined: it is not kept there. */
  readonly persisted: PersistedMessage | undefined;
  /** Position in the backlog: tells which of two heads is the older. */
  readonly sequence: number;
}

/** Bounds and order of a backlog, from the zone. */
export interface BacklogLimits {
  readonly maxMqueueLen: number;
  readonly maxMqueueBytes: number;
  readonly mqueuePriorities: ReadonlyMap<string, number> | undefined;
  readonly mqueueDefaultPriority: 'lowest' | 'highest';
}

/**
 * The bounded backlog of a session: what waits for the client to come back, to read, or to acknowledge.
 *
 * First in, first out within a priority; higher priorities leave first. When it is full the oldest message of the same priority goes
 * (count bound) or the oldest of the lowest (byte bound), and `onDrop` tells of it.
 */
export class Backlog extends Shortenable {
  length = 0;
  /** Those of QoS 0 among them. */
  qos0Count = 0;
  bytes = 0;
  /** Those of messages that are in memory alone. */
  #unpersistedBytes = 0;
  #sequence = 0;
  readonly #limits: BacklogLimits;
  readonly #total: TotalBacklog | undefined;
  readonly #onDrop: (message: Message, reason: DropReason, persisted: PersistedMessage | undefined) => void;
  /** Highest priority first. */
  readonly #levels: PriorityLevel[] = [];

  /** @param total of all sessions, which this one is a part of */
  constructor(
    limits: BacklogLimits,
    onDrop: (message: Message, reason: DropReason, persisted: PersistedMessage | undefined) => void,
    total?: TotalBacklog
  ) {
    super();
    this.#limits = limits;
    this.#onDrop = onDrop;
    this.#total = total;
  }

  /** @returns false if the message itself did not find room */
  push(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted?: PersistedMessage
  ): boolean {
    const { maxMqueueLen, maxMqueueBytes } = this.#limits;
    const level = this.#levelOf(message.topic);
    if (maxMqueueLen > 0 && level.length >= maxMqueueLen) this.#drop(level, 'queue_full');
    const queued = this.#append(level, message, qos, retain, ids, persisted);
    let isKept = true;
    if (maxMqueueBytes > 0)
      while (this.bytes > maxMqueueBytes && this.length > 0)
        if (this.#drop(this.#lowest(), 'queue_full') === queued) isKept = false;
    this.#total?.shorten();
    return isKept;
  }

  /** The same for what has been within the bounds before. */
  restore(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted?: PersistedMessage
  ): void {
    this.#append(this.#levelOf(message.topic), message, qos, retain, ids, persisted);
  }

  #append(
    level: PriorityLevel,
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): Queued {
    const queued = { message, qos, retain, ids, persisted, sequence: this.#sequence++ };
    (qos === 0 ? level.unacknowledged : level.acknowledged).push(queued);
    level.length++;
    this.length++;
    if (qos === 0) this.qos0Count++;
    this.bytes += message.bytes;
    if (persisted === undefined) this.#unpersistedBytes += message.bytes;
    this.#total?.added(this, message, this.#unpersistedBytes);
    return queued;
  }

  /**
   * Take the next message.
   * @param windowOpen false while no more QoS 1 and 2 messages may be sent: then only QoS 0 leaves [MQTT-3.3.4-10]
   * @param room most bytes that a message of QoS 1 or 2 may have; a larger one stays the next, and those of lower priorities wait for it
   */
  shift(windowOpen: boolean, room = Infinity): Queued | undefined {
    for (let at = 0; at < this.#levels.length; at++) {
      const level = this.#levels[at];
      const queued = level.next(windowOpen, room).shift();
      if (queued !== undefined) {
        this.#removed(level, queued);
        return queued;
      }
      // or lower priorities would use up the room that its first message waits for
      if (level.acknowledged.head !== undefined) windowOpen = false;
    }
    return undefined;
  }

  /** The same messages under other bounds and priorities. This one is empty then. */
  withLimits(limits: BacklogLimits): Backlog {
    const acknowledgedHead = new Backlog(limits, this.#onDrop, this.#total);
    for (let queued = this.shift(true); queued !== undefined; queued = this.shift(true))
      acknowledgedHead.push(queued.message, queued.qos, queued.retain, queued.ids, queued.persisted);
    return acknowledgedHead;
  }

  /** Drop everything, telling why, but for what somebody else takes. */
  clear(reason: DropReason, giveAway?: (message: Message) => boolean): void {
    for (let queued = this.shift(true); queued !== undefined; queued = this.shift(true))
      if (!giveAway?.(queued.message)) this.#onDrop(queued.message, reason, queued.persisted);
  }

  /** Drop the oldest message of the lowest priority. */
  dropOldest(reason: DropReason): void {
    this.#drop(this.#lowest(), reason);
  }

  dropOldestUnpersisted(reason: DropReason): boolean {
    for (let at = this.#levels.length - 1; at >= 0; at--) {
      const level = this.#levels[at];
      // where some are in the store, those of QoS 1 and 2 are
      const fifo = this.#unpersistedBytes === this.bytes ? level.next(true) : level.unacknowledged;
      const { head } = fifo;
      if (head === undefined || head.persisted !== undefined) continue;
      fifo.shift();
      this.#removed(level, head);
      this.#onDrop(head.message, reason, undefined);
      return true;
    }
    return false;
  }

  /** The messages are in the store, or with whoever has taken them: none waits here any more. */
  empty(): void {
    while (this.shift(true) !== undefined);
  }

  /** Take out all QoS 0 messages that are not in the store: they are to go there. */
  takeUnpersisted(): Queued[] {
    const taken: Queued[] = [];
    for (const level of this.#levels) {
      const stay: Queued[] = [];
      for (let queued = level.unacknowledged.shift(); queued !== undefined; queued = level.unacknowledged.shift()) {
        if (queued.persisted !== undefined) stay.push(queued);
        else {
          this.#removed(level, queued);
          taken.push(queued);
        }
      }
      for (const queued of stay) level.unacknowledged.push(queued);
    }
    return taken;
  }

  /** Drop all QoS 0 messages: what is shed first when memory is short. */
  shed(reason: DropReason): void {
    for (const level of this.#levels) {
      for (let queued = level.unacknowledged.shift(); queued !== undefined; queued = level.unacknowledged.shift()) {
        this.#removed(level, queued);
        this.#onDrop(queued.message, reason, queued.persisted);
      }
    }
  }

  #drop(level: PriorityLevel, reason: DropReason): Queued | undefined {
    const queued = level.next(true).shift();
    if (queued === undefined) return undefined;
    this.#removed(level, queued);
    this.#onDrop(queued.message, reason, queued.persisted);
    return queued;
  }

  #removed(level: PriorityLevel, queued: Queued): void {
    level.length--;
    this.length--;
    if (queued.qos === 0) this.qos0Count--;
    this.bytes -= queued.message.bytes;
    if (queued.persisted === undefined) this.#unpersistedBytes -= queued.message.bytes;
    this.#total?.removed(this, queued.message, this.#unpersistedBytes);
  }

  #lowest(): PriorityLevel {
    for (let at = this.#levels.length - 1; at > 0; at--) if (this.#levels[at].length > 0) return this.#levels[at];
    return this.#levels[0];
  }

  #levelOf(topic: string): PriorityLevel {
    const { mqueuePriorities, mqueueDefaultPriority } = this.#limits;
    const defaultPriority = mqueueDefaultPriority === 'lowest' ? -1 : 256;
    const priority = mqueuePriorities === undefined ? 0 : (mqueuePriorities.get(topic) ?? defaultPriority);
    let at = 0;
    for (; at < this.#levels.length; at++) {
      if (this.#levels[at].priority === priority) return this.#levels[at];
      if (this.#levels[at].priority < priority) break;
    }
    const level = new PriorityLevel(priority);
    this.#levels.splice(at, 0, level);
    return level;
  }
}

/** One priority: QoS 0 apart from QoS 1 and 2, so that a full window does not hold it back. */
class PriorityLevel {
  length = 0;
  readonly priority: number;
  readonly unacknowledged = new Fifo();
  readonly acknowledged = new Fifo();

  constructor(priority: number) {
    this.priority = priority;
  }

  /** Which of the two is to go on; it may be empty. */
  next(windowOpen: boolean, room = Infinity): Fifo {
    const acknowledgedHead = this.acknowledged.head;
    if (!windowOpen || (acknowledgedHead !== undefined && acknowledgedHead.message.bytes > room))
      return this.unacknowledged;
    const qos0Head = this.unacknowledged.head;
    if (qos0Head === undefined) return this.acknowledged;
    return acknowledgedHead !== undefined && acknowledgedHead.sequence < qos0Head.sequence
      ? this.acknowledged
      : this.unacknowledged;
  }
}

class Fifo {
  #items: (Queued | undefined)[] = [];
  #head = 0;

  get head(): Queued | undefined {
    return this.#items.length === 0 ? undefined : this.#items[this.#head];
  }

  push(queued: Queued): void {
    this.#items.push(queued);
  }

  shift(): Queued | undefined {
    const queued = this.head;
    if (queued === undefined) return undefined;
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head >= 64 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return queued;
  }
}
