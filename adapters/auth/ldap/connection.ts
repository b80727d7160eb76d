import type { Socket } from 'node:net';
import type { Client, DN, Entry, SearchOptions } from 'ldapts';
import { BrokerError } from '../../../lib/index.ts';
import type { CheckedStream } from './checked-stream.ts';

/** The package, which is imported when the broker starts. */
export type Ldapts = typeof import('ldapts');

/** The use of a connection: searches with the rights of `bindDn`, or binds as clients, which replace these rights. */
export type Purpose = 'search' | 'bind';

/** The connection was lost during a request. */
export class ConnectionLost extends BrokerError {}

/** The server has refused a request. */
export class Refused extends BrokerError {
  /** Result code [RFC 4511 appendix A]. */
  readonly result: number;

  constructor(result: number, message: string) {
    super('LDAP_REFUSED', message);
    this.result = result;
  }
}

/** A connection to an LDAP server, for one request at a time. It never reconnects, because a new connection would not be authenticated. */
export class LdapConnection {
  #purpose: Purpose = 'bind';
  #wasUsed = false;
  #idleSinceMs = 0;
  readonly #stream: CheckedStream;
  readonly #client: Client;

  constructor({ Client }: Ldapts, stream: CheckedStream) {
    let isTaken = false;
    this.#stream = stream;
    this.#client = new Client({
      url: 'ldap://server',
      createConnection: () => {
        if (isTaken) throw new ConnectionLost('LDAP_FAILED', 'the connection was lost');
        isTaken = true;
        return stream as unknown as Socket;
      }
    });
  }

  /** The use for which the connection is authenticated. */
  get purpose(): Purpose {
    return this.#purpose;
  }

  /** True if the server has answered a request on this connection. */
  get wasUsed(): boolean {
    return this.#wasUsed;
  }

  /** The time at which it became idle, on the clock of the broker. */
  get idleSinceMs(): number {
    return this.#idleSinceMs;
  }

  get isOpen(): boolean {
    return !this.#stream.destroyed;
  }

  /** @throws Refused, ConnectionLost; the reason of the signal */
  async bind(dn: string, password: string, signal: AbortSignal): Promise<void> {
    // a plain string with the name of a SASL mechanism, such as EXTERNAL, would select that mechanism
    const name = { toString: () => dn } as DN;
    await this.#run(signal, () => this.#client.bind(name, password));
  }

  /** @throws Refused, ConnectionLost; the reason of the signal */
  async search(base: string, options: SearchOptions, signal: AbortSignal): Promise<Entry[]> {
    return (await this.#run(signal, () => this.#client.search(base, options))).searchEntries;
  }

  /** Mark the connection as in use. It keeps the process running. */
  begin(): void {
    this.#stream.keepRunning(true);
  }

  /** Mark the connection as idle. */
  release(nowMs: number): void {
    this.#idleSinceMs = nowMs;
    this.#stream.keepRunning(false);
  }

  /** Record the use for which the connection is authenticated. */
  setPurpose(purpose: Purpose): void {
    this.#purpose = purpose;
  }

  close(): void {
    this.#stream.destroy();
  }

  async #run<T>(signal: AbortSignal, request: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const abort = () => this.close();
    signal.addEventListener('abort', abort, { once: true });
    try {
      const answer = await request();
      this.#wasUsed = true;
      return answer;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const { code, message } = error as { code: unknown; message: string };
      if (typeof code === 'number') {
        this.#wasUsed = true;
        throw new Refused(code, message);
      }
      this.close();
      const why = this.#stream.fault?.message ?? 'the server has closed the connection';
      throw new ConnectionLost('LDAP_FAILED', `the connection was lost: ${why}`, { cause: error });
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }
}
