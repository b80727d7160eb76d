import { shownUsername } from './shown-username.ts';

/** The kinds of bans. */
export type BannedKind = 'clientId' | 'username' | 'address';

/** A ban, as lists and look-ups show it. */
export interface Ban {
  /** The property of clients that `who` is compared with. */
  readonly kind: BannedKind;
  /** The client id, the user name, or the IP address or network (`10.0.0.0/8`). */
  readonly who: string;
  /** The author of the ban. Default `user`. */
  readonly by: string;
  /** The reason, for people; undefined if none was given. */
  readonly reason: string | undefined;
  /** More about the reason; absent if none was given. */
  readonly description?: string;
  /** Time of creation in milliseconds since 1970. */
  readonly at: number;
  /** Time at which it ends, in milliseconds since 1970; `Infinity`: never. */
  readonly until: number;
}

const NAMES: Readonly<Record<BannedKind, string>> = {
  clientId: 'client id',
  username: 'user name',
  address: 'address'
};

/** Describe a ban, for operators: `the address "10.0.0.0/8" is banned by "admin" until 2026-01-01T00:00:00.000Z: abuse`. */
export function banText({ kind, who, by, reason, until }: Ban): string {
  const end = until === Infinity ? '' : ` until ${new Date(until).toISOString()}`;
  const why = reason === undefined ? '' : `: ${reason}`;
  const shown = kind === 'username' ? shownUsername(who) : who;
  return `the ${NAMES[kind]} ${JSON.stringify(shown)} is banned by ${JSON.stringify(by)}${end}${why}`;
}
