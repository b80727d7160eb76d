import { asError } from '../base/errors.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { AckPacket, PublishPacket } from '../packets/types.ts';
import type { ClientConnection } from './connection.ts';
import type { PublishResult } from './options.ts';
import type { Pending } from './pending.ts';
import { refusal } from './refusal.ts';
import type { ClientSession } from './session.ts';

const SENT: PublishResult = { reasonCode: 0, properties: {} };

/** The messages that a client publishes: packet ids, the Receive Maximum of the server, and acknowledgements. */
export class OutgoingMessages {
  readonly #connection: ClientConnection;
  readonly #session: ClientSession;
  /** The messages that wait for an acknowledgement, by packet id. `received` is the PUBREC. Undefined until the first one. */
  #pending: Map<number, Pending<PublishResult> & { received?: PublishResult }> | undefined = undefined;
  /** QoS 1 and 2 messages that exceed the server's Receive Maximum, or for which no packet id is free. */
  #queued: (Pending<PublishResult> & { readonly packet: PublishPacket })[] = [];
  /** QoS 0 messages that were written while the stream's buffer was full; they resolve when it drains. */
  #draining: Pending<PublishResult>[] = [];
  #sendQuota = 65_535;

  constructor(connection: ClientConnection, session: ClientSession) {
    this.#connection = connection;
    this.#session = session;
  }

  /** True if the application waits for an acknowledgement. */
  get isAwaited(): boolean {
    return this.#pending !== undefined && this.#pending.size > 0;
  }

  /** Continue the session after CONNACK, or start a new one if the server has none. @param receiveMaximum of the server */
  begin(isSessionPresent: boolean, receiveMaximum = 65_535): void {
    this.#sendQuota = receiveMaximum;
    if (!isSessionPresent) {
      this.#session.clear();
      return;
    }
    // resent in their original order [MQTT-4.4.0-1]
    for (const [messageId, { packet, isReleased }] of this.#session.outgoing) {
      this.#sendQuota--;
      this.#connection.send(isReleased ? { cmd: 'pubrel', messageId, reasonCode: 0 } : { ...packet, dup: true });
    }
  }

  /** Send a message now, or as soon as the Receive Maximum of the server permits. */
  publish(packet: PublishPacket, { resolve, reject }: Pending<PublishResult>): void {
    if (packet.qos > 0) {
      this.#queued.push({ packet, resolve, reject });
      this.#sendQueued();
    } else if (this.#connection.send(packet)) resolve(SENT);
    else this.#draining.push({ resolve, reject });
  }

  /** Resolve the messages that waited for the stream to drain. */
  drained(): void {
    for (const waiting of this.#draining.splice(0)) waiting.resolve(SENT);
  }

  /** Process a PUBACK, PUBREC or PUBCOMP. */
  acknowledged({ cmd, messageId, reasonCode, properties }: AckPacket): void {
    const outgoing = this.#session.outgoing.get(messageId);
    if (cmd === 'pubrec' && reasonCode < 0x80) {
      const code = outgoing === undefined ? ReasonCode.packetIdentifierNotFound : ReasonCode.success;
      if (outgoing !== undefined) outgoing.isReleased = true;
      const waiting = this.#pending?.get(messageId);
      if (waiting !== undefined) waiting.received = { reasonCode, properties: properties ?? {} };
      this.#connection.send({ cmd: 'pubrel', messageId, reasonCode: code });
      return;
    }
    if (outgoing === undefined) return;
    this.#session.outgoing.delete(messageId);
    this.#sendQuota++;
    const waiting = this.#pending?.get(messageId);
    this.#pending?.delete(messageId);
    const received = { reasonCode, properties: properties ?? {} };
    if (reasonCode < 0x80 || cmd === 'pubcomp')
      waiting?.resolve(cmd === 'puback' ? received : (waiting.received ?? { ...received, reasonCode: 0 }));
    else {
      const what = `PUBLISH to "${outgoing.packet.topic}" was refused`;
      waiting?.reject(refusal('PUBLISH_REFUSED', what, reasonCode, received.properties));
    }
    this.#sendQueued();
  }

  /** Reject everything that waits, because the connection is closed. */
  close(): void {
    for (const { reject } of [...(this.#pending?.values() ?? []), ...this.#queued, ...this.#draining])
      reject(this.#connection.closedError());
    this.#pending = undefined;
    this.#queued = [];
    this.#draining = [];
  }

  #sendQueued(): void {
    while (this.#queued.length > 0 && this.#sendQuota > 0 && this.#connection.isConnected) {
      const messageId = this.#session.takeId();
      if (messageId === undefined) return;
      const { packet, resolve, reject } = this.#queued.shift()!;
      packet.messageId = messageId;
      this.#pending ??= new Map();
      this.#pending.set(messageId, { resolve, reject });
      this.#session.outgoing.set(messageId, { packet, isReleased: false });
      this.#sendQuota--;
      try {
        this.#connection.send(packet);
      } catch (error) {
        // The packet cannot be encoded, so nothing was sent.
        this.#pending?.delete(messageId);
        this.#session.outgoing.delete(messageId);
        this.#sendQuota++;
        reject(asError(error));
      }
    }
    this.#connection.updateFlow();
  }
}
