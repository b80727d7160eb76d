import type { DropReason } from '../../events/reasons.ts';
import type { Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import type { DeliveryPorts } from '../ports.ts';
import type { SessionClient } from '../session-client.ts';
import type { Inflight } from './inflight.ts';

/** The delivery of the session whose client receives a message. */
export interface HookedReceiver {
  /** Number of messages that had to wait. */
  readonly enqueued: number;
  /** The messages that cannot be sent yet; undefined if there are none. */
  readonly waiting: { pumpLater(): void } | undefined;
}

/**
 * Ask the deliver hooks about a message that is to be sent now. A hook may send other messages to the same client.
 * @param counted where the message is counted as in flight while the hooks run, because its packet id is not assigned yet; undefined if it
 * has one or needs none
 * @returns the message for this client; or the reason why the client does not get it
 */
export function askDeliverHooks(
  ports: DeliveryPorts,
  client: SessionClient,
  receiver: HookedReceiver,
  message: Message,
  counted?: Inflight
): Message | DropReason {
  const { publishing, rights } = ports;
  const { enqueued } = receiver;
  const { bytes } = message;
  let changed: Message | undefined;
  counted?.reserve(bytes);
  try {
    changed = publishing.hooks.deliverable(message, client);
  } finally {
    counted?.cancelReservation(bytes);
  }
  // messages that a hook has queued must be sent even if this message is dropped, so that no acknowledgement follows
  if (receiver.enqueued !== enqueued) receiver.waiting?.pumpLater();
  if (changed === undefined) return 'hook';
  if (changed === message || !rights.isActive || rights.mayReceive(client, changed.topic)) return changed;
  return 'not_authorized';
}

/** The QoS of a delivery after a deliver hook has changed the message. With `upgradeQos`, it may be above that of the message. */
export function changedQosOf(changed: Message, message: Message, qos: QoS): QoS {
  return changed.qos < message.qos && changed.qos < qos ? changed.qos : qos;
}
