/** Maximum number of filters that a client can have requested for one subscription. */
const MAX_NAMES = 100;

/** The requested filters, by the `Subscriptions` of a session. Few sessions have any, so a field would waste memory. */
const ALL = new WeakMap<object, RequestedFilters>();

/**
 * The topic filters that a client has requested, of subscriptions whose filter a hook has changed, because the client unsubscribes from the
 * requested filter. All filters include mount point and share prefix.
 */
export class RequestedFilters {
  /** The filters that the client has requested, by that of the subscription. */
  readonly #names = new Map<string, Set<string>>();
  /** The filter of the subscription, by a requested one. */
  readonly #granted = new Map<string, string>();

  /** @returns undefined if no filter of the session was changed */
  static of(subscriptions: object): RequestedFilters | undefined {
    return ALL.get(subscriptions);
  }

  static ensure(subscriptions: object): RequestedFilters {
    const known = ALL.get(subscriptions);
    if (known !== undefined) return known;
    const made = new RequestedFilters();
    ALL.set(subscriptions, made);
    return made;
  }

  /** The filter of the subscription that was granted for a requested filter. */
  grantedFor(requested: string): string | undefined {
    return this.#granted.get(requested);
  }

  /** The filters that the client has requested for a subscription; undefined: only the filter of the subscription. */
  namesOf(granted: string): ReadonlySet<string> | undefined {
    return this.#names.get(granted);
  }

  /** Tell whether another filter may be recorded for a subscription. */
  hasRoom(requested: string, granted: string): boolean {
    const names = this.#names.get(granted);
    return names === undefined || names.has(requested) || names.size < MAX_NAMES;
  }

  /** Record that the client was granted a subscription for a requested filter. */
  add(requested: string, granted: string): void {
    const names = this.#names.get(granted);
    if (names === undefined) this.#names.set(granted, new Set([requested]));
    else names.add(requested);
    this.#granted.set(requested, granted);
  }

  /** Remove a requested filter. @returns whether the client still requests the subscription by another one */
  release(requested: string): boolean {
    const granted = this.#granted.get(requested);
    const names = granted === undefined ? undefined : this.#names.get(granted);
    if (granted === undefined || names === undefined) return false;
    this.#granted.delete(requested);
    names.delete(requested);
    if (names.size === 0) this.#names.delete(granted);
    return names.size > 0;
  }

  /** Note that a subscription was removed. */
  removed(granted: string): void {
    for (const name of this.#names.get(granted) ?? []) this.#granted.delete(name);
    this.#names.delete(granted);
  }
}
