import { BrokerError, type Clock } from '../../../lib/index.ts';
import { ConnectionLost, LdapConnection, type Ldapts, type Purpose, Refused } from './connection.ts';
import { dial } from './dial.ts';
import type { LdapSettings } from './options.ts';

/** Maximum idle time of a reused connection: a firewall may have dropped an older one. */
const MAX_IDLE_MS = 60_000;

/**
 * The connections to an LDAP server. The caller limits the number of concurrent requests, and thereby the number of
 * connections.
 */
export class ConnectionPool {
  readonly #ldapts: Ldapts;
  readonly #settings: LdapSettings;
  readonly #clock: Clock;
  readonly #all = new Set<LdapConnection>();
  /** Number of connections that are open or being opened. */
  #count = 0;
  #isClosed = false;
  #idle: LdapConnection[] = [];

  constructor(ldapts: Ldapts, settings: LdapSettings, clock: Clock) {
    this.#ldapts = ldapts;
    this.#settings = settings;
    this.#clock = clock;
  }

  /**
   * Run a request. If the server has closed a connection while it was idle, the request is sent again on another one.
   * @throws errors of the request; BrokerError LDAP_FAILED
   */
  async use<T>(purpose: Purpose, signal: AbortSignal, request: (connection: LdapConnection) => Promise<T>): Promise<T> {
    for (;;) {
      const connection = this.#take(purpose) ?? (await this.#open(signal));
      const { wasUsed } = connection;
      try {
        connection.begin();
        if (purpose === 'search') await this.#identify(connection, signal);
        else connection.setPurpose('bind');
        return await request(connection);
      } catch (error) {
        if (!(error instanceof ConnectionLost) || !wasUsed) throw error;
      } finally {
        this.#release(connection);
      }
    }
  }

  /** Close all connections. Requests in progress fail. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#all) connection.close();
    this.#idle = [];
  }

  #take(purpose: Purpose): LdapConnection | undefined {
    this.#discard();
    const fitting = this.#idle.findLastIndex((connection) => connection.purpose === purpose);
    if (fitting >= 0) return this.#idle.splice(fitting, 1)[0];
    return this.#count < this.#settings.maxConcurrent ? undefined : this.#idle.shift();
  }

  /** Remove connections that the server has closed, or may have closed. */
  #discard(): void {
    const nowMs = this.#clock.monotonic();
    for (const connection of [...this.#idle])
      if (!connection.isOpen || nowMs - connection.idleSinceMs > MAX_IDLE_MS) this.#remove(connection);
  }

  #remove(connection: LdapConnection): void {
    connection.close();
    if (this.#all.delete(connection)) this.#count--;
    this.#idle = this.#idle.filter((other) => other !== connection);
  }

  #release(connection: LdapConnection): void {
    if (!connection.isOpen) {
      this.#remove(connection);
      return;
    }
    connection.release(this.#clock.monotonic());
    this.#idle.push(connection);
  }

  async #open(signal: AbortSignal): Promise<LdapConnection> {
    this.#count++;
    try {
      const connection = new LdapConnection(this.#ldapts, await dial(this.#settings, signal));
      if (this.#isClosed) connection.close();
      this.#all.add(connection);
      return connection;
    } catch (error) {
      this.#count--;
      throw error;
    }
  }

  /**
   * Bind with the name for searches.
   * @throws BrokerError LDAP_FAILED; ConnectionLost if another connection is needed
   */
  async #identify(connection: LdapConnection, signal: AbortSignal): Promise<void> {
    const { bindDn, bindPassword = '' } = this.#settings;
    if (connection.purpose === 'search') return;
    const isFresh = !connection.wasUsed;
    try {
      // without a name, a new connection needs no bind; a bind without name and password ends the authentication of a
      // client
      if (bindDn !== undefined || !isFresh) await connection.bind(bindDn ?? '', bindPassword, signal);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (bindDn !== undefined)
        throw new BrokerError('LDAP_FAILED', `the server refuses bindDn and bindPassword: ${error.message}`);
      connection.close();
      throw new ConnectionLost('LDAP_FAILED', 'the server refuses a bind without name and password');
    }
    connection.setPurpose('search');
  }
}
