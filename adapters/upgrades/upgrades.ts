// A claimed upgrade request reaches no other listener. WebSocket packages that share an HTTP server close requests
// for paths they do not know (`ws` with 400, a Fastify router with 404), and a listener cannot keep an event from the
// others. `attachWebSocket` therefore replaces the server's `emit` while it is attached, and takes the requests of
// its path first.

import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { BrokerError } from '../../lib/index.ts';
import { isForWebSocket, pathOf, respond, serveWithoutUpgrade } from './requests.ts';

/** A listener that accepts the upgrade requests for one path. */
export interface Claimant {
  readonly name: string;
  readonly path: string;
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

type UpgradeEvent = [request: IncomingMessage, socket: Duplex, head: Buffer];
/** Takes an upgrade request, or returns false if it is for another path. */
type Taker = (...event: UpgradeEvent) => boolean;

/**
 * Distributes the upgrade requests of one HTTP server by path.
 *
 * Listeners of other packages close requests for unknown paths, so they must not receive the requests claimed here. A
 * listener cannot withhold an event from others, so the server's `emit` is replaced while there are claims.
 */
class Upgrades {
  readonly #http: Server;
  readonly #claims = new Map<string, Claimant>();
  /** Functions that decide on their own; asked after the claims. */
  readonly #takers = new Set<Taker>();
  /** The current replacement of the server's `emit`; undefined if it is not replaced. */
  #replacement: { readonly by: Server['emit']; readonly undo: () => void } | undefined;

  constructor(http: Server) {
    this.#http = http;
  }

  /** Claim the path of a listener. @throws BrokerError LISTENER_BIND_FAILED if another listener has claimed it */
  add(claimant: Claimant): void {
    const other = this.#claims.get(claimant.path);
    if (other !== undefined) {
      throw new BrokerError(
        'LISTENER_BIND_FAILED',
        `path ${claimant.path} of this HTTP server is in use by listener ${other.name}; choose another path`
      );
    }
    this.#begin();
    this.#claims.set(claimant.path, claimant);
  }

  /** Add a function that takes the requests for paths that it knows. @returns a function that removes it */
  take(taker: Taker): () => void {
    const one: Taker = (...event) => taker(...event);
    this.#begin();
    this.#takers.add(one);
    return () => {
      if (this.#takers.delete(one)) this.#end();
    };
  }

  #begin(): void {
    // Node emits upgrade requests only if there is a listener
    if (!this.#isUsed) this.#http.on('upgrade', this.#onUpgrade);
    this.#intercept();
  }

  get #isUsed(): boolean {
    return this.#claims.size + this.#takers.size > 0;
  }

  delete(claimant: Claimant): void {
    if (this.#claims.get(claimant.path) !== claimant) return;
    this.#claims.delete(claimant.path);
    this.#end();
  }

  #end(): void {
    if (this.#isUsed) return;
    this.#http.off('upgrade', this.#onUpgrade);
    // if another package has replaced `emit` since, both replacements stay; this one no longer has claims
    if (this.#http.emit !== this.#replacement?.by) return;
    this.#replacement.undo();
    this.#replacement = undefined;
  }

  #intercept(): void {
    const http = this.#http;
    // another package may have replaced `emit` without calling this replacement: then replace it again
    if (http.emit === this.#replacement?.by) return;
    const { emit } = http;
    const undo = Object.hasOwn(http, 'emit') ? () => (http.emit = emit) : () => Reflect.deleteProperty(http, 'emit');
    const by = (event: string | symbol, ...args: unknown[]): boolean =>
      (event === 'upgrade' && this.#take(...(args as UpgradeEvent))) || Reflect.apply(emit, http, [event, ...args]);
    http.emit = by;
    this.#replacement = { by, undo };
  }

  #take(...[request, socket, head]: UpgradeEvent): boolean {
    const claimant = this.#claims.get(pathOf(request));
    if (claimant === undefined) return [...this.#takers].some((take) => take(request, socket, head));
    claimant.handleUpgrade(request, socket, head);
    return true;
  }

  readonly #onUpgrade = (...[request, socket, head]: UpgradeEvent): void => {
    if (this.#take(request, socket, head) || this.#http.listenerCount('upgrade') > 1) return;
    if (isForWebSocket(request)) respond(socket, 404);
    else serveWithoutUpgrade(this.#http, request, socket, head);
  };
}

const known = new WeakMap<Server, Upgrades>();

/** Return the object that distributes the upgrade requests of a server; there is one per server. */
export function upgradesOf(http: Server): Upgrades {
  const upgrades = known.get(http) ?? new Upgrades(http);
  known.set(http, upgrades);
  return upgrades;
}
