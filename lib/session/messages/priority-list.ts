// The messages that wait in the memory of one session, by priority: plain data and functions that keep its order and its
// counts. `Queue` decides what is added and dropped. Dropping messages runs listeners of the app, which may publish: a
// loop that drops reads the list again in each step.

import type { Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import type { PersistedMessage } from '../../store/segment.ts';

/** A message that waits in memory, and the way in which it is to be delivered. */
export interface Queued {
  readonly message: Message;
  readonly qos: QoS;
  readonly retain: boolean;
  /** Subscription identifiers. */
  readonly subscriptionIds: readonly number[] | undefined;
  /** The stored form of the message; undefined if it is not persisted. */
  readonly persisted: PersistedMessage | undefined;
  /** Position in the queue, to find the older one of two messages. */
  readonly sequence: number;
  /** True if the message was handed over by another session, and is sent before those that were queued for this one. */
  readonly isFirst: boolean;
}

/** The options of a zone for the limits and the order of a queue. */
export interface QueueLimits {
  readonly maxMqueueLen: number;
  readonly maxMqueueBytes: number;
  readonly mqueuePriorities: ReadonlyMap<string, number> | undefined;
  readonly mqueueDefaultPriority: 'lowest' | 'highest';
}

/**
 * The waiting messages of a session by priority. Higher priorities are sent first; within a priority the messages that were handed over by
 * other sessions come before the others, and the order of each of these two is first in, first out.
 */
export interface PriorityList {
  length: number;
  /** Number of QoS 0 messages. */
  qos0Count: number;
  /** Bytes of all messages. */
  bytes: number;
  /** Bytes of the messages that are not persisted. */
  unpersistedBytes: number;
  /** Sequence number of the next message. */
  sequence: number;
  readonly limits: QueueLimits;
  /** Highest priority first. */
  readonly levels: Level[];
}

/**
 * The messages of one priority that were handed over, or the others of that priority. QoS 0 messages have a separate list, so that they
 * need not wait while the window is full.
 */
interface Level {
  length: number;
  readonly priority: number;
  readonly isFirst: boolean;
  readonly unacknowledged: Fifo;
  readonly acknowledged: Fifo;
}

interface Fifo {
  items: (Queued | undefined)[];
  head: number;
}

/** Create an empty list. @param sequence sequence number of the first message */
export function newPriorityList(limits: QueueLimits, sequence = 0): PriorityList {
  return { length: 0, qos0Count: 0, bytes: 0, unpersistedBytes: 0, sequence, limits, levels: [] };
}

/** Add a message at the end of its priority. */
export function append(list: PriorityList, queued: Queued): void {
  const { message, qos, persisted, isFirst } = queued;
  const level = levelOf(list, priorityOf(list, message.topic), isFirst);
  (qos === 0 ? level.unacknowledged : level.acknowledged).items.push(queued);
  level.length++;
  list.length++;
  if (qos === 0) list.qos0Count++;
  list.bytes += message.bytes;
  if (persisted === undefined) list.unpersistedBytes += message.bytes;
}

/**
 * Remove the next message to send.
 * @param windowOpen false while no more QoS 1 and 2 messages may be sent: then only QoS 0 messages are returned [MQTT-3.3.4-10]
 * @param room maximum size of a QoS 1 or 2 message in bytes; a larger message remains the next one, and lower priorities wait for it
 * @returns undefined if no message may be sent now
 */
export function shift(list: PriorityList, windowOpen: boolean, room: number): Queued | undefined {
  for (let at = 0; at < list.levels.length; at++) {
    const level = list.levels[at];
    const queued = shiftFifo(nextOf(level, windowOpen, room));
    if (queued !== undefined) return removed(list, level, queued);
    // otherwise lower priorities would use the room that the first message of this level waits for
    if (headOf(level.acknowledged) !== undefined) windowOpen = false;
  }
  return undefined;
}

/** Remove the oldest message of a priority; default: of the lowest priority that occurs. */
export function shiftOldest(list: PriorityList, priority = lowestOf(list)): Queued | undefined {
  for (const level of list.levels) {
    if (level.priority !== priority || level.length === 0) continue;
    const queued = shiftFifo(nextOf(level, true, Infinity));
    return queued && removed(list, level, queued);
  }
  return undefined;
}

/** Remove the oldest message of the lowest priority that is not persisted. */
export function shiftUnpersisted(list: PriorityList): Queued | undefined {
  for (let at = list.levels.length - 1; at >= 0; at--) {
    const level = list.levels[at];
    // if some messages are persisted, all QoS 1 and 2 messages are
    const fifo = list.unpersistedBytes === list.bytes ? nextOf(level, true, Infinity) : level.unacknowledged;
    const head = headOf(fifo);
    if (head === undefined || head.persisted !== undefined) continue;
    shiftFifo(fifo);
    return removed(list, level, head);
  }
  return undefined;
}

/** Remove the oldest QoS 0 message of the highest priority. */
export function shiftQos0(list: PriorityList): Queued | undefined {
  for (const level of list.levels) {
    const queued = shiftFifo(level.unacknowledged);
    if (queued !== undefined) return removed(list, level, queued);
  }
  return undefined;
}

/**
 * Remove one message after the other until the limits are met: the oldest of a priority that has too many, then the oldest of the lowest
 * priority while there are too many bytes.
 * @param pending number of messages, here or elsewhere, that are not committed and for which none is removed
 * @param pendingBytes their bytes
 */
export function* shiftBeyond(list: PriorityList, pending: number, pendingBytes: number): Generator<Queued> {
  const { maxMqueueLen, maxMqueueBytes } = list.limits;
  if (maxMqueueLen > 0 && list.length - pending > maxMqueueLen)
    for (const { priority } of list.levels)
      for (let excess = lengthAt(list, priority) - pending - maxMqueueLen; excess > 0; excess--) {
        const queued = shiftOldest(list, priority);
        if (queued !== undefined) yield queued;
      }
  if (maxMqueueBytes === 0) return;
  let excess = list.bytes - pendingBytes - maxMqueueBytes;
  while (excess > 0 && list.length > 0) {
    const queued = shiftOldest(list) as Queued;
    excess -= queued.message.bytes;
    yield queued;
  }
}

/**
 * Remove the messages for which `isTaken` returns true, of each priority the oldest first.
 * @param most maximum number of messages to remove
 */
export function takeWhere(list: PriorityList, isTaken: (queued: Queued) => boolean, most: number): Queued[] {
  const taken: Queued[] = [];
  for (const level of list.levels)
    for (const fifo of [level.unacknowledged, level.acknowledged]) {
      const from = taken.length;
      takeOf(fifo, isTaken, most, taken);
      for (let at = from; at < taken.length; at++) removed(list, level, taken[at]);
    }
  return taken;
}

/**
 * The messages by priority and whether they are acknowledged, each list in order of arrival. The list must not change in the meantime.
 * @param after only messages with a greater sequence number
 */
export function* listsAfter(list: PriorityList, after: number): Generator<Iterable<Queued>, void, undefined> {
  for (const { acknowledged, unacknowledged } of list.levels) {
    yield itemsAfter(acknowledged, after);
    yield itemsAfter(unacknowledged, after);
  }
}

/** Number of messages of a priority. */
export function lengthAt({ levels }: PriorityList, priority: number): number {
  let length = 0;
  for (const level of levels) if (level.priority === priority) length += level.length;
  return length;
}

/** The priority of the messages of a topic. */
export function priorityOf({ limits }: PriorityList, topic: string): number {
  const { mqueuePriorities, mqueueDefaultPriority } = limits;
  if (mqueuePriorities === undefined) return 0;
  return mqueuePriorities.get(topic) ?? (mqueueDefaultPriority === 'lowest' ? -1 : 256);
}

function lowestOf({ levels }: PriorityList): number {
  for (let at = levels.length - 1; at >= 0; at--) if (levels[at].length > 0) return levels[at].priority;
  return 0;
}

function levelOf({ levels }: PriorityList, priority: number, isFirst: boolean): Level {
  let at = 0;
  for (; at < levels.length; at++) {
    const level = levels[at];
    if (level.priority === priority && level.isFirst === isFirst) return level;
    if (level.priority < priority || (level.priority === priority && isFirst)) break;
  }
  const unacknowledged = { items: [], head: 0 };
  const level = { length: 0, priority, isFirst, unacknowledged, acknowledged: { items: [], head: 0 } };
  levels.splice(at, 0, level);
  return level;
}

/** Get the part of a level whose first message is the next one to send. The part may be empty. */
function nextOf({ acknowledged, unacknowledged }: Level, windowOpen: boolean, room: number): Fifo {
  const acknowledgedHead = headOf(acknowledged);
  if (!windowOpen || (acknowledgedHead !== undefined && acknowledgedHead.message.bytes > room)) return unacknowledged;
  const qos0Head = headOf(unacknowledged);
  if (qos0Head === undefined) return acknowledged;
  return acknowledgedHead !== undefined && acknowledgedHead.sequence < qos0Head.sequence
    ? acknowledged
    : unacknowledged;
}

/** Count a message that was removed. */
function removed(list: PriorityList, level: Level, queued: Queued): Queued {
  level.length--;
  list.length--;
  if (queued.qos === 0) list.qos0Count--;
  list.bytes -= queued.message.bytes;
  if (queued.persisted === undefined) list.unpersistedBytes -= queued.message.bytes;
  return queued;
}

function headOf({ items, head }: Fifo): Queued | undefined {
  return items.length === 0 ? undefined : items[head];
}

function shiftFifo(fifo: Fifo): Queued | undefined {
  const queued = headOf(fifo);
  if (queued === undefined) return undefined;
  fifo.items[fifo.head++] = undefined;
  if (fifo.head === fifo.items.length) {
    fifo.items = [];
    fifo.head = 0;
  } else if (fifo.head >= 64 && fifo.head * 2 >= fifo.items.length) {
    fifo.items = fifo.items.slice(fifo.head);
    fifo.head = 0;
  }
  return queued;
}

function takeOf(fifo: Fifo, isTaken: (queued: Queued) => boolean, most: number, taken: Queued[]): void {
  const stay: Queued[] = [];
  const before = taken.length;
  let at = fifo.head;
  for (; at < fifo.items.length && taken.length < most; at++) {
    const queued = fifo.items[at] as Queued;
    (isTaken(queued) ? taken : stay).push(queued);
  }
  if (taken.length === before) return;
  fifo.items = stay.concat(fifo.items.slice(at) as Queued[]);
  fifo.head = 0;
}

function* itemsAfter(fifo: Fifo, sequence: number): Generator<Queued, void, undefined> {
  let [from, end] = [fifo.head, fifo.items.length];
  while (from < end) {
    const middle = (from + end) >>> 1;
    if ((fifo.items[middle] as Queued).sequence <= sequence) from = middle + 1;
    else end = middle;
  }
  for (; from < fifo.items.length; from++) yield fifo.items[from] as Queued;
}
