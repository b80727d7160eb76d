// Rates come from the counters that each connection has in any case: all sessions are walked twice, a second apart. Nothing is counted for
// this on the data path, and nothing is kept after the answer. Questions that come during the first walk, or the wait after it, share both.

import type { BaseServices } from '../base/base-services.ts';
import { InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import { recordOf } from '../records/record-table.ts';
import { CLIENT_FIELDS, type ClientRecord, type RecordedSession } from '../records/session-records.ts';
import { CLIENT_CONDITIONS, type ClientQuery, readQuery } from '../routing/directory-queries.ts';

/** Time between the two readings of a counter, at least. */
const INTERVAL_MS = 1_000;
/** Number of sessions that are examined in one turn. */
const SESSIONS_AT_ONCE = 500;
const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 1_000;
const DIRECTIONS = ['received', 'sent'] as const;
const NAMES = ['by', 'limit', ...Object.keys(CLIENT_CONDITIONS)];

/** A query for the busiest clients: the conditions of client lists, without pages. */
export interface BusiestQuery extends Omit<ClientQuery, 'cursor' | 'skip'> {
  /** The messages that decide: those received from a client, or those sent to it. Default `received`. */
  readonly by?: 'received' | 'sent' | undefined;
  /** Maximum number of clients, from 1 to 1,000. Default 10. */
  readonly limit?: number | undefined;
}

/** A client with its messages per second. */
export interface BusyClient {
  /** The client. */
  readonly client: ClientRecord;
  /** PUBLISH packets that the broker has received from the client in a second. */
  readonly receivedPerSec: number;
  /** PUBLISH packets that the broker has sent to the client in a second. */
  readonly sentPerSec: number;
}

/** A session in the order in which sessions were created. */
interface NumberedSession extends RecordedSession {
  readonly number: number;
}

/** The sessions, in the order in which they were created. */
interface OrderedSessions {
  after(number: number, most: number): readonly NumberedSession[];
}

/** The counters of a connection at a time. */
interface Reading {
  readonly number: number;
  readonly connection: object;
  readonly atMs: number;
  readonly received: number;
  readonly sent: number;
}

/** The first readings of the connected sessions, in the order of sessions. */
interface Baseline {
  readonly atMs: number;
  readonly readings: readonly Reading[];
}

/** The clients with the most messages per second at present: `broker.monitor.busiestClients`. */
export class BusiestClients {
  readonly #services: BaseServices;
  readonly #node: string;
  readonly #sessions: OrderedSessions;
  /** The baseline that questions share. */
  #baseline: Promise<Baseline> | undefined;

  /** @internal */
  constructor(services: BaseServices, node: string, sessions: OrderedSessions) {
    this.#services = services;
    this.#node = node;
    this.#sessions = sessions;
  }

  /**
   * Measure the messages per second of the connected clients over one second, and list the clients with the most, the busiest first. Clients
   * without a message in this second are left out. All sessions are examined, in slices.
   *
   * ```ts
   * const [busiest] = await broker.monitor.busiestClients.list({ limit: 1 });
   * console.log(busiest?.client.clientId, busiest?.receivedPerSec);
   * ```
   * @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID
   */
  async list(query: BusiestQuery = {}): Promise<BusyClient[]> {
    checkObject(query, 'query');
    checkNames(query, NAMES, 'list');
    const { by = 'received', limit = DEFAULT_LIMIT, ...conditions } = query;
    if (!DIRECTIONS.includes(by)) throw new InvalidInput('OPTION_INVALID', 'by', `one of ${DIRECTIONS.join(', ')}`, by);
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
      throw new InvalidInput('OPTION_INVALID', 'limit', `an integer from 1 to ${MAX_LIMIT}`, limit);
    const { isWanted } = readQuery<RecordedSession, ClientQuery>(conditions, CLIENT_CONDITIONS);
    const { atMs, readings } = await this.#sharedBaseline();
    const rank = by === 'received' ? receivedOf : sentOf;
    let found: { readonly session: NumberedSession; readonly receivedPerSec: number; readonly sentPerSec: number }[] =
      [];
    const best = () => found.sort((a, b) => rank(b) - rank(a)).slice(0, limit);
    let at = 0;
    await this.#each((session, nowMs) => {
      while (at < readings.length && readings[at].number < session.number) at++;
      const { connection } = session;
      if (connection === undefined || !isWanted(session)) return;
      // a connection that was opened meanwhile has counted from 0
      const before = readings[at]?.connection === connection ? readings[at] : { atMs, received: 0, sent: 0 };
      const seconds = (nowMs - before.atMs) / 1_000;
      const entry = {
        session,
        receivedPerSec: (connection.reader.receivedMessages - before.received) / seconds,
        sentPerSec: (connection.writer.sentMessages - before.sent) / seconds
      };
      if (rank(entry) > 0 && found.push(entry) >= 2 * limit) found = best();
    });
    return best().map(({ session, ...rates }) => ({ client: recordOf(CLIENT_FIELDS, session, this.#node), ...rates }));
  }

  #sharedBaseline(): Promise<Baseline> {
    this.#baseline ??= this.#read().finally(() => {
      this.#baseline = undefined;
    });
    return this.#baseline;
  }

  /** Read the counters, and wait for the interval. */
  async #read(): Promise<Baseline> {
    const { clock } = this.#services;
    const atMs = clock.monotonic();
    const readings: Reading[] = [];
    await this.#each(({ number, connection }, nowMs) => {
      if (connection === undefined) return;
      const { reader, writer } = connection;
      readings.push({ number, connection, atMs: nowMs, received: reader.receivedMessages, sent: writer.sentMessages });
    });
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, INTERVAL_MS));
    return { atMs, readings };
  }

  /** Visit all sessions in slices, in the order in which they were created. */
  async #each(visit: (session: NumberedSession, nowMs: number) => void): Promise<void> {
    for (let after = 0; ; ) {
      await this.#services.pause();
      const some = this.#sessions.after(after, SESSIONS_AT_ONCE);
      const nowMs = this.#services.clock.monotonic();
      for (const session of some) visit(session, nowMs);
      if (some.length < SESSIONS_AT_ONCE) return;
      after = some[some.length - 1].number;
    }
  }
}

function receivedOf({ receivedPerSec }: Omit<BusyClient, 'client'>): number {
  return receivedPerSec;
}

function sentOf({ sentPerSec }: Omit<BusyClient, 'client'>): number {
  return sentPerSec;
}
