// HTTP servers of the command are listeners of the broker. `listenHttp` makes a `ListenerHandle`, so a start fails as
// a whole if a port that was written is in use, a stop closes the servers together with the clients, and lists,
// metrics and health show them. Requests wait until the first start has made its application, because no one could
// log in before. A full disk must not keep the broker from its start, so an application that cannot be stored is a
// warning.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { shownUrl } from '../../../lib/adapter.ts';
import { type Broker, InvalidInput } from '../../../lib/index.ts';
import { dashboard } from '../../dashboard/index.ts';
import { type HttpMounts, healthHandler, managementApis, metricsHandler } from '../../management/index.ts';
import type { HttpHandlers } from '../../net/index.ts';
import { streamsApi } from '../../streams-api/index.ts';
import type { PluginsApi } from '../../streams-plugins/index.ts';
import type { HttpKind, ServedDashboardOptions, ServedOptions } from './http-options.ts';
import type { ServedStreamsOptions } from './streams.ts';

/** Options with their place. */
interface Served<O> {
  readonly options: O;
  readonly place: string;
}

/**
 * The handlers of the HTTP ports. Requests wait until `begin`.
 */
export class ServedHttp {
  readonly handlers: Readonly<Record<HttpKind, RequestListener | HttpHandlers>>;
  #waiting: { readonly go: () => void; readonly response: ServerResponse }[] | undefined = [];

  /** @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
  constructor(
    broker: Broker,
    { options, place }: Served<ServedOptions>,
    { options: ofStreams, place: placeOfStreams }: Served<ServedStreamsOptions>,
    { options: ofDashboard, place: placeOfDashboard }: Served<ServedDashboardOptions>,
    plugins: PluginsApi | undefined
  ) {
    const { metrics, health, ...management } = options;
    const { hosts, trustedProxies, proxyHeader } = management;
    const guard = {
      credentials: 'none' as const,
      ...(hosts === undefined ? {} : { hosts }),
      ...(trustedProxies === undefined ? {} : { trustedProxies }),
      ...(proxyHeader === undefined ? {} : { proxyHeader })
    };
    const at = <T>(where: string, make: () => T): T => {
      try {
        return make();
      } catch (error) {
        throw error instanceof InvalidInput ? inPlace(error, where) : error;
      }
    };
    const named = <T>(name: string, make: () => T): T => at(`${place}${name}`, make);
    const earlier = named('', () => managementApis(broker, [{ ...management, revision: 'earlier' }]));
    const later = named('', () =>
      managementApis(broker, [
        { ...management, revision: 'later' },
        { ...management, revision: 'hosted' }
      ])
    );
    const counters = named('.metrics', () => metricsHandler(broker, { ...guard, ...metrics }));
    const states = named('.health', () => healthHandler(broker, { ...guard, ...health }));
    const withPlugins = plugins && { plugins };
    const rules = at(placeOfStreams, () => streamsApi(broker, { ...ofStreams, ...withPlugins }));
    const { optionSource } = options;
    const sources = optionSource && { optionSource };
    const page = at(placeOfDashboard, () => dashboard(broker, { ...ofDashboard, ...withPlugins, ...sources }));
    this.handlers = {
      rules: this.#held([rules]),
      earlier: this.#held([earlier]),
      later: this.#held([later, counters, states]),
      dashboard: { node: this.#held([page]), handleUpgrade: page.handleUpgrade }
    };
  }

  /** Answer the waiting requests, and all later ones immediately. */
  begin(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const { go } of waiting) go();
  }

  /** Reject the waiting requests. */
  end(): void {
    for (const { response } of this.#waiting?.splice(0) ?? []) response.destroy();
  }

  #held(mounts: readonly HttpMounts[]): RequestListener {
    return (request, response) => {
      const go = () => inTurn(mounts, 0, request, response);
      if (this.#waiting === undefined) go();
      else this.#waiting.push({ go, response });
    };
  }
}

/** Pass a request to the first handler that has the path. */
function inTurn(mounts: readonly HttpMounts[], at: number, request: IncomingMessage, response: ServerResponse): void {
  if (at < mounts.length) mounts[at].node(request, response, () => inTurn(mounts, at + 1, request, response));
  else answerUnknown(mounts, request, response);
}

/** Answer a method that a path does not have, or an unknown path. */
function answerUnknown(mounts: readonly HttpMounts[], { method, url = '' }: IncomingMessage, response: ServerResponse) {
  const methods = mounts.flatMap((mount) => mount.methods(url));
  const allow = methods.length === 0 ? undefined : ['OPTIONS', ...methods].join(', ');
  if (allow !== undefined) response.setHeader('allow', allow);
  if (method === 'OPTIONS' && allow !== undefined) {
    response.writeHead(204).end();
    return;
  }
  const known = allow === undefined ? 'the management interface begins with /api' : `this path has ${allow}`;
  const body = JSON.stringify({
    code: 102,
    message: `there is no ${method} ${shownUrl(url).slice(0, 200)} here; ${known}`
  });
  response.writeHead(404, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(method === 'HEAD' ? undefined : body);
}

/** The error with the place in the config file instead of the name of a function. */
function inPlace({ code, field, expected, got, message }: InvalidInput, place: string): InvalidInput {
  const text = message.replace(/\b(managementApi|metricsHandler|healthHandler|streamsApi|dashboard)\b/, place);
  return new InvalidInput(code, field, expected, got, text === message ? `${place}: ${message}` : text);
}
