import type { Message } from '../packets/message.ts';
import type { PersistedMessage } from './segment.ts';

/** What an outgoing packet id waits for. */
export const Awaiting = { nothing: 0, puback: 1, pubrec: 2, pubcomp: 3 } as const;

/** Among the flags of an id: its PUBLISH has never been sent, so nothing can acknowledge it. */
export const UNSENT = 8;

/**
 * Outgoing QoS 1 and 2 messages that wait for an acknowledgement, in a ring indexed by the low bits of the packet id: no map and no
 * object per message. Ids are handed out in sequence; one whose place is still taken by an older id is passed over, so an id in
 * flight is never used again [MQTT-2.2.1-4].
 */
export class Inflight {
  /** Ids in use, those that wait for PUBCOMP included. */
  count = 0;
  /** Those of them whose message has not been acknowledged or released. */
  unacknowledged = 0;
  #last = 0;
  #sent = 0;
  #mask = 15;
  #ids = new Uint16Array(16);
  #states = new Uint8Array(16);
  #flags = new Uint8Array(16);
  #order = new Uint32Array(16);
  #messages: (Message | undefined)[] = new Array(16).fill(undefined);
  /** Where the session is kept in a store. */
  #persisted: (PersistedMessage | undefined)[] | undefined;
  /** Bytes of the messages that it has. */
  bytes = 0;
  #subscriptionIds: Map<number, readonly number[]> | undefined;

  /**
   * Take the next free id.
   * @param message what to send again on reconnect, to tell of when acknowledged, or to count in `bytes`; undefined where none is needed
   * @param flags QoS in bits 0-1, retain in bit 2
   * @param persisted the message as the store has it
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

  /**
   * Put an id back in flight that was so before the broker ended; in the order of their packets. Its message comes by `keep`.
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

  /** The message of an id that was put back. */
  restoreMessage(id: number, persisted: PersistedMessage): void {
    const at = id & this.#mask;
    this.#messages[at] = persisted.message;
    this.bytes += persisted.message.bytes;
    if (persisted.ids !== undefined) (this.#subscriptionIds ??= new Map()).set(id, persisted.ids);
    (this.#persisted ??= new Array(this.#mask + 1).fill(undefined))[at] = persisted;
  }

  /** The message of an id as the store has it. */
  persistedOf(id: number): PersistedMessage | undefined {
    return this.#persisted?.[id & this.#mask];
  }

  /** What an id waits for; `Awaiting.nothing` if it is not in use. */
  stateOf(id: number): number {
    const at = id & this.#mask;
    return this.#ids[at] === id ? this.#states[at] : Awaiting.nothing;
  }

  /** What the client may acknowledge by an id: as `stateOf`, but `Awaiting.nothing` as long as the PUBLISH has not been sent. */
  acknowledgeable(id: number): number {
    const at = id & this.#mask;
    return this.#ids[at] === id && (this.#flags[at] & UNSENT) === 0 ? this.#states[at] : Awaiting.nothing;
  }

  /** The PUBLISH of this id waits for a commit. */
  markUnsent(id: number): void {
    this.#flags[id & this.#mask] |= UNSENT;
  }

  /** The PUBLISH of this id goes out now. */
  markSent(id: number): void {
    this.#flags[id & this.#mask] &= ~UNSENT;
  }

  wasSent(id: number): boolean {
    return (this.#flags[id & this.#mask] & UNSENT) === 0;
  }

  /** PUBREC came: from now on only PUBREL is sent again [MQTT-4.3.3-6]. @returns the message, which need not be kept any longer */
  release(id: number): Message | undefined {
    const at = id & this.#mask;
    const message = this.#messages[at];
    if (this.#states[at] !== Awaiting.pubcomp) this.unacknowledged--;
    this.#states[at] = Awaiting.pubcomp;
    this.#messages[at] = undefined;
    if (message !== undefined) this.bytes -= message.bytes;
    if (this.#persisted !== undefined) this.#persisted[at] = undefined;
    this.#order[at] = this.#sent++; // PUBRELs go again in the order of the PUBRECs [MQTT-4.6.0-4]
    this.#subscriptionIds?.delete(id);
    return message;
  }

  /** The flow of an id has ended. @returns its message, if it was kept */
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

  /** QoS in bits 0-1, retain in bit 2. */
  flagsOf(id: number): number {
    return this.#flags[id & this.#mask] & 7;
  }

  messageOf(id: number): Message | undefined {
    return this.#messages[id & this.#mask];
  }

  subscriptionIdsOf(id: number): readonly number[] | undefined {
    return this.#subscriptionIds?.get(id);
  }

  /** Tells what has been sent by now from what will be, for `inOrder`. */
  get mark(): number {
    return this.#sent;
  }

  /**
   * Every id in use, in the order in which its last packet was first sent [MQTT-4.6.0-1].
   * @param before a `mark`: only those sent until then
   */
  inOrder(before = this.#sent): number[] {
    const places: number[] = [];
    // the differences hold when the count passes 2^32
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
