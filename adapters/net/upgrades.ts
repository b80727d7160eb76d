import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { BrokerError } from '../../lib/index.ts';
import { answer, pathOf } from './websocket.ts';

/** Who takes the upgrade requests of one path. */
export interface Claimant {
  readonly name: string;
  readonly path: string;
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

type UpgradeEvent = [request: IncomingMessage, socket: Duplex, head: Buffer];

/**
 * The upgrade requests of one HTTP server, by path.
 *
 * Listeners of other packages close requests of paths that are not theirs, so they must not see those that are claimed here. A listener
 * can not keep an event from the others: therefore the server's `emit` is replaced while there are claims.
 */
class Upgrades {
  readonly #http: Server;
  readonly #claims = new Map<string, Claimant>();
  /** The last replacement of the server's `emit`. Undefined: it is as it was. */
  #replaced: { readonly by: Server['emit']; readonly undo: () => void } | undefined;

  constructor(http: Server) {
    this.#http = http;
  }

  /** @throws BrokerError LISTENER_BIND_FAILED where the path is taken */
  add(claimant: Claimant): void {
    const other = this.#claims.get(claimant.path);
    if (other !== undefined) {
      throw new BrokerError(
        'LISTENER_BIND_FAILED',
        `path ${claimant.path} of this HTTP server is taken by listener ${other.name}; choose another path`
      );
    }
    if (this.#claims.size === 0) {
      // Node only makes upgrades of requests if there is a listener.
      this.#http.on('upgrade', this.#upgraded);
    }
    this.#intercept();
    this.#claims.set(claimant.path, claimant);
  }

  delete(claimant: Claimant): void {
    if (this.#claims.get(claimant.path) !== claimant) return;
    this.#claims.delete(claimant.path);
    if (this.#claims.size > 0) return;
    this.#http.off('upgrade', this.#upgraded);
    // If another package has replaced it since, both stay: ours finds no claims.
    if (this.#http.emit !== this.#replaced?.by) return;
    this.#replaced.undo();
    this.#replaced = undefined;
  }

  #intercept(): void {
    const http = this.#http;
    // If another package has replaced it since, it may not call ours: it is replaced again, over that of the other package.
    if (http.emit === this.#replaced?.by) return;
    const { emit } = http;
    const undo = Object.hasOwn(http, 'emit') ? () => (http.emit = emit) : () => Reflect.deleteProperty(http, 'emit');
    const by = (event: string | symbol, ...args: unknown[]): boolean =>
      (event === 'upgrade' && this.#take(...(args as UpgradeEvent))) || Reflect.apply(emit, http, [event, ...args]);
    http.emit = by;
    this.#replaced = { by, undo };
  }

  #take(...[request, socket, head]: UpgradeEvent): boolean {
    const claimant = this.#claims.get(pathOf(request));
    claimant?.handleUpgrade(request, socket, head);
    return claimant !== undefined;
  }

  readonly #upgraded = (...[request, socket, head]: UpgradeEvent): void => {
    if (this.#take(request, socket, head) || this.#http.listenerCount('upgrade') > 1) return;
    answer(socket, 404);
  };
}

const known = new WeakMap<Server, Upgrades>();

/** The one object that looks after a server's upgrade requests. */
export function upgradesOf(http: Server): Upgrades {
  const upgrades = known.get(http) ?? new Upgrades(http);
  known.set(http, upgrades);
  return upgrades;
}
