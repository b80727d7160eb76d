// MQTT over WebSocket for the client of the page. A connection needs the session of an administrator, and then the
// credentials of an MQTT client in CONNECT, as everywhere else. Upgrade requests reach no router of the host app, so their
// path is that of the URL: the mounts at which people have logged in are known.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Broker } from '../../lib/index.ts';
import type { UpgradeListener } from '../net/index.ts';
import { isSameOrigin } from '../rest/index.ts';
import { pathOf, respond, type TrustedProxies } from '../upgrades/index.ts';
import type { Logins } from './logins.ts';
import type { DashboardSettings } from './options.ts';
import type { Session } from './sessions.ts';

const PATH = '/mqtt';
const NAME = 'ws:console';

/** Takes the upgrade requests for the client of the page. */
export class MqttUpgrades {
  readonly #broker: Broker;
  readonly #logins: Logins;
  readonly #prefix: string;
  readonly #proxies: TrustedProxies;
  #listener: Promise<UpgradeListener> | undefined;
  #hasArrived = false;

  constructor(broker: Broker, logins: Logins, { prefix, trustedProxies }: DashboardSettings) {
    this.#broker = broker;
    this.#logins = logins;
    this.#prefix = prefix;
    this.#proxies = trustedProxies;
  }

  /** True if the host has passed an upgrade request on. */
  get hasArrived(): boolean {
    return this.#hasArrived;
  }

  /** @returns false: the request is for another path */
  take(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const mount = this.#mountOf(pathOf(request));
    if (mount === undefined) return false;
    this.#hasArrived = true;
    const { cookie, origin, host } = request.headers;
    const session = this.#logins.ofCookies(cookie, mount, 'encrypted' in request.socket);
    // a page of another origin on this machine has the same cookies
    if (origin !== undefined && !isSameOrigin(origin, host)) respond(socket, 403);
    else if (session === undefined) respond(socket, 401);
    else {
      socket.on('error', ignore); // until the listener has it
      this.#upgrade(session, request, socket, head).catch((error: unknown) => {
        this.#broker.failed(error, 'upgrading a connection of the console');
        respond(socket, 500);
      });
    }
    return true;
  }

  async #upgrade(session: Session, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    if (!(await this.#logins.isConfirmed(session, request))) respond(socket, 401);
    else if (session.caller.scope !== 'administrator') respond(socket, 403);
    else {
      const listener = await this.#open();
      if (socket.destroyed) return;
      const leave = session.onEnd(() => socket.destroy());
      socket.on('close', leave);
      if (session.isOpen) listener.handleUpgrade(request, socket, head);
    }
  }

  #mountOf(path: string): string | undefined {
    if (!path.endsWith(PATH)) return undefined;
    const mount = path.slice(0, -PATH.length);
    const isOwn = this.#prefix !== '' && mount === this.#prefix;
    return isOwn || this.#logins.isKnown(mount) ? mount : undefined;
  }

  /** The listener for the connections: made for the first one, since it loads what WebSockets need. */
  #open(): Promise<UpgradeListener> {
    this.#listener ??= import('../net/index.ts').then(({ upgradeHandler }) =>
      // the origin has been checked
      upgradeHandler(this.#broker, {
        name: freeNameIn(this.#broker),
        origins: () => true,
        trustedProxies: this.#proxies as never, // read already
        proxyHeader: this.#proxies.header
      })
    );
    this.#listener.catch(() => {
      this.#listener = undefined; // the next connection tries again
    });
    return this.#listener;
  }
}

function freeNameIn(broker: Broker): string {
  const names = new Set(broker.listeners().map(({ name }) => name));
  for (let number = 2, name = NAME; ; number++) {
    if (!names.has(name)) return name;
    name = `${NAME}:${number}`;
  }
}

function ignore(): void {}
