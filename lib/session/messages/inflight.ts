// Messages in flight without an object for each: parallel arrays, at most half full, so that a free place is found in
// a few steps. PUBREC frees the message but not its packet id, which is why `count` and `unacknowledged` differ. A
// packet id can be assigned before its PUBLISH is sent (`UNSENT`), because the commit in between must contain it; the
// client cannot acknowledge it until then. Accessors do not check that an id is in use, except `stateOf` and
// `acknowledgeable`.

import type { Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import type { PersistedMessage } from '../../store/segment.ts';

/** The acknowledgement that an outgoing packet id waits for. */
export const Awaiting = { nothing: 0, puback: 1, pubrec: 2, pubcomp: 3 } as const;

/** Flag of a packet id whose PUBLISH has never been sent, so that the client cannot acknowledge it. */
export const UNSENT = 8;
/** Flag of a packet id whose message was read from the store, where it is unchanged by deliver hooks. */
const RESTORED = 16;

/**
 * Outgoing QoS 1 and 2 messages that wait for an acknowledgement.
 *
 * They are in a ring indexed by the low bits of the packet id, so that a message needs no object. Packet ids are assigned in sequence. An
 * id whose slot in the ring is taken is skipped, so an id in flight is never assigned again [MQTT-2.2.1-4].
 */
export class Inflight {
  /** Number of packet ids in use, including those that wait for PUBCOMP. */
  count = 0;
  /** Number of packet ids that wait for PUBACK or PUBREC. */
  unacknowledged = 0;
  #last = 0;
  #sent = 0;
  #mask = 15;
  #ids = new Uint16Array(16);
  #states = new Uint8Array(16);
  #flags = new Uint8Array(16);
  #order = new Uint32Array(16);
  #messages: (Message | undefined)[] = new Array(16).fill(undefined);
  /** The stored forms of the messages; undefined if the session is only in memory. */
  #persisted: (PersistedMessage | undefined)[] | undefined;
  /** Bytes of the messages that are stored here. */
  bytes = 0;
  #subscriptionIds: Map<number, readonly number[]> | undefined;

  /**
   * Assign the next free packet id.
   * @param state of `Awaiting`
   * @param message stored for resending, for `message.acked` and for `bytes`; undefined if none of these is needed
   * @param flags QoS in bits 0-1, retain in bit 2
   * @param ids subscription identifiers
   * @param persisted the stored form of the message
   */
  take(
    state: number,
    message: Message | undefined,
    flags: number,
    ids: readonly number[] | undefined,
    persisted?: PersistedMessage
  ): number {
    if ((this.count + 1) * 2 > this.#mask + 1) this.#grow();
    let id = this.#last;
    do {
      id = id === 65_535 ? 1 : id + 1;
    } while (this.#ids[id & this.#mask] !== 0);
    this.#last = id;
    const at = id & this.#mask;
    this.#ids[at] = id;
    this.#states[at] = state;
    this.#flags[at] = flags;
    this.#order[at] = this.#sent++;
    this.#messages[at] = message;
    if (message !== undefined) this.bytes += message.bytes;
    if (ids !== undefined) (this.#subscriptionIds ??= new Map()).set(id, ids);
    if (persisted !== undefined) (this.#persisted ??= new Array(this.#mask + 1).fill(undefined))[at] = persisted;
    this.count++;
    this.unacknowledged++;
    return id;
  }

  /** Count a message as in flight before its packet id is assigned. `cancelReservation` must follow. */
  reserve(bytes: number): void {
    this.count++;
    this.bytes += bytes;
  }

  /** Undo `reserve`: the packet id is assigned now, or is not needed. */
  cancelReservation(bytes: number): void {
    this.count--;
    this.bytes -= bytes;
  }

  /**
   * Restore a packet id that was in flight when the session was unloaded; in the order of the packets. `restoreMessage` adds its message.
   * @param state of `Awaiting`
   * @param flags as for `take`, and `UNSENT`
   */
  restore(id: number, state: number, flags: number): void {
    while ((this.count + 1) * 2 > this.#mask + 1 || this.#ids[id & this.#mask] !== 0) this.#grow();
    const at = id & this.#mask;
    this.#ids[at] = this.#last = id;
    this.#states[at] = state;
    this.#flags[at] = flags;
    this.#order[at] = this.#sent++;
    this.count++;
    if (state !== Awaiting.pubcomp) this.unacknowledged++;
  }

  /** Add the message of a restored packet id. */
  restoreMessage(id: number, persisted: PersistedMessage): void {
    const at = id & this.#mask;
    this.#messages[at] = persisted.message;
    this.#flags[at] |= RESTORED;
    this.bytes += persisted.message.bytes;
    if (persisted.ids !== undefined) (this.#subscriptionIds ??= new Map()).set(id, persisted.ids);
    (this.#persisted ??= new Array(this.#mask + 1).fill(undefined))[at] = persisted;
  }

  /** Tell whether the message of a packet id was read from the store, and `replaceMessage` has not been called since. */
  isRestored(id: number): boolean {
    return (this.#flags[id & this.#mask] & RESTORED) !== 0;
  }

  /** Replace a message that waits for PUBACK or PUBREC by the result of the deliver hooks. */
  replaceMessage(id: number, message: Message, qos: QoS, retain: boolean): void {
    const at = id & this.#mask;
    const replaced = this.#messages[at];
    if (replaced !== undefined) {
      this.bytes += message.bytes - replaced.bytes;
      this.#messages[at] = message;
    }
    this.#states[at] = qos === 1 ? Awaiting.puback : Awaiting.pubrec;
    this.#flags[at] = (this.#flags[at] & UNSENT) | qos | (retain ? 4 : 0);
  }

  /** The stored form of the message of a packet id. */
  persistedOf(id: number): PersistedMessage | undefined {
    return this.#persisted?.[id & this.#mask];
  }

  /** The acknowledgement that a packet id waits for; `Awaiting.nothing` if the id is not in use. */
  stateOf(id: number): number {
    const at = id & this.#mask;
    return this.#ids[at] === id ? this.#states[at] : Awaiting.nothing;
  }

  /** The acknowledgement that the client may send: as `stateOf`, but `Awaiting.nothing` until the PUBLISH has been sent. */
  acknowledgeable(id: number): number {
    const at = id & this.#mask;
    return this.#ids[at] === id && (this.#flags[at] & UNSENT) === 0 ? this.#states[at] : Awaiting.nothing;
  }

  /** Record that the PUBLISH of a packet id has not been sent. */
  markUnsent(id: number): void {
    this.#flags[id & this.#mask] |= UNSENT;
  }

  /** Record that the PUBLISH of a packet id has been sent. */
  markSent(id: number): void {
    this.#flags[id & this.#mask] &= ~UNSENT;
  }

  wasSent(id: number): boolean {
    return (this.#flags[id & this.#mask] & UNSENT) === 0;
  }

  /** Release a message after its PUBREC: from then on only PUBREL is sent again [MQTT-4.3.3-6]. @returns the message, if stored */
  release(id: number): Message | undefined {
    const at = id & this.#mask;
    const message = this.#messages[at];
    if (this.#states[at] !== Awaiting.pubcomp) this.unacknowledged--;
    this.#states[at] = Awaiting.pubcomp;
    this.#messages[at] = undefined;
    if (message !== undefined) this.bytes -= message.bytes;
    if (this.#persisted !== undefined) this.#persisted[at] = undefined;
    this.#order[at] = this.#sent++; // PUBRELs are sent again in the order of the PUBRECs [MQTT-4.6.0-4]
    this.#subscriptionIds?.delete(id);
    return message;
  }

  /** Free a packet id when its flow has ended. @returns the message, if stored */
  free(id: number): Message | undefined {
    const at = id & this.#mask;
    const message = this.#messages[at];
    this.#ids[at] = 0;
    if (this.#states[at] !== Awaiting.pubcomp) this.unacknowledged--;
    this.#states[at] = Awaiting.nothing;
    this.#messages[at] = undefined;
    if (message !== undefined) this.bytes -= message.bytes;
    if (this.#persisted !== undefined) this.#persisted[at] = undefined;
    this.#subscriptionIds?.delete(id);
    this.count--;
    return message;
  }

  /** The flags of a packet id: QoS in bits 0-1, retain in bit 2. */
  flagsOf(id: number): number {
    return this.#flags[id & this.#mask] & 7;
  }

  /** The retain flag of the delivery of a packet id. It stays until the id is assigned again. */
  isRetained(id: number): boolean {
    return (this.#flags[id & this.#mask] & 4) !== 0;
  }

  messageOf(id: number): Message | undefined {
    return this.#messages[id & this.#mask];
  }

  subscriptionIdsOf(id: number): readonly number[] | undefined {
    return this.#subscriptionIds?.get(id);
  }

  /** A mark for `inOrder` that separates the packets sent so far from later ones. */
  get mark(): number {
    return this.#sent;
  }

  /**
   * List the packet ids in use, in the order in which their last packet was first sent [MQTT-4.6.0-1].
   * @param before a `mark`: only packets sent before it
   */
  inOrder(before = this.#sent): number[] {
    const places: number[] = [];
    // the differences remain correct when the counter wraps at 2^32
    for (let at = 0; at <= this.#mask; at++)
      if (this.#ids[at] !== 0 && ((this.#order[at] - before) | 0) < 0) places.push(at);
    return places.sort((a, b) => (this.#order[a] - this.#order[b]) | 0).map((at) => this.#ids[at]);
  }

  #grow(): void {
    const size = (this.#mask + 1) * 2;
    const [ids, states, flags, order, messages] = [this.#ids, this.#states, this.#flags, this.#order, this.#messages];
    this.#mask = size - 1;
    this.#ids = new Uint16Array(size);
    this.#states = new Uint8Array(size);
    this.#flags = new Uint8Array(size);
    this.#order = new Uint32Array(size);
    this.#messages = new Array(size).fill(undefined);
    const persisted = this.#persisted;
    this.#persisted = persisted === undefined ? undefined : new Array(size).fill(undefined);
    for (let from = 0; from < ids.length; from++) {
      if (ids[from] === 0) continue;
      const at = ids[from] & this.#mask;
      this.#ids[at] = ids[from];
      this.#states[at] = states[from];
      this.#flags[at] = flags[from];
      this.#order[at] = order[from];
      this.#messages[at] = messages[from];
      if (this.#persisted !== undefined) this.#persisted[at] = persisted?.[from];
    }
  }
}
