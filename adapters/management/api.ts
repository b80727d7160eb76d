// The steps of `answer` have a fixed order: preflight, the row of method and path, checks of browsers, credentials,
// what a viewer may do, input, `run`, audit. An error of any step becomes a fault, with the status and code of its
// kind; the revision `errors: 'original'` answers as the documented products do. The document of the interface is
// made when it is first asked for.

import { checkBroker, passwordCheckOf } from '../../lib/adapter.ts';
import { type Broker, InvalidInput } from '../../lib/index.ts';
import {
  type Answer,
  basicCredentials,
  type Call,
  type Caller,
  Fault,
  type Found,
  Guard,
  type HttpMounts,
  isPreflight,
  mountsOf,
  type OpenApiDocument,
  Router,
  type Service,
  withCors
} from '../rest/index.ts';
import { checkQuery, loadChecks, readQuery } from '../rest/kit/index.ts';
import { Audit, type ChangeRequest } from './audit.ts';
import { faultOf } from './codes.ts';
import { EventStreams } from './event-stream.ts';
import { checkBody, checkNames, pageRequest } from './input.ts';
import { openApi } from './openapi.ts';
import { type Context, type Input, type Operation, operation, requestOf } from './operation.ts';
import { OPERATIONS } from './operations/index.ts';
import { type ManagementOptions, type ManagementSettings, readManagementOptions } from './options.ts';
import { answerTo, answerWith, BareAnswer } from './reply.ts';
import { REVISION_ROWS, type Revision } from './revisions.ts';
import { Walks } from './walks.ts';

/** The management interface of a broker, ready to be mounted. */
export interface ManagementApi extends HttpMounts {
  /**
   * The OpenAPI 3.1 document of the interface, as `GET {prefix}/openapi.json` answers it.
   * @param prefix of several revisions, the one with this prefix. Default: the first one
   * @throws InvalidInput OPTION_INVALID if none has the prefix
   */
  openapi(prefix?: string): OpenApiDocument;
}

/**
 * Make the management interface of a broker.
 *
 * ```ts
 * const api = managementApi(broker, { revision: 'later', prefix: '/api/v4' });
 * app.use(api.node); // Express; the other routes of the app stay as they are
 * ```
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function managementApi(broker: Broker, options: ManagementOptions = {}): ManagementApi {
  checkBroker(broker, 'managementApi');
  return managementApis(broker, [options]);
}

/**
 * Make several revisions of the management interface for one server. A path belongs to the one with the longest prefix, so `/api/v4/clients`
 * is not taken for a path below `/api`.
 *
 * ```ts
 * const api = managementApis(broker, [
 *   { revision: 'earlier' },
 *   { revision: 'later', prefix: '/api/v4' },
 *   { revision: 'hosted', unmatched: 'next' }
 * ]);
 * ```
 * @throws InvalidInput OPTION_INVALID, also if two have the same prefix; OPTION_UNKNOWN
 */
export function managementApis(broker: Broker, list: readonly ManagementOptions[]): ManagementApi {
  checkBroker(broker, 'managementApis');
  const interfaces = list.map((options) => new Management(broker, readManagementOptions(options)));
  return {
    ...mountsOf(broker, interfaces),
    openapi: (prefix = interfaces[0]?.prefixes[0]) => {
      const found = interfaces.find(({ prefixes }) => prefixes.includes(prefix));
      if (found !== undefined) return found.document;
      const all = interfaces.flatMap(({ prefixes }) => prefixes.map((one) => `"${one}"`));
      throw new InvalidInput('OPTION_INVALID', 'prefix', `one of ${all.join(', ')}`, prefix);
    }
  };
}

class Management implements Service {
  readonly #broker: Broker;
  readonly #settings: ManagementSettings;
  readonly #revision: Revision;
  readonly #operations: readonly Operation[];
  readonly #router: Router<Operation>;
  readonly #guard: Guard;
  readonly #streams: EventStreams;
  readonly #audit: Audit;
  readonly #walks: Walks;
  /** Created on first use. */
  #document: OpenApiDocument | undefined = undefined;
  /** The document as last sent. */
  #sent: { readonly mountedAt: string; readonly text: string } | undefined = undefined;

  constructor(broker: Broker, settings: ManagementSettings) {
    this.#broker = broker;
    this.#settings = settings;
    this.#revision = REVISION_ROWS[settings.revision];
    const rows = OPERATIONS.filter((row) => row.in === undefined || row.in.includes(settings.revision));
    const document = operation({
      name: 'openapi',
      method: 'GET',
      path: '/openapi.json',
      descr: 'The OpenAPI document of this interface',
      run: ({ mountedAt }) => new BareAnswer(this.#textAt(mountedAt))
    });
    this.#router = new Router([...rows, document]);
    this.#operations = rows.filter((row) => this.#isOn(row));
    this.#guard = new Guard(broker, settings, { name: 'management' });
    this.#streams = new EventStreams(broker, settings.maxEventStreams);
    this.#audit = new Audit(broker, settings);
    this.#walks = new Walks(broker.clock);
  }

  get prefixes(): readonly string[] {
    return this.#settings.prefixes;
  }

  get document(): OpenApiDocument {
    return (this.#document ??= this.#documented());
  }

  async answer(call: Call): Promise<Answer | undefined> {
    const { origins } = this.#settings;
    if (isPreflight(call, origins)) {
      const methods = this.methods(call.path);
      const answer: Answer = { status: 204, headers: { allow: ['OPTIONS', ...methods].join(', ') }, body: '' };
      return methods.length === 0 ? undefined : withCors(call, answer, { origins, methods });
    }
    const answer = await this.#answered(call);
    return answer && withCors(call, answer, { origins, methods: [] });
  }

  async #answered(call: Call): Promise<Answer | undefined> {
    const isOriginal = this.#settings.errors === 'original';
    const request: ChangeRequest = {};
    try {
      const method = call.method === 'HEAD' ? 'GET' : call.method;
      const found = this.#router.find(method, call.path);
      if (found === undefined && (this.#settings.unmatched === 'next' || call.method === 'OPTIONS')) return undefined;
      request.row = found?.row;
      request.params = found?.params;
      const admitted = this.#guard.admit(call, method !== 'GET', found?.row);
      const caller = admitted instanceof Promise ? await admitted : admitted;
      request.caller = caller;
      const isViewer = caller.scope === 'viewer';
      if (isViewer && !isForViewer(method, caller, found))
        throw new Fault(
          'notPermitted',
          found?.row.isForAdministrators === true
            ? 'only administrators may use this operation: its answer contains password hashes'
            : 'these credentials may only read'
        );
      if (found !== undefined && !this.#isOn(found.row))
        throw new Fault(
          'notPermitted',
          'operations that show or change applications are switched off here (option appOperations)'
        );
      if (found === undefined) throw this.#unknown(call);
      const run = () => this.#run(found.row, request, call, caller);
      const answer = await (isViewer && method !== 'GET'
        ? this.#guard.limited(call, caller, { run, isWrong: isWrongPassword })
        : run());
      if (method !== 'GET') this.#audit.add(request, call, undefined);
      return answer;
    } catch (error) {
      const fault = request.row?.faultOf?.(error) ?? faultOf(error);
      if (fault === undefined) this.#broker.failed(error, `answering ${call.method} ${call.path}`);
      const shown = fault ?? new Fault('failed', 'an internal error has occurred; the broker has reported it');
      this.#audit.add(request, call, shown);
      return answerTo(shown, isOriginal, fault && request.row?.originalAnswer?.(fault, this.#revision));
    }
  }

  methods(path: string): readonly string[] {
    return this.#router.methods(path);
  }

  #unknown({ method, path }: Call): Fault {
    const methods = this.#router.methods(path);
    const asked = `${method} ${path.slice(0, 200)}`;
    if (methods.length === 0) return new Fault('unknownPath', `there is no operation ${asked}`);
    const allow = methods.join(', ');
    return new Fault('unknownPath', `there is no operation ${asked}; this path has ${allow}`, undefined, {
      allow
    });
  }

  /** The JSON text of the document for a client that calls the interface below a path. */
  #textAt(mountedAt: string): string {
    if (this.#sent?.mountedAt !== mountedAt) {
      const servers = [{ url: mountedAt === '' ? '/' : mountedAt }];
      this.#sent = { mountedAt, text: JSON.stringify({ ...this.document, servers }) };
    }
    return this.#sent.text;
  }

  #documented(): OpenApiDocument {
    const { prefixes, maxRowLimit, credentials, errors } = this.#settings;
    return openApi(this.#operations, {
      revision: this.#revision,
      prefixes,
      maxRowLimit,
      isOriginal: errors === 'original',
      asksForCredentials: credentials !== 'none' && credentials !== 'host',
      version: this.#broker.version
    });
  }

  #isOn(row: Operation): boolean {
    return this.#settings.appOperations || row.isForApplications !== true;
  }

  async #run(row: Operation, request: ChangeRequest, call: Call, caller: Caller): Promise<Answer> {
    const { params = {} } = request;
    const { maxRowLimit, maxBodyBytes, bodyTimeout, errors, optionSource, appOperations } = this.#settings;
    const isOriginal = errors === 'original';
    if (!isOriginal || row.path.startsWith('/x/')) checkNames(row, call.query);
    const given = readQuery(call.query);
    const page = pageRequest(row, given, { maxRowLimit, isOriginal });
    const loading = loadChecks();
    if (loading !== undefined) await loading;
    const query = checkQuery(requestOf(row, isOriginal).query, given);
    const sent =
      row.body === undefined
        ? undefined
        : await call.body({ maxBytes: Math.max(maxBodyBytes, row.maxBodyBytes ?? 0), timeoutMs: bodyTimeout });
    const body = sent === undefined ? undefined : checkBody(row, sent, { isOriginal, params });
    const context: Context = {
      broker: this.#broker,
      revision: this.#revision,
      operations: this.#operations,
      streams: this.#streams,
      isOriginal,
      appOperations,
      page,
      walks: this.#walks,
      caller,
      isSecret: async (hash) => {
        const { secret } = basicCredentials(call.header('authorization') ?? '') ?? {};
        return secret !== undefined && passwordCheckOf(hash)(Buffer.from(secret));
      },
      mountedAt: call.mountedAt,
      text: sent !== undefined && 'text' in sent ? sent.text : undefined,
      optionSource
    };
    request.query = query;
    request.body = body;
    const { directory } = this.#broker;
    return answerWith(await row.run(context, { params, query, body } as Input), page, () => directory.nextSlice());
  }
}

/**
 * Check whether a viewer may send a request: reads except of password hashes, and changes of the viewer's own password.
 */
function isForViewer(method: string, caller: Caller, found: Found<Operation> | undefined): boolean {
  if (method === 'GET') return found?.row.isForAdministrators !== true;
  return found?.row.isForViewer?.(caller, found.params) === true;
}

function isWrongPassword(error: unknown): boolean {
  const kind = faultOf(error)?.kind;
  return kind === 'unauthorized' || kind === 'wrongOldPassword';
}
