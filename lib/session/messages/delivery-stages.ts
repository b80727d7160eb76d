import type { DropReason } from '../../events/reasons.ts';
import { type Message, originalOf } from '../../packets/message.ts';
import type { DeliveryStage } from '../../routing/followers.ts';
import type { Outlet } from './outlet.ts';

/** Report a stage of a delivery to its follower. To be called while the outlet has followers. */
export function reached(outlet: Outlet, message: Message, stage: DeliveryStage, reason?: DropReason): void {
  const { followers, ports } = outlet;
  const original = originalOf(message); // a deliver hook may have changed it
  const follower = followers?.get(original);
  if (follower === undefined) return;
  if (stage !== 'queued' && stage !== 'sent') outlet.follow(original, undefined);
  try {
    follower.reached(stage, reason);
  } catch (error) {
    ports.announcer.failed(error, 'following a message', undefined);
  }
}
