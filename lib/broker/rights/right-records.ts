// The records of subscriptions through which nothing is delivered, because their clients have lost the right to them.

import type { Decider } from '../../events/deciders.ts';
import type { Subscription } from '../../routing/subscription.ts';
import type { Services } from '../services.ts';

/** Record that nothing is delivered through a subscription. @param decider the rule or source that forbids it */
export function noteWithdrawn({ reasons }: Services, subscription: Subscription, decider: Decider | undefined): void {
  const { filter, subscriber } = subscription;
  reasons.add('right_withdrawn', { clientId: subscriber.receiver?.clientId, topic: filter, detail: decider?.text });
}

/** Record that messages are delivered through a subscription again. */
export function noteRestored({ reasons }: Services, { filter, subscriber }: Subscription): void {
  reasons.add('right_restored', { clientId: subscriber.receiver?.clientId, topic: filter });
}
