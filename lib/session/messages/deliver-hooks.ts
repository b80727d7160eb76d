import type { DropReason } from '../../events/reasons.ts';
import type { Message } from '../../packets/message.ts';
import type { QoS } from '../../packets/types.ts';
import type { Inflight } from './inflight.ts';
import type { Outlet } from './outlet.ts';

/**
 * Ask the deliver hooks about a message that is to be sent now. A hook may send other messages to the same client.
 * @param counted where the message is counted as in flight while the hooks run, because its packet id is not assigned yet; undefined if it
 * has one or needs none
 * @returns the message for this client; or the reason why the client does not get it
 */
export function askDeliverHooks(outlet: Outlet, message: Message, counted?: Inflight): Message | DropReason {
  const { client, enqueued } = outlet;
  const { publishing, rights } = outlet.ports;
  const { bytes } = message;
  let changed: Message | undefined;
  counted?.reserve(bytes);
  try {
    changed = publishing.hooks.deliverable(message, client);
  } finally {
    counted?.cancelReservation(bytes);
  }
  // messages that a hook has queued must be sent even if this message is dropped, so that no acknowledgement follows
  if (outlet.enqueued !== enqueued) outlet.pumpLater();
  if (changed === undefined) return 'hook';
  if (changed === message || !rights.isActive || rights.mayReceive(client, changed.topic)) return changed;
  return 'not_authorized';
}

/** The QoS of a delivery after a deliver hook has changed the message. With `upgradeQos`, it may be above that of the message. */
export function changedQosOf(changed: Message, message: Message, qos: QoS): QoS {
  return changed.qos < message.qos && changed.qos < qos ? changed.qos : qos;
}
