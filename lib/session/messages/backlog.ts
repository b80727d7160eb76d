// The backlogs of all sessions are counted in `TotalBacklog`, which may drop messages of this one at any `push` or
// `add`. Nothing changes the lists but `#append` and `#removed`, which count in both. `onDrop` can run listeners of
// the app that publish: a loop that drops reads the lists again in each step. The limits do not apply to messages
// whose commit is in progress: these are added with `add`, and `trim` is called after the commit. `Dropper`
// (`lib/session/messages`) uses a backlog to apply the same limits to a queue that is only in the store.

import type { DropReason } from '../../events/reasons.ts';
import type { Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import type { PersistedMessage } from '../../store/segment.ts';
import { Shortenable, type TotalBacklog } from './total-backlog.ts';

/** A message in the backlog of a session, and the way in which it is to be delivered. */
export interface Queued {
  readonly message: Message;
  readonly qos: QoS;
  readonly retain: boolean;
  /** Subscription identifiers. */
  readonly ids: readonly number[] | undefined;
  /** The stored form of the message; undefined if it is not persisted. */
  readonly persisted: PersistedMessage | undefined;
  /** Position in the backlog, to find the older one of two messages. */
  readonly sequence: number;
  /** True if the message was handed over by another session, and is sent before those that were queued for this one. */
  readonly isFirst: boolean;
}

/** The options of a zone for the limits and the order of a backlog. */
export interface BacklogLimits {
  readonly maxMqueueLen: number;
  readonly maxMqueueBytes: number;
  readonly mqueuePriorities: ReadonlyMap<string, number> | undefined;
  readonly mqueueDefaultPriority: 'lowest' | 'highest';
}

/**
 * The bounded backlog of a session: messages that wait until the client is connected, reads, or acknowledges earlier messages.
 *
 * Higher priorities are sent first; within a priority the messages that were handed over by other sessions come before the others, and the
 * order of each of these two is first in, first out. When the number of messages exceeds its limit, the oldest message of the same priority
 * is dropped; when the bytes exceed theirs, the oldest message of the lowest priority. Dropped messages are passed to `onDrop`.
 */
export class Backlog extends Shortenable {
  length = 0;
  /** Number of QoS 0 messages. */
  qos0Count = 0;
  /** Bytes of all messages. */
  bytes = 0;
  /** Bytes of the messages that are not persisted. */
  #unpersistedBytes = 0;
  #sequence = 0;
  readonly #limits: BacklogLimits;
  readonly #total: TotalBacklog | undefined;
  readonly #onDrop: (message: Message, reason: DropReason, persisted: PersistedMessage | undefined) => void;
  /** Highest priority first. */
  readonly #levels: PriorityLevel[] = [];

  /** @param total the backlogs of all sessions, which include this one */
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

  /**
   * Add a message, and drop messages beyond the limits, at most as much as the message takes: the rest is left to `trim`.
   * @returns false if the added message was dropped
   */
  push(
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted?: PersistedMessage,
    isFirst = false
  ): boolean {
    const { maxMqueueLen, maxMqueueBytes } = this.#limits;
    const level = this.#levelOf(message.topic, isFirst);
    if (maxMqueueLen > 0 && this.#lengthAt(level.priority) >= maxMqueueLen)
      this.#drop(this.#oldestAt(level.priority), 'queue_full');
    const queued = this.#append(level, message, qos, retain, ids, persisted);
    let isKept = true;
    if (maxMqueueBytes > 0) {
      let excess = Math.min(this.bytes - maxMqueueBytes, message.bytes);
      while (excess > 0 && this.length > 0) {
        const dropped = this.#drop(this.#lowest(), 'queue_full') as Queued;
        excess -= dropped.message.bytes;
        if (dropped === queued) isKept = false;
      }
    }
    this.#total?.shorten();
    return isKept;
  }

  /**
   * Add a persisted message without checking the limits of this backlog: `trim` does this when the message is committed.
   * @returns true, because the message is not dropped
   */
  add(persisted: PersistedMessage): true {
    const { message, qos, retain, ids, isFirst } = persisted;
    this.#append(this.#levelOf(message.topic, isFirst), message, qos, retain, ids, persisted);
    this.#total?.shorten();
    return true;
  }

  /**
   * Drop messages beyond the limits.
   * @param pending number of messages, here or elsewhere, that are not committed and for which none is dropped
   * @param pendingBytes their bytes
   */
  trim(pending: number, pendingBytes: number): void {
    const { maxMqueueLen, maxMqueueBytes } = this.#limits;
    if (maxMqueueLen > 0 && this.length - pending > maxMqueueLen)
      for (const { priority } of this.#levels)
        for (let excess = this.#lengthAt(priority) - pending - maxMqueueLen; excess > 0; excess--)
          this.#drop(this.#oldestAt(priority), 'queue_full');
    if (maxMqueueBytes === 0) return;
    let excess = this.bytes - pendingBytes - maxMqueueBytes;
    while (excess > 0 && this.length > 0) excess -= (this.#drop(this.#lowest(), 'queue_full') as Queued).message.bytes;
  }

  #append(
    level: PriorityLevel,
    message: Message,
    qos: QoS,
    retain: boolean,
    ids: readonly number[] | undefined,
    persisted: PersistedMessage | undefined
  ): Queued {
    const queued = { message, qos, retain, ids, persisted, sequence: this.#sequence++, isFirst: level.isFirst };
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
   * Remove the next message to send.
   * @param windowOpen false while no more QoS 1 and 2 messages may be sent: then only QoS 0 messages are returned [MQTT-3.3.4-10]
   * @param room maximum size of a QoS 1 or 2 message in bytes; a larger message remains the next one, and lower priorities wait for it
   * @returns undefined if no message may be sent now
   */
  shift(windowOpen: boolean, room = Infinity): Queued | undefined {
    for (let at = 0; at < this.#levels.length; at++) {
      const level = this.#levels[at];
      const queued = level.next(windowOpen, room).shift();
      if (queued !== undefined) {
        this.#removed(level, queued);
        return queued;
      }
      // otherwise lower priorities would use the room that the first message of this level waits for
      if (level.acknowledged.head !== undefined) windowOpen = false;
    }
    return undefined;
  }

  /** Move all messages to a new backlog with other limits and priorities. */
  withLimits(limits: BacklogLimits): Backlog {
    const backlog = new Backlog(limits, this.#onDrop, this.#total);
    backlog.#sequence = this.#sequence - this.length; // so that messages that arrive from now on still have greater numbers
    for (let queued = this.shift(true); queued !== undefined; queued = this.shift(true)) {
      const { message, qos, retain, ids, persisted, isFirst } = queued;
      if (persisted === undefined) backlog.push(message, qos, retain, ids, undefined, isFirst);
      else if (!persisted.isDone) backlog.add(persisted);
    }
    return backlog;
  }

  /** Drop all messages, except those that `giveAway` accepts. */
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
      // if some messages are persisted, all QoS 1 and 2 messages are
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

  /** Remove all messages without dropping them, because they are persisted or have been handed over. */
  empty(): void {
    while (this.shift(true) !== undefined);
  }

  /**
   * Remove the messages for which `isTaken` returns true, of each list the oldest first. @param most maximum number of messages to remove
   */
  take(isTaken: (queued: Queued) => boolean, most = Infinity): Queued[] {
    const taken: Queued[] = [];
    for (const { unacknowledged, acknowledged } of this.#levels)
      for (const fifo of [unacknowledged, acknowledged]) fifo.take(isTaken, most, taken);
    for (const queued of taken) this.#removed(this.#levelOf(queued.message.topic, queued.isFirst), queued);
    return taken;
  }

  /**
   * Drop messages because the app clears the queue, of each list the oldest first.
   * @param end drop only unpersisted messages with a lower sequence number; see `end`
   * @param before drop only persisted messages with a lower number
   * @param most maximum number of messages to drop
   * @returns how many messages were removed, and how many of them were dropped, because they were not done
   */
  dropUntil(end: number, before: number, most: number): { readonly removed: number; readonly dropped: number } {
    // first all, because a listener of the drop may publish
    const isTaken = ({ sequence, persisted }: Queued) =>
      persisted === undefined ? sequence < end : persisted.seq < before;
    const taken = this.take(isTaken, most);
    let dropped = 0;
    for (const { message, persisted } of taken) {
      if (persisted?.isDone) continue;
      dropped++;
      this.#onDrop(message, 'queue_cleared', persisted);
    }
    return { removed: taken.length, dropped };
  }

  /** Exclusive upper bound of the sequence numbers so far: a message that arrives from now on has at least this number. */
  get end(): number {
    return this.#sequence;
  }

  /**
   * The messages by priority and whether they are acknowledged, each list in order of arrival. The backlog must not change in the meantime.
   * @param after only messages with a greater sequence number
   */
  *lists(after = -1): Generator<Iterable<Queued>, void, undefined> {
    for (const { acknowledged, unacknowledged } of this.#levels) {
      yield acknowledged.after(after);
      yield unacknowledged.after(after);
    }
  }

  /** Drop all QoS 0 messages, because memory is short. */
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
    for (let at = this.#levels.length - 1; at > 0; at--)
      if (this.#levels[at].length > 0) return this.#oldestAt(this.#levels[at].priority);
    return this.#levels[0];
  }

  /** Number of messages of a priority. */
  #lengthAt(priority: number): number {
    let length = 0;
    for (const level of this.#levels) if (level.priority === priority) length += level.length;
    return length;
  }

  /** The level of the next message of a priority; an empty one if there is none. */
  #oldestAt(priority: number): PriorityLevel {
    const levels = this.#levels.filter((level) => level.priority === priority);
    return levels.find(({ length }) => length > 0) ?? levels[0];
  }

  #levelOf(topic: string, isFirst: boolean): PriorityLevel {
    const { mqueuePriorities, mqueueDefaultPriority } = this.#limits;
    const defaultPriority = mqueueDefaultPriority === 'lowest' ? -1 : 256;
    const priority = mqueuePriorities === undefined ? 0 : (mqueuePriorities.get(topic) ?? defaultPriority);
    let at = 0;
    for (; at < this.#levels.length; at++) {
      const level = this.#levels[at];
      if (level.priority === priority && level.isFirst === isFirst) return level;
      if (level.priority < priority || (level.priority === priority && isFirst)) break;
    }
    const level = new PriorityLevel(priority, isFirst);
    this.#levels.splice(at, 0, level);
    return level;
  }
}

/**
 * The messages of one priority that were handed over, or the others of that priority. QoS 0 messages have a separate list, so that they
 * need not wait while the window is full.
 */
class PriorityLevel {
  length = 0;
  readonly priority: number;
  readonly isFirst: boolean;
  readonly unacknowledged = new Fifo();
  readonly acknowledged = new Fifo();

  constructor(priority: number, isFirst: boolean) {
    this.priority = priority;
    this.isFirst = isFirst;
  }

  /** Get the list whose first message is the next one to send. The list may be empty. */
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

  /** The messages with a greater sequence number. */
  *after(sequence: number): Generator<Queued, void, undefined> {
    let [from, end] = [this.#head, this.#items.length];
    while (from < end) {
      const middle = (from + end) >>> 1;
      if ((this.#items[middle] as Queued).sequence <= sequence) from = middle + 1;
      else end = middle;
    }
    for (; from < this.#items.length; from++) yield this.#items[from] as Queued;
  }

  /** Move the first messages for which `isTaken` returns true to a list, until it has this number of messages. */
  take(isTaken: (queued: Queued) => boolean, most: number, taken: Queued[]): void {
    const stay: Queued[] = [];
    const before = taken.length;
    let at = this.#head;
    for (; at < this.#items.length && taken.length < most; at++) {
      const queued = this.#items[at] as Queued;
      (isTaken(queued) ? taken : stay).push(queued);
    }
    if (taken.length === before) return;
    this.#items = stay.concat(this.#items.slice(at) as Queued[]);
    this.#head = 0;
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
