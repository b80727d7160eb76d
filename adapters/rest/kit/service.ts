// The steps of a request have a fixed order: find the row of method and path, checks of browsers, credentials, what a
// viewer may do, input, `run`, audit. The one catch makes a fault of an error of any step. An interface is rows, and a
// style: functions that read requests and write answers, and change nothing.

import type { AuditEntry, Awaitable, Broker } from '../../../lib/index.ts';
import type { TrustedProxies } from '../../upgrades/index.ts';
import type { BrowserSettings } from '../browser-checks.ts';
import type { Answer, Body, Call, Service } from '../call.ts';
import { withCors } from '../cors.ts';
import type { Caller, Credentials } from '../credentials.ts';
import type { OpenApiDocument } from '../document.ts';
import { endingWith } from '../ending.ts';
import { Fault } from '../fault.ts';
import { Guard, type Identify } from '../guard.ts';
import { Router } from '../router.ts';
import { Audit } from './audit.ts';
import { checkQuery, loadChecks, parseQuery } from './checks.ts';
import type { CallContext, Context, Input, Operation, PageRequest, RestRequest } from './operation.ts';

/** The form of requests and answers of an interface. */
export interface ReplyStyle<M = unknown> {
  /**
   * The query and body parameters that the audit log contains in addition to those of paths. All others are left out:
   * passwords, secrets, payloads, statements, the values of options. A parameter that may have a secret must not be added.
   */
  readonly recorded: ReadonlySet<string>;
  /**
   * Tell whether a request without an operation is left to the host app.
   * @param methods those of its path
   */
  isLeft(call: Call, methods: readonly string[]): boolean;
  /** The fault for a request without an operation. */
  unknown(call: Call, methods: readonly string[]): Fault;
  /** The fault for an error; undefined: it is unexpected. */
  faultOf(error: unknown): Fault | undefined;
  /** Read the parameters of pages. Default: lists have none. @throws Fault */
  page?(row: Operation, call: Call, given: Readonly<Record<string, string>>): PageRequest;
  /** Read a body of an operation that has one. Returns undefined if it is absent and may be. @throws Fault */
  read(row: Operation, sent: Body, params: Readonly<Record<string, string>>): unknown;
  /** Check it by the schema of the operation. @throws Fault */
  check(row: Operation, body: unknown, params: Readonly<Record<string, string>>): unknown;
  /** The answer with the value that `run` has returned. */
  success(result: unknown, row: Operation, context: CallContext): Awaitable<Answer>;
  fault(fault: Fault, request: RestRequest<M>): Answer;
  /** The status and the code of a fault in the audit log. */
  codesOf(fault: Fault, row: Operation | undefined): { readonly status: number; readonly code: number };
}

/** The settings of a mount that are the same in all interfaces. */
interface RestSettings extends BrowserSettings {
  readonly prefix: readonly string[];
  readonly credentials: Credentials;
  readonly trustedProxies: TrustedProxies;
  /** False: viewers see no payloads of messages. Default true. */
  readonly viewerPayloads?: boolean | undefined;
  /** Identifies callers without credentials in the request; see `Guard`. */
  readonly identify?: Identify | undefined;
  readonly maxBodyBytes: number;
  readonly bodyTimeout: number;
  readonly audit?: ((entry: AuditEntry) => void) | undefined;
}

/** A REST interface. */
export interface RestInterface<M> {
  /** The name, for messages. */
  readonly name: string;
  /** A function of the app also gets bearer tokens, with the id ''. */
  readonly acceptsBearer?: boolean;
  /** The remedy for a caller without credentials, appended to the message. */
  readonly hint?: string;
  readonly settings: RestSettings;
  readonly operations: readonly Operation<M>[];
  readonly style: ReplyStyle<M>;
  /** Tell why an operation is refused in this mount; undefined: it is not. */
  refusal?(row: Operation): Fault | undefined;
  /** Replace names in the path by ids. */
  resolve?(row: Operation, params: Input['params']): Promise<Input['params']>;
  contextOf(shared: CallContext): Context<M>;
  /** Make the OpenAPI document. */
  document(): OpenApiDocument;
}

const NO_PAGE: PageRequest = { number: 1, limit: Infinity, skip: 0 };

/** A REST interface of a broker, ready to be mounted. */
export class RestService<M> implements Service {
  readonly #broker: Broker;
  readonly #interface: RestInterface<M>;
  readonly #router: Router<Operation<M>>;
  readonly #guard: Guard;
  readonly #audit: Audit;
  /** The users who read streams, with functions that end these. */
  readonly #readers = new Set<{ readonly id: string | undefined; readonly end: () => void }>();
  /** Created on first use. */
  #document: OpenApiDocument | undefined = undefined;
  /** The document with the path of the last client that has asked for it. */
  #served: { readonly path: string; readonly document: OpenApiDocument } | undefined = undefined;

  constructor(broker: Broker, given: RestInterface<M>) {
    const { settings, style } = given;
    this.#broker = broker;
    this.#interface = given;
    this.#router = new Router(given.operations);
    this.#guard = new Guard(broker, settings, given);
    this.#audit = new Audit(broker, { ...settings, recorded: style.recorded });
    broker.users.onChange(({ name }) => {
      for (const { id, end } of this.#readers) if (id === name) end();
    });
  }

  get prefixes(): readonly string[] {
    return this.#interface.settings.prefix;
  }

  get document(): OpenApiDocument {
    return (this.#document ??= this.#interface.document());
  }

  methods(path: string): readonly string[] {
    return this.#router.methods(path);
  }

  async answer(call: Call): Promise<Answer | undefined> {
    const { settings, style } = this.#interface;
    const found = this.#router.find(call.method === 'HEAD' ? 'GET' : call.method, call.path);
    const methods = found === undefined ? this.methods(call.path) : [];
    if (found === undefined && style.isLeft(call, methods)) return undefined;
    const isForMethods = call.method === 'OPTIONS' && methods.length > 0;
    const answer: Answer = isForMethods
      ? { status: 204, headers: { allow: ['OPTIONS', ...methods].join(', ') }, body: '' }
      : await this.#answered({ call, row: found?.row, params: found?.params ?? {} }, methods);
    return withCors(call, answer, { origins: settings.origins, methods });
  }

  async #answered(request: RestRequest<M>, methods: readonly string[]): Promise<Answer> {
    const { call, row, params } = request;
    const { style } = this.#interface;
    try {
      const caller = await this.#guard.admit(call, isChange(call), row);
      request.caller = caller;
      checkViewer(caller, request, this.#hidesPayloads(caller));
      if (row === undefined) throw style.unknown(call, methods);
      const refusal = this.#interface.refusal?.(row);
      if (refusal !== undefined) throw refusal;
      const run = () => this.#run(request, row, caller);
      const isOwnChange = caller.scope === 'viewer' && row.isForViewer !== undefined;
      const answer = await (isOwnChange
        ? this.#guard.limited(call, caller, { run, isWrong: (error) => this.#isWrongPassword(error) })
        : run());
      this.#audit.add(request, { status: row.status ?? 200, code: 0 });
      return answer.isEndless === true && caller.kind === 'user' ? this.#endingWithUser(caller, answer) : answer;
    } catch (error) {
      const input = request.input ?? ({ params, query: {}, body: {} } as Input);
      const expected = style.faultOf(row?.faultOf?.(error, input) ?? error);
      if (expected === undefined) this.#broker.failed(error, `answering ${call.method} ${call.path}`);
      const fault = expected ?? new Fault('failed', 'an internal error has occurred; the broker has reported it');
      this.#audit.add(request, style.codesOf(fault, row));
      return style.fault(fault, request);
    }
  }

  /** A stream ends when the user is changed or deleted: the credentials are checked only at its beginning. */
  #endingWithUser({ id }: Caller, answer: Answer): Answer {
    return endingWith(answer, (end) => {
      const reader = { id, end };
      this.#readers.add(reader);
      return () => void this.#readers.delete(reader);
    });
  }

  async #run(request: RestRequest, row: Operation, caller: Caller): Promise<Answer> {
    const { call, params } = request;
    const { settings, style, resolve, contextOf } = this.#interface;
    const parameters = parseQuery(call.query);
    const page = style.page?.(row, call, parameters) ?? NO_PAGE;
    const loading = loadChecks();
    if (loading !== undefined) await loading;
    const query = checkQuery(row.query, parameters);
    const maxBytes = Math.max(settings.maxBodyBytes, row.maxBodyBytes ?? 0);
    const sent = row.body && (await call.body({ maxBytes, timeoutMs: settings.bodyTimeout }));
    const given = sent && style.read(row, sent, params);
    request.given = { query, body: given };
    const body = sent && style.check(row, given, params);
    const input = { params: resolve === undefined ? params : await resolve(row, params), query, body };
    request.input = input;
    const shared: CallContext = {
      broker: this.#broker,
      call,
      caller,
      hidesPayloads: this.#hidesPayloads(caller),
      page,
      text: sent !== undefined && 'text' in sent ? sent.text : undefined,
      document: () => this.#documentAt(call.mountedAt)
    };
    return style.success(await row.run(contextOf(shared), input), row, shared);
  }

  /** The document for a client that calls the interface below a path: the same object as long as the path is the same. */
  #documentAt(path: string): OpenApiDocument {
    if (this.#served?.path !== path)
      this.#served = { path, document: { ...this.document, servers: [{ url: path === '' ? '/' : path }] } };
    return this.#served.document;
  }

  #hidesPayloads({ scope }: Caller): boolean {
    return scope === 'viewer' && this.#interface.settings.viewerPayloads === false;
  }

  #isWrongPassword(error: unknown): boolean {
    const kind = this.#interface.style.faultOf(error)?.kind;
    return kind === 'unauthorized' || kind === 'wrongOldPassword';
  }
}

function isChange({ method }: Call): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

/**
 * Check what a viewer may request: what only reads, except password hashes, and changes of the viewer's own password.
 * @throws Fault notPermitted
 */
function checkViewer(caller: Caller, { call, row, params }: RestRequest, hidesPayloads: boolean): void {
  if (caller.scope !== 'viewer') return;
  if (hidesPayloads && row?.showsPayloads === true)
    throw new Fault('notPermitted', 'viewers may not see payloads of messages here (option viewerPayloads)');
  const isReading = !isChange(call) || row?.isReading === true;
  if (isReading ? row?.isForAdministrators !== true : row?.isForViewer?.(caller, params) === true) return;
  throw new Fault(
    'notPermitted',
    row?.isForAdministrators === true
      ? 'only administrators may use this operation: its answer contains password hashes'
      : 'these credentials may only read'
  );
}
