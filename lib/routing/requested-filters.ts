/** Most filters that a client can have asked for to get one subscription. */
const MAX_NAMES = 100;

/** The requested filters, by the `Subscriptions` of a session. Few sessions have any, so a field would waste memory. */
const ALL = new WeakMap<object, RequestedFilters>();

/**
 * The topic filters that a client has asked for, of subscriptions whose filter a hook has changed: the client unsubscribes what it has
 * subscribed. All filters include mount point and share prefix.
 */
export class RequestedFilters {
  /** The filters that the client has asked for, by that of the subscription. */
  readonly #names = new Map<string, Set<string>>();
  /** The filter of the subscription, by one that the client has asked for. */
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

  /** The filter of the subscription that the client got for a filter. */
  grantedFor(requested: string): string | undefined {
    return this.#granted.get(requested);
  }

  /** What the client has asked for to get a subscription; undefined: its filter itself. */
  namesOf(granted: string): ReadonlySet<string> | undefined {
    return this.#names.get(granted);
  }

  /** Whether a subscription may be asked for by another filter. */
  hasRoom(requested: string, granted: string): boolean {
    const names = this.#names.get(granted);
    return names === undefined || names.has(requested) || names.size < MAX_NAMES;
  }

  /** The client has got a subscription for a filter. */
  add(requested: string, granted: string): void {
    const names = this.#names.get(granted);
    if (names === undefined) this.#names.set(granted, new Set([requested]));
    else names.add(requested);
    this.#granted.set(requested, granted);
  }

  /** The client asks no longer for a filter. @returns whether it still asks for the subscription by another one */
  release(requested: string): boolean {
    const granted = this.#granted.get(requested);
    const names = granted === undefined ? undefined : this.#names.get(granted);
    if (granted === undefined || names === undefined) return false;
    this.#granted.delete(requested);
    names.delete(requested);
    if (names.size === 0) this.#names.delete(granted);
    return names.size > 0;
  }

  /** A subscription was removed. */
  removed(granted: string): void {
    for (const name of this.#names.get(granted) ?? []) this.#granted.delete(name);
    this.#names.delete(granted);
  }
}
