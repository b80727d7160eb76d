import { checkBroker } from '../../lib/adapter.ts';
import type { Broker } from '../../lib/index.ts';
import {
  Fault,
  type HttpMounts,
  type LoginSettings,
  mountsOf,
  type OpenApiDocument,
  type Service
} from '../rest/index.ts';
import { openApi, type RestInterface, RestService } from '../rest/kit/index.ts';
import type { PluginsApi } from '../streams-plugins/index.ts';
import { documentStyle } from './openapi.ts';
import type { StreamsMembers } from './operation.ts';
import { OPERATIONS } from './operations/all.ts';
import { readStreamsOptions, type StreamsApiOptions, type StreamsSettings } from './options.ts';
import { wantsJson } from './reply.ts';
import { idOf } from './rule-forms.ts';
import { makeStreamsStyle } from './style.ts';

/** The REST interface of the streams of a broker, ready to be mounted. */
export interface StreamsHttp extends HttpMounts {
  /** The OpenAPI 3.1 document of the interface, as `GET {prefix}/openapi.json` answers it. */
  openapi(): OpenApiDocument;
}

/**
 * Make the REST interface of the streams, tables, stream rules and plugins of a broker.
 *
 * ```ts
 * const api = streamsApi(broker);
 * createServer(api.node).listen(9081, '127.0.0.1');
 * ```
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function streamsApi(broker: Broker, options: StreamsApiOptions = {}): StreamsHttp {
  checkBroker(broker, 'streamsApi');
  const service = restService(broker, options);
  return {
    ...mountsOf(broker, [service], 'answering a request about streams'),
    openapi: () => service.document
  };
}

/**
 * Make the service of the interface, to be mounted beside others.
 * @param logins those of the mount
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function streamsService(broker: Broker, options: StreamsApiOptions, logins: LoginSettings): Service {
  return restService(broker, options, logins);
}

function restService(broker: Broker, options: StreamsApiOptions, logins?: LoginSettings): RestService<StreamsMembers> {
  return new RestService(broker, streamRules(broker, { ...readStreamsOptions(options), ...logins }));
}

/** The paths of one rule. */
const OF_RULE = /^(\/v2)?\/rules\/:id(\/|$)/;

function streamRules(
  broker: Broker,
  settings: StreamsSettings & Partial<LoginSettings>
): RestInterface<StreamsMembers> {
  const { streams } = broker;
  const { plugins } = settings;
  return {
    name: 'streams',
    acceptsBearer: true,
    // callers on this machine may not need credentials
    hint: `with --rules-credentials remote, or credentials: 'remote' in an app, requests from this machine need none`,
    settings,
    operations: OPERATIONS,
    style: makeStreamsStyle(settings),
    resolve: async ({ path }, params: Readonly<Record<string, string>>) =>
      OF_RULE.test(path) ? { ...params, id: await idOf(streams, params.id) } : params,
    contextOf: (shared) => ({
      ...shared,
      streams,
      get plugins(): PluginsApi {
        if (plugins !== undefined) return plugins;
        throw new Fault('unknownPath', 'plugins are not available here (option plugins of streamsApi)');
      },
      wantsJson: wantsJson(shared.call.header('accept'))
    }),
    document: () => openApi(OPERATIONS, documentStyle(settings, broker.version))
  };
}
