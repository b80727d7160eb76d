import { RequestedFilters } from '../../routing/requested-filters.ts';
import type { Session } from '../../session/session.ts';
import { unmountedFilter } from '../../topics/topic.ts';

/**
 * Records the filters that clients have requested for their subscriptions, when hooks have changed the filters. All filters include the
 * mount point.
 */
export class FilterRequests {
  /** Removes a subscription. */
  readonly #remove: (session: Session, filter: string) => void;

  constructor(remove: (session: Session, filter: string) => void) {
    this.#remove = remove;
  }

  /**
   * Record that a client gets a subscription for a filter. The subscription that it has got for the filter before is replaced
   * [MQTT-3.8.4-3].
   * @param granted the filter of the subscription, which is added or changed next
   * @returns false if the client requests the subscription by too many filters
   */
  note(session: Session, requested: string, granted: string): boolean {
    const { subscriptions } = session;
    const known = RequestedFilters.of(subscriptions);
    if (requested === granted && known === undefined) return true;
    const requests = known ?? RequestedFilters.ensure(subscriptions);
    if (!requests.hasRoom(requested, granted)) return false;
    const before = grantedBefore(session, requested);
    if (before !== undefined && before !== granted) this.release(session, requested, before);
    const isNamed = requests.namesOf(granted) !== undefined;
    if (requested === granted && !isNamed) return true;
    if (!isNamed && subscriptions.get(granted) !== undefined) requests.add(granted, granted); // the client has requested that as well
    requests.add(requested, granted);
    return true;
  }

  /**
   * Record that a client no longer requests a subscription by this filter: remove the subscription, unless the client also requested it by
   * another filter.
   */
  release(session: Session, requested: string, granted: string): void {
    const requests = RequestedFilters.of(session.subscriptions);
    if (requests?.release(requested)) {
      session.log?.subscribed(granted);
      return;
    }
    if (requested !== granted) requests?.add(requested, granted); // until it is removed, so that the event shows both
    this.#remove(session, granted);
  }
}

/** The filter of the subscription that a client has got for a filter. */
export function grantedBefore({ subscriptions }: Session, requested: string): string | undefined {
  const requests = RequestedFilters.of(subscriptions);
  const granted = requests?.grantedFor(requested);
  if (granted !== undefined || requests?.namesOf(requested) !== undefined) return granted;
  return subscriptions.get(requested) === undefined ? undefined : requested;
}

/** The filters that a client has requested for a subscription, if a hook has changed the filter; without the mount point. */
export function requestedFilters({ subscriptions, client }: Session, filter: string): readonly string[] | undefined {
  const names = RequestedFilters.of(subscriptions)?.namesOf(filter);
  return names && [...names].map((name) => unmountedFilter(name, client.mountpoint));
}
