import type { PersistedMessage } from '../../store/segment.ts';
import type { FlowRecord } from '../messages/flow-record.ts';

/** Counts the messages of a session in the store. */
export class MessageCounts {
  /** Number of messages that are not done. */
  count = 0;
  /** Bytes of these messages. */
  bytes = 0;
  /** Number of QoS 0 messages among them. */
  qos0Count = 0;
  /** Number of the messages that are committed and not done. */
  settledCount = 0;
  /** Bytes of these messages. */
  settledBytes = 0;
  /** Messages with a lower number are committed, or were refused. */
  settledTo = 1;

  /** Count the messages of a flow record. */
  protected restoreCounts({ next, count, bytes, qos0Count }: FlowRecord): void {
    this.count = this.settledCount = count;
    this.bytes = this.settledBytes = bytes;
    this.qos0Count = qos0Count;
    this.settledTo = next;
  }

  /** Count a new message. */
  protected added({ qos, message }: PersistedMessage): void {
    this.count++;
    this.bytes += message.bytes;
    if (qos === 0) this.qos0Count++;
  }

  /** Count the messages of a commit that has succeeded. @param to number after the last one */
  protected settle(written: readonly PersistedMessage[], to: number): void {
    for (const { seq, isDone, message } of written) {
      if (isDone || seq < this.settledTo) continue;
      this.settledCount++;
      this.settledBytes += message.bytes;
    }
    this.settledTo = to;
  }

  /** Remove a message that is done from the counts. */
  protected removed({ seq, qos, message }: PersistedMessage): void {
    this.count--;
    this.bytes -= message.bytes;
    if (qos === 0) this.qos0Count--;
    if (seq < this.settledTo) {
      this.settledCount--;
      this.settledBytes -= message.bytes;
    }
    this.#forgetBytes();
  }

  /** Remove the messages of a damaged record from the counts. */
  protected lost(count: number): void {
    this.count -= count;
    this.settledCount -= count;
    this.#forgetBytes();
  }

  /** Reset the bytes if there are no messages: the bytes of damaged records are unknown and may be left. */
  #forgetBytes(): void {
    if (this.settledCount === 0) this.settledBytes = 0;
    if (this.count === 0) this.bytes = this.qos0Count = 0;
  }
}
