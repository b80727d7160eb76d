// One service has all paths of the console, and hands those below `/api` and `/streams` to the two interfaces: as three
// mounts, a base path of the host app with a segment `api` would be taken for the interface.

import type { Broker } from '../../lib/index.ts';
import { answerTo, faultOf, managementService, STREAM_HEADERS } from '../management/parts/index.ts';
import {
  type Answer,
  bodyTooLarge,
  type Call,
  type Caller,
  endingWith,
  Fault,
  Guard,
  type LoginSettings,
  parseJson,
  Router,
  type Service
} from '../rest/index.ts';
import { Audit } from '../rest/kit/index.ts';
import { streamsService } from '../streams-api/parts/index.ts';
import { Assets } from './assets.ts';
import { LiveStreams } from './live/live-streams.ts';
import { challengeFor, Logins } from './logins.ts';
import { MqttUpgrades } from './mqtt-upgrades.ts';
import { type DashboardOptions, type DashboardSettings, sharedOptions } from './options.ts';

/** A path of the console itself. */
interface ConsoleRoute {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly run: (call: Call, params: Readonly<Record<string, string>>) => Promise<Answer>;
}

/** Maximum size of the body of a login. */
const MAX_LOGIN_BYTES = 16_384;
/** Maximum size of a body with watches: 200 topics for each of some views. */
const MAX_WATCHES_BYTES = 1_048_576;
/** Maximum size of the body of a request in a body: names have at most 65,535 bytes, which percent escapes make three times as long. */
const MAX_REQUEST_BYTES = 1_048_576;
const ASSETS = '/assets/';
const JSON_HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff'
};

/** The console of a broker, ready to be mounted. */
export class Console implements Service {
  readonly prefixes: readonly string[];
  readonly upgrades: MqttUpgrades;
  readonly #broker: Broker;
  readonly #settings: DashboardSettings;
  readonly #logins: Logins;
  readonly #guard: Guard;
  readonly #audit: Audit;
  readonly #assets: Assets;
  readonly #live: LiveStreams;
  /** True if an upgrade request came as another request, because the host has not passed it on. */
  #hasMissed = false;
  readonly #routes: Router<ConsoleRoute>;
  /** The interfaces below the mount, by their paths. */
  readonly #interfaces: Readonly<Record<string, Service>>;

  /** @param given the options as they were given, for the interfaces */
  constructor(broker: Broker, settings: DashboardSettings, given: DashboardOptions) {
    this.prefixes = [settings.prefix];
    this.#broker = broker;
    this.#settings = settings;
    // streams end before their sessions, which would be a less useful reason
    this.#live = new LiveStreams(broker, settings.viewerPayloads);
    broker.users.onChange(({ name }) =>
      this.#live.endIf(({ kind, id }) => kind === 'user' && id === name, 'the user has changed')
    );
    broker.on('broker.stopped', () => this.#live.endIf(() => true, 'the broker has stopped'));
    this.#logins = new Logins(broker, settings);
    const identifyBelow = (path: string) => (call: Call) =>
      this.#logins.identify(call, call.mountedAt.slice(0, -path.length || undefined));
    this.#guard = new Guard(
      broker,
      { ...settings, origins: new Set(), identify: identifyBelow('') },
      { name: 'console' }
    );
    this.#audit = new Audit(broker, { ...settings, recorded: new Set() });
    this.#assets = new Assets();
    this.upgrades = new MqttUpgrades(broker, this.#logins, settings);
    this.#routes = new Router<ConsoleRoute>([
      { method: 'GET', path: '/session', run: (call) => this.#session(call) },
      { method: 'POST', path: '/login', run: (call) => this.#login(call) },
      { method: 'POST', path: '/logout', run: (call) => this.#logout(call) },
      { method: 'POST', path: '/requests', run: (call) => this.#requestIn(call) },
      { method: 'GET', path: '/live', run: (call) => this.#openLive(call) },
      { method: 'GET', path: '/mqtt', run: () => this.#missUpgrade() },
      { method: 'PUT', path: '/live/:id', run: (call, { id }) => this.#setLive(call, id) }
    ]);
    const { optionSource, plugins } = given;
    const shared = { ...sharedOptions(given), credentials: 'users' as const, prefix: '' };
    const management = { ...shared, revision: 'hosted' as const, ...(optionSource && { optionSource }) };
    const streams = { ...shared, errors: 'json' as const, ...(plugins && { plugins }) };
    const { viewerPayloads, audit } = settings;
    const loginsBelow = (path: string): LoginSettings => ({ identify: identifyBelow(path), viewerPayloads, audit });
    this.#interfaces = {
      '/api': managementService(broker, management, loginsBelow('/api')),
      '/streams': streamsService(broker, streams, loginsBelow('/streams'))
    };
  }

  methods(path: string): readonly string[] {
    const below = this.#below(path);
    if (below !== undefined) return below.service.methods(below.path);
    const methods = this.#routes.methods(path);
    return methods.length > 0 ? methods : ['GET', 'HEAD'];
  }

  async answer(call: Call): Promise<Answer | undefined> {
    const below = this.#below(call.path);
    if (below !== undefined) {
      const session = this.#logins.ofCookies(call.header('cookie'), call.mountedAt, call.isSecure);
      const answer = await below.service.answer({
        ...call,
        path: below.path,
        mountedAt: call.mountedAt + below.prefix
      });
      return answer?.isEndless === true && session !== undefined
        ? endingWith(answer, (end) => session.onEnd(end))
        : answer;
    }
    try {
      const found = this.#routes.find(call.method === 'HEAD' ? 'GET' : call.method, call.path);
      if (found !== undefined) return await found.row.run(call, found.params);
      const answer = await this.#fileFor(call);
      if (answer !== undefined || this.#settings.unmatched === 'next') return answer;
      throw this.#unknown(call);
    } catch (error) {
      return this.#refusal(error, call);
    }
  }

  #below(path: string): { readonly service: Service; readonly prefix: string; readonly path: string } | undefined {
    for (const [prefix, service] of Object.entries(this.#interfaces))
      if (path === prefix || path.startsWith(`${prefix}/`)) return { service, prefix, path: path.slice(prefix.length) };
    return undefined;
  }

  /** The shell or another file of the page; undefined: neither is asked for. */
  async #fileFor(call: Call): Promise<Answer | undefined> {
    const { method, path } = call;
    if (method !== 'GET' && method !== 'HEAD') return undefined;
    if (path === '' || (path === '/' && !isFolder(call))) return toFolder(call);
    if (path.startsWith(ASSETS)) return this.#assets.file(path.slice(1), call);
    const asksForPage = path === '/' || /\btext\/html\b/i.test(call.header('accept') ?? '');
    return asksForPage ? this.#assets.shell(path) : undefined;
  }

  async #session(call: Call): Promise<Answer> {
    this.#guard.checkBrowser(call, false);
    const { caller, cookie } = await this.#logins.sessionFor(call, call.mountedAt);
    return this.#loggedIn(caller, cookie);
  }

  async #login(call: Call): Promise<Answer> {
    if (this.#logins.isOfHost)
      throw new Fault('unknownPath', 'people log in to the host app, not here (option login of dashboard)');
    const { id, password } = await this.#credentialsIn(call);
    const caller = await this.#guard.login(call, { id, secret: password });
    const { cookie } = this.#logins.open(caller, call, call.mountedAt);
    this.#record(call, 'login', caller);
    return this.#loggedIn(caller, cookie);
  }

  async #logout(call: Call): Promise<Answer> {
    this.#guard.checkBrowser(call, true);
    const { caller, cookie } = this.#logins.close(call, call.mountedAt);
    if (caller !== undefined) this.#record(call, 'logout', caller);
    return { status: 200, headers: { ...JSON_HEADERS, 'set-cookie': cookie }, body: '{}' };
  }

  #record(call: Call, name: 'login' | 'logout', caller: Caller): void {
    const row = { name, method: 'POST', path: `/${name}` } as const;
    this.#audit.add({ call, row, params: {}, caller }, { status: 200, code: 0 });
  }

  /**
   * A request to one of the interfaces, in the body of another one, because URLs cannot have every name: servers limit their length, and browsers
   * resolve `.` and `..`. Everything that is checked for the request itself is checked here, too.
   * @throws Fault notJson, missingParameter, bodyTooLarge, unknownPath
   */
  async #requestIn(call: Call): Promise<Answer> {
    await this.#guard.admit(call, true);
    const { method, path, body } = await this.#bodyOf(call, MAX_REQUEST_BYTES);
    if (typeof method !== 'string' || !/^(GET|POST|PUT|DELETE)$/.test(method) || typeof path !== 'string')
      throw new Fault(
        'missingParameter',
        'the body must be an object with "method", which is GET, POST, PUT or DELETE, and "path", which begins with /api/ or /streams/'
      );
    const mark = `${path}?`.indexOf('?');
    const sent = { method, path: path.slice(0, mark), query: path.slice(mark + 1) };
    if (this.#below(sent.path) === undefined) throw this.#unknown({ ...call, ...sent });
    const answer = await this.answer({ ...call, ...sent, body: async ({ maxBytes }) => sentBody(body, maxBytes) });
    return answer ?? this.#refusal(this.#unknown({ ...call, ...sent }), call);
  }

  /** @throws Fault notJson, missingParameter, bodyTooLarge */
  async #credentialsIn(call: Call): Promise<{ readonly id: string; readonly password: string }> {
    const { id, password } = await this.#bodyOf(call, MAX_LOGIN_BYTES);
    if (typeof id !== 'string' || typeof password !== 'string')
      throw new Fault('missingParameter', 'the body must be an object with the texts "id" and "password"');
    return { id, password };
  }

  /** @throws Fault notJson, bodyTooLarge */
  async #bodyOf(call: Call, maxBytes: number): Promise<Readonly<Record<string, unknown>>> {
    const sent = await call.body({ maxBytes, timeoutMs: this.#settings.bodyTimeout });
    const body = 'text' in sent ? jsonOf(sent.text) : sent.value;
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  }

  async #openLive(call: Call): Promise<Answer> {
    const caller = await this.#guard.admit(call, false);
    if (call.method === 'HEAD') return { status: 200, headers: STREAM_HEADERS, body: '' };
    const session = this.#logins.ofCookies(call.header('cookie'), call.mountedAt, call.isSecure);
    return { status: 200, headers: STREAM_HEADERS, body: this.#live.open(caller, session) };
  }

  async #setLive(call: Call, id: string): Promise<Answer> {
    const caller = await this.#guard.admit(call, true);
    const { watches } = await this.#bodyOf(call, MAX_WATCHES_BYTES);
    await this.#live.set(id, watches, caller);
    return { status: 200, headers: JSON_HEADERS, body: '{}' };
  }

  /** Without a handler, an upgrade request comes as a request. */
  async #missUpgrade(): Promise<Answer> {
    this.#hasMissed = true;
    throw new Fault(
      'unknownPath',
      'WebSockets are not passed on to the console: the host app must call handleUpgrade, or a proxy must forward them'
    );
  }

  #loggedIn({ id, scope, kind }: Caller, cookie: string | undefined): Answer {
    const { version, settings, startedAt } = this.#broker;
    const body = {
      id,
      scope,
      hasPassword: kind === 'user', // which the person can change
      node: settings.node,
      version,
      startedAt,
      viewerPayloads: this.#settings.viewerPayloads,
      upgrades: this.upgrades.hasArrived ? 'arrive' : this.#hasMissed ? 'missing' : 'untried',
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone // of the local times in answers
    };
    const headers = cookie === undefined ? JSON_HEADERS : { ...JSON_HEADERS, 'set-cookie': cookie };
    return { status: 200, headers, body: JSON.stringify(body) };
  }

  #unknown({ method, path }: Call): Fault {
    const asked = `there is no ${method} ${path.slice(0, 200)} here`;
    const methods = this.#routes.methods(path);
    if (methods.length === 0) return new Fault('unknownPath', asked);
    const allow = methods.join(', ');
    return new Fault('unknownPath', `${asked}; this path has ${allow}`, undefined, { headers: { allow } });
  }

  #refusal(error: unknown, call: Call): Answer {
    const known = faultOf(error);
    if (known === undefined) this.#broker.failed(error, `answering ${call.method} ${call.path} of the console`);
    const fault = known ?? new Fault('failed', 'an internal error has occurred; the broker has reported it');
    const answer = answerTo(fault, false);
    const challenge = fault.kind === 'unauthorized' ? challengeFor(call) : {};
    const headers = { ...answer.headers, ...challenge, ...JSON_HEADERS };
    if (fault.kind !== 'unauthorized') return { ...answer, headers };
    const { loginUrl } = this.#settings;
    const ways = { ...(this.#logins.isOfHost && { login: 'host' }), ...(loginUrl !== undefined && { loginUrl }) };
    return { ...answer, headers, body: JSON.stringify({ ...JSON.parse(answer.body as string), ...ways }) };
  }
}

/** The body of a request in a body. @throws Fault bodyTooLarge */
function sentBody(value: unknown, maxBytes: number): { readonly value: unknown } {
  if (Buffer.byteLength(JSON.stringify(value) ?? '') > maxBytes) throw bodyTooLarge(maxBytes);
  return { value };
}

/** @throws Fault notJson */
function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    throw new Fault('notJson', `the body is not valid JSON: ${(error as Error).message}`);
  }
}

/** False if the router of the host has added the slash to the path of the mount. */
function isFolder({ original }: Call): boolean {
  const { originalUrl, url = '/' } = original as { readonly originalUrl?: string; readonly url?: string };
  return (originalUrl ?? url).replace(/[?#].*$/s, '').endsWith('/');
}

/** Redirect from the path of the mount to the same with a slash, on which the relative addresses of the page rest. */
function toFolder({ mountedAt, query }: Call): Answer {
  const last = mountedAt.slice(mountedAt.lastIndexOf('/') + 1);
  const location = `./${last}/${query === '' ? '' : `?${query}`}`;
  return { status: 308, headers: { location, 'cache-control': 'no-store' }, body: '' };
}
