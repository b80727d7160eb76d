import type { Server } from 'node:http';
import { type Broker, type BrokerOptions, createBroker } from 'embermq';
import { type Dashboard, type DashboardOptions, dashboard } from 'embermq/dashboard';
import { serve } from './management.ts';

/** The password of the users of `startConsole`. */
export const PASSWORD = 'a password';

type Call = Awaited<ReturnType<typeof serve>>['call'];

/** A browser: it keeps the cookies of one origin and sends them back, as far as the console notices. */
class Browser {
  readonly #call: Call;
  readonly #origin: string;
  cookie: string | undefined = undefined;
  /** The last header `Set-Cookie`. */
  setCookie: string | undefined = undefined;

  constructor({ call, port }: { readonly call: Call; readonly port: number }) {
    this.#call = call;
    this.#origin = `http://127.0.0.1:${port}`;
  }

  async send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const ofBrowser: Record<string, string> = { 'embermq-console': 'person' };
    if (method !== 'GET') Object.assign(ofBrowser, { origin: this.#origin, 'content-type': 'application/json' });
    if (this.cookie !== undefined) ofBrowser.cookie = this.cookie;
    const answer = await this.#call(method, path, body, { ...ofBrowser, ...headers });
    const cookie = answer.headers.get('set-cookie');
    if (cookie !== null) {
      this.setCookie = cookie;
      this.cookie = /Max-Age=0/.test(cookie) ? undefined : cookie.split(';')[0];
    }
    return answer;
  }

  /** Log in; the mount is at `base`. */
  login(id: string, password = PASSWORD, base = '') {
    return this.send('POST', `${base}/login`, { id, password });
  }
}

/** Start a broker with the users `ann` (administrator) and `bob` (viewer). */
async function startWithUsers(options: BrokerOptions = {}): Promise<Broker> {
  const broker = createBroker({ passwordCost: 10, ...options });
  await broker.start();
  await broker.users.create('ann', PASSWORD, 'administrator');
  await broker.users.create('bob', PASSWORD);
  return broker;
}

/**
 * Serve the console of a broker with users.
 * @param prepare receives the server before it listens
 */
export async function startConsole(
  options: DashboardOptions = {},
  ofBroker: BrokerOptions = {},
  prepare: (server: Server, mounted: Dashboard) => void = () => {}
) {
  const broker = await startWithUsers(ofBroker);
  const mounted: Dashboard = dashboard(broker, options);
  const server = await serve(mounted.node, (http) => prepare(http, mounted));
  return {
    broker,
    dashboard: mounted,
    port: server.port,
    call: server.call,
    browser: () => new Browser(server),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await broker.stop();
    }
  };
}
