import type { AccessControl } from '../../access/access-control.ts';
import type { Decider } from '../../events/deciders.ts';
import { allowsUnmatched } from '../../events/hooks.ts';
import type { Routing } from '../../routing/routing.ts';
import type { Subscription } from '../../routing/subscription.ts';
import type { Session } from '../../session/session.ts';
import { isOfClients } from '../../topics/client-topics.ts';
import { innerFilter, unmountedFilter } from '../../topics/topic.ts';
import type { Services } from '../services.ts';
import type { SessionIndex } from '../sessions/session-index.ts';
import { noteRestored, noteWithdrawn } from './right-records.ts';
import { hasQueue } from './source-review.ts';

/** Maximum number of subscriptions that are authorized in one turn. */
const AT_ONCE = 1_000;

/** The parts of the broker that `RightsReview` uses. */
interface ReviewHost {
  readonly access: AccessControl;
  readonly sessions: SessionIndex;
  readonly routing: Routing;
  /** Remove a subscription. */
  readonly subscribing: { withdraw(session: Session, filter: string, decider: Decider): boolean };
  readonly sourceReview: { askNow(session: Session, subscription: Subscription): boolean };
}

/**
 * Authorizes subscriptions again when access rules have changed: those that the rules would refuse now are revoked, and those that they
 * would accept are restored. This happens in slices, so that other work is not delayed.
 *
 * Hooks are not called again: subscriptions that only they have granted stay granted. If there are sources that must be asked,
 * `SourceReview` decides about subscriptions that no rule decides, and about those that it has refused.
 */
export class RightsReview {
  readonly #services: Services;
  readonly #host: ReviewHost;
  /** The sessions that are still to be checked. */
  #left: Iterator<Session> | undefined = undefined;
  #isPending = false;

  constructor(services: Services, host: ReviewHost) {
    this.#services = services;
    this.#host = host;
  }

  /** Check all sessions, from the beginning, because the rules have changed. */
  begin(): void {
    this.#left = undefined;
    if (this.#isPending) return;
    this.#isPending = true;
    this.#services.turn.later(() => this.#continue());
  }

  /**
   * Authorize the subscriptions of one session, whose client has other rights than before.
   * @param asks ask sources about subscriptions that no rule decides; false: they have been asked
   */
  judge(session: Session, asks: boolean): void {
    const { deliveryRights } = this.#host.access;
    const wasActive = deliveryRights.isActive;
    if (!wasActive && !asks) return;
    for (const subscription of session.subscriptions.values()) this.#judge(session, subscription, asks);
    if (wasActive || deliveryRights.isActive) this.#host.routing.rightsChanged();
  }

  #continue(): void {
    this.#left ??= this.#host.sessions.values()[Symbol.iterator]();
    let count = 0;
    for (let next = this.#left.next(); !next.done; next = this.#left.next()) {
      for (const subscription of next.value.subscriptions.values()) {
        this.#judge(next.value, subscription, true);
        count++;
      }
      if (count < AT_ONCE) continue;
      this.#services.turn.later(() => this.#continue());
      return;
    }
    this.#left = undefined;
    this.#isPending = false;
    this.#host.routing.rightsChanged();
  }

  #judge(session: Session, subscription: Subscription, asks: boolean): void {
    const { access, subscribing, sourceReview } = this.#host;
    const { client } = session;
    const filter = innerFilter(unmountedFilter(subscription.filter, client.mountpoint));
    if (!client.isSuperuser && access.deliveryRights.isRefused(subscription)) {
      access.deliveryRights.revoke(subscription); // rules may come after the source that has refused it: only `SourceReview` restores or removes it
      if (asks) sourceReview.askNow(session, subscription);
      return;
    }
    const ruled = client.isSuperuser || isOfClients(filter) || access.rules.decideFilter(client, filter);
    if (ruled === undefined && asks && sourceReview.askNow(session, subscription)) return;
    const isRevoked = access.deliveryRights.isRevoked(subscription);
    if (ruled ?? this.#staysGranted(session)) {
      if (!isRevoked) return;
      access.deliveryRights.restore(subscription);
      noteRestored(this.#services, subscription);
      return;
    }
    const decider = access.deciders.ofSubscription(client, filter);
    if (this.#services.settings.aclRemoveSubscriptions && !hasQueue(session))
      subscribing.withdraw(session, subscription.filter, decider);
    else if (!isRevoked) {
      access.deliveryRights.revoke(subscription);
      noteWithdrawn(this.#services, subscription, decider);
    }
  }

  /** Tell whether a subscription about which no rule decides stays. */
  #staysGranted({ client }: Session): boolean {
    const { hooks } = this.#services;
    const others = hooks.authorizeSubscribe.length - this.#host.access.ruleHooks;
    return others > 0 || allowsUnmatched(client, hooks, 'authorizeSubscribe');
  }
}
