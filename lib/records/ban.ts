/** The kinds of bans. */
export type BannedKind = 'clientId' | 'username' | 'address';

/** A ban, as lists and look-ups show it. */
export interface Ban {
  readonly kind: BannedKind;
  /** The client id, the user name, or the IP address or network (`10.0.0.0/8`). */
  readonly who: string;
  /** The author of the ban. Default `user`. */
  readonly by: string;
  readonly reason: string | undefined;
  /** More about the reason; absent if none was given. */
  readonly description?: string;
  /** Time of creation in milliseconds since 1970. */
  readonly at: number;
  /** Time at which it ends, in milliseconds since 1970; `Infinity`: never. */
  readonly until: number;
}
