import type { Publisher } from '../packets/message.ts';

/** The properties of the client of a subscriber on which its rights depend. */
export interface Receiver {
  readonly clientId: string;
  readonly mountpoint: string;
  readonly isSuperuser: boolean;
}

/** Decides which messages a subscriber may receive through its subscriptions; access control implements it. */
export interface ReceivingRights {
  /** False: there are no rules, and every subscriber may receive the messages of its subscriptions. */
  readonly isActive: boolean;
  /** True if any subscription is revoked. */
  readonly hasRevoked: boolean;
  /** Tell whether delivery through this subscription is denied. */
  isRevoked(subscription: object): boolean;
  /** Note that a subscription was removed. */
  forget(subscription: object): void;
  /** Tell whether a rule may deny the messages of a topic to subscribers without a mount point. */
  mayDeny(topic: string): boolean;
  /** Decide for one client. @param topic with the mount point of the client */
  mayReceive(client: Receiver, topic: string): boolean;
  /** True if `mayStillPublish` is to be called before a retained message is delivered (option `retainedRights`). */
  readonly rechecksRetained: boolean;
  /**
   * Decide whether the rules that the broker holds still allow the publisher of a retained message to publish it.
   * @param publisher its names, as they are stored with the message
   * @param topic with the mount point of the receiver
   */
  mayStillPublish(publisher: Publisher, topic: string, receiver: Pick<Receiver, 'mountpoint'>): boolean;
}

/** The app, its streams and its rules, as receivers. */
export const APP_RECEIVER: Pick<Receiver, 'mountpoint'> = { mountpoint: '' };

/** Tell whether a retained message is withheld, because its publisher may no longer publish it (option `retainedRights`). */
export function isWithheld(
  rights: ReceivingRights,
  { origin, topic }: { readonly origin: Publisher | undefined; readonly topic: string },
  receiver: Pick<Receiver, 'mountpoint'>
): boolean {
  if (!rights.isActive || !rights.rechecksRetained || origin === undefined) return false;
  return !rights.mayStillPublish(origin, topic, receiver);
}

/** The rights before access control is in place: every subscriber may receive everything. */
export const ALL_RIGHTS: ReceivingRights = {
  isActive: false,
  hasRevoked: false,
  isRevoked: () => false,
  forget: () => {},
  mayDeny: () => false,
  mayReceive: () => true,
  rechecksRetained: false,
  mayStillPublish: () => true
};
