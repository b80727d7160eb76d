import type { Static, TObject, TSchema } from 'typebox';
import type { Awaitable, Broker } from '../../lib/index.ts';
import type { Caller, Fault, Guarded } from '../rest/index.ts';
import type { EventStreams } from './event-stream.ts';
import type { Listing, PageRequest } from './listing.ts';
import type { OptionOrigin } from './options.ts';
import type { Revision, RevisionName } from './revisions.ts';
import type { Walks } from './walks.ts';

/** The names of the parameters of a path: `clientid` for `/clients/:clientid`. */
type ParamNames<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : P extends `${string}:${infer Name}`
    ? Name
    : never;

/** The context of a call of an operation. */
export interface Context {
  readonly broker: Broker;
  readonly revision: Revision;
  /** The operations of the mount, in the order of the index. */
  readonly operations: readonly Operation[];
  /** With `errors: 'original'`: missing objects are not an error where the original products do not report one. */
  readonly isOriginal: boolean;
  /** True if the mount has operations for applications (option `appOperations`). */
  readonly appOperations: boolean;
  /** The event streams of the mount. */
  readonly streams: EventStreams;
  /** The part of the list that is requested. */
  readonly page: PageRequest;
  /** The positions at which pages of the lists of the mount have ended. */
  readonly walks: Walks;
  /** The sender of the request. */
  readonly caller: Caller;
  /**
   * Check whether a hash is that of the secret or password in the request.
   * @throws InvalidInput if the hash is not valid
   */
  isSecret(hash: string): Promise<boolean>;
  /** The path in front of the path of the operation, in the URL of the request. */
  readonly mountedAt: string;
  /**
   * The body as sent, for numbers that `JSON.parse` does not preserve; undefined if the server of the host app has
   * parsed it.
   */
  readonly text: string | undefined;
  /** Returns the source of an option's value; see `ManagementOptions`. */
  readonly optionSource: OptionOrigin | undefined;
}

/** The values of a request, checked against the schemas of the operation. */
export interface Input<P extends string = string, Q = Readonly<Record<string, unknown>>, B = unknown> {
  readonly params: Readonly<Record<ParamNames<P>, string>>;
  readonly query: Q;
  readonly body: B;
}

/** The answer of the original products to a fault, with status 200. */
export interface OriginalAnswer {
  /** Undefined: the body contains only a message. */
  readonly code?: number;
  readonly message: string;
}

/**
 * A request that succeeds with the broker of `test/support/management-fixture.ts`, and its answer. A test sends it in each revision that has
 * the operation.
 */
export interface Example<P extends string = string> {
  /** Values of the path parameters, not encoded. */
  readonly params?: Readonly<Partial<Record<P, string>>>;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  readonly body?: unknown;
  /**
   * The data of the answer, valid for the schema `data`. For a list, its first entries are enough; for counters, a
   * selection.
   */
  readonly data?: unknown;
}

/**
 * An example that is the same in all revisions of its row, or a function of the revision where names differ:
 * `({ clientIdName }) => ({ body: { [clientIdName]: 'sensor-1', topic: 'a' } })`.
 */
export type ExampleOf<P extends string = string> = Example<P> | ((revision: Revision) => Example<P>);

/**
 * Names of the objects that a request changes. The audit log has the first 20 of a list, and the first 256 characters
 * of each.
 */
export type AuditedNames = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** An operation of the interface. The index, the router, the checks, the OpenAPI document and the tests read the same rows. */
export interface Operation extends Guarded {
  /** The name in the index: `kickout_client`. */
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** The path behind the prefix; segments that begin with a colon are parameters. */
  readonly path: string;
  /** The description in the index. */
  readonly descr: string;
  /** The revisions that have it. Default: all. */
  readonly in?: readonly RevisionName[];
  /** The parameters of the query, in addition to `_page` and `_limit`. */
  readonly query?: TObject;
  /** The schema of the query with `errors: 'original'`; see `originalBody`. */
  readonly originalQuery?: TObject;
  readonly body?: TSchema;
  /**
   * The schema of the body with `errors: 'original'`, if the original products accept values that they ignore. Default:
   * `body`.
   */
  readonly originalBody?: TSchema;
  /** Maximum size of a body. Default, and minimum: the option `maxBodyBytes`. */
  readonly maxBodyBytes?: number;
  /**
   * The schema of the data of the answer; some answers have no data. Default: none, or a list of objects if the list
   * has pages.
   */
  readonly data?: TSchema;
  /**
   * The record whose other fields a body may contain, because clients send records back as they received them; they are
   * ignored. Default: `data`.
   */
  readonly shown?: TSchema;
  /** Fields of that record that repeat a path parameter under another name: `{ app_id: 'appid' }`. */
  readonly named?: Readonly<Record<string, string>>;
  /** Shown in the OpenAPI document and executed by a test. */
  readonly example?: ExampleOf;
  /** Set for operations on applications, which can be switched off for a mount (option `appOperations`). */
  readonly isForApplications?: true;
  /** Set if viewers may not use the operation although it only reads, because the answer has password hashes. */
  readonly isForAdministrators?: true;
  /**
   * Check whether a viewer may use the operation although it is not a GET. Wrong passwords (faults `unauthorized`,
   * `wrongOldPassword`) count as failed logins. Default: no.
   */
  isForViewer?(caller: Caller, params: Readonly<Record<string, string>>): boolean;
  /** Set for lists with pages: the default of `_limit`; `max`: that of the mount (option `maxRowLimit`). */
  readonly paged?: 'max' | number;
  /** Set for lists with pages that also take the parameter `cursor`. */
  readonly hasCursor?: true;
  /** Set if requests may come at a high rate: similar consecutive ones become one entry of the audit log. */
  readonly isFrequent?: true;
  /** Set if the answer is a stream of server-sent events (`EventStream`), which does not end on its own. */
  readonly isStream?: true;
  /** Set if the answer is not an envelope but a `Download` of this content type; `data` is its schema if it is JSON. */
  readonly contentType?: string;
  /**
   * The entries of the audit log for a body, in addition to the parameters recorded for all operations: names of
   * changed objects, never values that can be secret.
   */
  audited?(input: Pick<Input, 'query' | 'body'>): AuditedNames;
  /**
   * The fault for an error of this operation or of its input. Default, and if undefined: the fault in the table of
   * codes.
   */
  faultOf?(error: unknown): Fault | undefined;
  /** The answer of the original products to a fault of this operation. Default: the answer in the table of codes. */
  originalAnswer?(fault: Fault, revision: Revision): OriginalAnswer | undefined;
  /**
   * Execute the operation. Returns the data of the answer; undefined: the answer has only a code.
   * @throws Fault, or an error of the broker that `FAULTS` translates
   */
  run(context: Context, input: Input): Awaitable<unknown | Listing<unknown>>;
}

/**
 * The request schemas of an operation.
 * @param isOriginal with `errors: 'original'`
 */
export function requestOf(row: Operation, isOriginal: boolean): Pick<Operation, 'query' | 'body'> {
  const { query, body, originalQuery = query, originalBody = body } = row;
  return isOriginal ? { query: originalQuery, body: originalBody } : { query, body };
}

/** Define an operation whose `run` gets typed parameters. */
export function operation<const P extends string, Q extends TObject, B extends TSchema>(
  row: Omit<Operation, 'path' | 'query' | 'body' | 'example' | 'audited' | 'run'> & {
    readonly path: P;
    readonly example?: ExampleOf<ParamNames<P>>;
    readonly query?: Q;
    readonly body?: B;
    audited?(input: Pick<Input<P, Static<Q>, Static<B>>, 'query' | 'body'>): AuditedNames;
    run(context: Context, input: Input<P, Static<Q>, Static<B>>): Awaitable<unknown>;
  }
): Operation {
  return row as unknown as Operation;
}
