// Online members of a share group come first. The documented strategies do not say what happens with offline members.
// They are skipped while another member is online; if all are offline, one is chosen and the message waits in its
// queue.

import type { Publisher } from '../packets/message.ts';

/** The strategy by which a share group selects one of its members. `hash` uses a hash of the publisher's client id. */
export type SharedStrategy = 'random' | 'round_robin' | 'sticky' | 'hash';

/** The fields of a subscription that a share group reads. */
export interface GroupMember {
  readonly subscriber: {
    readonly isOnline: boolean;
    /** True if its in-flight window is not full and its connection accepts output. */
    readonly hasRoom: boolean;
  };
}

/** The state of one publisher in a share group. */
interface Cursor<M> {
  /** For `round_robin`: index of the next member. */
  next: number;
  /** For `sticky`: the member that received the last message. */
  last: M | undefined;
  /** For `hash`: the hash of the publisher's client id. */
  readonly hash: number;
}

/** Requirements for a member to be selected. If no member meets one, the previous one in this list applies. */
const ANY = 0;
const ONLINE = 1;
const ROOM = 2;

/** Number of random draws before the suitable members are counted; enough if a fifth of a large group is online. */
const DRAWS = 8;

/**
 * The subscriptions that share the messages of one filter under one group name [MQTT-4.8.2-4].
 *
 * The members are in an array, in the order in which they subscribed, so that a member is selected by its index. Each has a ticket number;
 * the numbers ascend, so that a member that leaves is found in O(log n). Closing the gap takes 2 us with 10,000 members.
 */
export class ShareGroup<M extends GroupMember> {
  readonly #members: M[] = [];
  /** Ticket numbers of the members, by the same index as `#members`. */
  readonly #tickets: number[] = [];
  readonly #ticketOf = new Map<M, number>();
  #nextTicket = 0;
  /** Weak, so that the cursor of a publisher is released with the publisher. */
  readonly #cursors = new WeakMap<Publisher, Cursor<M>>();
  /** The cursor for messages of the app and of the broker. */
  readonly #ownCursor: Cursor<M> = { next: 0, last: undefined, hash: hashOf('') };

  /** The members, in the order in which they subscribed. */
  get members(): readonly M[] {
    return this.#members;
  }

  /** Add a member. Has no effect if it is a member already. */
  add(member: M): void {
    if (this.#ticketOf.has(member)) return;
    const ticket = this.#nextTicket++;
    this.#ticketOf.set(member, ticket);
    this.#members.push(member);
    this.#tickets.push(ticket);
  }

  /** Remove a member. @returns true if the group is empty now */
  remove(member: M): boolean {
    const ticket = this.#ticketOf.get(member);
    if (ticket !== undefined) {
      this.#ticketOf.delete(member);
      const at = this.#indexOf(ticket);
      this.#members.splice(at, 1);
      this.#tickets.splice(at, 1);
    }
    return this.#members.length === 0;
  }

  /**
   * Select the member that receives a message.
   *
   * Online members are preferred. If all are offline, one of them is selected and the message is queued for it. Usually the first member
   * tested is suitable; at worst, with most members offline or without room, all members are tested three times.
   * @param publisher the publisher of the message, whose cursor is used; undefined: the app or the broker
   * @param wantsAck acknowledged dispatch of QoS 1 and 2: prefer members that have room for the message
   * @param random returns a number from 0 up to but excluding 1
   * @param isPermitted tells whether a member may receive the message; default: all may
   * @returns undefined if the group is empty or no member may receive the message
   */
  pick(
    strategy: SharedStrategy,
    publisher: Publisher | undefined,
    wantsAck: boolean,
    random: () => number,
    isPermitted?: (member: M) => boolean
  ): M | undefined {
    if (this.#members.length === 0) return undefined;
    const need = wantsAck ? ROOM : ONLINE;
    switch (strategy) {
      case 'random':
        return this.#draw(need, random, isPermitted);
      case 'round_robin': {
        const cursor = this.#cursorOf(publisher);
        const at = this.#seek(cursor.next, need, isPermitted);
        if (at < 0) return undefined;
        // continues after the selected member; otherwise the member after an offline one would get a double share
        cursor.next = at + 1;
        return this.#members[at];
      }
      case 'sticky': {
        const cursor = this.#cursorOf(publisher);
        const preferred = cursor.last !== undefined && this.#ticketOf.has(cursor.last) ? cursor.last : undefined;
        if (preferred !== undefined && meets(preferred, need, isPermitted)) return preferred;
        return (cursor.last = this.#draw(need, random, isPermitted, preferred));
      }
      case 'hash':
        return this.#members[this.#seek(this.#cursorOf(publisher).hash, need, isPermitted)];
    }
  }

  #cursorOf(publisher: Publisher | undefined): Cursor<M> {
    if (publisher === undefined) return this.#ownCursor;
    let cursor = this.#cursors.get(publisher);
    if (cursor === undefined) {
      cursor = { next: 0, last: undefined, hash: hashOf(publisher.clientId) };
      this.#cursors.set(publisher, cursor);
    }
    return cursor;
  }

  /**
   * Find the first member, cyclically from `start`, that meets the highest requirement that any member meets.
   * @returns its index; -1 if no member may receive the message
   */
  #seek(start: number, need: number, isPermitted: ((member: M) => boolean) | undefined): number {
    const members = this.#members;
    const count = members.length;
    for (; need >= ANY; need--) {
      for (let i = 0, at = start % count; i < count; i++, at = at + 1 === count ? 0 : at + 1) {
        if (meets(members[at], need, isPermitted)) return at;
      }
    }
    return -1;
  }

  /**
   * Draw a random member from those that meet the highest requirement that any member meets.
   * @param preferred a member that does not meet `need`; it takes precedence if a lower requirement applies and it meets that
   */
  #draw(
    need: number,
    random: () => number,
    isPermitted: ((member: M) => boolean) | undefined,
    preferred?: M
  ): M | undefined {
    const members = this.#members;
    const count = members.length;
    for (let draw = 0; draw < DRAWS; draw++) {
      const member = members[Math.floor(random() * count)];
      if (meets(member, need, isPermitted)) return member;
    }
    for (; need >= ANY; need--) {
      if (preferred !== undefined && meets(preferred, need, isPermitted)) return preferred;
      let able = 0;
      for (const member of members) if (meets(member, need, isPermitted)) able++;
      if (able === 0) continue;
      let left = Math.floor(random() * able);
      for (const member of members) if (meets(member, need, isPermitted) && left-- === 0) return member;
    }
    return undefined;
  }

  /** Find the index of a ticket number by binary search. */
  #indexOf(ticket: number): number {
    const tickets = this.#tickets;
    let low = 0;
    let high = tickets.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tickets[middle] < ticket) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function meets<M extends GroupMember>(
  member: M,
  need: number,
  isPermitted: ((member: M) => boolean) | undefined
): boolean {
  const { subscriber } = member;
  if (isPermitted !== undefined && !isPermitted(member)) return false;
  return need === ANY || (subscriber.isOnline && (need === ONLINE || subscriber.hasRoom));
}

/** Hash a string: FNV-1a over UTF-16 code units, with a final mix because only the low bits are used. The same in every run. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  return (hash ^ (hash >>> 16)) >>> 0;
}
