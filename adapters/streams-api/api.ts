import type { TSchema } from 'typebox';
import * as Type from 'typebox';
import { checkBroker } from '../../lib/adapter.ts';
import type { Broker } from '../../lib/index.ts';
import {
  type Answer,
  type Call,
  Fault,
  Guard,
  type HttpMounts,
  mountsOf,
  type OpenApiDocument,
  Router,
  type Service,
  withCors
} from '../rest/index.ts';
import { check, checkQuery, loadChecks, readQuery } from '../rest/kit/index.ts';
import type { PluginsApi } from '../streams-plugins/index.ts';
import { auditChange, type ChangeRequest } from './audit.ts';
import { bodyOf, noBody } from './body.ts';
import { faultOf, StreamFault } from './faults.ts';
import { openApi } from './openapi.ts';
import type { Context, Input, Operation } from './operation.ts';
import { OPERATIONS } from './operations/all.ts';
import { readStreamsOptions, type StreamsApiOptions, type StreamsSettings } from './options.ts';
import { answerTo, answerWith, wantsJson } from './reply.ts';
import { idOf } from './rule-forms.ts';

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
  const service = new StreamsRest(broker, readStreamsOptions(options));
  return {
    ...mountsOf(broker, [service], 'answering a request about streams'),
    openapi: () => service.document
  };
}

const ROUTER = new Router(OPERATIONS);
/** The paths of one rule. */
const OF_RULE = /^(\/v2)?\/rules\/:id(\/|$)/;
const UNKNOWN_PATH = '404 page not found';

/** The hint for callers on this machine, which may not need credentials. */
const HINT = `with --rules-credentials remote, or credentials: 'remote' in an app, requests from this machine need none`;

class StreamsRest implements Service {
  readonly #broker: Broker;
  readonly #settings: StreamsSettings;
  readonly #guard: Guard;

  constructor(broker: Broker, settings: StreamsSettings) {
    this.#broker = broker;
    this.#settings = settings;
    this.#guard = new Guard(broker, settings, { name: 'streams', acceptsBearer: true, hint: HINT });
  }

  get prefixes(): readonly string[] {
    return this.#settings.prefix;
  }

  get document(): OpenApiDocument {
    const { prefix, credentials } = this.#settings;
    return openApi(OPERATIONS, { prefixes: prefix, credentials, version: this.#broker.version });
  }

  methods(path: string): readonly string[] {
    return ROUTER.methods(path);
  }

  async answer(call: Call): Promise<Answer | undefined> {
    const found = ROUTER.find(call.method === 'HEAD' ? 'GET' : call.method, call.path);
    const methods = found === undefined ? ROUTER.methods(call.path) : [];
    if (methods.length === 0 && found === undefined && this.#settings.unmatched === 'next') return undefined;
    const answer =
      call.method === 'OPTIONS' && methods.length > 0
        ? optionsAnswer(methods)
        : await this.#answered(call, found?.row, { params: found?.params ?? {}, methods });
    return withCors(call, answer, { origins: this.#settings.origins, methods });
  }

  async #answered(
    call: Call,
    row: Operation | undefined,
    { params, methods }: { readonly params: Readonly<Record<string, string>>; readonly methods: readonly string[] }
  ): Promise<Answer> {
    const isJson = this.#settings.errors === 'json' || wantsJson(call.header('accept'));
    const given: ChangeRequest & { input?: Input } = { row, params };
    try {
      const isChange = call.method !== 'GET' && call.method !== 'HEAD';
      given.caller = await this.#guard.admit(call, isChange, row);
      if (given.caller.scope === 'viewer' && isChange && row?.isReading !== true)
        throw new Fault('notPermitted', 'these credentials may only read');
      if (row !== undefined) {
        const answer = await this.#run(row, params, call, given);
        this.#audit(given, call, undefined);
        return answer;
      }
      if (methods.length > 0) return { status: 405, headers: { allow: allowed(methods) }, body: '' };
      throw new StreamFault(404, 'notFound', UNKNOWN_PATH, true);
    } catch (error) {
      // the meaning of an error depends on the input of the operation
      const fault = (given.input && row?.faultOf?.(error, given.input)) ?? faultOf(error);
      if (fault === undefined) this.#broker.failed(error, `answering ${call.method} ${call.path}`);
      const shown =
        fault ?? new StreamFault(500, 'undefined', 'an internal error has occurred; the broker has reported it');
      this.#audit(given, call, shown);
      const prefix = typeof row?.errorPrefix === 'function' ? row.errorPrefix(params) : row?.errorPrefix;
      return answerTo(shown, prefix ?? '', { wantsJson: isJson, cause: error });
    }
  }

  #audit(request: ChangeRequest, call: Call, fault: StreamFault | undefined): void {
    auditChange(this.#broker, request, { call, trustedProxies: this.#settings.trustedProxies, fault });
  }

  async #run(
    row: Operation,
    params: Readonly<Record<string, string>>,
    call: Call,
    given: { input?: Input }
  ): Promise<Answer> {
    const { maxBodyBytes, bodyTimeout, maxDepth } = this.#settings;
    const loading = loadChecks();
    if (loading !== undefined) await loading;
    const query = checkQuery(row.query, readQuery(call.query));
    let body: unknown;
    if (row.body !== undefined) {
      const sent = await call.body({ maxBytes: maxBodyBytes, timeoutMs: bodyTimeout });
      const value = bodyOf(sent, row, { params, maxDepth });
      if (value === undefined && !isOptional(row.body)) throw noBody(row, params);
      if (value !== undefined) {
        body = value;
        given.input = { params, query, body } as Input;
        row.first?.(value);
        check(row.body, value, 'body');
      }
    }
    const { streams } = this.#broker;
    const named = OF_RULE.test(row.path) ? { ...params, id: await idOf(streams, params.id) } : params;
    const input = { params: named, query, body } as Input;
    given.input = input;
    return answerWith(row.status ?? 200, await row.run(this.#context(call), input));
  }

  #context(call: Call): Context {
    const broker = this.#broker;
    const { plugins } = this.#settings;
    return {
      broker,
      streams: broker.streams,
      get plugins(): PluginsApi {
        if (plugins !== undefined) return plugins;
        throw new StreamFault(404, 'notFound', 'plugins are not available here (option plugins of streamsApi)', true);
      },
      wantsJson: wantsJson(call.header('accept')),
      mountedAt: call.mountedAt,
      document: (mountedAt) => ({ ...this.document, servers: [{ url: mountedAt === '' ? '/' : mountedAt }] })
    };
  }
}

function isOptional(schema: TSchema): boolean {
  return Type.IsOptional(schema);
}

function allowed(methods: readonly string[]): string {
  return ['OPTIONS', ...methods].join(', ');
}

function optionsAnswer(methods: readonly string[]): Answer {
  return { status: 204, headers: { allow: allowed(methods) }, body: '' };
}
