import type { BaseServices } from '../base/base-services.ts';
import type { Page } from '../routing/directory.ts';
import { invalidCursor, type PageQuery, readQuery } from '../routing/directory-queries.ts';

/** Number of sessions that are examined in one turn. */
const SESSIONS_AT_ONCE = 500;

/** A client that does not read as fast as the broker sends to it. */
export interface BlockedClient {
  /** The client id. */
  readonly clientId: string;
  /** Time since which its connection has sent nothing, in milliseconds since 1970. */
  readonly stalledSince: number;
  /** Bytes that its connection has not sent. */
  readonly unsentBytes: number;
  /** Messages that wait behind these bytes in memory, and their size. */
  readonly queuedMessages: number;
  /** The size of these messages, in bytes. */
  readonly queuedBytes: number;
}

/** The part of a session that `BlockedClients` reads. */
interface MaybeBlocked {
  readonly number: number;
  readonly client: { readonly clientId: string };
  readonly connection:
    | {
        readonly writer: { readonly isBlocked: boolean; readonly stalledSinceMs: number; readonly unsentBytes: number };
      }
    | undefined;
  readonly outlet: { readonly queue: { readonly length: number; readonly bytes: number } | undefined };
}

/** The sessions, in the order in which they were created. */
interface OrderedSessions {
  readonly count: number;
  after(number: number, most: number): readonly MaybeBlocked[];
}

/** The clients that currently do not read as fast as the broker sends to them: `broker.monitor.blockedClients`. */
export class BlockedClients {
  readonly #services: BaseServices;
  readonly #node: string;
  readonly #sessions: OrderedSessions;

  /** @internal */
  constructor(services: BaseServices, node: string, sessions: OrderedSessions) {
    this.#services = services;
    this.#node = node;
    this.#sessions = sessions;
  }

  /**
   * List the clients whose connection has more than `outputHighWaterMark` to send, in the order in which their sessions were created. All
   * sessions are examined, in slices. `count` is the number of sessions.
   * @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, CURSOR_INVALID
   */
  async list(query: PageQuery = {}): Promise<Page<BlockedClient>> {
    const { cursor, limit, skip } = readQuery<MaybeBlocked, PageQuery>(query, {});
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw invalidCursor(cursor);
    const [node, sessions] = [this.#node, this.#sessions];
    const entries: BlockedClient[] = [];
    let left = skip;
    let last = 0;
    for (let after = Number(cursor ?? 0); ; ) {
      await this.#services.pause();
      const some = sessions.after(after, SESSIONS_AT_ONCE);
      for (const session of some) {
        if (session.connection?.writer.isBlocked !== true || left-- > 0) continue;
        if (entries.length === limit) return { node, entries, cursor: String(last), count: sessions.count };
        last = session.number;
        entries.push(this.#recordOf(session));
      }
      if (some.length < SESSIONS_AT_ONCE) return { node, entries, cursor: undefined, count: sessions.count };
      after = some[some.length - 1].number;
    }
  }

  #recordOf({ client, connection, outlet }: MaybeBlocked): BlockedClient {
    const { clock } = this.#services;
    const { stalledSinceMs = Infinity, unsentBytes = 0 } = connection?.writer ?? {};
    const stalledMs = Math.max(0, clock.monotonic() - stalledSinceMs);
    const { queue } = outlet;
    return {
      clientId: client.clientId,
      stalledSince: Math.round(clock.now() - stalledMs),
      unsentBytes,
      queuedMessages: queue?.length ?? 0,
      queuedBytes: queue?.bytes ?? 0
    };
  }
}
