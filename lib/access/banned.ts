// Client ids, user names and single addresses are looked up; only networks are compared one by one, and are collected
// when the first client needs them. Bans that have ended stay in the table until a sweep deletes them, so every
// reader compares `until`. A failed commit can bring back a ban that was lifted, which the table counts in `undone`:
// the networks are then collected again. A ban is checked at CONNECT; disconnecting clients that are connected is
// done in `lib/broker`.

import type { BaseServices } from '../base/base-services.ts';
import { InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import type { Ban, BannedKind } from '../records/ban.ts';
import { CLIENT_NAME, isClientName } from './credential-checks.ts';
import { contains, isNetwork, type Network, networkOf } from './network.ts';
import { type ListPart, type NumberedTable, RecordOrder } from './record-order.ts';
import type { Subject } from './rule.ts';

/** The input of `broker.access.banned.add`: `kind` and `who`, and any of the other properties. */
export interface BanInput extends Pick<Ban, 'kind' | 'who'> {
  /** The author of the ban. Default: `user`. */
  readonly by?: string | undefined;
  /** The reason, for people. Default: none. */
  readonly reason?: string | undefined;
  /** Details of the reason. */
  readonly description?: string | undefined;
  /** In milliseconds since 1970; default: now. */
  readonly at?: number | undefined;
  /** In milliseconds since 1970; `Infinity`: never. Default: five minutes from now. */
  readonly until?: number | undefined;
}

/** The persisted form of a ban. */
interface StoredBan {
  readonly by: string;
  readonly reason?: string;
  readonly description?: string;
  readonly at: number;
  /** Absent: the ban does not end. */
  readonly until?: number;
  /** See `RecordOrder`. */
  readonly number?: number;
}

/** The table that keeps the bans; see `Broker.table`. The keys are kind and name with a slash between. */
interface BanTable extends NumberedTable<StoredBan> {
  set(key: string, value: StoredBan): Promise<void>;
  delete(key: string): Promise<boolean>;
}

/** The kinds, in the order in which they are checked. */
const BANNED_KINDS: readonly BannedKind[] = ['clientId', 'username', 'address'];
const BAN_NAMES = ['kind', 'who', 'by', 'reason', 'description', 'at', 'until'] as const;
const DEFAULT_MS = 300_000;
/** Maximum number of bans that are examined in one slice for those that have ended. */
const SWEPT_AT_ONCE = 500;

/**
 * The clients that may not connect, by client id, user name or address. A ban is checked when a client connects. A ban of the same kind and
 * name replaces the previous one.
 */
export class BannedClients implements Iterable<Ban> {
  readonly #services: BaseServices;
  readonly #table: BanTable;
  readonly #made: (ban: Ban) => number;
  readonly #enforce: (ban: Ban) => number;
  readonly #order: RecordOrder<StoredBan>;
  /** The bans of networks, by key; undefined: they must be collected again. */
  #networks: Map<string, Network> | undefined = undefined;
  /** The value of `undone` of the table when the networks were collected: a failed commit can bring back a ban that was lifted. */
  #collectedAt = 0;

  /** @internal @param made called with each ban that was made, and returns the number of clients that it has disconnected @param enforce disconnects the clients of a ban, and returns their number */
  constructor(
    services: BaseServices,
    table: BanTable,
    made: (ban: Ban) => number,
    enforce: (ban: Ban) => number = () => 0
  ) {
    this.#services = services;
    this.#table = table;
    this.#made = made;
    this.#enforce = enforce;
    this.#order = new RecordOrder(table);
  }

  /** Number of bans, including those that have ended since the last `sweep`. */
  get size(): number {
    return this.#table.size;
  }

  /** The current ban of a kind and name; undefined if there is none. */
  get(kind: BannedKind, who: string): Ban | undefined {
    const stored = this.#table.get(keyOf(kind, who));
    const ban = stored && banOf(kind, who, stored);
    return ban !== undefined && ban.until > this.#services.clock.now() ? ban : undefined;
  }

  /** The bans, in the order in which they were added, including those that have ended and are still listed. */
  *[Symbol.iterator](): Iterator<Ban> {
    for (const [key, stored] of this.#order.oldestFirst()) yield banAt(key, stored);
  }

  /**
   * A part of the list of bans, in the order in which they were added, including those that have ended and are still listed. A long list is
   * walked in slices.
   */
  list(part: ListPart): Promise<Ban[]> {
    return this.#order.part(part, () => this.#services.pause(), banAt);
  }

  /** The current bans, as `add` takes them: for `exportConfiguration`. @internal */
  *exported(): Iterable<BanInput> {
    for (const [key, stored] of this.#order.lasting()) {
      const { until, ...ban } = banAt(key, stored);
      if (until > this.#services.clock.now()) yield until === Infinity ? ban : { ...ban, until };
    }
  }

  /**
   * Ban a client.
   * @returns the ban, with the number of connections that the option `banDisconnects` has ended for it
   * @throws InvalidInput BAN_INVALID, OPTION_UNKNOWN; as `Table.set`
   */
  async create(input: BanInput): Promise<
    Ban & {
      /** Number of connections that were ended. */
      readonly disconnected: number;
    }
  > {
    const now = this.#services.clock.now();
    const { kind, who } = input;
    checkBan(input);
    const { by = 'user', reason, description, at = now, until = now + DEFAULT_MS } = input;
    const key = keyOf(kind, who);
    const number = this.#table.get(key)?.number ?? this.#order.next();
    const details = {
      ...(reason === undefined ? {} : { reason }),
      ...(description === undefined ? {} : { description }),
      ...(until === Infinity ? {} : { until })
    };
    const stored = { by, at, ...details, number };
    const set = this.#table.set(key, stored);
    this.#changed(kind, who);
    await set;
    const ban = banOf(kind, who, stored);
    return { ...ban, disconnected: this.#made(ban) };
  }

  /** @deprecated Use `create`. */
  add(input: BanInput): Promise<Ban> {
    return this.create(input);
  }

  /**
   * Disconnect the connected clients that a current ban is about, as the option `banDisconnects` does for each new ban. Their sessions are kept for as
   * long as they last without a connection. Clients of zones with `enableBan: false` stay connected.
   * @returns the number of connections that were ended; 0 without such a ban
   */
  disconnect(kind: BannedKind, who: string): number {
    const ban = this.get(kind, who);
    return ban === undefined ? 0 : this.#enforce(ban);
  }

  /** Lift a ban. @returns whether there was one @throws as `Table.delete` */
  delete(kind: BannedKind, who: string): Promise<boolean> {
    const deletion = this.#table.delete(keyOf(kind, who));
    this.#changed(kind, who);
    return deletion;
  }

  /** Update the networks after a ban was made or lifted, unless the table has refused it. Collecting all of them takes a long turn. */
  #changed(kind: BannedKind, who: string): void {
    if (kind !== 'address') return;
    if (this.#table.get(keyOf(kind, who)) === undefined) this.#networks?.delete(who);
    else this.#networks?.set(who, networkOf(who));
  }

  /**
   * The current ban that refuses a client: of its client id, its user name, its address, or a network that contains the address. Undefined: there is none.
   * @param client `{ clientId, username, transportInfo: { remoteAddress } }`; a client of `broker.directory` has them
   */
  find({
    clientId,
    username,
    transportInfo
  }: {
    /** The client id. */
    readonly clientId: string;
    /** The user name; undefined if there is none. */
    readonly username: string | undefined;
    /** The facts of its connection. */
    readonly transportInfo: {
      /** The IP address; undefined: it is not known. */
      readonly remoteAddress?: string | undefined;
    };
  }): Ban | undefined {
    if (this.#table.size === 0) return undefined;
    const byName =
      this.get('clientId', clientId) ?? (username === undefined ? undefined : this.get('username', username));
    const { remoteAddress } = transportInfo;
    if (byName !== undefined || remoteAddress === undefined) return byName;
    const exact = this.get('address', remoteAddress);
    if (exact !== undefined) return exact;
    for (const [who, network] of this.#collected()) {
      const ban = contains(network, remoteAddress) ? this.get('address', who) : undefined;
      if (ban !== undefined) return ban;
    }
    return undefined;
  }

  /**
   * Delete the bans that have ended, in slices.
   * @param isOver whether to end early
   */
  async sweep(isOver: () => boolean): Promise<void> {
    let left = SWEPT_AT_ONCE;
    for (const [key, { until = Infinity }] of this.#table) {
      if (left-- === 0) {
        await this.#services.pause();
        if (isOver()) return;
        left = SWEPT_AT_ONCE - 1;
      }
      if (until > this.#services.clock.now()) continue;
      const [kind, who] = namedBy(key);
      this.delete(kind, who).catch((error: unknown) => this.#services.failed(error, 'deleting a ban that has ended'));
    }
  }

  #collected(): Map<string, Network> {
    const { undone } = this.#table;
    if (this.#networks !== undefined && this.#collectedAt === undone) return this.#networks;
    const networks = new Map<string, Network>();
    const prefix = keyOf('address', '');
    for (const [key] of this.#order.oldestFirst()) {
      if (!key.startsWith(prefix)) continue;
      const who = key.slice(prefix.length);
      networks.set(who, networkOf(who));
    }
    this.#networks = networks;
    this.#collectedAt = undone;
    return networks;
  }

  /** Called when the table has been read from the store. */
  restored(): void {
    this.#networks = undefined;
    this.#order.oldestFirst();
  }
}

/** Returns a function that tells whether a ban applies to a client. */
export function concerns({ kind, who }: Ban): (client: Subject) => boolean {
  if (kind === 'clientId') return ({ clientId }) => clientId === who;
  if (kind === 'username') return ({ username }) => username === who;
  const network = networkOf(who);
  return ({ transportInfo: { remoteAddress } }) =>
    remoteAddress !== undefined && (remoteAddress === who || contains(network, remoteAddress));
}

function keyOf(kind: BannedKind, who: string): string {
  return `${kind}/${who}`;
}

function namedBy(key: string): [kind: BannedKind, who: string] {
  const at = key.indexOf('/');
  return [key.slice(0, at) as BannedKind, key.slice(at + 1)];
}

function banAt(key: string, stored: StoredBan): Ban {
  return banOf(...namedBy(key), stored);
}

function banOf(kind: BannedKind, who: string, stored: StoredBan): Ban {
  const { by, reason, description, at, until = Infinity } = stored;
  return { kind, who, by, reason, ...(description === undefined ? {} : { description }), at, until };
}

/** Check a ban to be made. @throws InvalidInput BAN_INVALID, OPTION_UNKNOWN */
export function checkBan(input: BanInput): void {
  checkObject(input, 'ban');
  checkNames(input, BAN_NAMES, 'a ban');
  const { kind, who, by, reason, description, at, until } = input;
  const fail = (field: string, expected: string, got: unknown): never => {
    throw new InvalidInput('BAN_INVALID', field, expected, got);
  };
  if (!BANNED_KINDS.includes(kind)) fail('kind', `one of ${BANNED_KINDS.join(', ')}`, kind);
  if (!isClientName(who)) fail('who', CLIENT_NAME, who);
  if (kind === 'address' && !isNetwork(who)) fail('who', 'an IP address or a network such as 10.0.0.0/8', who);
  for (const [field, text] of [
    ['by', by],
    ['reason', reason],
    ['description', description]
  ] as const)
    if (text !== undefined && typeof text !== 'string') fail(field, 'a string', text);
  for (const [field, time] of [
    ['at', at],
    ['until', until]
  ] as const)
    if (time !== undefined && !isTime(time) && !(field === 'until' && time === Infinity))
      fail(field, 'milliseconds since 1970', time);
}

/** True if a number is a time that a `Date` can represent. */
function isTime(value: unknown): boolean {
  return typeof value === 'number' && !Number.isNaN(new Date(value).getTime());
}
